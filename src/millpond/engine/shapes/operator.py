"""What a query does, step by step, whichever language it was written in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import TYPE_CHECKING

from millpond.errors import SourceLocation

if TYPE_CHECKING:
    from millpond.engine.protocol import TableRead


class OperatorKind(StrEnum):
    """Kinds of steps that the analysis tells apart; each has its rule in this package."""

    SOURCE = auto()
    STATELESS = auto()
    GENERATOR = auto()
    UNION_ALL = auto()
    UNION_DISTINCT = auto()
    SET_OPERATION = auto()
    JOIN = auto()
    LATERAL_JOIN = auto()
    # One result for all rows; GROUP BY of expressions; further rows for groups of groups.
    AGGREGATION = auto()
    GROUPING = auto()
    SUBTOTALS = auto()
    GROUP_BY_ALL = auto()
    GROUP_FUNCTION = auto()
    DISTINCT = auto()
    DISTINCT_WITHIN_WATERMARK = auto()
    LIMIT = auto()
    LIMIT_OF_EXPRESSION = auto()
    OFFSET = auto()
    SORT = auto()
    WINDOW_FUNCTION = auto()
    TIME_WINDOW = auto()
    WATERMARK = auto()
    PIVOT = auto()
    SAMPLE = auto()
    SUBQUERY = auto()
    RECURSION = auto()
    STATEFUL_FUNCTION = auto()
    ROW_NUMBERING = auto()
    METRICS = auto()
    UNKNOWN = auto()


class JoinType(StrEnum):
    INNER = "inner"
    LEFT = "left outer"
    RIGHT = "right outer"
    FULL = "full outer"
    SEMI = "left semi"
    ANTI = "left anti"


class SubqueryForm(StrEnum):
    """How an expression uses a subquery.

    `IN_VALUE` is an IN whose null counts: anything but a condition that rows must meet.
    `EXISTS_OF_TOTAL` asks for a row of a query that always gives one: an aggregate of all rows.
    """

    SCALAR = auto()
    EXISTS = auto()
    EXISTS_OF_TOTAL = auto()
    IN = auto()
    IN_VALUE = auto()
    JOIN_CONDITION = auto()


@dataclass(frozen=True)
class Rows:
    """What is known of the rows that a step reads or gives.

    Attributes:
        streaming: Whether they are a stream.
        watermark: Whether the query itself sets a watermark on their way.
        reads: The streams that they come from; one may be a view that sets a watermark.
    """

    streaming: bool = False
    watermark: bool = False
    reads: tuple[TableRead, ...] = ()

    @classmethod
    def of_read(cls, read: TableRead) -> Rows:
        return cls(streaming=True, reads=(read,)) if read.streaming else cls()

    @classmethod
    def of_inputs(cls, inputs: Iterable[Rows]) -> Rows:
        """What a step gives that only hands rows of its inputs on."""
        inputs = tuple(inputs)
        return cls(
            streaming=any(rows.streaming for rows in inputs),
            watermark=any(rows.watermark for rows in inputs),
            reads=tuple(dict.fromkeys(read for rows in inputs for read in rows.reads)),
        )


@dataclass(frozen=True)
class Operator:
    """One step of a query.

    Attributes:
        name: What the user wrote, to be named in a message: `GROUP BY`, `distinct()`, `sum`.
        inputs: What it reads; of a source, its own rows. Of a subquery: the rows that it stands
            over, and its own.
        join_type: Of a join.
        subquery: Of a subquery in an expression.
        where: The line or token that calls for the step.
        detail: The place in the text, with a caret.
    """

    kind: OperatorKind
    name: str
    inputs: tuple[Rows, ...]
    join_type: JoinType | None = None
    subquery: SubqueryForm | None = None
    where: SourceLocation | None = None
    detail: str | None = None

    @property
    def streaming(self) -> tuple[bool, ...]:
        """For each input in order, whether its rows are a stream."""
        return tuple(rows.streaming for rows in self.inputs)

    @property
    def is_streaming(self) -> bool:
        return any(self.streaming)

    @property
    def has_watermark(self) -> bool:
        """Whether the query sets a watermark below."""
        return any(rows.watermark for rows in self.inputs)

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """The streams below."""
        return Rows.of_inputs(self.inputs).reads


@dataclass(frozen=True)
class Refusal:
    """Why an operator can't stand over a stream, and what a user can do instead.

    Attributes:
        unless_watermark: A watermark below would make the operator possible.
    """

    reason: str
    instead: str
    unless_watermark: bool = False
