"""The state of one flow: a version after every batch, and the batch that makes the next.

Version N holds what batches 0 to N left. Batch N starts from version N-1 and is durable before the
target commits the batch, so a second attempt at the batch starts from the same place as the first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from copy import copy
from pathlib import Path
from typing import Any

from millpond.errors.state import StateMissingError, StateUnreadableError
from millpond.names import path_segment
from millpond.state.changes import check_same
from millpond.state.keyed_rows import KeyedRows
from millpond.state.version import Version, Versions
from millpond.storage import Store

VERSIONS_KEPT = 10


class FlowState:
    """The state below one flow's checkpoint.

    Args:
        folder: Of the state.
        store: Reads and writes versions, and makes the files of rows durable.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._rows = folder / "rows"
        self._store = store
        self._versions = Versions(folder / "versions", store)

    def begin(self, batch: int) -> BatchState:
        """Start a batch, for the first time or again, from the state after the one before.

        Raises:
            StateMissingError: The version is missing, or a file that it names.
            StateUnreadableError: The version is torn, or a file that it names is cut short.
        """
        if batch == 0:
            before = Version(-1)
        else:
            before = self._versions.read(batch - 1)
            self._check_files(before)
        return BatchState(before, folder=self._folder, versions=self._versions, store=self._store)

    def check(
        self, batch: int | None, description: Mapping[str, Any], *, flow: str | None = None
    ) -> None:
        """Compare the operators of a query with those whose state is stored.

        Args:
            batch: The batch after which the state was stored; `None` where there was none yet.
            description: For each operator, by its id, all that its state depends on, as JSON; and
                what is `SHOWN` of it, which makes no difference.
            flow: Whose query it is, for messages.

        Raises:
            StateIncompatibleError: They differ.
            StateMissingError: The version is missing.
            StateUnreadableError: The version is torn.
        """
        if batch is None or not (description or self._versions.numbers()):
            return
        now = json.loads(json.dumps(description))
        before = self._versions.read(batch).description if self._versions.numbers() else {}
        check_same(before, now, flow=flow)

    def watermark_moves_after(self, batch: int) -> bool:
        """Whether the batch after `batch` has a later watermark, without any new rows."""
        version = self._versions.read(batch)
        return version.next_watermark_us > version.watermark_us

    def prune(self, *, committed: int) -> None:
        """Remove old versions and files of rows that no version names; not while a batch runs.

        Args:
            committed: The batch that the target holds. The state after it stays, and that after
                some batches before.
        """
        self._versions.remove_before(committed - VERSIONS_KEPT + 1)
        named: dict[str, set[str]] = {}
        for number in self._versions.numbers():
            for operator, file in self._versions.read(number).files():
                named.setdefault(path_segment(operator), set()).add(file.name)
        for operator in self._store.list(self._rows):
            kept = named.get(operator, set())
            for name in self._store.list(self._rows / operator):
                if name not in kept:
                    self._store.remove(self._rows / operator / name)

    def _check_files(self, version: Version) -> None:
        named_by = self._versions.path(version.batch)
        for operator, file in version.files():
            path = self._rows / path_segment(operator) / file.name
            try:
                size_bytes = path.stat().st_size
            except FileNotFoundError as error:
                raise StateMissingError.from_file(path, version=named_by) from error
            if size_bytes != file.size_bytes:
                reason = f"it has {size_bytes} bytes, not the {file.size_bytes} that were written"
                raise StateUnreadableError.from_file(path, reason=reason)


class BatchState:
    """The state of a flow during one batch; nothing is kept of it unless it is committed.

    Attributes:
        batch: The number of the batch.
        watermark_us: State is evicted by it. Microseconds since the epoch, whole milliseconds.
        late_watermark_us: The watermark of the batch before: rows at or before it are late.
    """

    def __init__(self, before: Version, *, folder: Path, versions: Versions, store: Store) -> None:
        self.batch = before.batch + 1
        self.watermark_us = before.next_watermark_us
        self.late_watermark_us = before.watermark_us
        self._before = before
        self._watermarks = dict(before.watermarks)
        self._numbers = {name: dict(numbers) for name, numbers in before.numbers.items()}
        self._folder = folder
        self._rows_folder = folder / "rows"
        self._rows: dict[tuple[str, str], KeyedRows] = {}
        self._versions = versions
        self._store = store

    def observe(self, operator: str, *, newest_us: int | None, delay_us: int) -> None:
        """Count events towards the watermark of the batches to come.

        Args:
            operator: The watermark's own id; the slowest of them counts.
            newest_us: The newest event time, `None` where there were no events.
            delay_us: How much later than the newest an event may come.
        """
        seen = self._watermarks.setdefault(operator, 0)
        if newest_us is not None:
            # In milliseconds, as Spark counts.
            reached = (newest_us // 1000 - delay_us // 1000) * 1000
            self._watermarks[operator] = max(seen, reached)

    def behind(self, us: int) -> BatchState:
        """The same state for an operator whose rows come later than others, by so much."""
        found = copy(self)
        found.watermark_us -= us
        found.late_watermark_us -= us
        return found

    def rows(self, operator: str, part: str = "rows") -> KeyedRows:
        """The rows that an operator keeps; one with several kinds of rows names the part."""
        key = (operator, part)
        if key not in self._rows:
            self._rows[key] = KeyedRows(
                self._rows_folder / path_segment(operator),
                operator=operator,
                part=part,
                stored=self._before.rows.get(key),
            )
        return self._rows[key]

    def numbers(self, operator: str) -> MutableMapping[str, int]:
        """Counters of an operator, kept with the version."""
        return self._numbers.setdefault(operator, {})

    def commit(self, description: Mapping[str, Any]) -> None:
        """Write the state after this batch; durable on return.

        Args:
            description: For each operator, by its id, all that its state depends on, as JSON.
        """
        after = self._after(description)
        old = {(operator, file.name) for operator, file in self._before.files()}
        had_files = {operator for operator, _ in old}
        paths: list[Path] = []
        for operator, file in after.files():
            folder = self._rows_folder / path_segment(operator)
            if operator not in had_files:
                # No version relied on this folder so far, so nobody made its name durable.
                paths += [self._folder, self._rows_folder, folder]
                had_files.add(operator)
            if (operator, file.name) not in old:
                paths.append(folder / file.name)
        if paths:
            self._store.sync(paths)
        self._versions.write(after)

    def _after(self, description: Mapping[str, Any]) -> Version:
        stored = dict(self._before.rows)
        for key, rows in self._rows.items():
            after = rows.after_batch()
            if after is not None:
                stored[key] = after
        return Version(
            batch=self.batch,
            watermark_us=self.watermark_us,
            watermarks=self._watermarks,
            numbers=self._numbers,
            rows=stored,
            description=description,
        )
