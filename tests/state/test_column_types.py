"""Whatever the engine writes comes back from an operator, and from its state, as it was."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.session import SparkSession

from millpond.engine.embedded.server import Server
from millpond.state import Due, FlowState, Side, StreamJoin, deduplicate, due_windows, observe
from millpond.storage import LocalStore

VALUES = {
    "boolean": "true",
    "tinyint": "CAST(-128 AS TINYINT)",
    "smallint": "CAST(-32768 AS SMALLINT)",
    "int": "-2147483648",
    "bigint": "-9223372036854775807L",
    "float": "CAST(1.1 AS FLOAT)",
    "nan": "double('NaN')",
    "negative zero": "-0.0D",
    "infinity": "double('-Infinity')",
    "small decimal": "CAST(-1.05 AS DECIMAL(3,2))",
    "decimal": "CAST(123456789012.345678 AS DECIMAL(18,6))",
    "large decimal": "CAST('99999999999999999999999999999999999.999' AS DECIMAL(38,3))",
    "string": "'späte 😀 \\'quoted\\''",
    "empty string": "''",
    "binary": "X'00FF80'",
    "date": "DATE'0001-01-01'",
    "timestamp": "TIMESTAMP'2024-02-29 12:34:56.123456+00:00'",
    "old timestamp": "TIMESTAMP'1900-01-01 00:00:00.000001+00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    "array": "array(1, NULL, 3)",
    "empty array": "CAST(array() AS ARRAY<STRING>)",
    "struct": "named_struct('a', CAST(NULL AS INT), 'B c', named_struct('d', array(X'01', NULL)))",
    "array of structs": "array(named_struct('x', 1.5D), NULL)",
    "map": "map('k', array(TIMESTAMP'2024-01-01 00:00:00+00:00'), 'l', NULL)",
    "map of structs": "map(1, named_struct('y', CAST(1.0 AS DECIMAL(10,1))))",
}
COMPARABLE = [name for name in VALUES if not name.startswith("map")]


@pytest.fixture(scope="module")
def spark():
    server = Server()
    session = SparkSession.builder.channelBuilder(server.connection()).create()
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    yield session
    session.stop()
    server.stop()


@pytest.fixture
def rows(spark, tmp_path):
    """Files of a row of values, one of nulls, and event times; and how Sail reads such files."""
    columns = [f"{value} AS c{index}" for index, value in enumerate(VALUES.values())]
    nulls = [f"IF(id = 0, c{index}, NULL) AS c{index}" for index in range(len(VALUES))]
    time = "TIMESTAMP'2024-01-01 00:00:00+00:00' + make_dt_interval(0, 0, 0, id)"
    query = (
        f"SELECT {', '.join(nulls)}, named_struct('start', {time}, 'end', {time}) AS w, "
        f"id AS k FROM (SELECT id, {', '.join(columns)} FROM range(2))"
    )
    frame = spark.sql(query)
    frame.write.parquet(str(tmp_path / "in"))
    files = tuple(sorted((tmp_path / "in").glob("*.parquet")))

    # As the engine reads such files: without a promise of what is never null.
    schema = frame.schema.toNullable()

    def read(paths):
        found = spark.read.schema(schema).parquet(*map(str, paths)).toArrow()
        return sorted(found.to_pylist(), key=lambda row: row["k"]), found.schema

    return files, read


def same(found, wanted):
    # As text: NaN is NaN then, and -0.0 is not 0.0.
    assert repr(found[0]) == repr(wanted[0])
    assert found[1] == wanted[1]


@pytest.fixture
def flow(tmp_path):
    return FlowState(tmp_path / "state", LocalStore())


def test_rows_that_were_kept_come_back_as_they_were(rows, flow, tmp_path):
    files, read = rows
    state = flow.begin(0)
    observe(state, "w", files, event_time="w", delay_us=0)
    assert due_windows(state, "a", files, window="w", folder=tmp_path / "0") == ()
    state.commit({})
    out = due_windows(flow.begin(1), "a", (), window="w", folder=tmp_path / "1")
    same(read(out), read(files))


def test_rows_that_match_come_back_as_they_were(rows, flow, tmp_path):
    files, read = rows
    for batch in range(2):
        side = Side(files, ["k"], due=Due("w", 0))
        state = flow.begin(batch)
        join = StreamJoin(state, "j", side, side, outer=frozenset({"left"}), folder=tmp_path / "j")
        state.commit({})
    for term in join.terms:
        for part in term:
            for file in part:
                same(read([file]), read(files))


@pytest.mark.parametrize("name", COMPARABLE)
def test_any_value_is_a_key(name, rows, flow, tmp_path):
    files, read = rows
    key = f"c{[*VALUES].index(name)}"
    found = []
    for batch in range(2):
        state = flow.begin(batch)
        out = deduplicate(
            state,
            "d",
            files,
            keys=[key],
            event_time=None,
            within_us=None,
            folder=tmp_path / str(batch),
        )
        state.commit({})
        found.append(out)
    same(read(found[0]), read(files))
    assert found[1] == ()
