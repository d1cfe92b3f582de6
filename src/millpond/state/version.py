"""What a flow's state was after a batch: which files hold its rows, and the small numbers beside.

`<state>/versions/<N>` holds version N, one JSON object. The files that it names never change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond.errors.state import StateMissingError, StateUnreadableError
from millpond.storage import Store

FORMAT = 1


@dataclass(frozen=True)
class RowFile:
    """A Parquet file of rows, sorted by the hash of their key.

    Attributes:
        name: Below the folder of its operator.
        hash_min: The least hash, `hash_max` the greatest.
        due_min: The earliest time at which a row is dead, `due_max` the latest; `None` where no row
            ever is.
        due_half: A time at which half of the rows are dead; `None` where that is never, or the file
            is so small that nobody needs to know.
        has_lasting: Whether rows are among them that never die.
    """

    name: str
    rows: int
    size_bytes: int
    hash_min: int
    hash_max: int
    due_min: int | None = None
    due_max: int | None = None
    due_half: int | None = None
    has_lasting: bool = True

    def is_dead(self, floor_us: int | None) -> bool:
        """Whether all rows are dead once the watermark is at `floor_us`."""
        if floor_us is None or self.has_lasting or self.due_max is None:
            return False
        return self.due_max <= floor_us


@dataclass(frozen=True)
class StoredRows:
    """The rows of one part of an operator.

    Attributes:
        columns: Name and DuckDB type of each, in order.
        keys: The names of those that make the key.
        due: The name of the one that says when a row is dead.
        next_row_id: The id of the next row to be added.
        floor_us: Rows that are due by then are gone, although files may still hold them.
        hashed_by: The DuckDB that computed the hashes.
        runs: The files. Those of one run have ranges of hashes that do not overlap, in order.
    """

    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    due: str | None
    hashed_by: str
    next_row_id: int = 0
    floor_us: int | None = None
    runs: tuple[tuple[RowFile, ...], ...] = ()

    @property
    def files(self) -> list[RowFile]:
        return [file for run in self.runs for file in run]

    def expired(self, floor_us: int | None) -> StoredRows:
        """The same rows less those due by `floor_us`; a floor never falls."""
        if floor_us is None:
            return self
        floor = floor_us if self.floor_us is None else max(self.floor_us, floor_us)
        runs = (tuple(file for file in run if not file.is_dead(floor)) for run in self.runs)
        return replace(self, floor_us=floor, runs=tuple(run for run in runs if run))


@dataclass(frozen=True)
class Version:
    """The state after one batch.

    Attributes:
        watermark_us: The one that was in force during the batch.
        watermarks: What each watermark's own events have brought it to, the batch's among them.
        numbers: Counters by operator and name.
        rows: By operator and part.
        description: Of the operators whose state it is.
    """

    batch: int
    watermark_us: int = 0
    watermarks: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: Mapping[tuple[str, str], StoredRows] = field(default_factory=dict)
    description: Mapping[str, Any] = field(default_factory=dict)

    @property
    def next_watermark_us(self) -> int:
        """The watermark of the batch after: that of the slowest, and never an earlier one."""
        return max(self.watermark_us, min(self.watermarks.values(), default=0))

    def files(self) -> Iterator[tuple[str, RowFile]]:
        """Each file with its operator."""
        for (operator, _part), stored in self.rows.items():
            for file in stored.files:
                yield operator, file


class Versions:
    """The versions of one flow's state, in a folder."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._store = store

    def path(self, batch: int) -> Path:
        return self._folder / str(batch)

    def numbers(self) -> list[int]:
        names = self._store.list(self._folder)
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def read(self, batch: int) -> Version:
        """Read the state after a batch.

        Raises:
            StateMissingError: There is no such version.
            StateUnreadableError: It is torn, of an unknown format, or of another batch.
        """
        path = self.path(batch)
        try:
            data = self._store.read(path)
        except FileNotFoundError as error:
            raise StateMissingError.from_version(path, batch=batch) from error
        return _parse(data, path=path, batch=batch)

    def write(self, version: Version) -> None:
        """Write a version, or replace that of an earlier attempt; durable on return."""
        self._store.put(self.path(version.batch), _serialize(version))

    def remove_before(self, batch: int) -> None:
        """Remove older versions, and what killed writes left."""
        for name in self._store.list(self._folder):
            torn = name.startswith(".") and name.endswith(".tmp")
            old = name.isascii() and name.isdigit() and int(name) < batch
            if torn or old:
                self._store.remove(self._folder / name)


def _serialize(version: Version) -> bytes:
    rows: dict[str, dict[str, Any]] = {}
    for (operator, part), stored in version.rows.items():
        rows.setdefault(operator, {})[part] = asdict(stored)
    content = {
        "format": FORMAT,
        "batch": version.batch,
        "watermark_us": version.watermark_us,
        "watermarks": dict(version.watermarks),
        "numbers": {name: dict(numbers) for name, numbers in version.numbers.items()},
        "rows": rows,
        "description": version.description,
    }
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def _parse(data: bytes, *, path: Path, batch: int) -> Version:
    try:
        content = json.loads(data)
    except ValueError as error:
        reason = "it is empty" if not data.strip() else f"it is not whole JSON ({error})"
        raise StateUnreadableError.from_file(path, reason=reason) from error
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int):
        raise StateUnreadableError.from_file(path, reason="it holds no state")
    if found != FORMAT:
        raise StateUnreadableError.from_format(path, found=found, known=FORMAT)
    if content.get("batch") != batch:
        reason = f"it holds batch {content.get('batch')!r} under the name of batch {batch}"
        raise StateUnreadableError.from_file(path, reason=reason)
    try:
        return Version(
            batch=batch,
            watermark_us=content["watermark_us"],
            watermarks=content["watermarks"],
            numbers=content["numbers"],
            rows={
                (operator, part): _stored_rows(stored)
                for operator, parts in content["rows"].items()
                for part, stored in parts.items()
            },
            description=content["description"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateUnreadableError.from_file(path, reason="it is not whole") from error


def _stored_rows(content: Mapping[str, Any]) -> StoredRows:
    return StoredRows(
        **{
            **content,
            "columns": tuple((name, kind) for name, kind in content["columns"]),
            "keys": tuple(content["keys"]),
            "runs": tuple(tuple(RowFile(**file) for file in run) for run in content["runs"]),
        }
    )
