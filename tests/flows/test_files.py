"""Which files a batch reads, marks, rewrites and removes, and that it is one commit."""

from __future__ import annotations

import pytest

from millpond.delta.duckdb_connection import DEFAULT_MEMORY_LIMIT
from millpond.delta.shared_connection import cursor
from tests.delta.tables import append


def three_files(sales):
    """One data file for each region."""
    sales.send(("east", "ann", 1, 1), ("east", "bob", 2, 1))
    sales.send(("north", "cid", 3, 1))
    sales.send(("west", "dan", 4, 1), ("west", "eve", 5, 2))
    return sales.table.snapshot()


def test_files_that_can_not_hold_a_key_of_the_batch_are_not_read(sales):
    before = three_files(sales)
    for file in before.files.values():
        if file.stats.min_values["region"] != "north":
            before.file_path(file).write_bytes(b"damaged")
    result = sales.send(("north", "new", 1, 2), ("north", "old", 1, 1))
    assert (result.rows_inserted, result.rows_deleted) == (1, 1)


def test_files_are_not_skipped_where_a_null_key_may_be_in_them(sales):
    sales.send((None, "ann", 1, 1), ("east", "bob", 2, 1))
    sales.send(("north", "cid", 3, 1))
    sales.send((None, "dan", 4, 2))
    assert sales.holds((None, "dan", 4, 2), ("east", "bob", 2, 1), ("north", "cid", 3, 1))


def test_a_batch_is_one_commit_that_leaves_other_files_as_they_are(sales, vectors):
    before = three_files(sales)
    sales.insert(("west", "hand", 6, 1))
    before = sales.table.snapshot()
    sales.send(("east", "new", 7, 2), ("west", "late", 8, 1))
    after = sales.table.snapshot()
    assert after.version == before.version + 1
    untouched = [file for path, file in before.files.items() if after.files.get(path) == file]
    assert len(untouched) == 3
    assert all(file.deletion_vector is None for file in after.files.values())


def test_a_file_of_which_rows_are_left_is_marked_or_rewritten(sales, vectors):
    sales.send(("east", "ann", 1, 1), ("west", "bob", 2, 1), ("west", "cid", 3, 1))
    (path,) = sales.table.snapshot().files
    sales.send(("west", "new", 4, 2))
    after = sales.table.snapshot()
    assert (path in after.files) == vectors
    deleted = {f.deletion_vector.cardinality for f in after.files.values() if f.deletion_vector}
    assert deleted == ({2} if vectors else set())
    assert sorted(file.num_rows for file in after.files.values()) == [1, 1]
    assert sales.holds(("east", "ann", 1, 1), ("west", "new", 4, 2))


def test_a_file_of_which_no_row_is_left_is_removed_whole(sales):
    sales.send(("east", "ann", 1, 1), ("west", "bob", 2, 1))
    (path,) = sales.table.snapshot().files
    sales.send(("west", "new", 4, 2))
    sales.send(("east", "new", 5, 2))
    after = sales.table.snapshot()
    assert path not in after.files
    assert all(file.deletion_vector is None for file in after.files.values())
    assert sales.holds(("east", "new", 5, 2), ("west", "new", 4, 2))


@pytest.mark.parametrize("vectors", [False], ids=["copy-on-write"])
def test_rewriting_keeps_the_rows_of_a_file_together(make_sales):
    """So that files can still be skipped by their statistics after many batches."""
    sales = make_sales(keys=("customer",))
    three_files(sales)
    sales.send(("east", "bob", 9, 2), ("west", "eve", 9, 3))
    regions = sorted(
        (file.stats.min_values["region"], file.stats.max_values["region"])
        for file in sales.table.snapshot().files.values()
        if file.stats.max_values["amount"] < 9
    )
    assert regions == [("east", "east"), ("north", "north"), ("west", "west")]


def test_many_small_batches_give_one_file_each_and_one_commit_each(sales):
    for number in range(12):
        sales.send(("east", "ann", number, number))
    sales.restart()
    snapshot = sales.table.snapshot()
    assert (snapshot.version, len(snapshot.files)) == (12, 1)
    assert snapshot.app_versions == {"flow/0": 11}
    assert sales.holds(("east", "ann", 11, 11))


def test_the_commit_says_what_the_batch_did(sales):
    sales.send(("east", "ann", 1, 1))
    sales.send(("east", "bob", 2, 2), ("west", "cid", 3, 1))
    (commit,) = sales.table.commits(after=1, until=2)
    assert commit.commit_info["operation"] == "REPLACE USING"
    metrics = {k: int(v) for k, v in commit.commit_info["operationMetrics"].items()}
    assert (metrics["numOutputRows"], metrics["numDeletedRows"]) == (2, 1)


@pytest.fixture
def little_memory():
    with cursor() as connection:
        connection.execute("SET GLOBAL memory_limit = '64MB'")
        yield
        connection.execute(f"SET GLOBAL memory_limit = '{DEFAULT_MEMORY_LIMIT}'")


@pytest.mark.parametrize("vectors", [True], indirect=True, ids=["deletion-vectors"])
def test_a_key_may_have_more_rows_than_fit_into_memory(sales, little_memory):
    rows = "range % 1000 = 0 AS is_west, range AS amount, 1 AS seq FROM range(4_000_000)"
    append(
        sales.table,
        f"SELECT if(is_west, 'west', 'east') AS region, 'ann' AS customer, * FROM (SELECT {rows})",
    )
    result = sales.send(("east", "new", 1, 2))
    assert (result.rows_inserted, result.rows_deleted) == (1, 3_996_000)
    assert sales.table.snapshot().row_count == 4_001
