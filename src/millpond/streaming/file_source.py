"""Files as the source of a stream: each once, or each version once if they may be overwritten."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from millpond.delta import WrittenFile
from millpond.engine.protocol import Input, ParquetInput
from millpond.errors.file_reads import FilesNotReadError, NewColumnsError, refused_column
from millpond.errors.streaming import CheckpointUnreadableError
from millpond.files import ListedFile
from millpond.files.columns import NewColumn
from millpond.files.listed_file import SECOND_NS, name_of
from millpond.files.locations import FileIdentity
from millpond.files.options import CleanSource, EvolutionMode
from millpond.files.reading import FilesRead, read_files
from millpond.files.stores import leads_nowhere, stat
from millpond.profiling import phase
from millpond.storage import Store, scratch_folder
from millpond.streaming.file_access import FileAccess
from millpond.streaming.file_log import Entry, FileLog, SeenFiles, Unread
from millpond.streaming.source import DataSize, Offset

# A file that was changed this short a time ago may be still being written: it is looked at twice.
SETTLING_S = 0.25
# Objects tell the second in which they were put. Where no etag tells versions apart, whoever waits
# for so long after a listing reads what it showed when their second is over, so that no later
# version has the same time.
OBJECT_SETTLING_S = 1.05
# Objects that seem older than this need not be waited for, however much the store's clock lags.
_YOUNG_NS = 60 * 10**9
# How often an update reads a file again that changes while it is read.
_TRIES = 3
# Sequences are timestamps, which count microseconds.
_MICROSECOND_NS = 1000


@dataclass(frozen=True)
class FileVersions:
    """The versions of files that a batch read, those without rows among them.

    Attributes:
        read: The latest of those of each file, by its URI; empty if the file is gone.
        before: The latest of those that earlier batches read, of all files.
        anew: Names of which files begin anew with the batch.
    """

    read: Mapping[str, ListedFile]
    before: Mapping[str, ListedFile]
    anew: frozenset[str] = frozenset()


class FileSource:
    """A `StreamSource` over files.

    A file that can't be read, or that changes while it is read, is left out of its batch and stays
    unread; the others go on, and at the end of the update an error says what was left.

    Attributes:
        passed_over: Why files can't be read that are not tried again, by their URIs.
        empty: URIs of files that were read and have no value for any column.
        files_read: How many files the last batch read.
    """

    def __init__(
        self, access: FileAccess, *, folder: Path, store: Store, name: str, flow: str
    ) -> None:
        """Set up a stream; reads nothing yet.

        Args:
            folder: For the log of files that were read.
            name: What messages call the source.
            flow: The flow that reads it, for messages.
        """
        self._access = access
        self._options = access.options
        self._log = FileLog(folder, store)
        self._store = store
        self._name = name
        self._flow = flow
        self._listed: Sequence[ListedFile] | None = None
        self._there: set[str] = set()
        self._unlisted: dict[str, str] = {}
        self._waiting: deque[ListedFile] | None = None
        self._tries: dict[str, int] = {}
        self._left: dict[str, str] = {}
        self._damaged: set[str] = set()
        self.passed_over: dict[str, str] = {}
        self.empty: list[str] = []
        self.files_read = 0
        self._unlike: dict[str, tuple[NewColumn, ...]] = {}
        self._proposed: set[NewColumn] = set()
        self._refused = dict(access.refused)
        self._last = 0
        self._gone: list[ListedFile] = []
        self._forgotten: list[str] = []
        self._is_finished = False

    @property
    def identity(self) -> str:
        return f"{self._options.format} {' '.join(self._access.places)}"

    @property
    def starts_midway(self) -> bool:
        return not self._options.include_existing

    def columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = self._access.columns.schema.jsonValue()
        return columns

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        """Files are read with whatever columns the stream has now."""

    def latest_offset(self) -> Offset:
        """Whatever is listed from here on; the log alone says what of it was read."""
        self._listed = self._waiting = None
        self._tries.clear()
        self._left.clear()
        self._unlisted.clear()
        self._unlike.clear()
        return {"files": "now"}

    def first_offset(self, end: Offset) -> Offset:
        del end
        return _offset(0)

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        """The end of the next batch, bounded by the options; at least one file goes."""
        del end
        number = self._last = _number(start)
        if self._waiting is None:
            self._waiting = deque(self._new_files(number))
            self._gone = self._removed(number)
            if self._access.names_are_keys:
                self._begin_names_anew(number)
        waiting = self._waiting
        if not number and self.starts_midway:
            self._log.write(1, Entry(tuple(waiting), written_ms=_now_ms(), is_skipped=True))
            waiting.clear()
            return _offset(1)
        if not waiting and not self._gone and not self._forgotten:
            return None
        seen = self._log.seen(until=number)
        files: list[ListedFile] = []
        size_bytes = 0
        forgotten = set(map(name_of, self._forgotten))
        while waiting:
            size_bytes += waiting[0].size_bytes
            is_full = len(files) >= self._options.max_files or (
                bool(files) and size_bytes > (self._options.max_bytes or size_bytes)
            )
            # All files of a name that begins anew are read at once.
            if is_full and waiting[0].name not in forgotten:
                break
            files.append(_in_sequence(waiting.popleft(), seen))
        self._log.write(
            number + 1,
            Entry(
                tuple(files),
                removed=tuple(self._gone),
                forgotten=tuple(self._forgotten),
                written_ms=_now_ms(),
            ),
        )
        self._gone.clear()
        self._forgotten.clear()
        self._last = number + 1
        return _offset(number + 1)

    def size(self, start: Offset, end: Offset) -> DataSize:
        if "files" in end:
            return _size(self._new_files(_number(start)))
        entries = map(self._log.read, range(_number(start) + 1, _number(end) + 1))
        return sum((_size(entry.files) for entry in entries if not entry.is_skipped), DataSize())

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        """The rows of a batch's files, as they are now if they are what was planned."""
        parquet: list[WrittenFile] = []
        self.files_read = 0
        for number in range(_number(start) + 1, _number(end) + 1):
            entry = self._log.read(number)
            if entry.is_skipped:
                continue
            columns = self._access.columns_of(entry.files)
            read = read_files(
                entry.files,
                self._options,
                columns,
                root=self._access.root,
                folder=folder / str(number),
                refuses_cut_files=self._access.refuses_cut_files,
            )
            unread = self._leave(read)
            self._log.leave(number, unread)
            planned = {file.uri for file in entry.files}
            self.files_read += len(planned - unread.left - unread.passed_over)
            for file in entry.files:
                # What an earlier batch of the update left may have been read by now.
                if file.uri not in unread.left:
                    self._left.pop(file.uri, None)
            parquet.extend(read.parquet)
        return ParquetInput.of_written(parquet, self._access.columns.input_schema)

    def versions(self, start: Offset, end: Offset) -> FileVersions:
        """Which versions a batch read, once `input` gave its rows."""
        before = self._log.seen(until=_number(start)).newest
        read = SeenFiles()
        anew: set[str] = set()
        for number in range(_number(start) + 1, _number(end) + 1):
            entry = self._log.read(number)
            read.apply(entry, self._log.unread(number))
            anew.update(map(name_of, entry.forgotten))
        return FileVersions(read.newest, before, frozenset(anew))

    def finish(self) -> None:
        """Sum up the log, and tell of files that were not read.

        Raises:
            FilesNotReadError: All that could be read was read, and there is more.
            NewColumnsError: Likewise; the files that are left have columns that the stream lacks.
        """
        if self._last:
            self._log.sum_up(until=self._last)
        self._is_finished = True
        self._raise_if_left()

    @property
    def cleans(self) -> bool:
        """Whether files are to be removed or moved once they were read, and some were."""
        is_asked = self._options.clean_source is not CleanSource.OFF
        return is_asked and self._is_finished and self._last > 0

    def clean(self, needed: Collection[FileIdentity]) -> None:
        """Remove or move files whose rows are in the table, as the option `cleanSource` says.

        Args:
            needed: Those that others have yet to read.

        Raises:
            MillpondError: One of them can't be. All others are.
        """
        from millpond.files.cleaning import clean

        seen = self._log.seen(until=self._last)
        there = (file for uri, file in seen.files.items() if uri in self._there)
        # Not those that were passed over: nobody has their rows.
        clean(filter(seen.was_read, there), seen.read_ms, self._options, needed=needed)

    def unread(self) -> set[str]:
        """URIs of the files there are now that are not read, or all if the flow did not end well.

        All, too, where a file that is gone takes its rows with it.

        Raises:
            MillpondError: They can't be listed.
        """
        seen = self._log.seen(until=self._last) if self._is_finished else SeenFiles()
        known = self._read_once(seen)
        first = not (self._is_finished and self._last)
        there = self._access.list(first=first, unlisted={}, known=known)
        keeps = self._access.follows_removals
        return {file.uri for file in there if keeps or self._is_new(file, seen)}

    def _new_files(self, number: int) -> list[ListedFile]:
        """What there is beyond what the entries up to one have read, in order."""
        seen = self._log.seen(until=number)
        if self._listed is None:
            # Whoever still writes a file that is read already changes nothing for this update.
            with phase("list files"):
                there = self._access.list(
                    first=not number, unlisted=self._unlisted, known=self._read_once(seen)
                )
            self._there = {file.uri for file in there}
            told_of = self.passed_over if self._options.ignore_corrupt else self._left
            told_of.update(self._unlisted)
            self._listed = self._settled([file for file in there if self._is_new(file, seen)])
        return [file for file in self._listed if self._is_new(file, seen)]

    def _read_once(self, seen: SeenFiles) -> Mapping[str, ListedFile]:
        """The files that are not read again whatever became of them, so that no one need look."""
        options = self._options
        looks = (
            options.allow_overwrites
            # Files may be too old by the time of the newest, read or not.
            or options.discovery.max_file_age_s is not None
            # What is there is read again when another file of its name is gone.
            or self._access.names_are_keys
        )
        return {} if looks else seen.files

    def _removed(self, number: int) -> list[ListedFile]:
        """Files that were read and are gone.

        They count as removed now, or right after they were made where the clock says less.
        """
        if not self._access.follows_removals:
            return []
        seen = self._log.seen(until=number)
        now = now_ns()
        return [
            ListedFile(uri, 0, max(now, seen.newest.get(uri, file).modified_ns + _MICROSECOND_NS))
            for uri, file in seen.files.items()
            if uri not in self._there and not self._is_hidden(uri) and self._stat(uri) is None
        ]

    def _begin_names_anew(self, number: int) -> None:
        """Read all files of a name again of which one is gone and another one is there.

        Which of the rows were whose can't be told, nor what the one that is gone kept out.
        """
        seen = self._log.seen(until=number)
        hidden = {name_of(uri) for uri in seen.files if self._is_hidden(uri)}
        there = {name_of(uri) for uri in self._there}
        shared = {file.name for file in self._gone} & there - hidden
        mixed = {name for name in shared if self._can_read_all(name)}
        # What may stand of a file that nobody can read now stays; the next update looks again.
        postponed = (shared - mixed) | hidden
        self._gone = [file for file in self._gone if file.name not in postponed]
        if not mixed or self._waiting is None:
            return
        known = seen.files.keys() | seen.newest.keys()
        self._forgotten = sorted(uri for uri in known if name_of(uri) in mixed)
        self._gone = [file for file in self._gone if file.name not in mixed]
        again = (self._stat(uri) for uri in sorted(self._there) if name_of(uri) in mixed)
        files = self._settled([file for file in again if file is not None])
        others = [file for file in self._waiting if file.name not in mixed]
        # First, so that they are read with the entry that forgets them.
        self._waiting = deque([*sorted(files, key=attrgetter("modified_ns")), *others])

    def _is_hidden(self, uri: str) -> bool:
        """Whether a folder that can't be listed, or a dead link, hides if a file is there."""
        if uri in self._there:
            return False
        return uri.startswith(tuple(self._unlisted)) or leads_nowhere(uri)

    def _can_read_all(self, name: str) -> bool:
        """Whether all files of a name that are there can be read with the stream's columns."""
        found = (self._stat(uri) for uri in sorted(self._there) if name_of(uri) == name)
        files = [file for file in found if file is not None]
        with scratch_folder("names") as folder:
            read = read_files(
                files,
                self._options,
                self._access.columns_of(files),
                root=self._access.root,
                folder=folder,
                refuses_cut_files=self._access.refuses_cut_files,
            )
        return not (read.failed or read.unlike or read.changed or read.missing)

    def _is_new(self, file: ListedFile, seen: SeenFiles) -> bool:
        known = seen.files.get(file.uri)
        if known is None or not self._options.allow_overwrites:
            return known is None
        # Asked first for speed: nearly all files are just as they were.
        if file == known or file.is_same_version(known):
            return False
        # A version may come back after another one; its rows were brought already.
        return _follows_at_once(file, seen) or not seen.was_read(file)

    def _settled(self, files: Sequence[ListedFile]) -> list[ListedFile]:
        """The files, less those that are being written at this moment.

        Returns once the times of all tell them from whatever is put in their places later.
        """
        now = now_ns()
        young = [file for file in files if now - file.modified_ns < _YOUNG_NS]
        recent = [f for f in young if f.is_local and abs(now - f.modified_ns) < SETTLING_S * 1e9]
        if not all(file.is_local or file.etag for file in young):
            time.sleep(OBJECT_SETTLING_S)
        elif recent:
            time.sleep(SETTLING_S)
        moving = {file.uri for file in recent if self._stat(file.uri) != file}
        return [file for file in files if file.uri not in moving]

    def _stat(self, uri: str) -> ListedFile | None:
        return stat(uri, self._options.store_options)

    def _leave(self, read: FilesRead) -> Unread:
        """Take note of what was not read: for another try, or for the error at the end."""
        again: list[ListedFile] = []
        # A batch that an earlier update planned lists nothing anew; the next batch does.
        for file in read.changed if self._waiting is not None else ():
            tries = self._tries[file.uri] = self._tries.get(file.uri, 0) + 1
            if tries < _TRIES:
                again.append(file)
            else:
                self._left[file.uri] = "it keeps changing while it is read"
        if self._waiting is not None:
            self._waiting.extend(self._settled(again))
        self.empty.extend(read.empty)
        self._leave_unlike(read.unlike)
        passed_over: dict[str, str] = {}
        if self._options.ignore_corrupt:
            passed_over = {uri: read.failed[uri] for uri in read.damaged}
        self.passed_over.update(passed_over)
        self._damaged |= read.damaged - passed_over.keys()
        # What follows removals is told of them by the next update.
        if not self._options.ignore_missing and not self._access.follows_removals:
            self._left.update(dict.fromkeys(read.missing, "it is gone"))
        self._left.update({u: reason for u, reason in read.failed.items() if u not in passed_over})
        left = {*read.missing, *read.unlike, *read.failed, *(file.uri for file in read.changed)}
        return Unread(frozenset(left - passed_over.keys()), frozenset(passed_over))

    def _leave_unlike(self, unlike: Mapping[str, tuple[NewColumn, ...]]) -> None:
        """Take note of files with new columns, and propose these to the next update."""
        refused = self._refused
        if self._options.evolution is EvolutionMode.ADD_NEW_COLUMNS:
            found = dict.fromkeys(new for columns in unlike.values() for new in columns)
            new = [column for column in found if column not in self._proposed]
            if new:
                refused.update(self._access.propose(new))
                self._proposed.update(new)
        for uri, columns in unlike.items():
            column = next((new for new in columns if new in refused), None)
            if column is not None:
                self._left[uri] = refused_column(str(column), reason=refused[column])
            else:
                self._left.pop(uri, None)
                self._unlike[uri] = columns

    def _raise_if_left(self) -> None:
        if self._unlike:
            raise NewColumnsError.from_source(
                self._name,
                flow=self._flow,
                columns={uri: [*map(str, new)] for uri, new in self._unlike.items()},
                added=self._options.evolution is EvolutionMode.ADD_NEW_COLUMNS,
                given=self._options.schema is not None,
                unreadable=self._left,
            )
        if self._left:
            raise FilesNotReadError.from_files(
                self._name,
                flow=self._flow,
                reasons=self._left,
                is_passable=not self._damaged.isdisjoint(self._left),
            )


def _offset(number: int) -> Offset:
    return {"entry": number}


def _number(offset: Offset) -> int:
    match offset:
        case {"entry": int(number)}:
            return number
    raise CheckpointUnreadableError.from_offset(offset)


def _follows_at_once(file: ListedFile, seen: SeenFiles) -> bool:
    """Whether an object took the place of the latest version that was read, within its second.

    What a store shows later was put later, even if it is the same as what was there before.
    """
    newest = seen.newest.get(file.uri)
    return (
        newest is not None
        and not file.is_local
        and file.modified_ns // SECOND_NS == newest.modified_ns // SECOND_NS
        and not file.is_same_version(newest)
    )


def _in_sequence(file: ListedFile, seen: SeenFiles) -> ListedFile:
    """A version, later than the one whose place it took: two of one time would be a tie."""
    if not _follows_at_once(file, seen):
        return file
    later_ns = seen.newest[file.uri].modified_ns + _MICROSECOND_NS
    return file._replace(modified_ns=max(file.modified_ns, later_ns))


def _size(files: Iterable[ListedFile]) -> DataSize:
    return sum((DataSize(1, file.size_bytes) for file in files), DataSize())


def _now_ms() -> int:
    return now_ns() // 1_000_000


def now_ns() -> int:
    """The time in nanoseconds since 1970."""
    return time.time_ns()
