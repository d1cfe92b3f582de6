"""Reading a table's `_delta_log`: its entries, in order, and which files are there.

Entries are read whole and strictly: what can't be read is never skipped, because a table whose
state is a guess would lose or repeat rows. Checkpoints are `checkpoints.py`'s concern.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from millpond.delta.actions import Commit
from millpond.errors.delta import CorruptLogError
from millpond.storage import Store

LOG_FOLDER = "_delta_log"

# Inode, modification time and size of a log entry: entries never change, so a different identity
# under the same version means that the table was replaced.
EntryIdentity = tuple[int, int, int]

# What reading an action raises that is none, or lacks something.
NOT_AS_MUST_BE = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
# So many entries may come up while a folder is listed; where more lack, they are not there.
_MAX_MISSED = 1000
_ENTRY = re.compile(r"(\d{20})\.json\Z")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-fA-F-]{36}))?"
    r"\.(?P<format>parquet|json)\Z"
)


@dataclass(frozen=True)
class Checkpoint:
    """The files of one complete checkpoint, of either form and naming."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class LogListing:
    """What a log folder holds.

    Attributes:
        entries: Versions that have an entry, ascending.
        checkpoints: Complete checkpoints, ascending by version.
    """

    entries: tuple[int, ...]
    checkpoints: tuple[Checkpoint, ...]


def entry_path(folder: Path, version: int) -> Path:
    """The path of a log entry; `folder` is the table's."""
    return folder / LOG_FOLDER / f"{version:020}.json"


def list_log(folder: Path, store: Store) -> LogListing:
    """List a table's log. Of a folder that is no table, the listing is empty."""
    entries: list[int] = []
    checkpoints: dict[int, Checkpoint] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for name in store.list(folder / LOG_FOLDER):
        if match := _ENTRY.match(name):
            entries.append(int(match[1]))
        elif match := _CHECKPOINT.match(name):
            version = int(match[1])
            if match["part"] is None:
                # A classic checkpoint and one named by a UUID say the same; any will do.
                checkpoints[version] = Checkpoint(version, (name,))
            else:
                parts.setdefault((version, int(match["parts"])), []).append(name)
    for (version, count), names in parts.items():
        if len(names) == count:
            checkpoints.setdefault(version, Checkpoint(version, tuple(names)))
    entries += _missed(folder, entries, newest_checkpoint=max(checkpoints, default=0), store=store)
    return LogListing(
        entries=tuple(sorted(entries)),
        checkpoints=tuple(checkpoints[version] for version in sorted(checkpoints)),
    )


def _missed(folder: Path, entries: list[int], *, newest_checkpoint: int, store: Store) -> list[int]:
    """Entries that are there and were not listed.

    A listing may have a name that came up while it was made, and lack one that came up before.
    """
    relevant = sorted(version for version in entries if version >= newest_checkpoint)
    return [
        version
        for before, after in pairwise(relevant)
        if after - before <= _MAX_MISSED
        for version in range(before + 1, after)
        if store.exists(entry_path(folder, version))
    ]


def read_commit(folder: Path, version: int, store: Store) -> Commit:
    """Read one log entry.

    Raises:
        FileNotFoundError: There is no such entry.
        CorruptLogError: It is there, but can't be read in full.
    """
    path = entry_path(folder, version)
    try:
        data = store.read(path)
    except IsADirectoryError:
        raise CorruptLogError.in_entry(path, reason="it is a folder") from None
    return parse_commit(data, path=path, version=version, timestamp_ms=file_time_ms(path))


def parse_commit(data: bytes, *, path: Path, version: int, timestamp_ms: int) -> Commit:
    """Parse a log entry's text.

    Raises:
        CorruptLogError: It is empty, cut off, or holds something that is no action.
    """
    actions = parse_actions(data, path=path)
    try:
        return Commit.from_actions(actions, version=version, timestamp_ms=timestamp_ms)
    except NOT_AS_MUST_BE as error:
        raise CorruptLogError.in_entry(path, reason=action_reason(error)) from error


def action_reason(error: Exception) -> str:
    """What is wrong with an action that `Commit.from_actions` fails at."""
    told = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return f"an action in it is not as it must be: {told}"


def parse_actions(data: bytes, *, path: Path) -> list[Mapping[str, Any]]:
    """Parse lines of JSON, each one object."""
    actions: list[Mapping[str, Any]] = []
    if data and not data.strip(b"\0"):
        reason = "the file holds nothing but zeros, as after a loss of power"
        raise CorruptLogError.in_entry(path, line=1, reason=reason)
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            # Given bytes, `json` would guess at other encodings.
            action = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise CorruptLogError.in_entry(path, line=number, reason=str(error)) from error
        if not isinstance(action, dict):
            raise CorruptLogError.in_entry(path, line=number, reason="it is no JSON object")
        actions.append(action)
    if not actions:
        raise CorruptLogError.in_entry(path, line=1, reason="the file is empty")
    return actions


def file_time_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def entry_identity(folder: Path, version: int) -> EntryIdentity | None:
    """Return the identity of a log entry, or `None` where it is not there."""
    try:
        status = entry_path(folder, version).stat()
    except FileNotFoundError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)
