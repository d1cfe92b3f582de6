"""Programs that read a table before a batch came notice the batch when they commit."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.delta.tables import append, create, delete_where, sorted_rows
from tests.readers import read_with_delta_rs

NEW = pa.table({"k": [2], "v": ["new"]})


def _merge(table: DeltaTable) -> None:
    merger = table.merge(NEW, "t.k = s.k", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


WRITERS: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda table: table.delete("k = 2"),
    "update": lambda table: table.update(predicate="k = 2", updates={"v": "'new'"}),
    "merge": _merge,
    "compact": lambda table: table.optimize.compact(),
    "overwrite": lambda table: write_deltalake(table, NEW, mode="overwrite"),
}


@pytest.mark.parametrize("vectors", [True, False], ids=["deletion vectors", "rewritten files"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_that_did_not_see_a_replace_is_refused(tmp_path, writer, vectors):
    table = create(tmp_path / "t", enableDeletionVectors=str(vectors).lower())
    append(table, "SELECT range AS k, 'a' AS v FROM range(3)")
    append(table, "SELECT 3 AS k, 'b' AS v")
    stale = DeltaTable(table.path)
    if vectors:
        delete_where(table, "k = 1")
    else:
        transaction = table.begin()
        for file in transaction.snapshot.files.values():
            transaction.remove(file)
        transaction.commit("REPLACE USING")
    expected = [(0, "a"), (2, "a"), (3, "b")] if vectors else []
    with pytest.raises(CommitFailedError):
        WRITERS[writer](stale)
    assert sorted_rows(read_with_delta_rs(table.path)) == expected
