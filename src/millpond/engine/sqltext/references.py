"""Finds every table that a query's text names, with its place in the text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from millpond.engine.protocol import TableRead
from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.source import QueryText
from millpond.engine.sqltext.streams import AFTER_TABLE, Options, Stream, name_end
from millpond.errors.engine import (
    InvalidReadOptionError,
    UnsupportedReadError,
    UnsupportedStreamingSourceError,
)
from millpond.sql.tokens import TokenKind, identifier_value, keywords, string_value

FILE_FORMATS = frozenset({"parquet", "csv", "json", "text", "orc", "avro", "binaryfile"})
_TRAVEL = {
    "VERSION": "versionasof",
    "SYSTEM_VERSION": "versionasof",
    "TIMESTAMP": "timestampasof",
    "SYSTEM_TIME": "timestampasof",
}
_NO_NAME = keywords("SELECT VALUES LATERAL TABLE ( ) ,")


@dataclass(frozen=True)
class TableReference:
    """One place of a text that names a table.

    Attributes:
        written: The parts of the name as written, without backticks.
        start: Where the reference starts, `STREAM` included.
        end: Where it ends, time travel included.
        name_start: Where the name itself starts.
        alias_at: Where an alias belongs, or `None` where the user gave one.
    """

    read: TableRead
    written: tuple[str, ...]
    start: int
    end: int
    name_start: int
    alias_at: int | None


@dataclass(frozen=True)
class Findings:
    """What the tokens say about a text.

    Attributes:
        watermarks: Start and end of each WATERMARK clause.
        external: Names that are bound already: DataFrames given to `spark.sql`.
        functions: By where its name starts, what a function such as `read_files` reads.
    """

    source: QueryText
    outline: Outline
    streams: tuple[Stream, ...] = ()
    options: tuple[Options, ...] = ()
    watermarks: tuple[tuple[int, int], ...] = ()
    external: Collection[str] = field(default_factory=frozenset)
    functions: Mapping[int, TableRead] = field(default_factory=dict)


class _Found(NamedTuple):
    """A name in a text; `aliased` is `None` where only the tokens behind it can tell."""

    start: int
    end: int
    names: tuple[str, ...]
    aliased: bool | None


def references_in_tree(findings: Findings, tree: exp.Query) -> list[TableReference]:
    """Every table that a parsed query names, in the order of the text."""
    found: list[_Found] = []
    for table in tree.find_all(exp.Table):
        parts = identifiers(table)
        if not parts or table.find_ancestor(exp.Hint) is not None:
            continue
        names = tuple(part.name for part in parts)
        start = min(part.meta["start"] for part in parts)
        is_query = is_cte(table, names[0]) or names[0] in findings.external
        if len(names) == 1 and is_query and start not in findings.functions:
            _refuse_stream_of_query(findings, start, names[0])
            continue
        end = max(part.meta["end"] for part in parts) + 1
        found.append(_Found(start, end, names, aliased=bool(table.alias)))
    found.sort(key=lambda one: one.start)
    return list(_references(findings, found))


def references_in_tokens(findings: Findings) -> list[TableReference]:
    """Every table that a text names, where there is no syntax tree of it."""
    outline = findings.outline
    ctes = set(_cte_names(outline))
    found: list[_Found] = []
    streams = {stream.start: stream for stream in findings.streams}
    for position in outline.table_positions:
        stream = streams.get(outline.tokens[position].start)
        index = outline.index_at(stream.name_start) if stream else position
        token = outline.tokens[index]
        behind = name_end(outline, index)
        is_name = token.kind is TokenKind.QUOTED or token.word not in _NO_NAME
        if not is_name or (outline.word(behind) == "(" and not stream):
            continue
        names = tuple(identifier_value(part) for part in outline.tokens[index:behind:2])
        is_query = names[0].lower() in ctes or names[0] in findings.external
        if len(names) == 1 and is_query and token.start not in findings.functions:
            _refuse_stream_of_query(findings, token.start, names[0])
            continue
        found.append(_Found(token.start, outline.tokens[behind - 1].end, names, aliased=None))
    return list(_references(findings, found))


def _refuse_stream_of_query(findings: Findings, start: int, name: str) -> None:
    """A name that stands for a query is read as it is; its own reads say what streams."""
    if any(stream.name_start == start for stream in findings.streams):
        raise UnsupportedStreamingSourceError.of(
            f"{name}, which is a query of the same statement and no table,",
            where=findings.source.locate(start),
            detail=findings.source.caret(start, start + len(name)),
        )


def is_cte(table: exp.Expr, name: str) -> bool:
    """Whether a name stands for a common table expression where the table is named."""
    child, node = table, table.parent
    cte: exp.Expr | None = None
    while node is not None:
        if isinstance(child, exp.CTE):
            cte = child
        clause = node.args.get("with_")
        if isinstance(clause, exp.With) and name.lower() in _visible(
            clause, inside=cte if child is clause else None
        ):
            return True
        child, node = node, node.parent
    return False


def _visible(clause: exp.With, *, inside: exp.Expr | None) -> Iterator[str]:
    """Names of a WITH clause; inside it, a CTE sees those before it, and itself if recursive."""
    for cte in clause.expressions:
        if cte is not inside or clause.args.get("recursive"):
            yield cte.alias.lower()
        if cte is inside:
            return


def _references(findings: Findings, found: list[_Found]) -> Iterator[TableReference]:
    streams = {stream.name_start: stream for stream in findings.streams}
    unused = {options.start: options for options in findings.options}
    for one in found:
        reference = _Reference(findings, one, streams.get(one.start))
        if not reference.is_file:
            yield reference.build(unused)
    for options in unused.values():
        raise InvalidReadOptionError.at(
            "no table stands before them, or it has options already",
            where=findings.source.locate(options.start),
            detail=findings.source.caret(options.start, options.end),
        )


class _Reference:
    """Puts one reference together from its name and the tokens around it."""

    def __init__(self, findings: Findings, found: _Found, stream: Stream | None) -> None:
        self._findings = findings
        self._source = findings.source
        self._outline = findings.outline
        self._names = found.names
        self._name_start = found.start
        self._name_end = found.end
        self._aliased = found.aliased
        self._stream = stream

    @property
    def is_file(self) -> bool:
        """Whether the engine itself reads it: ``parquet.`path` `` and the like."""
        is_file = len(self._names) == 2 and self._names[0].lower() in FILE_FORMATS
        is_path = self._source.text[self._name_end - 1] == "`"
        if is_file and is_path and self._stream is not None:
            raise UnsupportedStreamingSourceError.of(
                f"A path of format {self._names[0]}",
                where=self._source.locate(self._name_start),
                detail=self._source.caret(self._name_start, self._name_end),
            )
        if is_file and is_path and not _is_absolute(self._names[1]):
            raise UnsupportedReadError.of(
                f"The relative path {self._names[1]}",
                where=self._source.locate(self._name_start),
                instead="give an absolute path",
                detail=self._source.caret(self._name_start, self._name_end),
            )
        return is_file and is_path

    def build(self, unused: dict[int, Options]) -> TableReference:
        """The reference; options that are its own are taken out of `unused`."""
        start = self._stream.start if self._stream else self._name_start
        end = self._stream.end if self._stream else self._name_end
        end, travel = self._time_travel(end)
        options = self._options(start, end, unused)
        values, names = (options.values, options.names) if options else ({}, {})
        return TableReference(
            read=self._read({**travel, **values}, names),
            written=self._names,
            start=start,
            end=end,
            name_start=self._name_start,
            alias_at=None if self._has_alias(end) else self._alias_place(end),
        )

    def _read(self, options: Mapping[str, str], option_names: Mapping[str, str]) -> TableRead:
        names = self._names
        function = self._findings.functions.get(self._name_start)
        if function is not None:
            return replace(
                function,
                streaming=self._stream is not None,
                options={**function.options, **options},
                option_names={**function.option_names, **option_names},
            )
        is_path = len(names) == 2 and names[0].lower() == "delta"
        if len(names) == 2 and names[0].lower() == "live":
            names = names[1:]
        if len(names) > 3:
            raise UnsupportedReadError.of(
                f"The table name {'.'.join(names)}, which has more than three parts,",
                where=self._source.locate(self._name_start),
                instead="write catalog.schema.table",
                detail=self._source.caret(self._name_start, self._name_end),
            )
        return TableRead(
            name=() if is_path else names,
            path=names[1] if is_path else None,
            streaming=self._stream is not None,
            options=options,
            option_names=option_names,
            location=self._source.locate(self._name_start),
            catalog=self._source.catalog,
            schema=self._source.schema,
        )

    def _time_travel(self, end: int) -> tuple[int, dict[str, str]]:
        """`VERSION AS OF 3` and the like after the name: where it ends, and the option it is."""
        outline = self._outline
        index = outline.index_at(end)
        if outline.word(index) == "@":
            raise self._unsupported(index, "A version written with @", "write VERSION AS OF n")
        at = index + 1 if outline.word(index) == "FOR" else index
        option = _TRAVEL.get(outline.word(at))
        if option is None or (outline.word(at + 1), outline.word(at + 2)) != ("AS", "OF"):
            return end, {}
        value = outline.tokens[at + 3] if at + 3 < len(outline.tokens) else outline.tokens[at]
        if value.kind is TokenKind.STRING:
            return value.end, {option: string_value(value)}
        if value.kind is TokenKind.NUMBER and option == "versionasof":
            return value.end, {option: value.text}
        raise self._unsupported(
            at, "Time travel to an expression", "give a literal version or timestamp"
        )

    def _unsupported(self, index: int, what: str, instead: str) -> UnsupportedReadError:
        token = self._outline.tokens[index]
        return UnsupportedReadError.of(
            what,
            where=self._source.locate(token.start),
            instead=instead,
            detail=self._source.caret(token.start, token.end),
        )

    def _options(self, start: int, end: int, unused: dict[int, Options]) -> Options | None:
        """The options that follow this reference before any other table is named."""
        outline = self._outline
        own = outline.index_at(start)
        following = next((at for at in outline.table_positions if at > own), None)
        limit = len(self._source.text) if following is None else outline.tokens[following].start
        own_options = [place for place in unused if end <= place < limit]
        return unused.pop(own_options[0]) if own_options else None

    def _has_alias(self, end: int) -> bool:
        if self._aliased is not None:
            return self._aliased
        for options in self._findings.options:
            between = self._source.text[end : options.start]
            if options.start >= end and not between.strip():
                end = options.end
        index = self._outline.index_at(end)
        if index >= len(self._outline.tokens):
            return False
        token = self._outline.tokens[index]
        is_name = token.kind is TokenKind.WORD and token.word not in AFTER_TABLE
        return token.word == "AS" or token.kind is TokenKind.QUOTED or is_name

    def _alias_place(self, end: int) -> int:
        """Behind the reference and its TABLESAMPLE, which Spark reads before an alias."""
        outline = self._outline
        index = outline.index_at(end)
        while outline.word(index) in {"TABLESAMPLE", "REPEATABLE"}:
            closing = outline.closing(index + 1)
            end = outline.tokens[closing].end
            index = closing + 1
        return end


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:/")) or "://" in path


def _cte_names(outline: Outline) -> Iterator[str]:
    """Names that stand before `AS (` of a query, wherever they are in the text."""
    for index, token in enumerate(outline.tokens):
        if outline.word(index + 1) == "AS" and outline.word(index + 2) == "(":
            yield identifier_value(token).lower()
