"""Hypothesis strategies for Spark types: few values of each, the awkward ones among them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

NAN = float("nan")
FLOATS = [NAN, -0.0, 0.0, 1.5, -2.5, float("inf"), float("-inf")]
LONG = "x" * 100  # longer than the part of a text that statistics keep
TIMES = [
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-02-29T12:00:00.000001",
        "2024-02-29T12:00:00.999999",
        "1969-12-31T23:59:59.999999",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59.999999",
    )
]
PAIR = StructType([StructField("a", IntegerType()), StructField("b c", DoubleType())])
NESTED = StructType([StructField("s", PAIR), StructField("l", ArrayType(StringType()))])

PLAIN: dict[DataType, list[Any]] = {
    BooleanType(): [True, False],
    ByteType(): [-128, 0, 127],
    ShortType(): [-1, 0, 32767],
    IntegerType(): [-1, 0, 7],
    LongType(): [-(2**63), 0, 2**53 + 1, 2**63 - 1],
    FloatType(): FLOATS,
    DoubleType(): [*FLOATS, 0.1],
    DecimalType(10, 2): [Decimal("-0.01"), Decimal("0.00"), Decimal("99999999.99")],
    DecimalType(38, 18): [Decimal("1.000000000000000001"), Decimal(1), Decimal(-1)],
    StringType(): [
        "",
        "a",
        "A",
        "é",
        "e\u0301",
        "zz",
        "o'x\"",
        "\U0001f600",
        "\uffff",
        LONG,
        LONG + "y",
    ],
    BinaryType(): [b"", b"\x00", b"a", b"a\x00", b"\xff", b"\xff" * 100],
    DateType(): [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1)],
    TimestampType(): [time.replace(tzinfo=dt.UTC) for time in TIMES],
    TimestampNTZType(): TIMES,
}
NESTED_TYPES: list[DataType] = [PAIR, ArrayType(IntegerType()), NESTED, ArrayType(DoubleType())]
ORDERABLE: list[DataType] = [*PLAIN, *NESTED_TYPES]


def values(data_type: DataType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type; within nested ones there are always nulls."""
    match data_type:
        case StructType():
            names = data_type.names
            parts = st.tuples(*(values(field.dataType) for field in data_type.fields))
            found: st.SearchStrategy[Any] = parts.map(lambda p: dict(zip(names, p, strict=True)))
        case ArrayType():
            found = st.lists(values(data_type.elementType), max_size=2)
        case _:
            found = st.sampled_from(PLAIN[data_type])
    return st.none() | found if nulls else found
