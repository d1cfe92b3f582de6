"""An update that dies, while columns are added or files are cleaned away, loses nothing.

Every second write is tried: each takes two updates.
"""

from __future__ import annotations

import json

import pytest

from tests.files.shared_engine import Died, DyingStore, Suppliers

MAX_WRITES = 100


def dies(suppliers: Suppliers, *, writes: int) -> bool:
    """An update in which the process dies at a write; whether it did."""
    try:
        suppliers.update(store=DyingStore(writes))
    except Died:
        return True
    return False


def rows(suppliers: Suppliers) -> list[dict[str, int | None]]:
    columns = suppliers.pipeline.columns("t")
    return [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]


def test_new_columns_come_with_their_rows_whenever_an_update_died(suppliers):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("first.json", '{"v": -1}')
    suppliers.updated()
    expected = [-1]
    for writes in range(0, MAX_WRITES, 2):
        suppliers.send(f"{writes}-a.json", json.dumps({"v": writes}), at_s=writes)
        suppliers.send(f"{writes}-b.json", json.dumps({"v": writes, f"c{writes}": 7}), at_s=writes)
        expected += [writes, writes]
        died = dies(suppliers, writes=writes)
        # The next update may be the first that meets the column, and stop.
        suppliers.update()
        suppliers.updated()
        found = rows(suppliers)
        assert sorted(row["v"] for row in found) == expected, f"died at write {writes}"
        assert [row["v"] for row in found if row[f"c{writes}"] is not None] == [writes]
        if not died:
            assert writes > 10
            return
    pytest.fail(f"the update did not end within {MAX_WRITES} writes")


def test_files_are_cleaned_away_after_their_rows_are_in_whenever_an_update_died(suppliers):
    suppliers.query(
        "SELECT v FROM STREAM read_files('SENT', format => 'json', schema => 'v INT', "
        "maxFilesPerTrigger => 1, allowOverwrites => true, cleanSource => 'DELETE', "
        "`cleanSource.retentionDuration` => '0 seconds')"
    )
    expected: list[int] = []
    for writes in range(1, MAX_WRITES, 2):
        for name in ("a", "b"):
            suppliers.send(f"{name}.json", json.dumps({"v": writes}), at_s=writes)
        expected += [writes, writes]
        died = dies(suppliers, writes=writes)
        suppliers.updated()
        found = sorted(row["v"] for row in rows(suppliers))
        assert found == expected, f"died at write {writes}"
        assert not list(suppliers.sent.iterdir())
        if not died:
            assert writes > 10
            return
    pytest.fail(f"the update did not end within {MAX_WRITES} writes")
