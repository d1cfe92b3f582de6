"""Looks after one table: by itself while an update runs, or all at once when a person asks.

By itself it never fails the update and takes a bounded part of its time: the first problem is kept,
and the table is left alone until the next update.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millpond.delta import Snapshot, Table, is_behind, write_checkpoint
from millpond.maintenance.folder_files import leftovers
from millpond.maintenance.groups import AUTOMATIC, BY_HAND, Group, Thoroughness, groups_due
from millpond.maintenance.log_cleanup import clean_log, expired_log_files
from millpond.maintenance.report import Report
from millpond.maintenance.rewriting import rewrite
from millpond.maintenance.settings import DAY_MS, Settings
from millpond.maintenance.vacuum import unneeded_files, vacuum

# After so many batches it is looked whether files should be put together.
BATCHES_APART = 8
# How long it may take then, and at the end of an update, but for the rewrite that is under way.
BATCH_S = 2.0
FINISH_S = 10.0


@dataclass(frozen=True)
class RowOrder:
    """By what the rows of a table are sorted when they are written anew.

    Attributes:
        clustered_by: The columns that the table's definition says.
        keys: Those that the table's flow looks for, where it says none.
    """

    clustered_by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def columns(self, settings: Settings) -> tuple[str, ...]:
        return self.clustered_by or settings.sorted_by or self.keys


@dataclass
class Upkeep:
    """The upkeep of one table. Safe to use from several threads.

    Attributes:
        table: The table.
        order: How its rows are sorted.
        marker: A file that says when old files were last removed.
        folders: Others that killed writes may have left files in.
        report: What was done so far by itself.
        problem: What kept it from doing more.
    """

    table: Table
    order: RowOrder
    marker: Path
    folders: Sequence[Path] = ()
    report: Report = field(default_factory=Report)
    problem: Exception | None = None
    _batches: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def after_batch(self) -> None:
        """Put files together where it pays, unless another flow is at it."""
        self._batches += 1
        if self._batches % BATCHES_APART or not self._lock.acquire(blocking=False):
            return
        try:
            deadline_s = time.monotonic() + BATCH_S
            self._try(lambda: self._rewrite(deadline_s=deadline_s))
        finally:
            self._lock.release()

    def finish(self) -> None:
        """Put files together where it pays, and once a day remove what is too old."""
        with self._lock:
            deadline_s = time.monotonic() + FINISH_S
            self._try(lambda: self._rewrite(deadline_s=deadline_s))
            self._try(lambda: self._clean(deadline_s=deadline_s))

    def clean(self) -> None:
        """Once a day remove what is too old of a table that may not be there yet."""
        with self._lock:
            deadline_s = time.monotonic() + FINISH_S
            self._try(lambda: self._clean(deadline_s=deadline_s) if self.table.exists() else None)

    def by_hand(self) -> Report:
        """Do all that there is to do, now.

        Raises:
            MillpondError: Something can't be done; what was done before is.
        """
        snapshot = self.table.snapshot()
        settings = Settings.of(snapshot.metadata.configuration)
        report = Report()
        for group in self._groups(snapshot, settings, BY_HAND):
            report += self._rewrite_group(group, settings)
        snapshot = self.table.snapshot()
        if is_behind(snapshot, self.table.checkpoints()):
            report += Report(checkpoints_written=int(write_checkpoint(snapshot, self.table.store)))
        return report + self._remove_old(snapshot, settings, deadline_s=None)

    def preview(self) -> Report:
        """Say what `by_hand` would do, about, without doing it.

        Raises:
            MillpondError: It can't be told.
        """
        snapshot = self.table.snapshot()
        settings = Settings.of(snapshot.metadata.configuration)
        report = Report()
        for group in self._groups(snapshot, settings, BY_HAND):
            report += Report(
                files_compacted=len(group.files),
                files_written=-(-group.live_bytes // settings.target_bytes),
                bytes_compacted=group.size_bytes,
                bytes_written=group.live_bytes,
                vectors_purged=group.vectors,
            )
        behind = is_behind(snapshot, self.table.checkpoints())
        report += Report(checkpoints_written=int(behind))
        now_ms = _now_ms()
        for file in unneeded_files(
            self.table, snapshot, retention_ms=settings.file_retention_ms, now_ms=now_ms
        ):
            report += Report(files_removed=1, bytes_removed=file.size_bytes)
        if settings.cleans_log:
            expired = expired_log_files(
                self.table, snapshot, retention_ms=settings.log_retention_ms, now_ms=now_ms
            )
            report += Report(log_files_removed=len(expired))
        return report

    def _try(self, work: Callable[[], None]) -> None:
        """Do a part of it. Whatever goes wrong, the table is right, and the update goes on."""
        if self.problem is not None:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001 - kept, to be told in a warning
            self.problem = error

    def _rewrite(self, *, deadline_s: float) -> None:
        snapshot = self.table.snapshot()
        settings = Settings.of(snapshot.metadata.configuration)
        if not settings.is_managed or not settings.compacts:
            return
        for group in self._groups(snapshot, settings, AUTOMATIC):
            self.report += self._rewrite_group(group, settings)
            if _has_passed(deadline_s):
                return

    def _clean(self, *, deadline_s: float) -> None:
        snapshot = self.table.snapshot()
        settings = Settings.of(snapshot.metadata.configuration)
        pause_ms = min(DAY_MS, settings.file_retention_ms)
        passed_ms = _now_ms() - self._cleaned_ms(snapshot)
        # Below zero the clock went back since, perhaps by years: that must not stop all upkeep.
        if settings.is_managed and not 0 <= passed_ms < pause_ms:
            self.report += self._remove_old(snapshot, settings, deadline_s=deadline_s)

    def _remove_old(
        self, snapshot: Snapshot, settings: Settings, *, deadline_s: float | None
    ) -> Report:
        now_ms = _now_ms()
        report = vacuum(
            self.table,
            snapshot,
            retention_ms=settings.file_retention_ms,
            now_ms=now_ms,
            deadline_s=deadline_s,
        )
        if settings.cleans_log:
            report += clean_log(
                self.table, snapshot, retention_ms=settings.log_retention_ms, now_ms=now_ms
            )
        for folder in self.folders:
            for file in leftovers(folder, now_ms=now_ms):
                self.table.store.remove(file.path)
                report += Report(files_removed=1, bytes_removed=file.size_bytes)
        if not _has_passed(deadline_s):
            self.table.store.put(self.marker, json.dumps({"cleaned_ms": now_ms}).encode())
        return report

    def _groups(
        self, snapshot: Snapshot, settings: Settings, thoroughness: Thoroughness
    ) -> Iterator[Group]:
        return groups_due(
            snapshot,
            thoroughness,
            target_bytes=settings.target_bytes,
            sorted_by=self.order.columns(settings),
        )

    def _rewrite_group(self, group: Group, settings: Settings) -> Report:
        return rewrite(
            self.table,
            group,
            sorted_by=self.order.columns(settings),
            target_bytes=settings.target_bytes,
        )

    def _cleaned_ms(self, snapshot: Snapshot) -> int:
        """When old files were last removed. In a new table there are none."""
        try:
            return int(json.loads(self.table.store.read(self.marker))["cleaned_ms"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return snapshot.metadata.created_time_ms or 0


def _has_passed(deadline_s: float | None) -> bool:
    return deadline_s is not None and time.monotonic() > deadline_s


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
