"""Only a file that is damaged itself is passed over for good."""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.errors.file_formats import FileCompressionError, FileUnreadableError
from millpond.errors.file_reads import FilesNotReadError, FilesUnreadableError
from millpond.files.damage import is_damage

READ = "read_files('SENT', format => 'parquet', schema => 'a {}', ignoreCorruptFiles => true)"
QUERY = f"SELECT CAST(a AS STRING) AS a FROM STREAM {READ}"


def send_word(suppliers):
    path = suppliers.send("a.parquet", b"")
    pq.write_table(pa.table({"a": ["word"]}), path)


def test_a_file_that_does_not_fit_a_wrong_schema_is_read_once_the_schema_is_mended(suppliers):
    send_word(suppliers)
    suppliers.send("b.parquet", b"no Parquet")
    suppliers.query(QUERY.format("INT"))
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "could not read 1 file" in str(error)
    assert "does not fit into int" in str(error)
    assert "ignoreCorruptFiles" not in error.hint
    assert suppliers.rows() == []
    suppliers.query(QUERY.format("STRING"))
    suppliers.updated()
    assert suppliers.rows() == [("word",)]


def test_a_file_that_does_not_fit_a_wrong_schema_fails_a_read_of_all_files(suppliers):
    send_word(suppliers)
    suppliers.write(f"CREATE OR REFRESH MATERIALIZED VIEW t AS SELECT * FROM {READ.format('INT')};")
    error = suppliers.error()
    assert isinstance(error, FilesUnreadableError)
    assert "ignoreCorruptFiles" not in error.hint


def failure(sql, *, memory="100MB"):
    with pytest.raises(duckdb.Error) as caught, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}'; SET temp_directory = ''; {sql}")
    return caught.value


@pytest.mark.parametrize(
    ("sql", "memory"),
    [
        ("SELECT list(i) FROM range(1000000) AS t (i)", "2MB"),
        ("SELECT CAST(NULL AS DECIMAL(50, 2))", "100MB"),
        ("SELECT CAST('x' AS INT)", "100MB"),
    ],
)
def test_want_of_memory_and_what_was_asked_for_are_no_damage(sql, memory):
    error = failure(sql, memory=memory)
    assert not is_damage(error)
    told = FileUnreadableError.from_file("file:/a", reason=str(error))
    told.__cause__ = error
    assert not is_damage(told)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_file_is_damaged(tmp_path, cut):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    os.truncate(path, path.stat().st_size - cut)
    assert is_damage(failure(f"SELECT sum(a) FROM read_parquet('{path}')"))


def test_rights_and_compressions_that_are_unknown_are_no_damage():
    assert not is_damage(PermissionError(13, "Permission denied"))
    assert not is_damage(duckdb.IOException('Cannot open file "a": Permission denied'))
    assert not is_damage(FileCompressionError.from_ending("file:/a.br", compression="Brotli"))
    assert is_damage(FileUnreadableError.from_file("file:/a.gz", reason="it ends too early"))
