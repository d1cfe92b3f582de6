"""A binary file is one row: where it is, when it was changed, its length and its content."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from millpond.delta import connect
from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.binary_file import SCHEMA, BinaryFileFormat
from tests.files.format_reads import local, options_of, read, struct

CHANGED_NS = 1_704_164_645_123_456_789


def rows_of(files, schema, folder):
    reader = BinaryFileFormat()
    with connect() as connection:
        selection = reader.select(
            files, options_of("binaryfile"), schema, connection=connection, folder=folder
        )
        return selection, connection.execute(selection.sql).fetchall()


def test_each_file_is_a_row(tmp_path):
    paths = [tmp_path / name for name in ("a b.bin", "[1]*.bin", "1x.bin")]
    for path, content in zip(paths, (b"\x00\xff\n", b"", b"other"), strict=True):
        path.write_bytes(content)
    files = [local(path, modified_ns=CHANGED_NS) for path in paths[:2]]
    selection, rows = rows_of(files, SCHEMA, tmp_path)
    changed = datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    assert sorted(rows, key=lambda row: row[4]) == [
        (paths[0].as_uri(), changed, 3, b"\x00\xff\n", 0, None),
        (paths[1].as_uri(), changed, 0, b"", 1, None),
    ]
    assert not selection.new_columns.fields


def test_the_columns_are_those_of_spark(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    answer = read("binaryfile", path)
    assert answer.schema == "path:string,modificationTime:timestamp,length:bigint,content:binary"


def test_the_content_of_a_file_that_is_too_long_is_refused_but_its_length_is_read(tmp_path):
    path = tmp_path / "huge.bin"
    with path.open("wb") as output:
        output.truncate(1 << 31)
    with pytest.raises(FileUnreadableError, match=r"huge\.bin.*longer than 2047 MiB"):
        rows_of([local(path)], SCHEMA, tmp_path)
    selection, rows = rows_of([local(path)], struct("length BIGINT, other DATE"), tmp_path)
    assert rows == [(1 << 31, None, None)]
    assert selection.new_columns.names == ["path", "modificationTime", "content"]
