"""Deletion vectors: which rows of a data file are deleted, read from and written to their files.

Follows "Deletion Vectors" and "Deletion Vector Format" of Delta's PROTOCOL.md.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta.actions import AddFile, DeletionVector, local_path
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import FileStats
from millpond.errors.delta import CorruptDeletionVectorError, DataFileMissingError
from millpond.storage import Store

if TYPE_CHECKING:
    from pyroaring import BitMap64

FORMAT_VERSION = b"\x01"
MAGIC = 1681511377
UUID_TEXT_LENGTH = 20
# The folder of vectors that millpond writes. A full vacuum of delta-rs 1.6 takes vectors for files
# that nobody needs, and keeps out of folders whose names begin so.
VECTOR_FOLDER = "_deletion_vectors"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {char: value for value, char in enumerate(_Z85)}


def encode_z85(data: bytes) -> str:
    """Encode bytes, a multiple of four of them, as ZeroMQ's base 85.

    >>> encode_z85(bytes.fromhex("864FD26FB559F75B"))
    'HelloWorld'
    """
    text: list[str] = []
    for (word,) in struct.iter_unpack(">I", data):
        text += [_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(text)


def decode_z85(text: str) -> bytes:
    """Undo `encode_z85`.

    Raises:
        ValueError: The text is no Z85.
    """
    if len(text) % 5:
        raise ValueError("its length is no multiple of five")
    data = bytearray()
    for start in range(0, len(text), 5):
        word = 0
        for char in text[start : start + 5]:
            if char not in _Z85_VALUES:
                raise ValueError(f"the character {char!r} is not of base 85")
            word = word * 85 + _Z85_VALUES[char]
        if word > 0xFFFFFFFF:
            raise ValueError("a group of five is out of range")
        data += word.to_bytes(4, "big")
    return bytes(data)


def vector_path(folder: Path, vector: DeletionVector) -> Path:
    """Return where a vector that is not inline lies; `folder` is the table's."""
    if vector.storage_type == "p":
        return Path(local_path(vector.path_or_inline))
    prefix = vector.path_or_inline[:-UUID_TEXT_LENGTH]
    name = uuid.UUID(bytes=decode_z85(vector.path_or_inline[-UUID_TEXT_LENGTH:]))
    return folder / prefix / f"deletion_vector_{name}.bin"


def read_deletion_vectors(
    folder: Path, files: Iterable[AddFile], store: Store
) -> dict[str, BitMap64]:
    """Read the deleted rows of each of `files` that has any, by the path in the log.

    Raises:
        CorruptDeletionVectorError: A vector can't be read, or is not what the log says it is.
        DataFileMissingError: A vector's file is not there.
    """
    contents: dict[Path, bytes] = {}  # one file holds the vectors of a whole commit
    found: dict[str, BitMap64] = {}
    for file in files:
        vector = file.deletion_vector
        if vector is None:
            continue
        try:
            found[file.path] = _read(folder, vector, contents, store)
        except FileNotFoundError as error:
            raise DataFileMissingError.of(vector_path(folder, vector)) from error
        except (ValueError, struct.error) as error:
            raise CorruptDeletionVectorError.of_file(file.path, reason=str(error)) from error
    return found


def _read(
    folder: Path, vector: DeletionVector, contents: dict[Path, bytes], store: Store
) -> BitMap64:
    if vector.storage_type == "i":
        return _parse(decode_z85(vector.path_or_inline)[: vector.size_bytes], vector)
    if vector.storage_type not in {"u", "p"}:
        raise ValueError(f"the storage type {vector.storage_type!r} is not known")
    path = vector_path(folder, vector)
    if path not in contents:
        contents[path] = store.read(path)
    content = contents[path]
    if content[:1] != FORMAT_VERSION:
        raise ValueError("the file has another format version than 1")
    start = (vector.offset or 0) + 4
    (size,) = struct.unpack_from(">I", content, start - 4)
    data = content[start : start + size]
    (checksum,) = struct.unpack_from(">I", content, start + size)
    if size != vector.size_bytes or zlib.crc32(data) != checksum:
        raise ValueError("its size or checksum is wrong")
    return _parse(data, vector)


def _parse(data: bytes, vector: DeletionVector) -> BitMap64:
    from pyroaring import BitMap64

    (magic,) = struct.unpack_from("<I", data)
    if magic != MAGIC:
        raise ValueError(f"the magic number {magic} is not known")
    bitmap = BitMap64.deserialize(data[4:])
    if len(bitmap) != vector.cardinality:
        raise ValueError(f"it holds {len(bitmap)} rows, the log says {vector.cardinality}")
    return bitmap


def write_deletion_vectors(
    snapshot: Snapshot, positions: Mapping[str, Iterable[int]], *, store: Store
) -> dict[str, AddFile]:
    """Delete rows: write one file with the vectors of all data files concerned.

    Args:
        snapshot: The state that the rows were found in.
        positions: By a data file's path in the log, row numbers in it: a NumPy array of unsigned
            64-bit numbers, a bitmap, or any iterable of numbers. Rows deleted before stay so.
        store: Writes the file, durable on return.

    Returns:
        Each file with its new vector, to add in the place of the file as it was. Where no row is
        left, `num_rows` is 0, and it is enough to remove the file.
    """
    from pyroaring import BitMap64

    files = [snapshot.files[path] for path in positions]
    deleted_before = read_deletion_vectors(snapshot.path, files, store)
    name = uuid.uuid4()
    content = bytearray(FORMAT_VERSION)
    changed: dict[str, AddFile] = {}
    for file in files:
        bitmap = BitMap64(positions[file.path])
        if file.path in deleted_before:
            bitmap |= deleted_before[file.path]
        rows = _physical_rows(snapshot, file)
        if bitmap and bitmap.max() >= rows:
            raise ValueError(f"{file.path} has {rows} rows, and none of number {bitmap.max()}")
        bitmap.run_optimize()
        data = struct.pack("<I", MAGIC) + bitmap.serialize()
        place = VECTOR_FOLDER + encode_z85(name.bytes)
        vector = DeletionVector("u", place, len(content), len(data), len(bitmap))
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        stats = replace(file.stats or FileStats(), num_records=rows, tight_bounds=False)
        changed[file.path] = replace(
            file, deletion_vector=vector, stats_text=stats.to_text(), data_change=True
        )
    if changed:
        path = snapshot.path / VECTOR_FOLDER / f"deletion_vector_{name}.bin"
        store.put_if_absent(path, bytes(content))
    return changed


def _physical_rows(snapshot: Snapshot, file: AddFile) -> int:
    """Rows of a file, deleted ones among them: a file with a vector must state them."""
    if file.stats is not None and file.stats.num_records is not None:
        return file.stats.num_records
    import pyarrow.parquet as pq

    path = snapshot.file_path(file)
    try:
        return int(pq.read_metadata(path).num_rows)
    except FileNotFoundError as error:
        raise DataFileMissingError.of(path) from error
