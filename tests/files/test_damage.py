"""Only a file that is damaged itself is passed over for good."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.errors.file_formats import FileCompressionError, FileUnreadableError, RowTooLongError
from millpond.errors.file_reads import FilesNotReadError, FilesUnreadableError
from millpond.files.damage import is_damage
from millpond.files.formats import avro
from tests.faults.small_disk import limited
from tests.files.format_reads import read

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
    assert not is_damage(FileCompressionError.from_content("file:/a.Z", compression="compress"))
    assert is_damage(FileUnreadableError.from_file("file:/a.gz", reason="it ends too early"))


def written(number):
    """What DuckDB says where it can't write a file that has nothing to do with the source."""
    words = os.strerror(number)
    wrapped = f'{{"exception_type":"IO","exception_message":"x: {words}","errno":"{number}"}}'
    yield duckdb.IOException(f'IO Error: Could not write file "/staging/a": {words}')
    yield duckdb.IOException(f"IO Error: Async write failed for range [offset=27]: {wrapped}")


KINDS = ["EFBIG", "ENOSPC", "EDQUOT", "EROFS", "EIO", "ESTALE", "EMFILE", "ENOENT", "EACCES"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_wrong_with_the_files_that_are_written_is_no_damage_of_the_source(kind):
    number = getattr(errno, kind)
    for error in [*written(number), OSError(number, os.strerror(number))]:
        assert not is_damage(error)
        told = FileUnreadableError.from_file("file:/a", reason=str(error))
        told.__cause__ = error
        assert not is_damage(told)


def test_threads_that_can_not_be_started_are_no_damage():
    assert not is_damage(RuntimeError("can't start new thread"))
    assert not is_damage(RuntimeError("Resource temporarily unavailable"))


@pytest.mark.parametrize("place", [b"name_of_column", b"name_inside"])
def test_names_that_are_no_text_are_damage(tmp_path, place):
    path = tmp_path / "a.parquet"
    rows = pa.table({"name_of_column": [1], "s": [{"name_inside": 1}]})
    pq.write_table(rows, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(place, b"\xff" * len(place)))
    with pytest.raises((duckdb.Error, RuntimeError, UnicodeError)) as caught:
        [str(found) for found in duckdb.sql(f"SELECT * FROM read_parquet('{path}')").types]
    assert is_damage(caught.value)


def limited_run(folder):
    """An update whose process can't write a file of more than half a megabyte."""
    return subprocess.run(
        [*limited("f", 1000), Path(sys.executable).with_name("millpond"), "run"],
        cwd=folder.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_limit_on_what_is_written_costs_the_update_and_not_the_file(folder):
    source = folder.root / "source"
    source.mkdir()
    lines = "".join(f"{i},{os.urandom(16).hex()}\n" for i in range(40_000))
    (source / "a.csv").write_text("k,v\n" + lines)
    folder.write(
        "t.sql",
        f"CREATE STREAMING TABLE t AS SELECT k, v FROM STREAM read_files('{source}', "
        "format => 'csv', header => true, schema => 'k INT, v STRING', "
        "ignoreCorruptFiles => true);",
    )
    ended = limited_run(folder)
    assert ended.returncode != 0
    assert "[STORAGE_NOT_WRITABLE]" in ended.stderr
    assert "File too large" in ended.stderr
    assert "ulimit -f" in ended.stderr
    assert "passed over" not in ended.stderr
    folder.run()
    assert len(folder.rows("t")) == 40_000


def test_what_millpond_does_not_read_of_whole_files_is_no_damage():
    assert not is_damage(FileUnreadableError.too_long("file:/a", what="row", limit_bytes=1 << 20))
    assert not is_damage(RowTooLongError.from_line("file:/a", 1, limit_characters=1))
    told = FileUnreadableError.beyond_reach("s3://b//a", reason="its key is odd", hint="copy it")
    assert not is_damage(told)


@pytest.mark.parametrize("problem", [MemoryError, RecursionError, OverflowError])
def test_an_avro_file_that_there_is_no_memory_for_is_not_damaged(tmp_path, monkeypatch, problem):
    path = tmp_path / "a.avro"
    schema = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "int"}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"a": 1}])

    def fail(*_arguments):
        raise problem

    monkeypatch.setattr(avro, "_table", fail)
    with pytest.raises(FileUnreadableError, match=r"a\.avro") as caught:
        read("avro", path, "a INT")
    assert not is_damage(caught.value)


def test_an_avro_file_of_a_type_that_no_table_can_hold_is_not_damaged(tmp_path):
    path = tmp_path / "a.avro"
    fields = [{"name": "a", "type": "int"}, {"name": "next", "type": ["null", "Row"]}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, [])
    with pytest.raises(FileUnreadableError, match="contains itself") as caught:
        read("avro", path, "a INT")
    assert not is_damage(caught.value)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(FileUnreadableError) as caught:
        read("avro", path, "a INT")
    assert is_damage(caught.value)
