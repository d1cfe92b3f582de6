"""Keys that S3 may hold and that make no paths. SeaweedFS makes paths of them, so a stub has them."""

from __future__ import annotations

import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from millpond.errors.file_reads import FilesNotReadError

MODIFIED_S = 1_600_000_000
OBJECTS = {"in/a.json": b'{"a": 1}\n', "in//b.json": b'{"a": 2}\n', "in/z.json": b'{"a": 3}\n'}


class Bucket(BaseHTTPRequestHandler):
    """Answers what is asked of a bucket by who only reads."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        """Nobody reads it."""

    def do_HEAD(self):
        self._answer_object()

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" not in query:
            self._answer_object()
            return
        prefix = query.get("prefix", [""])[0]
        found = {key: content for key, content in OBJECTS.items() if key.startswith(prefix)}
        objects = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
            '<LastModified>2020-09-13T12:26:40.000Z</LastModified><ETag>"1"</ETag></Contents>'
            for key, content in found.items()
        )
        listing = (
            f"<ListBucketResult><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{objects}</ListBucketResult>"
        )
        self._answer(200, listing.encode())

    def _answer_object(self):
        key = unquote(urlsplit(self.path).path).removeprefix("/b").removeprefix("/")
        content = OBJECTS.get(key) if key else b""  # of the bucket itself
        self._answer(404 if content is None else 200, content or b"")

    def _answer(self, status, content):
        self.send_response(status)
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if first:
            content = content[int(first) : int(last) + 1]
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", formatdate(MODIFIED_S, usegmt=True))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture(autouse=True)
def bucket(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["in", "in/*.json", "*/*.json"])
def test_a_key_with_an_empty_part_leaves_the_others(suppliers, path):
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://b/{path}', format => 'json', "
        "useStrictGlobber => false)"
    )
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "s3://b/in//b.json: its key has an empty part, between two slashes" in str(error)
    assert sorted(suppliers.rows()) == [(1,), (3,)]


@pytest.mark.parametrize("path", ["in/*", "*/*", "in/*/b.json"])
def test_a_key_with_an_empty_part_is_below_no_folder_of_a_strict_pattern(suppliers, path):
    suppliers.query(
        f"SELECT a FROM STREAM read_files('s3://b/{path}', format => 'json', schema => 'a INT')"
    )
    suppliers.updated()
    assert sorted(suppliers.rows()) == ([] if path == "in/*/b.json" else [(1,), (3,)])
