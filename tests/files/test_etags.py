"""Whole updates over objects whose size and time tell no versions apart: their etags do."""

from __future__ import annotations

import json
import time

import pytest

from millpond.errors.file_reads import FilesNotReadError
from millpond.files.s3_files import S3Files
from millpond.streaming import file_log, file_source
from tests.files.s3_stub import Objects, s3_stub

REPLACED = """
CREATE OR REFRESH STREAMING TABLE t
FLOW REPLACE USING (f) SEQUENCE BY s BY NAME
SELECT a, _metadata.file_path AS f, _metadata.file_modification_time AS s
FROM STREAM read_files('s3://b/in', format => 'json', schema => 'a INT', allowOverwrites => true);
"""
APPENDED = """
CREATE OR REFRESH STREAMING TABLE t AS
SELECT a FROM STREAM read_files('s3://b/in', format => 'json', schema => 'a INT',
  allowOverwrites => true);
"""


def record(number: int) -> bytes:
    return b'{"a": %d}\n' % number


@pytest.fixture
def objects(monkeypatch):
    """A bucket in which everything was put in this second, and stays so."""
    found = Objects({"in/a.json": record(1), "in/z.json": record(9)}, modified_s=int(time.time()))
    with s3_stub(found) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield found


def values(suppliers) -> list[int]:
    return sorted(row[0] for row in suppliers.rows())


def test_a_version_of_the_same_size_and_second_takes_the_place_of_the_one_before(
    suppliers, objects
):
    suppliers.write(REPLACED)
    for number in (1, 2, 3, 2, 1):
        objects.contents["in/a.json"] = record(number)
        suppliers.updated()
        assert values(suppliers) == [number, 9]


def test_it_is_read_once_whatever_follows(suppliers, objects, monkeypatch):
    monkeypatch.setattr(file_log, "_FILES_APART", 1)  # so that the log is summed up
    suppliers.write(APPENDED)
    suppliers.updated()
    objects.contents["in/a.json"] = record(2)
    for _ in range(3):
        suppliers.updated()
    assert values(suppliers) == [1, 2, 9]


def test_nothing_is_waited_for(suppliers, objects, monkeypatch):
    monkeypatch.setattr(file_source, "OBJECT_SETTLING_S", 60)
    suppliers.write(REPLACED)
    start = time.monotonic()
    suppliers.updated()
    objects.contents["in/a.json"] = record(2)
    suppliers.updated()
    assert time.monotonic() - start < 50
    assert values(suppliers) == [2, 9]


def test_a_version_that_is_put_while_another_is_read_takes_its_place(
    suppliers, objects, monkeypatch
):
    versions = iter([2, 3])
    fetch = S3Files.fetch

    def fetching(self, *arguments):
        version = fetch(self, *arguments)
        if (number := next(versions, None)) is not None:
            objects.contents["in/a.json"] = record(number)
        return version

    monkeypatch.setattr(S3Files, "fetch", fetching)
    del objects.contents["in/z.json"]
    suppliers.write(REPLACED)
    suppliers.updated()
    assert values(suppliers) == [3]


def test_the_same_content_that_is_put_later_is_another_version(suppliers, objects):
    suppliers.write(APPENDED)
    suppliers.updated()
    objects.modified_s += 1
    suppliers.updated()
    assert values(suppliers) == [1, 1, 9, 9]


def test_without_overwrites_each_object_is_read_once(suppliers, objects):
    suppliers.write(APPENDED.replace("true", "false"))
    suppliers.updated()
    objects.contents["in/a.json"] = record(2)
    suppliers.updated()
    assert values(suppliers) == [1, 9]


@pytest.mark.parametrize("summed", [False, True])
def test_objects_that_were_remembered_without_etags_are_not_read_again_until_they_change(
    suppliers, objects, monkeypatch, summed
):
    suppliers.write(APPENDED)
    suppliers.updated()
    (entry,) = suppliers.pipeline.root.rglob("sources/*/1.json")
    value = json.loads(entry.read_text())
    assert all(etag for *_, etag in value["files"])
    value["files"] = [[*version, ""] for *version, _ in value["files"]]
    entry.write_text(json.dumps(value))
    monkeypatch.setattr(file_log, "_FILES_APART", 1 if summed else 5000)
    objects.contents["in/c.json"] = record(3)
    suppliers.updated()
    assert values(suppliers) == [1, 3, 9]
    objects.contents |= {"in/a.json": record(22), "in/c.json": record(4)}
    suppliers.updated()
    assert values(suppliers) == [1, 3, 4, 9, 22]


def test_a_content_that_is_cut_off_is_asked_for_again(suppliers, objects):
    objects.cut_off = 2
    suppliers.write(REPLACED)
    suppliers.updated()
    assert values(suppliers) == [1, 9]


def test_one_that_is_always_cut_off_leaves_the_others(suppliers, objects):
    objects.cut_off = 3
    suppliers.write(REPLACED)
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "s3://b/in/a.json" in str(error)
    assert values(suppliers) == [9]
    suppliers.updated()
    assert values(suppliers) == [1, 9]
