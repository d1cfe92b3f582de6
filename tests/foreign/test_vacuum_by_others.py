"""What other programs take for old files of a table of millpond's, and what they leave alone."""

from __future__ import annotations

import os
import time

from deltalake import DeltaTable

from millpond.delta import Table
from tests.delta.tables import append, create, delete_where, rows, sorted_rows
from tests.readers import READERS

TEN_DAYS_S = 10 * 24 * 3600


def test_a_full_vacuum_of_delta_rs_leaves_deletion_vectors_that_are_in_use(tmp_path):
    """It counts every file as unneeded that no action names as a data file, vectors among them."""
    table = create(tmp_path / "t")
    append(table, "SELECT range AS k, 'a' AS v FROM range(10)")
    delete_where(table, "k < 3")
    for path in table.path.rglob("*"):
        os.utime(path, times=(time.time() - TEN_DAYS_S,) * 2)
    vacuumed = DeltaTable(table.path).vacuum(retention_hours=168, dry_run=False, full=True)
    assert vacuumed == []
    expected = [(k, "a") for k in range(3, 10)]
    assert sorted_rows(rows(Table(table.path).snapshot())) == expected
    for read in READERS.values():
        assert sorted_rows(read(table.path)) == expected
