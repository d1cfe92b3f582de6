"""Values of every type come out of state as they went in: as through a flow that keeps nothing."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from millpond.events import UpdateState
from tests.pipeline_folder import SPEC, PipelineFolder

US = "us"
ITEM = pa.struct([("n", pa.int32()), ("s", pa.string()), ("at", pa.timestamp(US, "UTC"))])
EARLY, LATE = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)

# Of each column its type, and values of the rows in turn.
COLUMNS = {
    "bool": (pa.bool_(), [True, False, None]),
    "byte": (pa.int8(), [-128, 127, 0]),
    "short": (pa.int16(), [-32768, 32767, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 0]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [math.nan, -0.0, 0.0, math.inf, 1.1, None]),
    "double": (pa.float64(), [-math.inf, math.nan, 0.1, -0.0, 5e-324, None]),
    "small_decimal": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01"), None]),
    "large_decimal": (pa.decimal128(38, 18), [Decimal("-1e-18"), Decimal(10**19), None]),
    "string": (pa.string(), ["", " ", "a\x00b", "ß\U0001f986", "'\"\\\n", None]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\xfe\x00", None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31), None]),
    "timestamp": (pa.timestamp(US, "UTC"), [EARLY, LATE, datetime(1969, 1, 1, tzinfo=UTC), None]),
    "timestamp_ntz": (
        pa.timestamp(US),
        [
            EARLY.replace(tzinfo=None),
            LATE.replace(tzinfo=None),
            datetime.fromisoformat("2024-03-31T02:30"),
            None,
        ],
    ),
    "array": (pa.list_(pa.float64()), [[], [None], [math.nan, -0.0], None]),
    "struct": (
        ITEM,
        [{"n": 1, "s": "", "at": EARLY}, {"n": None, "s": None, "at": None}, None],
    ),
    "nested": (
        pa.list_(pa.struct([("d", pa.decimal128(20, 3)), ("b", pa.list_(pa.binary()))])),
        [[{"d": Decimal("1.500"), "b": [b"\x00", None]}, None], [], [{"d": None, "b": None}], None],
    ),
}
MAPS = {
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None]),
    "deep_map": (pa.map_(pa.int32(), ITEM), [[(1, {"n": 1, "s": "x", "at": LATE})], None]),
}
ROWS = 13
LAST = 1000
PLAIN = [*COLUMNS]
ALL = [*COLUMNS, *MAPS]


def minute(number):
    return datetime(2024, 1, 1, 0, number, tzinfo=UTC)


def rows(ids, at):
    columns = {
        "id": pa.array(ids, pa.int64()),
        "at": pa.array([at] * len(ids), pa.timestamp(US, "UTC")),
    }
    for name, (kind, values) in {**COLUMNS, **MAPS}.items():
        columns[name] = pa.array([values[number % len(values)] for number in ids], kind)
    return pa.table(columns)


def keys(ids, at):
    times = pa.array([at] * len(ids), pa.timestamp(US, "UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "at": times})


TIMED = "STREAM({}) WATERMARK at DELAY OF INTERVAL 0 SECONDS"
FIRSTS = ", ".join(f"first({name}) AS {name}" for name in ALL)
SAME = " AND ".join(f"a.{name} <=> b.{name}" for name in ["id", *PLAIN])
SQL = f"""
CREATE STREAMING TABLE without AS SELECT * FROM STREAM(typed);
CREATE STREAMING TABLE distinct_rows AS SELECT DISTINCT id, {", ".join(PLAIN)} FROM STREAM(typed);
CREATE STREAMING TABLE limited AS SELECT * FROM STREAM(typed) LIMIT 1000;
CREATE STREAMING TABLE joined AS
SELECT a.* FROM STREAM(typed) AS a JOIN STREAM(keys) AS b ON a.id = b.id;
CREATE STREAMING TABLE joined_by_all AS
SELECT a.*, b.array AS again FROM STREAM(typed) AS a JOIN STREAM(copies) AS b ON {SAME};
CREATE STREAMING TABLE alone AS
SELECT a.* FROM {TIMED.format("typed")} AS a LEFT JOIN {TIMED.format("keys")} AS b
ON a.id = -b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE;
CREATE STREAMING TABLE windows AS
SELECT id, {FIRSTS} FROM {TIMED.format("typed")} GROUP BY window(at, '1 minute'), id;
CREATE STREAMING TABLE sessions AS
SELECT id, {FIRSTS} FROM {TIMED.format("typed")} GROUP BY session_window(at, '1 minute'), id;
"""
PYTHON = """
from pyspark import pipelines as dp

@dp.table
def deduplicated():
    return spark.readStream.table("typed").dropDuplicates(["id"])

@dp.table
def deduplicated_in_time():
    typed = spark.readStream.table("typed").withWatermark("at", "1 minute")
    return typed.dropDuplicatesWithinWatermark(["id"])
"""


def completed(result):
    errors = [flow.error for flow in result.flows if flow.error] + [*result.problems]
    assert result.state is UpdateState.COMPLETED, errors


@pytest.fixture(scope="module")
def fed(tmp_path_factory) -> PipelineFolder:
    """Rows in one update; those that meet them in the next; what moves watermarks in a third."""
    root = tmp_path_factory.mktemp("types")
    (root / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    folder = PipelineFolder(root)
    folder.write("all.sql", SQL)
    folder.write("all.py", PYTHON)
    first, second = range(1, ROWS // 2), range(ROWS // 2, ROWS)
    folder.feed("typed", rows(first, minute(1)))
    folder.feed("keys", keys([], minute(1)))
    folder.feed("copies", rows([], minute(1)))
    completed(folder.run())
    folder.feed("typed", rows(second, minute(3)))
    folder.feed("keys", keys([*first, *second], minute(3)))
    folder.feed("copies", rows([*first, *second], minute(3)))
    completed(folder.run())
    folder.feed("typed", rows([LAST], minute(50)))
    folder.feed("keys", keys([LAST], minute(50)))
    completed(folder.run())
    return folder


def values(folder, table, names):
    """Rows by id, with NaN and -0.0 told from other values."""
    columns = folder.columns(table)
    places = [columns.index(name) for name in names]
    found = {}
    for row in folder.rows(table):
        key = row[columns.index("id")]
        assert key not in found
        found[key] = repr([row[place] for place in places])
    found.pop(LAST, None)
    return found


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("distinct_rows", PLAIN),
        ("limited", ALL),
        ("deduplicated", ALL),
        ("deduplicated_in_time", ALL),
        ("joined", ALL),
        ("joined_by_all", ALL),
        ("alone", ALL),
        ("windows", ALL),
        ("sessions", ALL),
    ],
)
def test_values_come_out_as_through_a_flow_without_state(fed, table, names):
    expected = values(fed, "without", names)
    assert len(expected) == ROWS - 1
    found = values(fed, table, names)
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert found[key] == row


def test_each_value_is_seen_once_in_all_batches_whatever_its_type(folder):
    """As Spark has it: null is null, NaN is NaN, and -0.0 is 0.0."""
    for name in PLAIN:
        folder.write(
            f"{name}.sql",
            f"CREATE STREAMING TABLE each_{name} AS SELECT DISTINCT `{name}` FROM STREAM(typed);",
        )
    for at in (1, 2):
        folder.feed("typed", rows(range(ROWS), minute(at)))
        completed(folder.run())
    for name in PLAIN:
        _, given = COLUMNS[name]
        (found,) = zip(*folder.rows(f"each_{name}"), strict=True)
        same_zero = name in {"float", "double"} and -0.0 in given and 0.0 in given
        count = sum(v == 0 for v in given if v is not None) if same_zero else 1
        assert len(found) == len(given) - count + 1, (name, found)
