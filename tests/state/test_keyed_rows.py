"""Rows are found by their key, whatever its type, until they are due."""

from __future__ import annotations

import re

import pytest

from millpond.errors.state import StateIncompatibleError
from millpond.state import FlowState
from millpond.state.row_files import ROWS_OF_PAGE, hash_sql
from millpond.storage import LocalStore

# A type, and SQL of values that all are different keys.
KEYS = {
    "BIGINT": ["1", "-1", "0", "9223372036854775807"],
    "BOOLEAN": ["true", "false"],
    "DOUBLE": ["0.0", "1.5", "'NaN'", "'Infinity'", "'-Infinity'"],
    "FLOAT": ["0.0", "1.5", "'NaN'"],
    "VARCHAR": ["''", "'a'", "'A'", "'a '", "'ä'"],
    "BLOB": [r"'\x00'", r"'\xFF\x00'", "''"],
    "DATE": ["'1970-01-01'", "'0001-01-01'", "'9999-12-31'"],
    "TIMESTAMP": ["'2026-03-29 02:30:00'", "'1969-12-31 23:59:59.999999'"],
    "TIMESTAMP WITH TIME ZONE": ["'2026-03-29 02:30:00+02'", "'2026-03-29 02:30:00+01'"],
    "DECIMAL(38,6)": ["0", "1.5", "-1.5", "99999999999999999999999999999999.999999"],
    "DECIMAL(5,2)": ["0", "1.5", "1.51"],
    "STRUCT(a INTEGER, b STRUCT(c DOUBLE))": [
        "{'a': 1, 'b': {'c': 1}}",
        "{'a': 1, 'b': {'c': NULL}}",
        "{'a': 1, 'b': NULL}",
        "{'a': NULL, 'b': {'c': 'NaN'}}",
        "{'a': NULL, 'b': NULL}",
    ],
    "DOUBLE[]": ["[]", "[NULL]", "[0]", "[0, 0]", "['NaN']"],
}


def values(kind, texts):
    rows = ", ".join(f"(CAST({text} AS {kind}))" for text in [*texts, "NULL"])
    return f"SELECT k FROM (VALUES {rows}) AS t (k)"


def rows_of(connection, select):
    return sorted(connection.execute(select).fetchall(), key=repr)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_any_type_is_equal_to_itself_alone(state, connection, kind):
    batch = state.begin(0)
    texts = KEYS[kind]
    batch.rows("o").add(connection, values(kind, texts), keys=["k"])
    batch.commit({})
    stored = state.begin(1).rows("o")
    for text in [*texts, "NULL"]:
        # Most stored keys are others; the one that is equal is found, whatever it is called.
        other = f"SELECT CAST({text} AS {kind}) AS other"
        found = rows_of(connection, stored.matching(connection, other, keys=["other"]))
        assert len(found) == 1
        same = f"SELECT r.k IS NOT DISTINCT FROM CAST({text} AS {kind})"
        (row,) = connection.execute(
            f"{same} FROM ({stored.live()}) AS r WHERE row_id = {found[0][-1]}"
        ).fetchall()
        assert row == (True,)


def test_negative_zero_is_zero_and_any_nan_is_nan(state, connection):
    batch = state.begin(0)
    stored = batch.rows("o")
    stored.add(
        connection,
        "SELECT * FROM (VALUES (0, 0.0::DOUBLE, {'x': 0.0::FLOAT}), "
        "(1, 'NaN'::DOUBLE, {'x': 'NaN'::FLOAT})) AS t (n, d, s)",
        keys=["d", "s"],
    )
    other = "SELECT -0.0::DOUBLE AS d, {'x': -0.0::FLOAT} AS s"
    found = rows_of(connection, stored.matching(connection, other, keys=["d", "s"]))
    assert [row[0] for row in found] == [0]
    other = "SELECT -'NaN'::DOUBLE AS d, {'x': -'NaN'::FLOAT} AS s"
    found = rows_of(connection, stored.matching(connection, other, keys=["d", "s"]))
    assert [row[0] for row in found] == [1]


def test_a_row_matches_once_however_often_its_key_is_asked_for(state, connection):
    stored = state.begin(0).rows("o")
    stored.add(connection, "SELECT 1 AS k, range AS v FROM range(3)", keys=["k"])
    other = "SELECT 1 AS k UNION ALL SELECT 1 UNION ALL SELECT 2"
    found = rows_of(connection, stored.matching(connection, other, keys=["k"]))
    assert found == [(1, 0, 0), (1, 1, 1), (1, 2, 2)]


def test_rows_without_a_key_match_any_row(state, connection):
    stored = state.begin(0).rows("o")
    stored.add(connection, "SELECT range AS v FROM range(2)", keys=[])
    found = rows_of(connection, stored.matching(connection, "SELECT 'x' AS x", keys=[]))
    assert found == [(0, 0), (1, 1)]
    none = "SELECT 'x' AS x WHERE false"
    assert rows_of(connection, stored.matching(connection, none, keys=[])) == []


def test_what_was_added_is_given_back_with_ids_that_are_never_used_again(state, connection):
    ids: list[int] = []
    for number in range(4):
        batch = state.begin(number)
        added = batch.rows("o").add(
            connection, f"SELECT range AS k, {number} AS n FROM range(3)", keys=["k"]
        )
        found = rows_of(connection, added)
        assert [row[:2] for row in found] == [(0, number), (1, number), (2, number)]
        ids += [row[2] for row in found]
        batch.rows("o").expire(number)
        batch.commit({})
    assert len(set(ids)) == 12
    assert {row[2] for row in rows_of(connection, state.begin(4).rows("o").live())} == set(ids)


def test_each_part_of_an_operator_has_rows_of_its_own(state, connection):
    batch = state.begin(0)
    batch.rows("join", "left").add(connection, "SELECT 1 AS l", keys=["l"])
    batch.rows("join", "right").add(connection, "SELECT 'x' AS r", keys=["r"])
    batch.commit({})
    batch = state.begin(1)
    assert rows_of(connection, batch.rows("join", "left").live()) == [(1, 0)]
    assert rows_of(connection, batch.rows("join", "right").live()) == [("x", 0)]
    assert rows_of(connection, batch.rows("other").live()) == []


def test_a_declared_part_gives_no_rows_of_its_columns(state, connection):
    batch = state.begin(0)
    select = "SELECT 1 AS k, {'a b': 1.5} AS s, now() AS t, NULL::BIGINT AS d"
    batch.rows("o").declare(connection, select, keys=["k"], due="d")
    batch.commit({})
    stored = state.begin(1).rows("o")
    for given in (stored.live(), stored.due(5), stored.matching(connection, select, keys=["k"])):
        described = connection.execute(f"DESCRIBE {given}").fetchall()
        assert [row[:2] for row in described] == [
            ("k", "INTEGER"),
            ("s", 'STRUCT("a b" DECIMAL(2,1))'),
            ("t", "TIMESTAMP WITH TIME ZONE"),
            ("d", "BIGINT"),
            ("row_id", "BIGINT"),
        ]
        assert connection.execute(given).fetchall() == []


def test_rows_are_due_up_to_a_time_and_gone_in_the_next_batch(state, connection):
    batch = state.begin(0)
    batch.rows("o").add(
        connection,
        "SELECT * FROM (VALUES (1, 10), (2, 20), (3, 30), (4, NULL)) AS t (k, d)",
        keys=["k"],
        due="d",
    )
    batch.commit({})
    batch = state.begin(1)
    stored = batch.rows("o")
    assert [row[0] for row in rows_of(connection, stored.due(20))] == [1, 2]
    stored.expire(20)
    stored.expire(5)
    assert [row[0] for row in rows_of(connection, stored.live())] == [1, 2, 3, 4]
    batch.commit({})
    stored = state.begin(2).rows("o")
    assert [row[0] for row in rows_of(connection, stored.live())] == [3, 4]
    assert [row[0] for row in rows_of(connection, stored.due(30))] == [3]
    every = "SELECT unnest([1, 2, 3, 4]) AS k"
    found = rows_of(connection, stored.matching(connection, every, keys=["k"]))
    assert [row[0] for row in found] == [3, 4]


def test_a_file_whose_rows_are_all_dead_is_named_no_longer(state, connection, tmp_path):
    for number in range(3):
        batch = state.begin(number)
        stored = batch.rows("o")
        stored.add(connection, f"SELECT 1 AS k, {number}::BIGINT AS d", keys=["k"], due="d")
        stored.expire(number - 1)
        batch.commit({})
    assert len(list((tmp_path / "state" / "rows" / "o").iterdir())) == 3
    for number in range(3, 15):
        batch = state.begin(number)
        batch.rows("o").expire(2)
        batch.commit({})
        state.prune(committed=number)
    assert list((tmp_path / "state" / "rows" / "o").iterdir()) == []


def test_other_columns_than_the_stored_ones_are_refused(state, connection):
    stored = state.begin(0).rows("distinct-1")
    stored.add(connection, "SELECT 1 AS k, 2 AS v", keys=["k"])
    with pytest.raises(StateIncompatibleError, match="the columns of distinct-1 changed"):
        stored.add(connection, "SELECT 1 AS k, 2::BIGINT AS v", keys=["k"])
    with pytest.raises(StateIncompatibleError, match="the keys of distinct-1 changed"):
        stored.add(connection, "SELECT 1 AS k, 2 AS v", keys=["v"])
    with pytest.raises(ValueError, match="row_id"):
        stored.add(connection, "SELECT 1 AS k, 2 AS row_id", keys=["k"])


def test_nan_is_found_where_bounds_leave_it_out(state, connection):
    stored = state.begin(0).rows("o")
    nan = "CASE WHEN range = 7 THEN 'NaN'::DOUBLE ELSE range END"
    stored.add(connection, f"SELECT {nan} AS k FROM range(50000)", keys=["k"])
    other = "SELECT 'NaN'::DOUBLE AS k"
    assert len(rows_of(connection, stored.matching(connection, other, keys=["k"]))) == 1


def test_a_few_keys_are_looked_up_in_the_pages_that_can_hold_them(state, connection):
    stored = state.begin(0).rows("o")
    stored.add(connection, "SELECT range AS k, 'x' || range AS v FROM range(200000)", keys=["k"])
    select = stored.matching(connection, "SELECT unnest([5, 6, 300000]) AS k", keys=["k"])
    assert [row[:2] for row in rows_of(connection, select)] == [(5, "x5"), (6, "x6")]
    plan = connection.execute(f"EXPLAIN ANALYZE {select}").fetchall()[0][1]
    (rows_read,) = re.search(r"Row Groups Scanned: .*\n\W+([\d,]+) rows", plan).groups()
    assert int(rows_read.replace(",", "")) <= 3 * ROWS_OF_PAGE


def test_hashes_of_another_duckdb_are_computed_again(state, connection, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("duckdb.__version__", "0.0.1")
        older.setattr(
            "millpond.state.keyed_rows.hash_sql", lambda keys: hash_sql(["'salt'", *keys])
        )
        batch = state.begin(0)
        batch.rows("o").add(connection, "SELECT 'k' || range AS k FROM range(200000)", keys=["k"])
        batch.commit({})
    for number in (1, 2):
        batch = state.begin(number)
        stored = batch.rows("o")
        found = stored.matching(connection, "SELECT 'k5' AS k", keys=["k"])
        assert [row[0] for row in rows_of(connection, found)] == ["k5"]
        assert connection.execute(f"SELECT count(*) FROM ({stored.live()})").fetchone() == (200000,)
        batch.commit({})


def test_hashes_that_a_newer_duckdb_computes_alike_stay(state, connection, monkeypatch, tmp_path):
    batch = state.begin(0)
    batch.rows("o").add(connection, "SELECT 1 AS k", keys=["k"])
    batch.commit({})
    monkeypatch.setattr("duckdb.__version__", "99.0")
    batch = state.begin(1)
    select = batch.rows("o").matching(connection, "SELECT 1 AS k", keys=["k"])
    assert rows_of(connection, select) == [(1, 0)]
    assert len(list((tmp_path / "state" / "rows" / "o").iterdir())) == 1


def test_paths_and_names_of_any_spelling_hold_state(tmp_path, connection):
    state = FlowState(tmp_path / "it's [1]*", LocalStore())
    for number in range(3):
        batch = state.begin(number)
        rows = batch.rows("Distinct of 'a/b'", "left [*]")
        rows.add(connection, f"""SELECT {number} AS "k ""[*]" """, keys=['k "[*]'])
        batch.commit({})
        state.prune(committed=number)
    stored = state.begin(3).rows("Distinct of 'a/b'", "left [*]")
    assert rows_of(connection, stored.live()) == [(0, 0), (1, 1), (2, 2)]
