"""Where a text names `_metadata` of files, and the stars beside it, which must not give it.

The column is bound to files whose `_metadata` a text names and to no others, under that very name;
so only stars have to be written out. What a table's columns are is known when it is bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millpond.engine.sqltext.binding import quoted, table_aliases
from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.references import TableReference
from millpond.engine.sqltext.source import Edit, QueryText
from millpond.errors.engine import UnsupportedReadError
from millpond.files.metadata import METADATA_NAME
from millpond.sql.tokens import TokenKind, identifier_value

# What it is called where there is no `_metadata`, and the field that it means.
FILE_NAME_FUNCTION = "input_file_name"
FILE_PATH = f"{METADATA_NAME}.file_path"
_HALF_JOINS = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True)
class StarPart:
    """A table whose columns a star gives.

    Attributes:
        alias: In backticks.
        name_start: Of a table that is named in the text.
    """

    alias: str
    name_start: int | None


@dataclass(frozen=True)
class Star:
    """A star, from `start` to `end`, the name before it included.

    Attributes:
        except_end: Where the list of columns ends that it leaves out, if it has one.
    """

    start: int
    end: int
    parts: tuple[StarPart, ...]
    is_qualified: bool
    except_end: int | None = None


@dataclass(frozen=True)
class FileMetadata:
    """What a text does with `_metadata`.

    Attributes:
        asked: Where the names of the files start whose `_metadata` it names.
        stars: Those that stand beside it.
        edits: Of calls that mean one of its fields.
    """

    asked: frozenset[int] = frozenset()
    stars: tuple[Star, ...] = ()
    edits: tuple[Edit, ...] = ()

    def inside(self, stretches: Collection[tuple[int, int]]) -> FileMetadata:
        """The same of a part of the text, which has every character in its place."""

        def is_inside(offset: int) -> bool:
            return any(start <= offset < end for start, end in stretches)

        return replace(
            self,
            stars=tuple(star for star in self.stars if is_inside(star.start)),
            edits=tuple(edit for edit in self.edits if is_inside(edit.start)),
        )


def find_metadata(
    tree: exp.Query,
    references: Sequence[TableReference],
    *,
    source: QueryText,
    outline: Outline,
    watermarks: Sequence[tuple[int, int]],
) -> FileMetadata:
    """Find where a text names `_metadata`.

    Raises:
        UnsupportedReadError: A star beside it can't be written out.
    """
    if not names_metadata(outline, 0, len(source.text)):
        return FileMetadata()
    found = _Finder(tree, references, source, outline)
    for column in tree.find_all(exp.Column):
        found.add_column(column)
    for call in tree.find_all(exp.Anonymous):
        found.add_call(call)
    for start, end in watermarks:
        if names_metadata(outline, start, end):
            found.add_last_before(start)
    return FileMetadata(frozenset(found.asked), tuple(found.stars()), tuple(found.edits))


def star_edits(stars: Sequence[Star], columns: Mapping[int, Sequence[str]]) -> Iterator[Edit]:
    """Edits that write stars out, or add to what they leave out.

    Args:
        columns: By where its name starts, the columns that a star gives of a table. Of others it
            gives all.
    """
    for star in stars:
        starts = [part.name_start for part in star.parts]
        listed = [None if start is None else columns.get(start) for start in starts]
        if not any(names is not None for names in listed):
            continue
        if star.except_end is not None:
            yield Edit(star.except_end, star.except_end, f", {METADATA_NAME}")
            continue
        is_qualified = star.is_qualified or len(star.parts) > 1
        written: list[str] = []
        for part, names in zip(star.parts, listed, strict=True):
            before = f"{part.alias}." if is_qualified else ""
            written.extend(
                [f"{part.alias}.*"] if names is None else [before + quoted(name) for name in names]
            )
        yield Edit(star.start, star.end, ", ".join(written))


def check_no_metadata(outline: Outline, source: QueryText) -> None:
    """Refuse `_metadata` in a text without a syntax tree.

    Raises:
        UnsupportedReadError: It is named.
    """
    for index, token in enumerate(outline.tokens):
        if _means_metadata(outline, index):
            raise UnsupportedReadError.of(
                f"{token.text} in a query whose syntax only the engine can read",
                where=source.locate(token.start),
                instead="name it in a subquery in FROM",
                detail=source.caret(token.start, token.end),
            )


def names_metadata(outline: Outline, start: int, end: int) -> bool:
    """Whether `_metadata`, or what means a field of it, is named between two offsets."""
    return any(
        start <= token.start < end and _means_metadata(outline, index)
        for index, token in enumerate(outline.tokens)
    )


def _means_metadata(outline: Outline, index: int) -> bool:
    token = outline.tokens[index]
    if token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
        return False
    name = identifier_value(token).lower()
    return name == METADATA_NAME or (name == FILE_NAME_FUNCTION and outline.word(index + 1) == "(")


def is_metadata(name: str) -> bool:
    return name.lower() == METADATA_NAME


class _Finder:
    def __init__(
        self,
        tree: exp.Query,
        references: Sequence[TableReference],
        source: QueryText,
        outline: Outline,
    ) -> None:
        self.asked: set[int] = set()
        self.edits: list[Edit] = []
        self._outline = outline
        self._tree = tree
        self._ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        self._source = source
        self._files = {each.name_start for each in references if each.read.is_files}
        self._aliases = {
            each.name_start: alias
            for each, alias in zip(references, table_aliases(references), strict=True)
            if each.alias_at is not None
        }

    def add_column(self, column: exp.Column) -> None:
        """Note a column, if it is `_metadata` of files of a query around it."""
        names = [part.name.lower() for part in identifiers(column)]
        if METADATA_NAME in names[:2]:
            self._ask(column, names)

    def add_call(self, call: exp.Anonymous) -> None:
        """Note a call of `input_file_name()`, which is the path as it stands in `_metadata`."""
        if call.name.lower() != FILE_NAME_FUNCTION or not self._ask(call, [METADATA_NAME]):
            return
        start = call.meta["start"]
        closing = self._outline.closing(self._outline.index_at(start) + 1)
        name = f" AS `{FILE_NAME_FUNCTION}()`" if isinstance(call.parent, exp.Select) else ""
        end = self._outline.tokens[closing].end
        self.edits.append(Edit(start, end, FILE_PATH + name))

    def _ask(self, node: exp.Expr, names: Sequence[str]) -> bool:
        """Find the files that a name means. Returns whether there are any."""
        select = node.find_ancestor(exp.Select)
        while select is not None:
            sources = list(tables_of(select))
            if names[0] == METADATA_NAME:
                if any(map(self._gives_metadata, sources)):
                    return False
                meant = [each for each in sources if _start(each) in self._files]
            else:
                meant = [each for each in sources if each.alias_or_name.lower() == names[0]]
            found = {start for each in meant if (start := _start(each)) in self._files}
            self.asked |= found
            if meant:
                return bool(found)
            select = select.find_ancestor(exp.Select)
        return False

    def add_last_before(self, offset: int) -> None:
        """Note the files whose clause begins at an offset."""
        before = [start for start in self._files if start < offset]
        if before:
            self.asked.add(max(before))

    def stars(self) -> Iterator[Star]:
        for select in self._tree.find_all(exp.Select):
            sources = list(tables_of(select, seen_by_star=True))
            asked = [each for each in sources if _start(each) in self.asked]
            if not asked:
                continue
            for table in asked:
                self._check_columns(table)
            for star in _own_stars(select):
                found = self._star(select, star, sources, asked)
                if found is not None:
                    yield found

    def _star(
        self,
        select: exp.Select,
        star: exp.Star,
        sources: Sequence[exp.Expr],
        asked: Sequence[exp.Expr],
    ) -> Star | None:
        column = star.parent
        start, end = star.meta["start"], star.meta["end"] + 1
        if isinstance(column, exp.Column):
            parts = identifiers(column)
            meant = [
                each
                for each in asked
                if len(parts) == 1 and each.alias_or_name.lower() == parts[0].name.lower()
            ]
            if not meant:
                return None
            return Star(
                parts[0].meta["start"],
                end,
                (self._part(meant[0]),),
                is_qualified=True,
                except_end=self._except_end(star),
            )
        if star.args.get("except_"):
            # What it leaves out needs no other names for the rest.
            return Star(
                start,
                end,
                tuple(map(self._part, asked)),
                is_qualified=False,
                except_end=self._except_end(star),
            )
        nameless = any(not each.alias_or_name for each in sources)
        merged = any(join.args.get("using") for join in select.args.get("joins") or [])
        if len(sources) > 1 and (nameless or merged):
            raise self._refused(
                start,
                end,
                f"A star beside {METADATA_NAME} and "
                + ("JOIN ... USING" if merged else "a subquery without a name"),
                "name the columns",
            )
        return Star(start, end, tuple(map(self._part, sources)), is_qualified=False)

    def _except_end(self, star: exp.Star) -> int | None:
        if not star.args.get("except_"):
            return None
        opening = self._outline.index_at(star.meta["start"]) + 2
        return self._outline.tokens[self._outline.closing(opening)].start

    def _part(self, table: exp.Expr) -> StarPart:
        start = _start(table)
        alias = self._aliases.get(-1 if start is None else start)
        return StarPart(alias or quoted(table.alias_or_name), start)

    def _gives_metadata(self, source: exp.Expr) -> bool:
        """Whether a subquery or CTE has a column of its own that is called so."""
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table) and _start(source) not in self._files:
            inner = self._ctes.get(source.name.lower())
        return isinstance(inner, exp.Query) and any(map(is_metadata, inner.named_selects))

    def _check_columns(self, table: exp.Expr) -> None:
        """Raise where the columns of a table are not those of the files."""
        alias = table.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and alias.columns
        if renamed or table.args.get("pivots"):
            start = _start(table) or 0
            raise self._refused(
                start,
                start + len(table.name),
                f"{METADATA_NAME} of files "
                + ("with other names for their columns" if renamed else "beside PIVOT"),
                "select the columns in a subquery in FROM first",
            )

    def _refused(self, start: int, end: int, what: str, instead: str) -> UnsupportedReadError:
        return UnsupportedReadError.of(
            what,
            where=self._source.locate(start),
            instead=instead,
            detail=self._source.caret(start, end),
        )


def tables_of(select: exp.Select, *, seen_by_star: bool = False) -> Iterator[exp.Expr]:
    """What a SELECT reads, joins in parentheses open, in the order of the text."""
    start = select.args.get("from_")
    if start is not None:
        yield from _opened(start.this)
    for join in select.args.get("joins") or []:
        if not (seen_by_star and join.kind.upper() in _HALF_JOINS):
            yield from _opened(join.this)
    yield from select.args.get("laterals") or []


def _opened(source: exp.Expr) -> Iterator[exp.Expr]:
    inner = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(inner, exp.Table | exp.Subquery) and not source.alias:
        yield from _opened(inner)
    else:
        yield source
    if isinstance(source, exp.Table | exp.Subquery):
        for join in source.args.get("joins") or []:
            yield from _opened(join.this)


def _own_stars(select: exp.Select) -> Iterator[exp.Star]:
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            yield node


def _start(table: exp.Expr) -> int | None:
    parts = identifiers(table) if isinstance(table, exp.Table) else ()
    return min((int(part.meta["start"]) for part in parts), default=None)
