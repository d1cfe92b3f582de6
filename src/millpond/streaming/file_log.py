"""Which files a stream has read: one entry for each batch that read some, written ahead.

`<folder>/<N>.json` lists what entry N is to read, before the batch that reads it is planned.
`<folder>/<N>.left.json` lists what of it was not read after all, before that batch is committed.
`<folder>/until-<N>.parquet` holds all that the entries up to N leave as read; older entries go.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.errors.streaming import CheckpointUnreadableError
from millpond.files import ListedFile
from millpond.storage import Store

# So many entries stay beside the summary: batches of a restored table may have to run again.
ENTRIES_KEPT = 100
# So many entries are read one by one before they are summed up.
_ENTRIES_APART = 50
_ENTRY = re.compile(r"(\d+)\.json\Z")
_VERSION = {"uri": "string", "size_bytes": "int64", "modified_ns": "int64", "etag": "string"}
_SUMMARY = re.compile(r"until-(\d+)\.parquet\Z")


@dataclass(frozen=True)
class Entry:
    """What one batch is to read.

    Attributes:
        files: In the order in which they are read.
        removed: Files that were read earlier and are gone, with the time at which that was found.
        written_ms: When the entry was written, in milliseconds since 1970.
        is_skipped: Whether the files count as read without being read.
    """

    files: tuple[ListedFile, ...] = ()
    removed: tuple[ListedFile, ...] = ()
    written_ms: int = 0
    is_skipped: bool = False


@dataclass
class SeenFiles:
    """What was read.

    Attributes:
        files: The version of each file, by its URI.
        read_ms: When it was planned to be read, in milliseconds since 1970.
        newest: The latest of all its versions that were read, its removal among them: empty then.
    """

    files: dict[str, ListedFile] = field(default_factory=dict)
    read_ms: dict[str, int] = field(default_factory=dict)
    newest: dict[str, ListedFile] = field(default_factory=dict)

    def apply(self, entry: Entry, left: Iterable[str]) -> None:
        """Take in an entry. Files that were left behind stay as they were before it."""
        behind = set(left)
        for file in entry.removed:
            if file.uri not in behind:
                self.files.pop(file.uri, None)
                self.read_ms.pop(file.uri, None)
                self._at(file)
        for file in entry.files:
            if file.uri not in behind:
                self.files[file.uri] = file
                self.read_ms[file.uri] = entry.written_ms
                self._at(file)

    def _at(self, file: ListedFile) -> None:
        before = self.newest.get(file.uri)
        if before is None or before.modified_ns <= file.modified_ns:
            self.newest[file.uri] = file


class FileLog:
    """The entries of one stream of one flow, numbered 1, 2, ..."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self._store = store

    def read(self, number: int) -> Entry:
        """One entry.

        Raises:
            CheckpointUnreadableError: It is missing, or is something else.
        """
        path = self._path(number)
        try:
            value = json.loads(self._store.read(path))
            return Entry(
                files=tuple(ListedFile(*file) for file in value["files"]),
                removed=tuple(ListedFile(*file) for file in value["removed"]),
                written_ms=int(value["written_ms"]),
                is_skipped=bool(value["skipped"]),
            )
        except FileNotFoundError as error:
            raise CheckpointUnreadableError.from_file(path, reason="it is missing") from error
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def write(self, number: int, entry: Entry) -> None:
        """Write an entry ahead, over one that no batch was planned for; durable on return."""
        value = {
            "files": [_row(file) for file in entry.files],
            "removed": [_row(file) for file in entry.removed],
            "written_ms": entry.written_ms,
            "skipped": entry.is_skipped,
        }
        self._store.remove(self._left_path(number))
        self._store.put(self._path(number), _json(value))

    def leave(self, number: int, uris: Iterable[str]) -> None:
        """Say which files of an entry were not read after all; durable on return."""
        uris = sorted(uris)
        path = self._left_path(number)
        if uris or self._store.exists(path):
            self._store.put(path, _json(uris))

    def left(self, number: int) -> list[str]:
        """What `leave` said of an entry."""
        path = self._left_path(number)
        try:
            return [str(uri) for uri in json.loads(self._store.read(path))]
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def seen(self, *, until: int) -> SeenFiles:
        """All that the entries up to one leave as read; also sums them up where they are many.

        Args:
            until: The last entry that a batch was planned for.
        """
        names = self._store.list(self.folder)
        summed = max((number for number in _numbers(names, _SUMMARY) if number <= until), default=0)
        seen = self._summary(summed) if summed else SeenFiles()
        for number in range(summed + 1, until + 1):
            seen.apply(self.read(number), self.left(number))
        return seen

    def sum_up(self, seen: SeenFiles, *, until: int) -> None:
        """Write a summary if many entries were planned since the last, and remove old entries.

        Args:
            seen: What `seen(until=until)` gave. The batches of all these entries are committed.
        """
        names = self._store.list(self.folder)
        summed = max(_numbers(names, _SUMMARY), default=0)
        if until - summed < _ENTRIES_APART:
            return
        self._store.put(self.folder / f"until-{until}.parquet", _to_parquet(seen))
        for number in _numbers(names, _SUMMARY):
            self._store.remove(self.folder / f"until-{number}.parquet")
        for number in _numbers(names, _ENTRY):
            if number <= until - ENTRIES_KEPT:
                self._store.remove(self._path(number))
                self._store.remove(self._left_path(number))

    def _summary(self, number: int) -> SeenFiles:
        path = self.folder / f"until-{number}.parquet"
        try:
            return _of_parquet(self._store.read(path))
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"

    def _left_path(self, number: int) -> Path:
        return self.folder / f"{number}.left.json"


def _numbers(names: Sequence[str], pattern: re.Pattern[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := pattern.match(name))]


def _row(file: ListedFile) -> list[Any]:
    return [file.uri, file.size_bytes, file.modified_ns, file.etag]


def _json(value: Mapping[str, Any] | Sequence[str]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _to_parquet(seen: SeenFiles) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, pa.Array] = {}
    for prefix, files in (("", seen.files), ("newest_", seen.newest)):
        found = [files.get(uri) for uri in seen.newest]
        for name, kind in _VERSION.items():
            values = [None if file is None else getattr(file, name) for file in found]
            columns[prefix + name] = pa.array(values, kind)
    columns["read_ms"] = pa.array(map(seen.read_ms.get, seen.newest), "int64")
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, compression="zstd")
    return data.getvalue()


def _of_parquet(data: bytes) -> SeenFiles:
    import pyarrow.parquet as pq

    columns = pq.read_table(io.BytesIO(data)).to_pydict()
    seen = SeenFiles()
    for prefix, files in (("", seen.files), ("newest_", seen.newest)):
        versions = zip(*(columns[prefix + name] for name in _VERSION), strict=True)
        files.update((uri, ListedFile(uri, *rest)) for uri, *rest in versions if uri is not None)
    seen.read_ms = {
        uri: read_ms
        for uri, read_ms in zip(columns["newest_uri"], columns["read_ms"], strict=True)
        if read_ms is not None
    }
    return seen
