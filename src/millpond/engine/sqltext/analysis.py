"""One query's text, understood: its tables, its syntax tree, and what it does over streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.engine.protocol import TableRead
from millpond.engine.shapes import Operator, OperatorKind, Rows
from millpond.engine.sqltext.binding import bound_text
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.file_metadata import (
    FileMetadata,
    check_no_metadata,
    find_metadata,
    star_edits,
)
from millpond.engine.sqltext.laterals import lateral_edits
from millpond.engine.sqltext.operators import describe
from millpond.engine.sqltext.parsing import (
    check_depth,
    check_one_query,
    ends_too_early,
    parse_query,
    syntax_error,
)
from millpond.engine.sqltext.references import (
    Findings,
    TableReference,
    references_in_tokens,
    references_in_tree,
)
from millpond.engine.sqltext.source import Edit, QueryText, apply_edits, blanked
from millpond.engine.sqltext.streams import find_options, find_streams, find_watermarks
from millpond.engine.sqltext.table_functions import by_name_start, find_function_reads
from millpond.engine.sqltext.using import check_using
from millpond.errors.engine import QueryAnalysisError

# Whether an engine can read a text that sqlglot can't.
CanRead = Callable[[str], bool]


@dataclass(frozen=True)
class TextAnalysis:
    """A query's text with all that millpond knows of it.

    Attributes:
        references: The tables it names, in the order of the text.
        tree: Its syntax tree, or `None` where only the engine can read it.
        metadata: What the text does with `_metadata` of files.
        gives_metadata: Whether its rows are to hold `_metadata` where it is read: of a part of a
            text, what stands around it names that.
    """

    source: QueryText
    outline: Outline
    references: tuple[TableReference, ...]
    tree: exp.Query | None
    findings: Findings
    metadata: FileMetadata = field(default_factory=FileMetadata)
    gives_metadata: bool = False

    @property
    def reads(self) -> tuple[TableRead, ...]:
        return tuple(reference.read for reference in self.references)

    @property
    def is_whole_table(self) -> bool:
        """Whether the query is `SELECT * FROM` one table, and nothing else."""
        if not isinstance(self.tree, exp.Select) or self.findings.watermarks:
            return False
        if {key for key, value in self.tree.args.items() if value} != {"expressions", "from_"}:
            return False
        items, table = self.tree.expressions, self.tree.args["from_"].this
        parts = {key for key, value in table.args.items() if value} - {"alias", "db", "catalog"}
        is_star = len(items) == 1 and isinstance(items[0], exp.Star)
        alias = table.args.get("alias")
        renames = alias is not None and bool(alias.args.get("columns"))
        is_plain = isinstance(table, exp.Table) and parts == {"this"} and not renames
        is_plain = is_plain and len(self.reads) == 1
        return is_star and not any(items[0].args.values()) and is_plain

    def bound(
        self,
        names: Sequence[str],
        *,
        columns: Mapping[int, Sequence[str]] | None = None,
        for_streaming: bool = False,
    ) -> str:
        """The text with the n-th name in the place of the n-th table.

        Args:
            columns: By a table's number, the columns that a star gives, where that is not all.
            for_streaming: Whether it is for an engine that knows streams, and their watermarks.
        """
        text = bound_text(
            self.source.text,
            self._behind_watermarks() if for_streaming else self.references,
            names,
            without=_options(self.findings) if for_streaming else _extras(self.findings),
            tree=self.tree,
            edits=[
                *(() if for_streaming else lateral_edits(self.outline)),
                *self.metadata.edits,
                *self._star_edits(columns or {}),
            ],
        )
        return text.rstrip().rstrip(";")

    def _behind_watermarks(self) -> list[TableReference]:
        """The tables, with aliases to be put behind the watermarks that stay in the text."""
        ends = dict(self.findings.watermarks)
        kept = blanked(self.source.text, _options(self.findings))

        def behind(at: int | None) -> int | None:
            if at is None:
                return None
            following = len(kept) - len(kept[at:].lstrip())
            return ends.get(following, at)

        return [replace(found, alias_at=behind(found.alias_at)) for found in self.references]

    def _star_edits(self, columns: Mapping[int, Sequence[str]]) -> Iterator[Edit]:
        by_start = {self.references[at].name_start: names for at, names in columns.items()}
        return star_edits(self.metadata.stars, by_start)

    def describe(
        self, external: Mapping[str, Rows], *, aggregates: Collection[str] = ()
    ) -> tuple[list[Operator], Rows]:
        """What the query does, and what is known of its rows.

        Args:
            external: By name, the rows of a DataFrame that the text refers to.
            aggregates: The user's own aggregate functions, in lower case.
        """
        if self.tree is not None:
            return describe(
                self.tree,
                outline=self.outline,
                source=self.source,
                tables={reference.name_start: reference.read for reference in self.references},
                external=external,
                watermarks=self.findings.watermarks,
                aggregates=aggregates,
            )
        rows = Rows.of_inputs([*map(Rows.of_read, self.reads), *external.values()])
        unread = "A query whose syntax only the engine can read"
        return [Operator(OperatorKind.UNKNOWN, unread, (rows,), where=self.source.location)], rows


def analyse(
    source: QueryText,
    *,
    can_read: CanRead,
    external: Collection[str] = frozenset(),
    functions: Mapping[int, TableRead] | None = None,
) -> TextAnalysis:
    """Read a query's text.

    Args:
        can_read: Asked where sqlglot finds the syntax wrong, since Spark has more of it.
        external: Names that stand for DataFrames, not for tables.
        functions: Of a part of a text that was read before: by the place of its name, what a
            function such as `read_files` reads. Its arguments are gone.

    Raises:
        MillpondError: It is not one query, or can't be read.
    """
    found_outline = outline(source.text)
    check_one_query(found_outline, source)
    check_depth(found_outline, source)
    if functions is None:
        calls = find_function_reads(found_outline, source)
        functions = by_name_start(calls)
        source = source.part(blanked(source.text, [(call.opening, call.end) for call in calls]))
        found_outline = outline(source.text)
    _check_patterns(found_outline, source)
    findings = Findings(
        source=source,
        outline=found_outline,
        streams=tuple(find_streams(found_outline, source)),
        options=tuple(find_options(found_outline, source)),
        watermarks=tuple(find_watermarks(found_outline)),
        external=external,
        functions=functions,
    )
    plain = _plain_text(findings)
    tree = parse_query(_without_window(plain, found_outline))
    if isinstance(tree, ParseError):
        # Sail takes a keyword at the end for an alias, as in `SELECT a FROM`.
        if ends_too_early(tree) or not can_read(plain):
            raise syntax_error(tree, source)
        references = references_in_tokens(findings)
    else:
        check_using(tree, source)
        references = references_in_tree(findings, tree)
    analysis = TextAnalysis(
        source=source,
        outline=found_outline,
        references=tuple(references),
        tree=None if isinstance(tree, ParseError) else tree,
        findings=findings,
    )
    return _with_metadata(analysis) if functions else analysis


def _with_metadata(analysis: TextAnalysis) -> TextAnalysis:
    """The analysis with the reads marked whose `_metadata` the text names."""
    if analysis.tree is None:
        check_no_metadata(analysis.outline, analysis.source)
        return analysis
    found = find_metadata(
        analysis.tree,
        analysis.references,
        source=analysis.source,
        outline=analysis.outline,
        watermarks=analysis.findings.watermarks,
    )
    references = [
        replace(each, read=replace(each.read, metadata=True))
        if each.name_start in found.asked
        else each
        for each in analysis.references
    ]
    functions = {
        start: replace(read, metadata=start in found.asked)
        for start, read in analysis.findings.functions.items()
    }
    return replace(
        analysis,
        references=tuple(references),
        findings=replace(analysis.findings, functions=functions),
        metadata=found,
    )


def _check_patterns(found: Outline, source: QueryText) -> None:
    """Refuse `LIKE ANY (..)`: Sail analyses it, and fails once it has several patterns to match."""
    for index, token in enumerate(found.tokens):
        if found.is_quantifier(index):
            raise QueryAnalysisError.of(
                f"the engine lacks LIKE {token.word}: write the patterns with OR or AND.",
                subject="The query",
                where=source.locate(token.start),
                detail=source.caret(token.start, token.end),
            )


def _plain_text(findings: Findings) -> str:
    """The text without streams and options, every other character in its place."""
    spans = [(stream.start, stream.name_start) for stream in findings.streams]
    spans += [(stream.name_end, stream.end) for stream in findings.streams]
    spans += _extras(findings)
    last = findings.outline.tokens[-1]
    if last.word == ";":
        spans.append((last.start, last.end))
    return blanked(findings.source.text, spans)


def _without_window(text: str, found: Outline) -> str:
    """The text with another name for `window` behind GROUP BY: sqlglot looks for a clause there.

    Nothing is asked of the tree that depends on the name.
    """
    names = [
        token
        for index, token in enumerate(found.tokens)
        if token.word == "WINDOW"
        and (found.word(index - 1) == "BY" or found.word(index + 1) == "(")
    ]
    return apply_edits(text, [Edit(token.start, token.end, "_windo") for token in names])


def _extras(findings: Findings) -> list[tuple[int, int]]:
    """Clauses that are millpond's to follow, and no part of what the engine reads."""
    return [*_options(findings), *findings.watermarks]


def _options(findings: Findings) -> list[tuple[int, int]]:
    return [(options.start, options.end) for options in findings.options]
