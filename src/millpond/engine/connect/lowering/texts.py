"""Parts of a query's text that stay text, each with the CTEs and DataFrames that it names.

A part keeps the place of every character, blanks standing for the rest, so that an error in it
still points at the user's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millpond.engine.connect.lowering.parameters import Parameters
from millpond.engine.connect.lowering.parts import Part, text_of
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.spans import Span, name_at
from millpond.engine.connect.lowering.streams import CteScope, Streams, Visible
from millpond.engine.sqltext.analysis import TextAnalysis, analyse
from millpond.engine.sqltext.binding import column_edits
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.references import TableReference, is_cte
from millpond.engine.sqltext.source import Edit, apply_edits, blanked
from millpond.sql.tokens import Token


@dataclass(frozen=True)
class Replacement:
    """Other text in the place of some tokens; it must not be longer than they are."""

    span: Span
    text: str = ""


class Texts:
    """Makes parts of one text.

    Args:
        externals: The DataFrames that the text can name.
    """

    def __init__(
        self,
        analysis: TextAnalysis,
        streams: Streams,
        parameters: Parameters,
        externals: Mapping[str, Part],
    ) -> None:
        self._analysis = analysis
        self._outline = analysis.outline
        self._streams = streams
        self._parameters = parameters
        self._externals = externals
        assert analysis.tree is not None
        edits = [
            *column_edits(analysis.tree, analysis.references),
            *parameters.edits(),
            *analysis.metadata.edits,
        ]
        self._edits = sorted(edits, key=lambda edit: edit.start)

    def expression(self, span: Span, *, edits: Sequence[Edit] = ()) -> str:
        """An expression's text as it can stand by itself, over relations with short names."""
        self._parameters.check(span.start, span.end)
        start, end = self._characters(span)
        own = [
            Edit(edit.start - start, edit.end - start, edit.replacement)
            for edit in _without_overlaps([*edits, *self._edits])
            if start <= edit.start and edit.end <= end
        ]
        return apply_edits(self._analysis.source.text[start:end], own)

    def query(
        self,
        kept: Span,
        scope: CteScope,
        *,
        opening: str = "",
        replacements: Sequence[Replacement] = (),
        references: Mapping[str, Part] | None = None,
        replaced_table: TableReference | None = None,
    ) -> Part:
        """A part of the text as a query.

        Args:
            opening: What to put before the part, over text that is not kept.
            references: Relations for names in the part.
            replaced_table: The table that one of the replacements stands for.
        """
        references = dict(references or {})
        ctes = self._needed(kept, [each.span for each in replacements], scope)
        self._check_names(ctes)
        edits = self._qualifier_edits(kept, replaced_table)
        text = self._text(kept, ctes, replacements, [*edits, *self._opening(kept, opening)])
        analysis = analyse(
            self._analysis.source.part(text),
            can_read=lambda _: False,
            external=frozenset({*self._externals, *references}),
            functions=self._analysis.findings.functions,
        )
        stretches = [self._characters(span) for span in (kept, *(each.cte.span for each in ctes))]
        analysis = replace(
            analysis,
            metadata=self._analysis.metadata.inside(stretches),
            gives_metadata=bool(opening),
        )
        for name in self._named_externals(analysis):
            references.setdefault(name, self._externals[name])
        return text_of(self._parameters.sql(text), analysis, references)

    def _text(
        self,
        kept: Span,
        ctes: Sequence[Visible],
        replacements: Sequence[Replacement],
        edits: Sequence[Edit],
    ) -> str:
        whole = self._analysis.source.text
        start, end = self._characters(kept)
        stretches = sorted([self._characters(each.cte.span) for each in ctes] + [(start, end)])
        edges = [0, *(edge for stretch in stretches for edge in stretch), len(whole)]
        text = blanked(whole, list(zip(edges[::2], edges[1::2], strict=True)))
        puts = [*self._connectors(ctes), *edits]
        puts += [Edit(*self._characters(each.span), each.text) for each in replacements]
        for put in puts:
            length = put.end - put.start
            assert len(put.replacement) <= length, "no room for the replacement"
            text = text[: put.start] + put.replacement.ljust(length) + text[put.end :]
        return text

    def _opening(self, kept: Span, opening: str) -> list[Edit]:
        if not opening:
            return []
        start = self._characters(kept)[0]
        gap = 0 if self._analysis.source.text[start] in "(`" else 1
        return [Edit(start - gap - len(opening), start - gap, opening)]

    def _qualifier_edits(self, kept: Span, table: TableReference | None) -> list[Edit]:
        """Edits of longer names of a table that is no table any more: `s.t.c`."""
        if table is None:
            return []
        assert self._analysis.tree is not None
        start, end = self._characters(kept)
        return [
            edit
            for edit in column_edits(self._analysis.tree, [table])
            if start <= edit.start and edit.end <= end
        ]

    def _connectors(self, ctes: Sequence[Visible]) -> Iterator[Edit]:
        """WITH and the commas between CTEs, which may be of several WITH clauses."""
        tokens, last = self._outline.tokens, -1
        for each in ctes:
            at = each.clause.at
            if at == last:
                yield _put(tokens[each.cte.span.start - 1], ",")
            elif last >= 0:
                yield _put(tokens[at], ",")
            else:
                yield _put(tokens[at], "WITH")
                if each.clause.recursive:
                    yield _put(tokens[at + 1], "RECURSIVE")
            last = at

    def _needed(self, kept: Span, replaced: Sequence[Span], scope: CteScope) -> list[Visible]:
        """The CTEs that a part names, and those that these name, in the order of the text."""
        found: dict[int, Visible] = {}
        todo = [(kept, scope)]
        while todo:
            span, visible = todo.pop()
            for index in self._outline.table_positions:
                if not span.start <= index < span.end or _within(index, replaced):
                    continue
                cte = visible.find(name_at(self._outline, index))
                if cte is None or cte.cte.span.start in found:
                    continue
                # One that keeps state was put in by the caller as a relation of its name.
                if not self._streams.keeps_state(cte.cte.query, cte.scope):
                    found[cte.cte.span.start] = cte
                    todo.append((cte.cte.span, cte.scope))
        return [found[start] for start in sorted(found)]

    def _check_names(self, ctes: Sequence[Visible]) -> None:
        names: set[str] = set()
        for each in ctes:
            name = each.cte.name.lower()
            again = name in names
            names.add(name)
            if again or (each.clause.recursive and not ctes[0].clause.recursive):
                raise refused(
                    self._analysis,
                    each.cte.span.start,
                    f"A second CTE named {each.cte.name}" if again else "WITH RECURSIVE",
                    reason="the query is taken apart, and the parts need all CTEs at once",
                    instead="give each CTE of the query a name of its own, in one WITH RECURSIVE "
                    "where one is recursive",
                )

    def _named_externals(self, analysis: TextAnalysis) -> list[str]:
        assert analysis.tree is not None
        names = [
            (table, parts[0].name)
            for table in analysis.tree.find_all(exp.Table)
            if len(parts := identifiers(table)) == 1
        ]
        return [
            name for table, name in names if name in self._externals and not is_cte(table, name)
        ]

    def _characters(self, span: Span) -> tuple[int, int]:
        tokens = self._outline.tokens
        return tokens[span.start].start, tokens[span.end - 1].end


def _put(token: Token, text: str) -> Edit:
    return Edit(token.start, token.end, text)


def _within(index: int, spans: Sequence[Span]) -> bool:
    return any(span.start <= index < span.end for span in spans)


def _without_overlaps(edits: Sequence[Edit]) -> list[Edit]:
    """Edits that do not touch; of two that do, the one that comes first in the list."""
    found: list[Edit] = []
    for edit in edits:
        if all(edit.end <= other.start or other.end <= edit.start for other in found):
            found.append(edit)
    return found
