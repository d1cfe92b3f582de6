"""Until when a row of a join can still meet a row of the other stream.

Of the other stream only rows with an event time above the watermark are yet to come. A comparison
with its event time, or with that plus or minus a constant, so bounds the rows that can meet one.
The constant is what the engine computes, not what the expression looks like: whatever is not
constant, as a month is not, gives no bound.

Spark finds the bounds in `StreamingJoinHelper`. There, as here, `x.ts > y.ts` is past meeting at
`x.ts` = watermark, and `x.ts >= y.ts` a millisecond later, although no row at the watermark itself
would be let in. Of several bounds Spark takes the latest, where one that can't be met is enough.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.types import DataType, StructType, TimestampNTZType, TimestampType

from millpond.engine.connect.conditions import Comparator
from millpond.engine.connect.expressions import called, cast
from millpond.engine.connect.messages import own_expressions
from millpond.engine.embedded.stateful.event_time import is_event_time
from millpond.engine.embedded.stateful.join_input import JoinInput
from millpond.sql.tokens import Token, TokenKind, identifier_value, scan

_PROBE = "__millpond_probe"
_DAY_US = 86_400_000_000
# Two years and some, day by day, at another time of each day, and further ones from 1920 to 2470:
# what is constant for some years need not be for others, as in `least(ts, TIMESTAMP '2030-01-01')`.
_PROBES_US = [1_672_531_200_000_000 + day * (_DAY_US + 2_221_000_007) for day in range(800)] + [
    month * (30 * _DAY_US + 7_207_000_011) for month in range(-600, 6_100)
]
_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})
_MILLISECOND_US = 1000
# How much later than at the watermark a comparison is past being met. Others never are.
_GRACE_US: Mapping[Comparator, int] = {
    ">": 0,
    ">=": _MILLISECOND_US,
    "=": 0,
    "<=>": 0,
}


@dataclass(frozen=True)
class Due:
    """A row is dead once the watermark reaches the time in `expression` and `shift_us` more.

    Where the expression is null, it never is. Its type is TIMESTAMP or TIMESTAMP_NTZ.
    """

    expression: Any
    shift_us: int
    data_type: DataType


def due(
    expression: Any, operator: Comparator, other: Any, *, other_input: JoinInput, common: DataType
) -> Due | None:
    """When `expression operator other` can be met no more by rows of the other input.

    Args:
        expression: Over the input that is bounded, of the type `common`.
        other: Over the other input, of any type that is compared as `common`.
    """
    if operator not in _GRACE_US:
        return None
    if isinstance(common, StructType):
        return _due_window(expression, operator, other, other_input=other_input, common=common)
    if not isinstance(common, TimestampType | TimestampNTZType):
        return None
    lag_us = constant_lag_us(other, other_input, common)
    if lag_us is None:
        return None
    # The watermark is a whole number of milliseconds.
    whole_us = lag_us // _MILLISECOND_US * _MILLISECOND_US
    return Due(expression, _GRACE_US[operator] - whole_us, common)


def earliest(bounds: Sequence[Due]) -> Due | None:
    """The bound that is reached first: one comparison that can't be met is enough."""
    by_expression: dict[bytes, Due] = {}
    for bound in bounds:
        # One bound alone is right as well; those of other types can't be set beside it.
        if bound.data_type != bounds[0].data_type:
            continue
        key = bound.expression.SerializeToString(deterministic=True)
        known = by_expression.setdefault(key, bound)
        if bound.shift_us < known.shift_us:
            by_expression[key] = bound
    found = [*by_expression.values()]
    if len(found) < 2:
        return found[0] if found else None
    times = [called("+", bound.expression, _interval(bound.shift_us)) for bound in found]
    return Due(called("least", *times), 0, found[0].data_type)


def _due_window(
    expression: Any,
    operator: Comparator,
    other: Any,
    *,
    other_input: JoinInput,
    common: StructType,
) -> Due | None:
    """The bound by a window of time that must be the same: rows of past windows are late."""
    field = other_input.column(other)
    if operator not in {"=", "<=>"} or field is None or not is_event_time(field):
        return None
    end = next((part for part in common.fields if part.name == "end"), None)
    if end is None or not isinstance(end.dataType, TimestampType | TimestampNTZType):
        return None
    found = proto.Expression()
    found.unresolved_extract_value.child.CopyFrom(expression)
    found.unresolved_extract_value.extraction.literal.string = end.name
    return Due(found, 0, end.dataType)


def constant_lag_us(expression: Any, source: JoinInput, common: DataType) -> int | None:
    """By how much an expression is later than the event time, where that is constant."""
    over_probe = _over_probe(expression, source)
    if over_probe is None:
        return None
    probe, field = over_probe
    relation = proto.Relation()
    relation.project.input.local_relation.data = _probes(isinstance(field, TimestampType))
    relation.project.expressions.add().unresolved_attribute.unparsed_identifier = _PROBE
    relation.project.expressions.append(cast(probe, common.simpleString()))
    try:
        table, *_ = source.client.to_table(proto.Plan(root=relation), {})
    except PySparkException:
        return None
    times, values = (column.cast(pa.int64()).to_pylist() for column in table.columns)
    lags = {
        None if value is None else value - time for time, value in zip(times, values, strict=True)
    }
    return lags.pop() if len(lags) == 1 else None


@cache
def _probes(has_zone: bool) -> bytes:
    """Event times to try an expression with."""
    data_type = pa.timestamp("us", "UTC" if has_zone else None)
    table = pa.table({_PROBE: pa.array(_PROBES_US, pa.int64()).cast(data_type)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _over_probe(expression: Any, source: JoinInput) -> tuple[Any, DataType] | None:
    """An expression with `_PROBE` in the place of the event time, and the event time's type.

    `None` where it does not name the event time. Other columns that it names stay.
    """
    found = proto.Expression()
    found.CopyFrom(expression)
    types: list[DataType] = []
    for part in [found, *own_expressions(found)]:
        match part.WhichOneof("expr_type"):
            case "unresolved_attribute":
                data_type = _event_time_type(part, source)
                if data_type is not None:
                    part.Clear()
                    part.unresolved_attribute.unparsed_identifier = _PROBE
                    types.append(data_type)
            case "expression_string":
                text = part.expression_string
                text.expression, in_text = _text_over_probe(text.expression, source)
                types.extend(in_text)
    return (found, types[0]) if types else None


def _text_over_probe(text: str, source: JoinInput) -> tuple[str, list[DataType]]:
    found, types, position = "", [], 0
    for start, end in _names_of_event_time(text, source):
        name = proto.Expression()
        name.expression_string.expression = text[start:end]
        data_type = _event_time_type(name, source)
        if data_type is not None:
            found += text[position:start] + _PROBE
            position = end
            types.append(data_type)
    return found + text[position:], types


def _event_time_type(name: Any, source: JoinInput) -> DataType | None:
    field = source.column(name)
    if field is None or not source.is_event_time(field):
        return None
    return field.dataType


def _names_of_event_time(text: str, source: JoinInput) -> Iterator[tuple[int, int]]:
    """Where a text may name the event time: names with dots between, as long as they go."""
    tokens = [token for token in scan(text) if token.kind is not TokenKind.HINT]
    index = 0
    while index < len(tokens):
        first = index
        while index + 2 < len(tokens) and _joins_names(tokens[index : index + 3]):
            index += 2
        last = tokens[index]
        if last.kind in _NAMES and identifier_value(last).lower() == source.event_time:
            yield tokens[first].start, last.end
        index += 1


def _joins_names(tokens: Sequence[Token]) -> bool:
    first, dot, last = tokens
    return first.kind in _NAMES and dot.word == "." and last.kind in _NAMES


def _interval(us: int) -> Any:
    found = proto.Expression()
    found.literal.day_time_interval = us
    return found
