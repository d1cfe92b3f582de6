"""Every version of a Delta table, by a reader of its own: JSON entries, Parquet, deletion vectors."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.simulation.deliveries import Multiset

# The alphabet of RFC 1924 is in another order than that of deletion vectors.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_RFC = str.maketrans(_Z85, _RFC)


@dataclass(frozen=True)
class TableVersion:
    """A table as of one commit.

    Attributes:
        operation: Of the commit.
        batches: By application, the number of the last batch.
    """

    number: int
    operation: str
    rows: Multiset
    batches: dict[str, int]


@dataclass
class TableVersions:
    """The versions of a table in a folder.

    Attributes:
        columns: The names of its columns, in the order of the rows that are given.
    """

    folder: Path
    columns: tuple[str, ...]
    _known: dict[Any, list[tuple[Any, ...]]] = field(default_factory=dict)

    def read(self) -> Iterator[TableVersion]:
        """Give all versions, oldest first. Files that are torn or missing are errors."""
        log = self.folder / "_delta_log"
        entries = sorted(log.glob("?" * 20 + ".json")) if log.is_dir() else []
        files: dict[str, Any] = {}
        batches: dict[str, int] = {}
        for number, path in enumerate(entries):
            assert path.name == f"{number:020}.json", f"version {number} is missing below {log}"
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            assert actions, f"{path} is empty"
            operation = ""
            added: dict[str, Any] = {}
            for action in actions:
                match action:
                    case {"commitInfo": info}:
                        operation = info.get("operation", "")
                    case {"remove": remove}:
                        del files[remove["path"]]
                    case {"add": add}:
                        added[add["path"]] = add
                    case {"txn": txn}:
                        batches[txn["appId"]] = txn["version"]
            files |= added
            rows: Multiset = Counter()
            for add in files.values():
                rows.update(self._rows(add))
            yield TableVersion(number, operation, rows, dict(batches))

    def _rows(self, add: dict[str, Any]) -> list[tuple[Any, ...]]:
        path = self.folder / add["path"]
        status = path.stat()
        vector = add.get("deletionVector")
        vector_path = None if vector is None else _vector_path(self.folder, vector)
        vector_status = None if vector_path is None else vector_path.stat()
        # A file that was torn since it was read is another one.
        key = (
            str(path),
            status.st_ino,
            status.st_mtime_ns,
            status.st_size,
            vector and (vector["pathOrInlineDv"], vector["offset"]),
            vector_status and (vector_status.st_ino, vector_status.st_mtime_ns),
        )
        if key not in self._known:
            table = pq.ParquetFile(path).read(list(self.columns))
            dead = _read_vector(vector_path, vector) if vector_path else BitMap64()
            rows = zip(*(table[name].to_pylist() for name in self.columns), strict=True)
            self._known[key] = [row for number, row in enumerate(rows) if number not in dead]
        return self._known[key]


def _vector_path(folder: Path, vector: dict[str, Any]) -> Path:
    assert vector["storageType"] == "u"
    text = vector["pathOrInlineDv"]
    prefix, text = text[:-20], text[-20:]
    name = uuid.UUID(bytes=base64.b85decode(text.translate(_TO_RFC)))
    return folder / prefix / f"deletion_vector_{name}.bin"


def _read_vector(path: Path, vector: dict[str, Any]) -> BitMap64:
    content = path.read_bytes()
    offset, size = vector["offset"], vector["sizeInBytes"]
    assert struct.unpack_from(">I", content, offset) == (size,)
    data = content[offset + 4 : offset + 4 + size]
    found = BitMap64.deserialize(data[4:])
    assert len(found) == vector["cardinality"]
    return found
