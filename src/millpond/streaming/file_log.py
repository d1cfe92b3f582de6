"""Which files a stream has read: one entry for each batch that read some, written ahead.

`<folder>/<N>.json` lists what entry N is to read, before the batch that reads it is planned.
`<folder>/<N>.unread.json` lists what of it was not read after all, before that batch is committed.
`<folder>/until-<N>.parquet` holds all that the entries up to N leave as read; entries that are
older than those of any batch that may run again go, once a summary stands for them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.errors.streaming import CheckpointUnreadableError
from millpond.files import ListedFile
from millpond.files.listed_file import time_in_range
from millpond.storage import Store

if TYPE_CHECKING:
    import pyarrow as pa

# So many entries stay beside the summary: batches of a restored table may have to run again.
ENTRIES_KEPT = 100
# So many entries, or files in them, are read one by one before they are summed up.
_ENTRIES_APART = 50
_FILES_APART = 5000
# So many versions of a file are known again, the newest of them.
_VERSIONS_KNOWN = 20
_ENTRY = re.compile(r"(\d+)\.json\Z")
_VERSION = {"size_bytes": "int64", "modified_ns": "int64", "etag": "string"}
_SUMMARY = re.compile(r"until-(\d+)\.parquet\Z")


@dataclass(frozen=True)
class Entry:
    """What one batch is to read.

    Attributes:
        files: In the order in which they are read.
        removed: Files that were read earlier and are gone, with the time at which that was found.
        forgotten: URIs of files that count as never read from this entry on, but for its own.
        written_ms: When the entry was written, in milliseconds since 1970.
        is_skipped: Whether the files count as read without being read.
    """

    files: tuple[ListedFile, ...] = ()
    removed: tuple[ListedFile, ...] = ()
    forgotten: tuple[str, ...] = ()
    written_ms: int = 0
    is_skipped: bool = False


@dataclass(frozen=True)
class Unread:
    """What of an entry was not read after all.

    Attributes:
        left: URIs of files that are to be read later.
        passed_over: URIs of files that can't be read and are not tried again.
    """

    left: frozenset[str] = frozenset()
    passed_over: frozenset[str] = frozenset()


@dataclass
class SeenFiles:
    """What was read, or passed over.

    Attributes:
        files: The version of each file, by its URI.
        read_ms: When it was planned to be read, in milliseconds since 1970.
        newest: The latest of all its versions that were read, its removal among them: empty then.
        earlier: Others that were read, latest first.
    """

    files: dict[str, ListedFile] = field(default_factory=dict)
    read_ms: dict[str, int] = field(default_factory=dict)
    newest: dict[str, ListedFile] = field(default_factory=dict)
    earlier: dict[str, tuple[ListedFile, ...]] = field(default_factory=dict)

    def was_read(self, file: ListedFile) -> bool:
        """Whether the rows of a version were read, as far back as versions are known."""
        newest = self.newest.get(file.uri)
        versions = self.earlier.get(file.uri, ())
        return any(map(file.is_same_version, versions if newest is None else (newest, *versions)))

    def apply(self, entry: Entry, unread: Unread) -> None:
        """Take in an entry. Files that were left stay as they were before it."""
        for uri in entry.forgotten:
            for known in (self.files, self.read_ms, self.newest, self.earlier):
                known.pop(uri, None)
        for file in entry.removed:
            self.files.pop(file.uri, None)
            self.read_ms.pop(file.uri, None)
            self._add_version(file)
        not_read = unread.left | unread.passed_over
        for file in entry.files:
            if file.uri not in unread.left:
                self.files[file.uri] = file
                self.read_ms[file.uri] = entry.written_ms
            if not entry.is_skipped and file.uri not in not_read:
                self._add_version(file)

    def _add_version(self, file: ListedFile) -> None:
        before = self.newest.get(file.uri)
        if before is None:
            self.newest[file.uri] = file
            return
        earlier = self.earlier.get(file.uri, ())
        if before.modified_ns <= file.modified_ns:
            self.newest[file.uri], file = file, before
        versions = sorted({*earlier, file}, key=lambda each: (each.modified_ns, each), reverse=True)
        self.earlier[file.uri] = tuple(versions[:_VERSIONS_KNOWN])


class FileLog:
    """The entries of one stream of one flow, numbered 1, 2, ..."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self._store = store
        self._seen: SeenFiles | None = None
        self._seen_until = self._summed = 0
        self._files_apart = 0

    def read(self, number: int) -> Entry:
        """One entry.

        Raises:
            CheckpointUnreadableError: It is missing, or is something else.
        """
        path = self._path(number)
        try:
            value = json.loads(self._store.read(path))
            return Entry(
                files=tuple(map(_version, value["files"])),
                removed=tuple(map(_version, value["removed"])),
                forgotten=tuple(value.get("forgotten", ())),
                written_ms=int(value["written_ms"]),
                is_skipped=bool(value["skipped"]),
            )
        except FileNotFoundError as error:
            raise CheckpointUnreadableError.from_file(path, reason="it is missing") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def write(self, number: int, entry: Entry) -> None:
        """Write an entry ahead, over one that no batch was planned for; durable on return."""
        value = {
            "files": entry.files,
            "removed": entry.removed,
            "forgotten": entry.forgotten,
            "written_ms": entry.written_ms,
            "skipped": entry.is_skipped,
        }
        self._store.remove(self._unread_path(number))
        self._store.put(self._path(number), _json(value))

    def leave(self, number: int, unread: Unread) -> None:
        """Say which files of an entry were not read after all; durable on return."""
        if unread == self.unread(number):
            if unread != Unread():
                # Who wrote that may have died before it was durable.
                self._store.sync_names(self.folder)
            return
        # A summary has what an earlier attempt at the batch read, if the table was restored since.
        for summed in _numbers(self._store.list(self.folder), _SUMMARY):
            if summed >= number:
                self._store.remove(self.folder / f"until-{summed}.parquet")
        value = {"left": sorted(unread.left), "passed_over": sorted(unread.passed_over)}
        self._store.put(self._unread_path(number), _json(value))

    def unread(self, number: int) -> Unread:
        """What `leave` said of an entry."""
        path = self._unread_path(number)
        try:
            value = json.loads(self._store.read(path))
            return Unread(frozenset(value["left"]), frozenset(value["passed_over"]))
        except FileNotFoundError:
            return Unread()
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def seen(self, *, until: int) -> SeenFiles:
        """All that the entries up to one leave as read. The next call may change it.

        Args:
            until: The last entry that a batch was planned for.
        """
        if self._seen is None or self._seen_until > until:
            names = self._store.list(self.folder)
            summed = (number for number in _numbers(names, _SUMMARY) if number <= until)
            self._seen_until = self._summed = max(summed, default=0)
            self._seen = self._summary(self._summed) if self._summed else SeenFiles()
            self._files_apart = 0
        while self._seen_until < until:
            entry = self.read(self._seen_until + 1)
            self._seen.apply(entry, self.unread(self._seen_until + 1))
            self._files_apart += len(entry.files)
            self._seen_until += 1
        return self._seen

    def sum_up(self, *, until: int) -> None:
        """Write a summary if much was read since the last, and remove what is old.

        Args:
            until: The last entry that a batch was planned for; all these batches are committed.
        """
        seen = self.seen(until=until)
        if until - self._summed < _ENTRIES_APART and self._files_apart < _FILES_APART:
            return
        names = self._store.list(self.folder)
        self._store.put(self.folder / f"until-{until}.parquet", _to_parquet(seen))
        summaries = sorted(_numbers(names, _SUMMARY))
        # What was seen before the oldest batch that may run again is told from here on.
        kept = [max((n for n in summaries if n <= until - ENTRIES_KEPT), default=0)]
        for number in _numbers(names, _ENTRY):
            if number <= kept[0]:
                self._store.remove(self._path(number))
                self._store.remove(self._unread_path(number))
        for number in summaries:
            if number - kept[-1] >= _ENTRIES_APART:
                kept.append(number)
            elif number not in {*kept, until}:
                self._store.remove(self.folder / f"until-{number}.parquet")

    def _summary(self, number: int) -> SeenFiles:
        path = self.folder / f"until-{number}.parquet"
        try:
            return _of_parquet(self._store.read(path))
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointUnreadableError.from_file(path, reason=str(error)) from error

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"

    def _unread_path(self, number: int) -> Path:
        return self.folder / f"{number}.unread.json"


def _numbers(names: Sequence[str], pattern: re.Pattern[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := pattern.match(name))]


def _version(values: Sequence[Any]) -> ListedFile:
    file = ListedFile(*values)
    return file._replace(modified_ns=time_in_range(file.modified_ns))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _to_parquet(seen: SeenFiles) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    uris = list(seen.files | seen.newest)
    # Of most files the version that was read last is the newest as well.
    files = [seen.files.get(uri) for uri in uris]
    newest = [seen.newest.get(uri) for uri in uris]
    others = [None if mine is last else mine for mine, last in zip(newest, files, strict=True)]
    columns = {"uri": pa.array(uris, "string")}
    for prefix, versions in (("", files), ("newest_", others)):
        for name, kind in _VERSION.items():
            values = [None if file is None else getattr(file, name) for file in versions]
            columns[prefix + name] = pa.array(values, kind)
    columns["read_ms"] = pa.array(map(seen.read_ms.get, uris), "int64")
    columns["earlier"] = pa.array(
        [
            [{name: getattr(file, name) for name in _VERSION} for file in seen.earlier[uri]]
            if uri in seen.earlier
            else None
            for uri in uris
        ],
        pa.list_(pa.struct(_VERSION.items())),
    )
    columns["was_passed_over"] = pa.array([file is None for file in newest], "bool")
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, compression="zstd")
    return data.getvalue()


def _of_parquet(data: bytes) -> SeenFiles:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    here = table.filter(pc.field("size_bytes").is_valid())
    others = table.filter(pc.field("newest_size_bytes").is_valid())
    files = _versions(here, "")
    newest = {**files, **_versions(others, "newest_")}
    for uri in table.filter(pc.field("was_passed_over"))["uri"].to_pylist():
        del newest[uri]
    read_ms = dict(zip(files, here["read_ms"].to_pylist(), strict=True))
    again = table.filter(pc.field("earlier").is_valid())
    earlier = {
        uri: tuple(ListedFile(uri, **version) for version in versions)
        for uri, versions in zip(
            again["uri"].to_pylist(), again["earlier"].to_pylist(), strict=True
        )
    }
    return SeenFiles(files, read_ms, newest, earlier)


def _versions(table: pa.Table, prefix: str) -> dict[str, ListedFile]:
    values = [table["uri"], *(table[prefix + name] for name in _VERSION)]
    files = map(ListedFile._make, zip(*(column.to_pylist() for column in values), strict=True))
    return {file.uri: file for file in files}
