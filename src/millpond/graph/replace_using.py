"""Checks a REPLACE USING flow's keys and sequence against the columns of its query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.definitions import Flow
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.errors.names import InvalidNameError
from millpond.errors.replace_using import (
    ReplaceUsingDuplicateKeyError,
    ReplaceUsingKeyNotFoundError,
    ReplaceUsingKeyNotOrderableError,
    ReplaceUsingMissingSequenceByError,
    ReplaceUsingNoKeyError,
    ReplaceUsingSequenceNotFoundError,
    ReplaceUsingSequenceNotOrderableError,
)
from millpond.names import split_name

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

_COLUMN_TEXT = re.compile(r"Column<'(.*)'>\Z", re.DOTALL)


@dataclass(frozen=True)
class Order:
    """How a REPLACE USING flow tells keys apart and versions of a key in order.

    Attributes:
        sequence_column: The query's column that is the sequence, or `None` for an expression.
    """

    keys: tuple[str, ...]
    sequence_type: DataType
    sequence_column: str | None


def check(flow: Flow, schema: StructType, engine: Engine) -> Order:
    """Find the key columns and the sequence in the query's columns.

    Raises:
        ReplaceUsingError: They are missing, repeated, or of types that have no order.
    """
    names = {field.name.lower(): field for field in schema.fields}
    if not flow.replace_using:
        raise ReplaceUsingNoKeyError.from_flow(flow.name, where=flow.location)
    keys: list[str] = []
    for written in flow.replace_using:
        key = _single_name(written) or written
        field = names.get(key.lower())
        if field is None:
            raise ReplaceUsingKeyNotFoundError.from_flow(
                flow.name, key=key, columns=schema.names, where=flow.location
            )
        if field.name in keys:
            raise ReplaceUsingDuplicateKeyError.from_flow(flow.name, key=key, where=flow.location)
        if not is_orderable(field.dataType):
            raise ReplaceUsingKeyNotOrderableError.from_flow(
                flow.name, key=key, type_text=field.dataType.simpleString(), where=flow.location
            )
        keys.append(field.name)
    column, found = _sequence(flow, schema, engine)
    if not is_orderable(found):
        raise ReplaceUsingSequenceNotOrderableError.from_flow(
            flow.name, type_text=found.simpleString(), where=flow.location
        )
    return Order(keys=tuple(keys), sequence_type=found, sequence_column=column)


def is_orderable(data_type: DataType) -> bool:
    """Whether Spark can order values of the type: atomic ones, and structs and arrays of them."""
    from pyspark.sql.types import (
        ArrayType,
        AtomicType,
        DayTimeIntervalType,
        StructType,
        VariantType,
        YearMonthIntervalType,
    )

    if isinstance(data_type, ArrayType):
        return is_orderable(data_type.elementType)
    if isinstance(data_type, StructType):
        return all(is_orderable(field.dataType) for field in data_type.fields)
    unorderable = (VariantType, DayTimeIntervalType, YearMonthIntervalType)
    return isinstance(data_type, AtomicType) and not isinstance(data_type, unorderable)


def _sequence(flow: Flow, schema: StructType, engine: Engine) -> tuple[str | None, DataType]:
    if flow.sequence_by is None:
        raise ReplaceUsingMissingSequenceByError.from_flow(flow.name, where=flow.location)
    text = sequence_text(flow.sequence_by)
    name = _single_name(text)
    if name is not None:
        for field in schema.fields:
            if field.name.lower() == name.lower():
                return field.name, field.dataType
        raise ReplaceUsingSequenceNotFoundError.from_flow(
            flow.name, sequence=name, columns=schema.names, where=flow.location
        )
    try:
        found: DataType = engine.sequence_type(flow.sequence_by, schema)
    except MillpondError as problem:
        problem.where = problem.where or flow.location
        raise
    return None, found


def sequence_text(sequence_by: str | Column) -> str:
    """The text of a sequence; of a `Column` that is a plain reference, its name."""
    match = _COLUMN_TEXT.match(str(sequence_by))
    return match.group(1) if match else str(sequence_by)


def _single_name(text: str) -> str | None:
    """The one identifier that `text` is, without backticks, or `None`."""
    try:
        parts = split_name(text)
    except InvalidNameError:
        return None
    plain = text.strip().startswith("`") or re.fullmatch(r"[^\W\d]\w*", text.strip())
    return parts[0] if len(parts) == 1 and plain else None
