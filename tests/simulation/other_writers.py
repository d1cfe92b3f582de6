"""What other programs commit to a table at the worst of moments."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from millpond.delta import Table, live_rows_sql, write_data_files
from millpond.delta.shared_connection import cursor
from millpond.errors.delta import DeltaTableNotFoundError
from millpond.storage import Store
from tests.simulation.deliveries import Multiset

# No delivery has this key.
KEY = "of another writer"


@dataclass
class OtherWriters:
    """Commits that change no row that a flow wrote.

    Attributes:
        inserted: By table, the versions in which a row was inserted, and which.
    """

    store: Store
    choices: random.Random
    inserted: dict[Path, dict[int, tuple[object, ...]]] = field(default_factory=dict)

    def commit(self, folder: Path) -> None:
        """Make one commit, or two in a row."""
        if folder.name == "landing":
            return  # its only writer is who delivers
        for _ in range(1 + (self.choices.random() < 0.3)):
            kinds = [self._mark]
            if folder.name in {"silver", "copied", "seen"}:
                kinds += [self._compact]
            if folder.name == "silver":
                kinds += [self._insert, self._insert]
            try:
                self.choices.choice(kinds)(Table(folder, self.store))
            except DeltaTableNotFoundError:
                return

    def rows(self, folder: Path, *, since: int, until: int) -> Multiset:
        """The rows that were inserted in some versions."""
        found = self.inserted.get(folder, {})
        return Counter(row for version, row in found.items() if since <= version <= until)

    def _mark(self, table: Table) -> None:
        transaction = table.begin()
        transaction.set_app_version("another program", transaction.snapshot.version)
        transaction.commit("WRITE")

    def _insert(self, table: Table) -> None:
        transaction = table.begin()
        version = transaction.snapshot.version + 1
        row = (KEY, version, 1)
        with cursor() as connection:
            for file in write_data_files(
                connection,
                f"SELECT '{KEY}' AS k, {version} AS v, 1 AS s",
                snapshot=transaction.snapshot,
                store=self.store,
            ):
                transaction.add(file)
        transaction.commit("WRITE")
        self.inserted.setdefault(table.path, {})[version] = row

    def _compact(self, table: Table) -> None:
        transaction = table.begin()
        files = list(transaction.snapshot.files.values())
        with cursor() as connection:
            rows = live_rows_sql(connection, transaction.snapshot, files, store=self.store)
            for file in write_data_files(
                connection,
                rows,
                snapshot=transaction.snapshot,
                store=self.store,
                data_change=False,
            ):
                transaction.add(file)
        for file in files:
            transaction.remove(file, data_change=False)
        transaction.commit("OPTIMIZE")
