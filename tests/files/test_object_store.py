"""Files in S3, on a real server that speaks S3."""

import gzip
import os
import threading
import time
from pathlib import Path

import pytest

from millpond.errors.files import (
    FileChangedError,
    FileLocationUnsupportedError,
    FilesNotFoundError,
    FilesUnreachableError,
)
from millpond.files.listing import list_files
from millpond.files.locations import locate, parse_uri
from millpond.files.options import Discovery, FileOptions
from millpond.files.partitions import partition_columns, partition_values
from millpond.files.s3_files import S3Files
from millpond.files.stores import local_copy, move, remove, stat, store_for
from tests.files.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, s3_server
from tests.files.test_listing import GLOBS, LOOSE, RECURSIVE, SPARK, STRICT

NAMES = {
    "a b.csv": "a%20b.csv",
    "a%20b.csv": "a%2520b.csv",
    "a#b?.csv": "a%23b%3F.csv",
    "a+b&c=d.csv": "a+b&c=d.csv",
    "quo'te\".csv": "quo'te%22.csv",
    "new\nline.csv": "new%0Aline.csv",
    "uniécode😀.csv": "uniécode😀.csv",
    "par[1]{2}*.csv": "par%5B1%5D%7B2%7D*.csv",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def environment(server, monkeypatch):
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(request):
    """A folder of the test's own, as the key that it begins with."""
    return f"{abs(hash(request.node.nodeid)):x}"


def put(server, *keys, content=b"1\n"):
    client = server.client()
    for key in keys:
        with client.open_output_stream(f"{BUCKET}/{key}", compression=None) as out:
            out.write(content)


def listed(folder, path="", *, discovery=RECURSIVE, **options):
    where = f"s3://{BUCKET}/{folder}/{path}" if path else f"s3://{BUCKET}/{folder}"
    found = list_files(FileOptions("csv", (where,), discovery=discovery, **options), root=Path("/"))
    return [parse_uri(file.uri).path.removeprefix(f"/{folder}/") for file in found]


def test_objects_are_listed_with_sizes_and_times(server, folder):
    before_s = int(time.time())
    put(server, f"{folder}/x/a.csv", content=b"12345")
    (found,) = list_files(
        FileOptions("csv", (f"s3://{BUCKET}/{folder}",), discovery=RECURSIVE), root=Path("/")
    )
    assert found.uri == f"s3://{BUCKET}/{folder}/x/a.csv"
    assert found.size_bytes == 5
    assert found.etag
    assert before_s <= found.modified_ns // 10**9 <= time.time() + 1
    assert stat(found.uri) == found


def test_odd_keys_are_quoted_as_those_of_local_files_and_read_back(server, folder, tmp_path):
    put(server, *(f"{folder}/{name}" for name in NAMES))
    found = list_files(FileOptions("csv", (f"s3://{BUCKET}/{folder}",)), root=Path("/"))
    assert {file.uri.rsplit("/", 1)[1] for file in found} == set(NAMES.values())
    for file in found:
        assert stat(file.uri) == file
        assert local_copy(file, tmp_path).read_bytes() == b"1\n"


def test_folders_and_hidden_names_count_as_in_local_folders(server, folder):
    put(server, *(f"{folder}/{n}" for n in ("p=1/f", "_p=1/f", "sub/f", "sub/p=1/g", "h")))
    put(server, *(f"{folder}/{n}" for n in ("_a", ".h", "_t/f", "sub/.x/f", "z._COPYING_")))
    assert sorted(listed(folder)) == ["_p=1/f", "h", "p=1/f", "sub/f", "sub/p=1/g"]
    assert sorted(listed(folder, discovery=SPARK)) == ["_p=1/f", "h", "p=1/f"]
    assert listed(folder, "_a") == ["_a"]
    assert listed(folder, "_t") == ["_t/f"]


@pytest.mark.parametrize(("pattern", "path", "loosely", "strictly"), GLOBS)
def test_globs(server, folder, pattern, path, loosely, strictly):
    put(server, f"{folder}/{path}")
    for discovery, matches in ((LOOSE, loosely), (STRICT, strictly)):
        try:
            found = listed(folder, pattern, discovery=discovery, streaming=True)
        except FilesNotFoundError:
            found = []
        assert found == ([path] if matches else [])


def test_filters(server, folder):
    put(server, f"{folder}/a.csv", f"{folder}/b.txt")
    assert listed(folder, discovery=Discovery(path_glob="*.csv")) == ["a.csv"]
    future_ns = (int(time.time()) + 3600) * 10**9
    assert listed(folder, discovery=Discovery(modified_after_ns=future_ns)) == []
    assert len(listed(folder, discovery=Discovery(modified_before_ns=future_ns))) == 2


def test_more_objects_than_one_answer_holds(server, folder):
    client = server.client()

    def some(start):
        for number in range(start, 1010, 4):
            client.open_output_stream(f"{BUCKET}/{folder}/{number:04}.csv").close()

    workers = [threading.Thread(target=some, args=(start,)) for start in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(listed(folder)) == 1010


def test_partitions(server, folder):
    put(server, f"{folder}/day=2026-01-31/a.csv")
    options = FileOptions("csv", (f"s3://{BUCKET}/{folder}",))
    files = list_files(options, root=Path("/"))
    assert partition_columns(files, options, root=Path("/")).simpleString() == "struct<day:date>"
    assert partition_values(files[0].uri) == {"day": "2026-01-31"}


def test_s3a_is_written_as_the_user_writes_it(server, folder):
    put(server, f"{folder}/a.csv")
    (found,) = list_files(FileOptions("csv", (f"s3a://{BUCKET}/{folder}",)), root=Path("/"))
    assert found.uri == f"s3a://{BUCKET}/{folder}/a.csv"
    assert stat(found.uri) == found


def test_a_whole_bucket_may_be_listed(server, folder):
    put(server, f"{folder}/a.csv")
    for path in (f"s3://{BUCKET}", f"s3://{BUCKET}/", f"s3://{BUCKET}/*/a.csv"):
        options = FileOptions("csv", (path,), discovery=STRICT)
        found = {file.uri for file in list_files(options, root=Path("/"))}
        assert f"s3://{BUCKET}/{folder}/a.csv" in found


def test_what_does_not_exist_is_named(server, folder):
    with pytest.raises(FilesNotFoundError, match=f"There is no file or folder 's3://{BUCKET}"):
        listed(folder, streaming=True)
    with pytest.raises(FilesNotFoundError, match="Nothing matches"):
        listed(folder, "*.csv", discovery=LOOSE)
    assert listed(folder, "*.csv", discovery=STRICT, streaming=True) == []
    assert stat(f"s3://{BUCKET}/{folder}/a.csv") is None


def test_a_copy_says_which_version_it_is(server, folder, tmp_path):
    put(server, f"{folder}/a.csv")
    location = locate(f"s3://{BUCKET}/{folder}/a.csv", root=Path("/"))
    store = store_for(location, {})
    first = store.fetch(location.text, tmp_path / "a.csv")
    put(server, f"{folder}/a.csv", content=b"2\n")
    second = store.fetch(location.text, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b"2\n"
    assert first.etag
    assert first.etag != second.etag
    with pytest.raises(FileNotFoundError):
        store.fetch(f"s3://{BUCKET}/{folder}/gone.csv", tmp_path / "gone.csv")


def test_what_is_compressed_stays_so(server, folder, tmp_path):
    content = gzip.compress(b"1\n")
    put(server, f"{folder}/a.csv.gz", content=content)
    found = stat(f"s3://{BUCKET}/{folder}/a.csv.gz")
    assert found.size_bytes == len(content)
    assert local_copy(found, tmp_path).read_bytes() == content


def test_no_copy_is_half_of_one_version_and_half_of_another(server, folder, tmp_path):
    size = 12 << 20
    put(server, f"{folder}/a.bin", content=b"0" * size)
    done = threading.Event()

    def rewrite():
        digit = 0
        while not done.is_set():
            digit = (digit + 1) % 10
            put(server, f"{folder}/a.bin", content=str(digit).encode() * size)
            time.sleep(0.2)

    worker = threading.Thread(target=rewrite)
    worker.start()
    try:
        location = locate(f"s3://{BUCKET}/{folder}/a.bin", root=Path("/"))
        for _ in range(6):
            try:
                store_for(location, {}).fetch(location.text, tmp_path / "a.bin")
            except FileChangedError:
                continue
            assert len(set((tmp_path / "a.bin").read_bytes())) == 1
    finally:
        done.set()
        worker.join()


def test_objects_are_removed_and_moved(server, folder):
    put(server, f"{folder}/in/a b.csv", f"{folder}/in/c.csv")
    uri = f"s3://{BUCKET}/{folder}/in/a%20b.csv"
    moved = move(uri, f"s3://{BUCKET}/{folder}/out")
    assert moved == f"s3://{BUCKET}/{folder}/out/{folder}/in/a%20b.csv"
    assert stat(moved) is not None
    assert listed(folder, "in") == ["in/c.csv"]
    move(uri, f"s3://{BUCKET}/{folder}/out")  # it is gone
    remove(moved)
    remove(moved)
    assert stat(moved) is None
    with pytest.raises(FileLocationUnsupportedError, match="lies elsewhere"):
        move(f"s3://{BUCKET}/{folder}/in/c.csv", "s3://another/out")


def test_credentials_may_be_options(server, folder, monkeypatch):
    put(server, f"{folder}/a.csv")
    for name in server.environment:
        monkeypatch.delenv(name)
    options = {
        "fs.s3a.endpoint": server.endpoint.removeprefix("http://"),
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": ACCESS_KEY,
        "fs.s3a.secret.key": SECRET_KEY,
    }
    assert listed(folder, store_options=options) == ["a.csv"]


def test_wrong_credentials_fail_with_words(server, folder, monkeypatch):
    put(server, f"{folder}/a.csv")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(FilesUnreachableError, match="AWS_SECRET_ACCESS_KEY") as error:
        listed(folder)
    assert f"s3://{BUCKET}/{folder}" in error.value.what


def test_a_store_that_does_not_answer_fails_with_words(monkeypatch, folder):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(FilesUnreachableError, match="can't be read"):
        listed(folder)


def test_half_an_address_in_azure_is_refused():
    with pytest.raises(FileLocationUnsupportedError, match=r"container@account\.dfs"):
        store_for(locate("abfss://container/folder", root=Path("/")), {})


def test_a_client_is_made_once_for_one_environment(monkeypatch):
    location = locate(f"s3://{BUCKET}/x", root=Path("/"))

    def client():
        return S3Files.at(location, {})._client

    first = client()
    assert client() is first
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert client() is not first
    assert os.environ["AWS_REGION"] == "eu-central-1"
