"""Reads where the parts of a query stand in its text: CTEs, SELECT blocks, clauses, FROM items.

A syntax tree says what a text means, and not where its clauses begin and end. Here every token of
a query is put into one part, and what finds no place is left to be refused by who needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millpond.engine.connect.lowering.relations import TAIL, Relation, RelationReader
from millpond.engine.connect.lowering.spans import (
    Span,
    inside,
    is_name,
    name_at,
    separated,
    top_level,
)
from millpond.engine.sqltext.blocks import QUERY_STARTS, SET_OPERATIONS, Outline
from millpond.sql.tokens import TokenKind, keywords

_WITH_BY = keywords("GROUP ORDER SORT CLUSTER DISTRIBUTE")
_WITHOUT_BY = keywords("WHERE HAVING QUALIFY LIMIT OFFSET")
# A word beside one of these is a column of that name, not the beginning of a clause.
_BEFORE_NAME = keywords(
    ". , ( = < > ! + - * / % | & ^ ~ :: -> AS AND OR NOT WHERE ON BY SELECT DISTINCT ALL WHEN THEN "
    "ELSE CASE IN LIKE BETWEEN HAVING FROM JOIN"
)
_BEHIND_NAME = keywords(". , ) = < > ! * / % | & ^ :: -> IS IN AS FROM LIKE BETWEEN AND OR")


@dataclass(frozen=True)
class Clause:
    """A clause of a query.

    Attributes:
        at: Its keyword.
        body: What stands behind the keyword.
    """

    at: int
    body: Span


@dataclass(frozen=True)
class Cte:
    """A common table expression; `span` goes from its name to its closing parenthesis."""

    name: str
    columns: tuple[str, ...]
    span: Span
    query: Query


@dataclass(frozen=True)
class With:
    at: int
    recursive: bool
    ctes: tuple[Cte, ...]


@dataclass(frozen=True)
class Select:
    """One SELECT.

    Attributes:
        distinct: Its word DISTINCT, or `None`.
        clauses: By keyword, those that belong to the SELECT itself; LATERAL VIEW apart.
        laterals: What stands behind each LATERAL VIEW, the two words included.
    """

    span: Span
    distinct: int | None
    items: tuple[Span, ...]
    clauses: Mapping[str, Clause]
    relations: tuple[Relation, ...]
    laterals: tuple[Span, ...]


@dataclass(frozen=True)
class Nested:
    """A query in parentheses."""

    span: Span
    query: Query


@dataclass(frozen=True)
class Other:
    """A query of another form, such as VALUES."""

    span: Span


Term = Select | Nested | Other


@dataclass(frozen=True)
class SetOperator:
    """`UNION ALL` and the like, between two terms."""

    at: int
    name: str
    is_all: bool
    by_name: bool


@dataclass(frozen=True)
class Query:
    """A query with its CTEs and the clauses behind its last SELECT.

    Attributes:
        misplaced: Such a clause behind an earlier SELECT, or `None`.
    """

    span: Span
    ctes: With | None
    terms: tuple[Term, ...]
    operators: tuple[SetOperator, ...]
    tail: Mapping[str, Clause] = field(default_factory=dict)
    misplaced: int | None = None


class QueryReader:
    """Reads queries of one text.

    Args:
        watermarks: Start and end offset of each WATERMARK clause.
    """

    def __init__(self, outline: Outline, watermarks: Mapping[int, int]) -> None:
        self._outline = outline
        self._relations = RelationReader(outline, watermarks, self.query)

    def query(self, span: Span) -> Query:
        ctes, start = self._with(span)
        starts, operators = self._operators(Span(start, span.end))
        ends = [operator.at for operator in operators] + [span.end]
        terms: list[Term] = []
        tails: list[dict[str, Clause]] = []
        for term_start, term_end in zip([start, *starts], ends, strict=True):
            term, tail = self._term(Span(term_start, term_end))
            terms.append(term)
            tails.append(tail)
        misplaced = next((c.at for tail in tails[:-1] for c in tail.values()), None)
        return Query(span, ctes, tuple(terms), tuple(operators), tails[-1], misplaced)

    def _with(self, span: Span) -> tuple[With | None, int]:
        outline = self._outline
        if outline.word(span.start) != "WITH":
            return None, span.start
        recursive = outline.word(span.start + 1) == "RECURSIVE"
        index = span.start + (2 if recursive else 1)
        ctes: list[Cte] = []
        while is_name(outline, index):
            cte = self._cte(index)
            ctes.append(cte)
            index = cte.span.end
            if outline.word(index) != ",":
                break
            index += 1
        return With(span.start, recursive, tuple(ctes)), index

    def _cte(self, start: int) -> Cte:
        outline = self._outline
        index = start + 1
        columns: tuple[str, ...] = ()
        if outline.word(index) == "(" and outline.word(outline.closing(index) + 1) in {"AS", "("}:
            columns = tuple(
                name_at(outline, part.start) for part in separated(outline, inside(outline, index))
            )
            index = outline.closing(index) + 1
        while outline.word(index) not in {"(", ""}:
            index += 1
        body = inside(outline, index)
        return Cte(name_at(outline, start), columns, Span(start, body.end + 1), self.query(body))

    def _operators(self, span: Span) -> tuple[list[int], list[SetOperator]]:
        """The set operations of a query, and where the term behind each starts."""
        outline = self._outline
        starts: list[int] = []
        found: list[SetOperator] = []
        for index in top_level(outline, span):
            if outline.word(index) not in SET_OPERATIONS or index == span.start:
                continue
            after = index + 1
            while outline.word(after) in {"ALL", "DISTINCT", "BY", "NAME"}:
                after += 1
            if self._begins_query(after):
                words = [outline.word(at) for at in range(index, after)]
                found.append(SetOperator(index, " ".join(words), "ALL" in words, "NAME" in words))
                starts.append(after)
        return starts, found

    def _begins_query(self, index: int) -> bool:
        while self._outline.word(index) == "(":
            index += 1
        return self._outline.word(index) in QUERY_STARTS

    def _term(self, span: Span) -> tuple[Term, dict[str, Clause]]:
        """One side of a set operation, and clauses behind it that belong to the whole query."""
        outline = self._outline
        if outline.word(span.start) == "SELECT":
            return self._select(span)
        if outline.word(span.start) == "(":
            body = inside(outline, span.start)
            clauses = list(self._clauses(Span(body.end + 1, span.end)))
            begin = clauses[0][1].at if clauses else span.end
            if begin == body.end + 1:
                nested = Nested(Span(span.start, body.end + 1), self.query(body))
                return nested, dict(clauses)
        return Other(span), {}

    def _select(self, span: Span) -> tuple[Select, dict[str, Clause]]:
        outline = self._outline
        clauses: dict[str, Clause] = {}
        laterals: list[Span] = []
        first = span.end
        for word, clause in self._clauses(Span(span.start + 1, span.end)):
            first = min(first, clause.at)
            if word == "LATERAL":
                laterals.append(Span(clause.at, clause.body.end))
            else:
                clauses.setdefault(word, clause)
        quantified = outline.word(span.start + 1) in {"DISTINCT", "ALL"}
        distinct = span.start + 1 if outline.word(span.start + 1) == "DISTINCT" else None
        tail = {word: clause for word, clause in clauses.items() if word in TAIL}
        end = min((clause.at for clause in tail.values()), default=span.end)
        source = clauses.get("FROM")
        select = Select(
            span=Span(span.start, end),
            distinct=distinct,
            items=tuple(separated(outline, Span(span.start + 1 + quantified, first))),
            clauses={word: clause for word, clause in clauses.items() if word not in TAIL},
            relations=self._relations.relations(source.body) if source else (),
            laterals=tuple(laterals),
        )
        return select, tail

    def _clauses(self, span: Span) -> Iterator[tuple[str, Clause]]:
        """The clauses of a SELECT, by keyword, from FROM on."""
        outline = self._outline
        heads = [index for index in top_level(outline, span) if self._begins_clause(index)]
        for index, following in zip(heads, [*heads[1:], span.end], strict=False):
            word = outline.word(index)
            skipped = 2 if word in _WITH_BY or word == "LATERAL" else 1
            yield word, Clause(index, Span(index + skipped, following))

    def _begins_clause(self, index: int) -> bool:
        outline = self._outline
        word, before, behind = (outline.word(at) for at in (index, index - 1, index + 1))
        if before == ".":
            return False
        if word == "FROM":
            # Not the end of `a IS DISTINCT FROM b`.
            return before != "DISTINCT"
        if word in _WITH_BY:
            return behind == "BY"
        if word == "LATERAL":
            return behind == "VIEW"
        if word == "WINDOW":
            return outline.word(index + 2) == "AS" and outline.word(index + 3) == "("
        is_name = before in _BEFORE_NAME or behind in _BEHIND_NAME
        ends = outline.kind(index + 1) is TokenKind.END
        return word in _WITHOUT_BY and not is_name and not ends
