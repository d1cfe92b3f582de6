"""What a query does, step by step, whichever language it was written in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto

from millpond.errors import SourceLocation


class OperatorKind(StrEnum):
    """Kinds of steps that the analysis tells apart; each has its rule in this package."""

    STATELESS = auto()
    GENERATOR = auto()
    UNION_ALL = auto()
    UNION_DISTINCT = auto()
    SET_OPERATION = auto()
    JOIN = auto()
    LATERAL_JOIN = auto()
    AGGREGATION = auto()
    DISTINCT = auto()
    LIMIT = auto()
    SORT = auto()
    WINDOW_FUNCTION = auto()
    TIME_WINDOW = auto()
    WATERMARK = auto()
    PIVOT = auto()
    SAMPLE = auto()
    SUBQUERY = auto()
    RECURSION = auto()
    STATEFUL_FUNCTION = auto()
    UNKNOWN = auto()


class JoinType(StrEnum):
    INNER = "inner"
    LEFT = "left outer"
    RIGHT = "right outer"
    FULL = "full outer"
    SEMI = "left semi"
    ANTI = "left anti"


@dataclass(frozen=True)
class Operator:
    """One step of a query.

    Attributes:
        name: What the user wrote, to be named in a message: `GROUP BY`, `distinct()`, `sum`.
        streaming: For each input in order, whether its rows are a stream.
        join_type: Of a join.
        where: The line or token that calls for the step.
        detail: The place in the text, with a caret.
    """

    kind: OperatorKind
    name: str
    streaming: tuple[bool, ...]
    join_type: JoinType | None = None
    where: SourceLocation | None = None
    detail: str | None = None

    @property
    def is_streaming(self) -> bool:
        return any(self.streaming)


@dataclass(frozen=True)
class Refusal:
    """Why an operator can't stand over a stream, and what a user can do instead."""

    reason: str
    instead: str
