"""Whole updates over files in an object store, on a real server that speaks S3."""

from __future__ import annotations

import gzip
import time

import pytest

from millpond.errors.file_reads import FilesNotReadError
from millpond.files.s3_files import S3Files
from millpond.streaming import file_source
from tests.files.s3_server import BUCKET, s3_server

PRICES = f"""
CREATE OR REFRESH STREAMING TABLE t
TBLPROPERTIES ('millpond.replaceUsing.emptyFiles' = 'replaceAndRemove')
FLOW REPLACE USING (f) SEQUENCE BY s BY NAME
SELECT article, price, day, _metadata.file_path AS f, _metadata.file_modification_time AS s
FROM STREAM read_files('s3://{BUCKET}/prices', format => 'csv', header => true,
  allowOverwrites => true);
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(server, monkeypatch):
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server.client()


def put(bucket, key: str, content: bytes) -> None:
    with bucket.open_output_stream(f"{BUCKET}/{key}", compression=None) as out:
        out.write(content)


def wait_for_a_new_second() -> None:
    time.sleep(1 - time.time() % 1)


@pytest.fixture
def after_fetching(monkeypatch):
    """Lets a test do something right after an object was brought here."""

    def install(action):
        fetch = S3Files.fetch

        def fetching(self, *arguments):
            version = fetch(self, *arguments)
            action()
            return version

        monkeypatch.setattr(S3Files, "fetch", fetching)

    return install


def found(suppliers):
    return sorted(row[:3] for row in suppliers.rows())


def test_objects_are_read_again_when_they_are_sent_again_and_go_with_their_rows(suppliers, bucket):
    put(bucket, "prices/day=1/acme.csv", b"article,price\npen,1.2\n")
    put(bucket, "prices/day=2/tulip.csv", b"article,price\nbook,9\n")
    suppliers.write(PRICES)
    suppliers.updated()
    assert found(suppliers) == [("book", 9.0, 2), ("pen", 1.2, 1)]
    put(bucket, "prices/day=1/acme.csv", b"article,price\npen,1.1\nink,4\n")
    suppliers.updated()
    assert found(suppliers) == [("book", 9.0, 2), ("ink", 4.0, 1), ("pen", 1.1, 1)]
    bucket.delete_file(f"{BUCKET}/prices/day=2/tulip.csv")
    suppliers.updated()
    assert found(suppliers) == [("ink", 4.0, 1), ("pen", 1.1, 1)]


def test_a_version_of_the_same_size_is_read_however_soon_it_follows(
    suppliers, bucket, after_fetching
):
    suppliers.write(PRICES.replace("/prices", "/soon"))
    versions = iter([b"article,price\npen,2.5\n", b"article,price\npen,3.5\n"])

    def send_another():
        if (version := next(versions, None)) is not None:
            put(bucket, "soon/day=1/acme.csv", version)

    after_fetching(send_another)
    wait_for_a_new_second()
    put(bucket, "soon/day=1/acme.csv", b"article,price\npen,1.5\n")
    suppliers.updated()
    assert found(suppliers) == [("pen", 3.5, 1)]


@pytest.mark.parametrize("ahead_s", [0, 30, -30])
def test_versions_of_one_second_do_not_end_up_beside_each_other_whatever_the_clock_here_shows(
    suppliers, bucket, monkeypatch, ahead_s
):
    monkeypatch.setattr(file_source, "now_ns", lambda: time.time_ns() + ahead_s * 10**9)
    suppliers.write(PRICES.replace("/prices", f"/beside{ahead_s}"))
    wait_for_a_new_second()
    put(bucket, f"beside{ahead_s}/day=1/acme.csv", b"article,price\npen,1.5\n")
    suppliers.updated()
    put(bucket, f"beside{ahead_s}/day=1/acme.csv", b"article,price\npen,2.5\nink,4.5\n")
    suppliers.updated()
    assert found(suppliers) == [("ink", 4.5, 1), ("pen", 2.5, 1)]


def test_a_broken_object_leaves_the_others(suppliers, bucket):
    put(bucket, "broken/a.json.gz", gzip.compress(b'{"a": 1}\n'))
    put(bucket, "broken/b.json.gz", gzip.compress(b'{"a": 2}\n')[:-6])
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://{BUCKET}/broken/*.gz', format => 'json')"
    )
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert f"s3://{BUCKET}/broken/b.json.gz" in str(error)
    assert suppliers.rows() == [(1,)]


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_objects_that_were_read_are_moved(suppliers, bucket, scheme):
    put(bucket, f"{scheme}/a.json", b'{"a": 1}\n')
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://{BUCKET}/{scheme}', format => 'json', "
        f"cleanSource => 'MOVE', cleanSource.moveDestination => '{scheme}://{BUCKET}/done', "
        "cleanSource.retentionDuration => '0 seconds')"
    )
    suppliers.updated()
    # A file is cleaned away once the batch that read it is in the table.
    put(bucket, f"{scheme}/b.json", b'{"a": 2}\n')
    suppliers.updated()
    assert suppliers.rows() == [(1,), (2,)]
    assert bucket.get_file_info(f"{BUCKET}/{scheme}/a.json").is_file is False
    with bucket.open_input_stream(f"{BUCKET}/done/{scheme}/a.json") as moved:
        assert moved.read() == b'{"a": 1}\n'


def test_objects_stay_that_another_flow_has_yet_to_read_by_another_scheme(suppliers, bucket):
    put(bucket, "shared/a.json", b'{"a": 1}\n')
    read = f"STREAM read_files('s3://{BUCKET}/shared', format => 'json'"
    suppliers.write(
        f"""
        CREATE STREAMING TABLE t AS SELECT a FROM {read}, cleanSource => 'DELETE',
            cleanSource.retentionDuration => '0 seconds');
        CREATE STREAMING TABLE later AS SELECT a FROM {read.replace("s3:", "s3a:")});
        """
    )
    sent = f"{BUCKET}/shared/a.json"
    suppliers.updated(refresh=["t"])
    assert bucket.get_file_info(sent).is_file
    suppliers.updated()
    assert bucket.get_file_info(sent).is_file is False
    assert [a for a, *_ in suppliers.rows("later")] == [1]


def test_objects_are_not_moved_to_where_they_are_read_by_another_scheme(suppliers):
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://{BUCKET}/daily', format => 'json', "
        f"cleanSource => 'MOVE', cleanSource.moveDestination => 's3a://{BUCKET}/daily/done')"
    )
    (error,) = suppliers.update().problems
    assert error.error_class == "FILES_OPTION_INVALID"
