"""DuckDB compares as Spark does, for every type that can be a key or a sequence."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DoubleType, FloatType

from millpond.delta import connect, duckdb_type
from millpond.flows.batch import parquet_sql
from millpond.flows.ordering import is_same, rank
from tests.flows.values import NAN, NESTED_TYPES, ORDERABLE, PLAIN, values
from tests.oracle import canonical, compare


def sql_results(data_type: DataType, pairs, path):
    """For each pair: same, less, equal by rank, and whether the second is the greater.

    The values lie in Parquet files whose statistics leave NaN out, as those of most writers do.
    """
    arrow = to_arrow_type(data_type, timezone="UTC")
    columns = {
        "i": list(range(len(pairs))),
        "a": pa.array([a for a, _ in pairs], arrow),
        "b": pa.array([b for _, b in pairs], arrow),
    }
    pq.write_table(pa.table(columns), path)
    connection = connect()
    kind = duckdb_type(data_type)
    connection.execute(
        f"CREATE VIEW p AS SELECT i, CAST(a AS {kind}) AS a, CAST(b AS {kind}) AS b "
        f"FROM {parquet_sql([path])}"
    )
    a, b = rank("a", data_type), rank("b", data_type)
    rows = connection.execute(
        f"SELECT {is_same(a, b, nulls=True)}, {a} < {b}, {a} = {b}, "
        f"(SELECT max(r) FROM (VALUES ({a}), ({b})) AS v(r)) = {b} FROM p ORDER BY i"
    ).fetchall()
    groups = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM (SELECT a AS x FROM p UNION ALL SELECT b FROM p) "
        f"GROUP BY {rank('x', data_type)})"
    ).fetchall()[0][0]
    joined = [count_joined(connection, data_type, i) for i in range(len(pairs))]
    connection.close()
    return rows, groups, joined


def count_joined(connection, data_type, i):
    """How many left values equal the right value of one row, found by a join from a small table."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE one AS SELECT {rank('b', data_type)} AS k FROM p WHERE i = {i}"
    )
    counts = [
        connection.execute(
            f"SELECT count(*) FROM p JOIN one "
            f"ON {is_same(rank('p.a', data_type), 'one.k', nulls=nulls)}"
        ).fetchall()[0][0]
        for nulls in (True, False)
    ]
    is_null = connection.execute("SELECT k IS NULL FROM one").fetchall()[0][0]
    # Without a null there, the quicker comparison finds the same rows.
    assert counts[1] == (0 if is_null else counts[0])
    return counts[0]


def check(data_type, pairs, path):
    rows, groups, joined = sql_results(data_type, pairs, path)
    for (a, b), (same, less, equal, b_is_max) in zip(pairs, rows, strict=True):
        assert same == (canonical(a) == canonical(b)), (a, b)
        if a is not None and b is not None:
            order = compare(a, b)
            assert (less, equal) == (order < 0, order == 0), (a, b)
            assert b_is_max == (order <= 0), (a, b)
    forms = [(canonical(a), canonical(b)) for a, b in pairs]
    assert groups == len({form for pair in forms for form in pair})
    assert joined == [sum(left == right for left, _ in forms) for _, right in forms]


@pytest.mark.parametrize("data_type", PLAIN, ids=lambda t: t.simpleString())
def test_plain_types(data_type, tmp_path):
    some = [None, *PLAIN[data_type]]
    check(data_type, list(product(some, some)), tmp_path / "values.parquet")


@pytest.mark.parametrize("data_type", NESTED_TYPES, ids=lambda t: t.simpleString())
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_nested_types(data_type, data, tmp_path_factory):
    one = values(data_type)
    pairs = data.draw(st.lists(st.tuples(one, one), min_size=1, max_size=20))
    check(data_type, pairs, tmp_path_factory.mktemp("values") / "values.parquet")


def test_a_null_within_is_less_than_any_value_but_a_null_whole_has_no_rank(tmp_path):
    data_type = ORDERABLE[-4]
    small, large = {"a": None, "b c": 9.0}, {"a": -5, "b c": None}
    rows, _, _ = sql_results(
        data_type, [(small, large), (None, small)], tmp_path / "values.parquet"
    )
    assert rows[0][1] is True
    assert rows[1][1] is None


@pytest.mark.parametrize("data_type", [FloatType(), DoubleType()], ids=lambda t: t.simpleString())
def test_nan_is_found_where_the_statistics_of_a_file_leave_it_out(data_type, tmp_path):
    """DuckDB alone finds no row here: the statistics say that all values are 1.0."""
    check(data_type, [(NAN, NAN), (1.0, NAN), (1.0, 1.0)], tmp_path / "values.parquet")
