"""What keys and kinds of values JSON records hold, and the Spark types that they have together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.errors.file_formats import TooManyKeysError
from millpond.files.formats.json_options import JsonOptions

NULL = "null"
BOOLEAN = "boolean"
INTEGER = "integer"
DOUBLE = "double"
STRING = "string"
OBJECT = "object"
ARRAY = "array"
# Texts that all are times, where these are looked for.
TIMESTAMP = "timestamp"
# Values of several kinds, which DuckDB does not tell apart within one record.
MIXED = "mixed"
_KINDS = {
    "NULL": NULL,
    "BOOLEAN": BOOLEAN,
    "BIGINT": INTEGER,
    "UBIGINT": INTEGER,
    "HUGEINT": INTEGER,
    "DOUBLE": DOUBLE,
    "VARCHAR": STRING,
}


# The keys of objects, one within the other.
Path = tuple[str, ...]
# What lies deeper is not looked into; it is a text. The protocol of Spark Connect has no messages
# of more than 100 levels, and each level of a type takes three.
MAX_LEVELS = 24
# An object with more different keys than a table could have columns.
MAX_FIELDS = 10_000


@dataclass
class Numbers:
    """The types that single numbers at one place have, put together as by Spark.

    Attributes:
        has_longs: Whether some are whole numbers that a BIGINT holds.
        has_doubles: Whether some are neither that nor a decimal.
        has_decimals: Whether some are decimals.
        integral_digits: The digits before the point that decimals have at most.
        scale: Those behind it.
    """

    MAX_PRECISION: ClassVar[int] = 38
    # Any BIGINT is a decimal of so many digits.
    LONG_DIGITS: ClassVar[int] = 20
    # A decimal that is asked for has at least so many behind the point, for what comes later.
    SCALE: ClassVar[int] = 18

    has_longs: bool = False
    has_doubles: bool = False
    has_decimals: bool = False
    integral_digits: int = 0
    scale: int = 0

    def add(self, data_type: DataType) -> None:
        """Take in the type of one number."""
        self.has_longs |= isinstance(data_type, LongType)
        self.has_doubles |= isinstance(data_type, DoubleType)
        if isinstance(data_type, DecimalType):
            self.has_decimals = True
            self.scale = max(self.scale, data_type.scale)
            integral_digits = data_type.precision - data_type.scale
            self.integral_digits = max(self.integral_digits, integral_digits)

    def type(self, *, prefers_decimal: bool) -> DataType:
        """The type that holds all of them; a DOUBLE where no decimal does."""
        if not self.has_decimals and not self.has_doubles:
            return LongType()
        digits = max(self.integral_digits, self.LONG_DIGITS if self.has_longs else 0)
        scale = self.scale
        if prefers_decimal and scale <= self.SCALE and digits <= self.MAX_PRECISION - self.SCALE:
            digits, scale = self.MAX_PRECISION - self.SCALE, self.SCALE
        if self.has_doubles or digits + scale > self.MAX_PRECISION:
            return DoubleType()
        return DecimalType(digits + scale, scale)


@dataclass
class Found:
    """The values that are at one place of many records.

    Attributes:
        kinds: The kinds of all values.
        fields: Those within objects, by key; of many keys, the first.
        has_more: Whether there are more keys.
        items: Those within arrays.
        numbers: What numbers there are, if that was looked for.
    """

    kinds: set[str] = field(default_factory=set)
    fields: dict[str, Found] = field(default_factory=dict)
    items: Found | None = None
    has_more: bool = False
    numbers: Numbers | None = None

    def add(self, structure: Any, *, level: int = 0) -> None:
        """Take in what `json_structure` says of a value."""
        if level > MAX_LEVELS and isinstance(structure, dict | list):
            self.kinds.add(MIXED)
        elif isinstance(structure, dict):
            self.kinds.add(OBJECT)
            for key, inner in structure.items():
                if key not in self.fields and len(self.fields) >= MAX_FIELDS:
                    self.has_more = True
                else:
                    self.fields.setdefault(key, Found()).add(inner, level=level + 1)
        elif isinstance(structure, list):
            self.kinds.add(ARRAY)
            self.items = self.items or Found()
            for inner in structure:
                self.items.add(inner, level=level + 1)
        else:
            self.kinds.add(_KINDS.get(structure, MIXED))


def texts_within(
    found: Found, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Found]]:
    """The places of objects that hold texts and nothing else, by their keys."""
    for key, inner in found.fields.items():
        kinds = inner.kinds - {NULL}
        if kinds == {STRING}:
            yield (*path, key), inner
        elif kinds == {OBJECT}:
            yield from texts_within(inner, (*path, key))


def inferred_schema(found: Found, options: JsonOptions, *, types: bool) -> StructType:
    """The columns of records, in the order of their names as in Spark.

    Args:
        types: Whether types are looked for, or every column is a text.

    Raises:
        TooManyKeysError: There are more than a table could have columns.
    """
    if found.has_more:
        raise TooManyKeysError.from_limit(MAX_FIELDS)
    # Columns can't differ by case alone; the values of the other keys are rescued.
    names = {name.lower(): name for name in sorted(found.fields) if name}
    fields: list[StructField] = []
    for name in sorted(names.values()):
        inner = found.fields[name]
        if not (options.drop_if_all_null and _is_all_null(inner)):
            data_type = inferred_type(inner, options) if types else StringType()
            fields.append(StructField(name, data_type))
    return StructType(fields)


def inferred_type(found: Found, options: JsonOptions) -> DataType:  # noqa: PLR0911 - a table
    """The type of values; a text where they are of kinds that have nothing in common."""
    kinds = found.kinds - {NULL}
    # No table has a struct without fields, or with so many.
    if kinds == {OBJECT} and any(found.fields) and not found.has_more:
        return inferred_schema(found, options, types=True)
    if kinds == {ARRAY} and found.items is not None:
        return ArrayType(inferred_type(found.items, options))
    if options.primitives_as_string:
        return StringType()
    if kinds == {BOOLEAN}:
        return BooleanType()
    if kinds and kinds <= {INTEGER, DOUBLE} and found.numbers is not None:
        return found.numbers.type(prefers_decimal=options.prefers_decimal)
    if kinds == {INTEGER}:
        return LongType()
    if kinds == {TIMESTAMP}:
        return TimestampType()
    if kinds and kinds <= {INTEGER, DOUBLE}:
        return DoubleType()
    return StringType()


def _is_all_null(found: Found) -> bool:
    if found.kinds <= {NULL}:
        return True
    if found.kinds <= {NULL, ARRAY} and found.items is not None:
        return _is_all_null(found.items)
    return found.kinds <= {NULL, OBJECT} and all(map(_is_all_null, found.fields.values()))
