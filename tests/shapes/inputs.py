"""The tables that the cases read: rows in the order in which they come, with what is awkward in them.

Times are of one day, written as `at("10:05")`. Every stream has six beats; see `Cut`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from tests.shapes.case import Case, StaticTable, StreamTable

TIME = pa.timestamp("us", tz="UTC")
NAN = float("nan")


def at(text: str, *, day: int = 5) -> datetime:
    time = datetime.fromisoformat(f"2026-01-{day:02} {text}")
    return time.replace(tzinfo=UTC)


def _long_ago(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ENTRY = pa.struct([("a", pa.int32()), ("b", pa.string())])

EVENTS = StreamTable(
    pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("v", pa.int32()),
            ("price", pa.decimal128(10, 2)),
            ("x", pa.float64()),
            ("day", pa.date32()),
            ("ts", TIME),
            ("xs", pa.list_(pa.int32())),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("st", ENTRY),
            ("sts", pa.list_(ENTRY)),
        ]
    ),
    (
        [
            (1, "a", 5, Decimal("1.50"), 0.5, date(2026, 1, 5), at("10:00"), [1, 2], [("p", 1)],
             {"a": 1, "b": "one"}, [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
            (2, "b", 7, Decimal("2.25"), -1.0, date(2026, 1, 6), at("10:01"), [3], [("q", 2), ("p", 3)],
             {"a": None, "b": "two"}, [{"a": 3, "b": "y"}]),
        ],
        [
            (3, "a", None, None, None, None, None, None, None, None, None),
            (4, None, -3, Decimal("0.00"), NAN, date(1969, 12, 31), at("10:02:03.004005"), [], [],
             {"a": None, "b": None}, []),
        ],
        [(5, "c", 11, Decimal("99999999.99"), 1e300, date(2026, 2, 28), at("23:59:59.999999"),
          [4, None, 4], [("q", None)], {"a": 9, "b": "nine"}, [None, {"a": 4, "b": "z"}])],
        [
            (6, "b", 2, Decimal("-7.10"), -0.0, date(2026, 1, 7), at("00:00", day=6), [7, 8, 9],
             [("r", 5)], {"a": 6, "b": ""}, [{"a": 5, "b": "w"}]),
            (7, "é ß", 2, Decimal("3.33"), 2.5, date(2026, 12, 31), at("12:00"), [0], [("é", 0)],
             {"a": 7, "b": "it's"}, [{"a": None, "b": None}]),
        ],
        [(8, "a", 100, Decimal("5.00"), 8.0, date(2026, 1, 8), at("13:00"), [10, 20], [("p", 8)],
          {"a": 8, "b": "eight"}, [{"a": 8, "b": "e"}])],
        [(9, "d", 0, Decimal("6.00"), 0.0, date(2026, 1, 9), at("14:00"), [5], [("s", 9)],
          {"a": 0, "b": "zero"}, [{"a": 0, "b": "f"}])],
    ),
)  # fmt: skip # a row a line

_SMALL = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int32())])
MORE = StreamTable(
    _SMALL,
    (
        [(101, "a", 1)],
        [(102, "b", 2), (103, None, 3)],
        [],
        [(104, "a", None), (105, "c", 5)],
        [(106, "a", 5)],
        [(107, "d", 7)],
    ),
)
THIRD = StreamTable(
    _SMALL,
    ([], [(201, "a", 9)], [(202, "b", 8)], [(203, "c", 7), (204, None, 6)], [], [(205, "a", 5)]),
)

REPEATS = StreamTable(
    pa.schema(
        [("k", pa.string()), ("x", pa.float64()), ("st", ENTRY), ("xs", pa.list_(pa.int32())), ("n", pa.int32())]
    ),
    (
        [
            ("a", 1.0, {"a": 1, "b": "x"}, [1], 1),
            ("a", 1.0, {"a": 1, "b": "x"}, [1], 1),
            ("b", 0.0, None, [], 2),
            (None, NAN, {"a": None, "b": None}, None, 3),
        ],
        [
            ("a", 1.0, {"a": 1, "b": "x"}, [1], 1),
            ("b", -0.0, None, [], 2),
            (None, NAN, {"a": None, "b": None}, None, 3),
        ],
        [("b", None, None, [None], 2), (None, None, None, None, None)],
        [
            (None, None, None, None, None),
            ("b", 0.0, {"a": None, "b": None}, [], 2),
            ("a", 1.0, {"a": 1, "b": None}, [1], 1),
        ],
        [("A", 1.0, {"a": 1, "b": "x"}, [1], 1), ("", NAN, {"a": 1, "b": "x"}, [1, 1], 3)],
        [
            ("a", 1.0, {"a": 1, "b": "x"}, [1], 1),
            ("b", -0.0, {"a": None, "b": None}, [None], 2),
            ("", NAN, {"a": 1, "b": "x"}, [1, 1], 3),
        ],
    ),
)  # fmt: skip # a row a line

# Rows of the first three beats are alike, so are those of the last: which ones a LIMIT takes of a
# batch is not promised.
TICKS = StreamTable(
    pa.schema([("kind", pa.string()), ("n", pa.int32())]),
    tuple([(kind, n), (kind, n)] for kind, n in [("early", 1)] * 3 + [("late", 2)] * 3),
)

READINGS = StreamTable(
    pa.schema([("sensor", pa.string()), ("value", pa.int32()), ("at", TIME)]),
    (
        [("a", 1, at("10:01")), ("b", 2, at("10:02")), ("a", 3, at("10:04"))],
        [("a", 4, at("10:07")), ("b", 5, at("10:05")), ("a", 6, None), ("a", 3, at("10:04"))],
        [("a", 7, at("10:14")), ("c", 8, at("10:03")), ("b", 2, at("10:02"))],
        # The watermark of ten minutes comes to 10:15.
        [("b", 9, at("10:25")), ("a", 10, at("10:08")), (None, 11, at("10:24:59.999999"))],
        # At the watermark, just behind it, and far before it.
        [
            ("a", 12, at("10:10")),
            ("b", 13, at("10:15")),
            ("c", 14, at("10:15:00.001")),
            ("a", 15, at("10:01")),
            ("c", 16, at("10:16")),
        ],
        [
            ("a", 17, at("10:45")),
            ("d", 18, at("10:20")),
            ("a", 19, at("10:44:59.999")),
            ("a", 1, at("10:01")),
        ],
    ),
)  # fmt: skip # a row a line

GAUGES = StreamTable(
    pa.schema([("sensor", pa.string()), ("value", pa.int32()), ("at", TIME)]),
    (
        [("a", 101, at("10:03"))],
        [("b", 102, at("10:09"))],
        [],
        [("c", 103, at("10:12"))],
        [("a", 104, at("10:30")), ("b", 105, at("10:06"))],
        [("d", 106, at("10:31")), ("a", 107, at("10:14"))],
    ),
)

# Event times before 1970, where the watermark begins.
RELICS = StreamTable(
    pa.schema([("k", pa.string()), ("at", TIME)]),
    (
        [("a", _long_ago("1969-07-20 20:17")), ("b", _long_ago("1970-01-01"))],
        [("c", _long_ago("1970-01-01 00:00:00.001")), ("d", _long_ago("1950-01-01"))],
        [("e", _long_ago("1970-01-01 00:20"))],
        [("f", _long_ago("1969-12-31 23:59:59"))],
        [("g", _long_ago("1970-01-01 01:00"))],
        [("h", _long_ago("1970-01-01 00:45"))],
    ),
)

ADS = StreamTable(
    pa.schema([("ad", pa.int32()), ("shown", TIME), ("place", pa.string())]),
    (
        [(1, at("10:00"), "p1"), (2, at("10:01"), "p2"), (None, at("10:01"), "p0")],
        [(3, at("10:06"), "p3"), (9, at("10:02:30"), "p9"), (7, None, "p7")],
        [(4, at("10:12"), "p4")],
        [(5, at("10:22"), "p5")],
        [(6, at("10:40"), "p6"), (5, at("10:22"), "again")],
        # The watermark comes to 11:14 in the end: rows that just can, or just can't, meet a click.
        [
            (8, at("11:10"), "p8"),
            (1, at("10:00"), "late"),
            (10, at("11:19"), "p10"),
            *((11, at(f"11:{minute}"), minute) for minute in ("03:59.999", "04:00", "04:00.001")),
            *((12, at(f"11:{minute}"), minute) for minute in ("12:29.999", "12:30", "12:30.001")),
        ],
    ),
)
CLICKS = StreamTable(
    pa.schema([("ad", pa.int32()), ("clicked", TIME), ("who", pa.string())]),
    (
        [(1, at("10:03"), "u1"), (9, at("10:02"), "early")],
        # Ten minutes after the ad to the dot, and a moment before an ad.
        [(1, at("10:10"), "edge"), (3, at("10:05:59"), "before")],
        [(2, at("10:11:00.001"), "over"), (None, at("10:05"), "nobody"), (4, None, "when")],
        [(4, at("10:20"), "u4"), (5, at("10:22"), "same")],
        [(7, at("10:41"), "u7"), (3, at("10:16"), "at end"), (4, at("10:20"), "u4")],
        [
            (8, at("11:20"), "u8"),
            (6, at("10:45"), "slow"),
            (8, at("11:20"), "u8"),
            *((21, at(f"11:{minute}"), minute) for minute in ("13:59.999", "14:00", "14:00.001")),
            *((22, at(f"11:{minute}"), minute) for minute in ("12:59.999", "13:00", "13:00.001")),
        ],
    ),
)
VIEWS = StreamTable(
    pa.schema([("ad", pa.int32()), ("viewed", TIME)]),
    (
        [(1, at("10:01"))],
        [],
        [(3, at("10:08")), (1, at("10:04"))],
        [(5, at("10:22:30"))],
        [(None, at("10:30"))],
        [(8, at("11:15"))],
    ),
)

ORDERS = StreamTable(
    pa.schema([("id", pa.int64()), ("who", pa.string()), ("amount", pa.int32()), ("x", pa.float64())]),
    (
        [(1, "ann", 10, 0.0), (2, "bob", 20, NAN)],
        [(3, "ann", 30, 1.5), (4, None, 40, None)],
        [(5, "cid", 50, -0.0)],
        [(6, "bob", 60, NAN), (2, "bob", 20, NAN)],
        [(7, "dan", 70, 1.5)],
        [(8, "ann", 80, 0.0), (9, None, 90, None)],
    ),
)  # fmt: skip # a row a line
PAYMENTS = StreamTable(
    pa.schema([("pid", pa.int64()), ("who", pa.string()), ("paid", pa.int32()), ("x", pa.float64())]),
    (
        [(1, "bob", 15, NAN)],
        [(2, "ann", 25, -0.0), (3, "eve", 1, 7.0)],
        [(4, None, 35, None)],
        [(5, "cid", 45, 0.0), (6, "ann", 5, 1.5)],
        [(1, "bob", 15, NAN)],
        [(7, "dan", 75, 1.5), (8, "ANN", 99, 3.0)],
    ),
)  # fmt: skip # a row a line
SHIPMENTS = StreamTable(
    pa.schema([("sid", pa.int64()), ("pid", pa.int64())]),
    ([(1, 2)], [(2, 1)], [(3, 5)], [(4, 4)], [(5, 6), (6, None)], [(7, 7), (8, 1)]),
)

PEOPLE = StaticTable(
    pa.schema([("who", pa.string()), ("city", pa.string())]),
    [("ann", "Oslo"), ("bob", "Rome"), ("bob", "Riga"), (None, "Nowhere"), ("fay", "Bern")],
)
RATES = StaticTable(pa.schema([("low", pa.int32()), ("rate", pa.int32())]), [(0, 1), (50, 2)])

STREAMS = {
    "events": EVENTS,
    "more": MORE,
    "third": THIRD,
    "repeats": REPEATS,
    "ticks": TICKS,
    "readings": READINGS,
    "gauges": GAUGES,
    "relics": RELICS,
    "ads": ADS,
    "clicks": CLICKS,
    "views": VIEWS,
    "orders": ORDERS,
    "payments": PAYMENTS,
    "shipments": SHIPMENTS,
}
STATICS = {"people": PEOPLE, "rates": RATES}


def tables_of(cases: Iterable[Case]) -> dict[str, StreamTable | StaticTable]:
    """The tables that cases name."""
    tables: dict[str, StreamTable | StaticTable] = {**STREAMS, **STATICS}
    words = set(re.findall(r"\w+", " ".join(f"{case.sql} {case.python}" for case in cases)))
    return {name: table for name, table in tables.items() if name in words}
