"""Stores whose listings have no etags, which are reached through pyarrow.

Google's and Azure's can't be had here. The same code runs over pyarrow's client of S3 instead, on
a real server.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from millpond.errors.files import FilesNotFoundError, FilesUnreachableError
from millpond.files.listing import list_files
from millpond.files.locations import parse_uri
from millpond.files.object_store import ObjectStoreFiles
from millpond.files.options import FileOptions
from millpond.files.s3_files import S3Files
from millpond.files.stores import local_copy, move, remove, stat
from millpond.streaming import file_source
from tests.files.s3_server import BUCKET, S3Server, s3_server
from tests.files.test_listing import GLOBS, LOOSE, RECURSIVE, STRICT
from tests.files.test_object_store import NAMES

PRICES = f"""
CREATE OR REFRESH STREAMING TABLE t
FLOW REPLACE USING (f) SEQUENCE BY s BY NAME
SELECT article, price, _metadata.file_path AS f, _metadata.file_modification_time AS s
FROM STREAM read_files('s3://{BUCKET}/WHERE', format => 'csv', header => true,
  allowOverwrites => true);
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def bucket(server, monkeypatch):
    client = server.client()

    def at(location, options):
        del options
        return ObjectStoreFiles(client, prefix=location.prefix, bucket=location.authority)

    monkeypatch.setattr(S3Files, "at", at)
    return client


@pytest.fixture
def place(request):
    """A folder of the test's own, as the key that it begins with."""
    return f"{abs(hash(request.node.nodeid)):x}"


def put(bucket, key, content=b"1\n"):
    with bucket.open_output_stream(f"{BUCKET}/{key}", compression=None) as out:
        out.write(content)


def listed(place, path="", *, discovery=RECURSIVE):
    options = FileOptions(
        "csv", (f"s3://{BUCKET}/{place}/{path}",), discovery=discovery, streaming=True
    )
    return list_files(options, root=Path("/"))


def test_objects_are_listed_and_fetched_as_they_are(bucket, place, tmp_path):
    for name in NAMES:
        put(bucket, f"{place}/x/{name}", name.encode())
    put(bucket, f"{place}/x/.hidden")
    found = listed(place)
    assert {file.name for file in found} == set(NAMES.values())
    for file in found:
        assert stat(file.uri) == file
        key = parse_uri(file.uri).path.rpartition("/")[2]
        assert local_copy(file, tmp_path).read_bytes() == key.encode()
    assert stat(f"s3://{BUCKET}/{place}/gone.csv") is None


@pytest.mark.parametrize(("pattern", "path", "loosely", "strictly"), GLOBS)
def test_globs(bucket, place, pattern, path, loosely, strictly):
    put(bucket, f"{place}/{path}")
    for discovery, matches in ((LOOSE, loosely), (STRICT, strictly)):
        try:
            found = listed(place, pattern, discovery=discovery)
        except FilesNotFoundError:
            found = []
        assert bool(found) == bool(matches)


def test_what_is_compressed_stays_so(bucket, place, tmp_path):
    content = gzip.compress(b"1\n")
    put(bucket, f"{place}/a.csv.gz", content)
    (found,) = listed(place)
    assert found.size_bytes == len(content)
    assert local_copy(found, tmp_path).read_bytes() == content


def test_objects_are_removed_and_moved(bucket, place):
    put(bucket, f"{place}/a.csv")
    uri = f"s3://{BUCKET}/{place}/a.csv"
    moved = move(uri, f"s3://{BUCKET}/out")
    assert stat(uri) is None
    assert stat(moved) is not None
    move(uri, f"s3://{BUCKET}/out")  # it is gone
    remove(moved)
    remove(moved)
    assert stat(moved) is None


def test_a_store_that_does_not_answer_fails_with_words():
    nowhere = S3Server("http://127.0.0.1:1", None).client()
    store = ObjectStoreFiles(nowhere, prefix="s3://b", bucket="b")
    with pytest.raises(FilesUnreachableError, match="s3://b/in"):
        store.is_folder("/in")


def found(suppliers):
    return sorted(row[:2] for row in suppliers.rows())


@pytest.mark.parametrize("ahead_s", [0, 30, -30])
def test_a_version_of_the_same_size_that_follows_at_once_takes_the_place_of_the_one_before(
    suppliers, bucket, place, monkeypatch, ahead_s
):
    monkeypatch.setattr(file_source, "now_ns", lambda: time.time_ns() + ahead_s * 10**9)
    versions = iter([b"article,price\npen,2.5\n", b"article,price\npen,3.5\n"])
    fetch = ObjectStoreFiles.fetch

    def fetching(self, *arguments):
        version = fetch(self, *arguments)
        if (following := next(versions, None)) is not None:
            put(bucket, f"{place}/acme.csv", following)
        return version

    monkeypatch.setattr(ObjectStoreFiles, "fetch", fetching)
    suppliers.write(PRICES.replace("WHERE", place))
    time.sleep(1 - time.time() % 1)
    put(bucket, f"{place}/acme.csv", b"article,price\npen,1.5\n")
    suppliers.updated()
    assert found(suppliers) == [("pen", 3.5)]
    put(bucket, f"{place}/acme.csv", b"article,price\npen,4.5\n")
    suppliers.updated()
    assert found(suppliers) == [("pen", 4.5)]
