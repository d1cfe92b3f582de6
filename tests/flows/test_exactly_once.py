"""A batch lands once, whatever is tried again, and a batch that changes nothing is on record."""

import shutil

import pytest

from millpond.delta import Metadata, Table
from millpond.errors.delta import CommitConflictError
from millpond.errors.flows import TooManyCommitConflictsError
from millpond.flows import BatchResult
from millpond.flows.commits import MAX_ATTEMPTS


def test_a_batch_that_the_table_holds_is_not_applied_again(sales):
    sales.send(("east", "ann", 1, 1), batch_id=0)
    version = sales.table.snapshot().version
    sales.restart()
    result = sales.send(("east", "ann", 1, 1), batch_id=0)
    assert result == BatchResult(version=version, committed=False)
    assert sales.holds(("east", "ann", 1, 1))


def test_a_batch_older_than_the_newest_one_held_is_not_applied(sales):
    sales.send(("east", "ann", 1, 1), batch_id=4)
    sales.send(("west", "bob", 2, 1), batch_id=3)
    assert sales.holds(("east", "ann", 1, 1))


@pytest.mark.parametrize("rows", [[], [("east", "late", 2, 0)]], ids=["empty", "late"])
def test_a_batch_that_changes_nothing_leaves_its_number_in_the_table(sales, rows):
    sales.send(("east", "ann", 1, 1), batch_id=0)
    result = sales.send(*rows, batch_id=1)
    sales.restart()
    snapshot = sales.table.snapshot()
    assert snapshot.app_versions["flow/0"] == 1
    assert (result.version, result.bytes_written) == (snapshot.version, 0)
    assert sales.holds(("east", "ann", 1, 1))


def test_a_new_checkpoint_id_starts_to_count_anew(sales):
    sales.send(("east", "ann", 1, 7), batch_id=0)
    sales.full_refresh()
    sales.send(("east", "bob", 2, 1), batch_id=0)
    assert sales.holds(("east", "bob", 2, 1))


def test_a_conflict_makes_the_batch_look_at_the_table_again(sales, monkeypatch):
    """A row that another writer inserts in between counts as the floor."""
    sales.send(("east", "ann", 1, 1))
    begin = sales.table.begin
    raced = []

    def begin_and_be_overtaken():
        transaction = begin()
        if not raced:
            raced.append(True)
            sales.insert(("east", "hand", 9, 9))
        return transaction

    monkeypatch.setattr(sales.table, "begin", begin_and_be_overtaken)
    result = sales.send(("east", "bob", 2, 5))
    assert (result.rows_inserted, result.rows_late) == (0, 1)
    assert sales.holds(("east", "ann", 1, 1), ("east", "hand", 9, 9))


def test_a_lost_race_leaves_no_file_of_its_own(sales, monkeypatch, vectors):
    sales.send(("east", "ann", 1, 1), ("west", "bob", 2, 1))
    begin = sales.table.begin
    raced = []

    def begin_and_be_overtaken():
        transaction = begin()
        if not raced:
            raced.append(True)
            begin().commit("OTHER")
        return transaction

    monkeypatch.setattr(sales.table, "begin", begin_and_be_overtaken)
    sales.send(("east", "cid", 3, 2))
    assert sales.holds(("west", "bob", 2, 1), ("east", "cid", 3, 2))
    assert len(list(sales.path.glob("*.parquet"))) == (2 if vectors else 3)
    assert len(list(sales.path.rglob("*.bin"))) == vectors


def test_a_batch_does_not_go_into_another_table_put_in_the_place_of_its_own(sales):
    sales.send(("east", "ann", 1, 1))
    shutil.rmtree(sales.path)
    Table(sales.path).create(Metadata(id="another", schema=sales.schema))
    with pytest.raises(CommitConflictError, match="Another table"):
        sales.send(("west", "bob", 2, 1))
    assert sales.holds()


def test_a_conflict_with_the_same_batch_does_not_apply_it_twice(sales, monkeypatch):
    begin = sales.table.begin
    raced = []

    def begin_and_be_overtaken():
        transaction = begin()
        if not raced:
            raced.append(True)
            sales.send(("east", "ann", 1, 1), batch_id=0)
        return transaction

    monkeypatch.setattr(sales.table, "begin", begin_and_be_overtaken)
    result = sales.send(("east", "ann", 1, 1), batch_id=0)
    assert not result.committed
    assert sales.holds(("east", "ann", 1, 1))


def test_after_many_lost_races_the_batch_gives_up_with_nothing_applied(sales, monkeypatch):
    begin = sales.table.begin
    lost = []

    def begin_and_be_overtaken():
        transaction = begin()
        lost.append(True)
        begin().commit("OTHER")
        return transaction

    monkeypatch.setattr(sales.table, "begin", begin_and_be_overtaken)
    with pytest.raises(TooManyCommitConflictsError, match=f"{MAX_ATTEMPTS} times"):
        sales.send(("east", "ann", 1, 1))
    assert len(lost) == MAX_ATTEMPTS
    assert sales.holds()
