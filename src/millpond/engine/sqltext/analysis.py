"""One query's text, understood: its tables, its syntax tree, and what it does over streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.engine.protocol import TableRead
from millpond.engine.shapes import Operator, OperatorKind, Rows
from millpond.engine.sqltext.binding import bound_text
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.laterals import lateral_edits
from millpond.engine.sqltext.operators import describe
from millpond.engine.sqltext.parsing import (
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
    """

    source: QueryText
    outline: Outline
    references: tuple[TableReference, ...]
    tree: exp.Query | None
    findings: Findings

    @property
    def reads(self) -> tuple[TableRead, ...]:
        return tuple(reference.read for reference in self.references)

    def bound(self, names: Sequence[str]) -> str:
        """The text with the n-th name in the place of the n-th table."""
        text = bound_text(
            self.source.text,
            self.references,
            names,
            without=_extras(self.findings),
            tree=self.tree,
            edits=lateral_edits(self.outline),
        )
        return text.rstrip().rstrip(";")

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
    source: QueryText, *, can_read: CanRead, external: Collection[str] = frozenset()
) -> TextAnalysis:
    """Read a query's text.

    Args:
        can_read: Asked where sqlglot finds the syntax wrong, since Spark has more of it.
        external: Names that stand for DataFrames, not for tables.

    Raises:
        MillpondError: It is not one query, or can't be read.
    """
    found_outline = outline(source.text)
    check_one_query(found_outline, source)
    _check_patterns(found_outline, source)
    findings = Findings(
        source=source,
        outline=found_outline,
        streams=tuple(find_streams(found_outline, source)),
        options=tuple(find_options(found_outline, source)),
        watermarks=tuple(find_watermarks(found_outline)),
        external=external,
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
    return TextAnalysis(
        source=source,
        outline=found_outline,
        references=tuple(references),
        tree=None if isinstance(tree, ParseError) else tree,
        findings=findings,
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
    return [(options.start, options.end) for options in findings.options] + list(
        findings.watermarks
    )
