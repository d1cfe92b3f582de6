"""Arrow's values as JSON's: nothing is lost, nothing is rounded."""

import base64
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from millpond.cli.values import plain_values, unique_names

CASES = {
    "booleans": (pa.array([True, None]), [True, None]),
    "null": (pa.nulls(2), [None, None]),
    "integers": (pa.array([1, -1, None]), [1, -1, None]),
    "integers beyond a double": (
        pa.array([2**53, 2**53 + 1, -(2**63)]),
        [2**53, "9007199254740993", "-9223372036854775808"],
    ),
    "doubles": (
        pa.array([0.1, float("nan"), float("inf"), float("-inf"), None]),
        [0.1, "NaN", "Infinity", "-Infinity", None],
    ),
    "floats in their own digits": (pa.array([0.1, 1e30], pa.float32()), [0.1, 1e30]),
    "decimals a double holds": (
        pa.array([Decimal("12.50"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
        [12.5, -0.01, None],
    ),
    "decimals it does not": (
        pa.array([Decimal("1234567890123456.78")], pa.decimal128(20, 2)),
        ["1234567890123456.78"],
    ),
    "whole decimals": (
        pa.array([Decimal(12), Decimal(10**20)], pa.decimal128(38, 0)),
        [
            12,
            "100000000000000000000",
        ],
    ),
    "text": (pa.array(["é", ""]), ["é", ""]),
    "large text": (pa.array(["a"], pa.large_string()), ["a"]),
    "binary": (pa.array([b"\x00\xff"]), [base64.b64encode(b"\x00\xff").decode()]),
    "dates": (pa.array([date(2026, 5, 1), None]), ["2026-05-01", None]),
    "dates beyond Python's": (pa.array([2932897], pa.int32()).cast(pa.date32()), ["10000-01-01"]),
    "timestamps": (
        pa.array([datetime(2026, 5, 1, 12, 30, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        ["2026-05-01T12:30:00Z"],
    ),
    "timestamps of another zone are in UTC": (
        pa.array([datetime(2026, 5, 1, 12, 30, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")),
        ["2026-05-01T12:30:00Z"],
    ),
    "timestamps without a zone": (
        pa.array([1_777_638_600_000_500]).cast(pa.timestamp("us")),
        ["2026-05-01T12:30:00.0005"],
    ),
    "durations": (pa.array([timedelta(days=1, seconds=1.5)]), ["PT86401.5S"]),
    "months": (
        pa.array([pa.MonthDayNano([14, 3, 0])], pa.month_day_nano_interval()),
        ["P14M3D"],
    ),
    "lists": (pa.array([[1, None], None, []]), [[1, None], None, []]),
    "lists of a slice": (pa.array([[1], [2, 3], None, [4]]).slice(1, 3), [[2, 3], None, [4]]),
    "structs": (
        pa.array([{"a": 1, "b": date(2026, 5, 1)}, None]),
        [{"a": 1, "b": "2026-05-01"}, None],
    ),
    "structs of a slice": (pa.array([{"a": 1}, {"a": 2}, None]).slice(1), [{"a": 2}, None]),
    "maps": (
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        [{"k": 1}, None, {}],
    ),
    "maps by number": (pa.array([[(1, "a")]], pa.map_(pa.int64(), pa.string())), [{"1": "a"}]),
    "maps of a slice": (
        pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())).slice(1),
        [{"b": 2}],
    ),
    "dictionaries": (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
    "nested": (
        pa.array([[{"m": [Decimal("1.5")]}]]),
        [[{"m": [1.5]}]],
    ),
    "chunks": (pa.chunked_array([[1], [2, 3]]), [1, 2, 3]),
}


@pytest.mark.parametrize("case", CASES)
def test_value(case):
    array, expected = CASES[case]
    assert plain_values(array) == expected


def test_repeated_names_are_told_apart():
    assert unique_names(["a", "a", "a_2", "a"]) == ["a", "a_3", "a_2", "a_4"]
