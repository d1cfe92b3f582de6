"""One version of a table as a log of one entry: for an engine that is to read just this version.

Such a log has no checkpoint that may be damaged or missing, and nobody writes to it. Its data files
and deletion vectors stay where they are, and are found through links to their folders.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from millpond.delta.actions import AddFile, DeletionVector
from millpond.delta.deletion_vectors import encode_z85, vector_path
from millpond.delta.log import entry_path
from millpond.delta.snapshot import Snapshot
from millpond.delta.transaction import encode_commit

_TABLE = "t"
_VECTOR_NAME = re.compile(r"deletion_vector_([0-9a-f-]{36})\.bin\Z")


def write_one_entry_log(snapshot: Snapshot, folder: Path) -> None:
    """Make a folder a table with the rows of a snapshot.

    Args:
        snapshot: Its files must stay as long as the new table is read.
        folder: It must be there and empty.
    """
    links = _Links(folder)
    links.add(_TABLE, snapshot.path.absolute())
    entry = entry_path(folder, 0)
    _, data = encode_commit(
        version=0,
        timestamp_ms=snapshot.timestamp_ms,
        operation="CLONE",
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        adds=[_linked(snapshot, file, links) for file in snapshot.files.values()],
        in_commit_timestamp=True,
    )
    entry.parent.mkdir()
    entry.write_bytes(data)


class _Links:
    """Links in a folder to other folders, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[Path, str] = {}

    def add(self, name: str, target: Path) -> None:
        (self._folder / name).symlink_to(target, target_is_directory=True)
        self._names[target] = name

    def name(self, target: Path) -> str:
        if target not in self._names:
            self.add(f"f{len(self._names)}", target)
        return self._names[target]


def _linked(snapshot: Snapshot, file: AddFile, links: _Links) -> AddFile:
    decoded = Path(file.decoded_path)
    path = f"{_TABLE}/{file.path}"
    if decoded.is_absolute():
        path = f"{links.name(decoded.parent)}/{quote(decoded.name)}"
    vector = file.deletion_vector
    return replace(
        file,
        path=path,
        deletion_vector=None if vector is None else _linked_vector(snapshot, vector, links),
    )


def _linked_vector(snapshot: Snapshot, vector: DeletionVector, links: _Links) -> DeletionVector:
    if vector.storage_type == "i":
        return vector
    path = vector_path(snapshot.path.absolute(), vector)
    name = _VECTOR_NAME.match(path.name)
    if name is None:
        return vector
    place = links.name(path.parent) + encode_z85(uuid.UUID(name[1]).bytes)
    return replace(vector, storage_type="u", path_or_inline=place)
