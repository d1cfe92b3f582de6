"""A small server that speaks S3 as far as a reader needs it, for what SeaweedFS can't show.

SeaweedFS makes paths of keys, and it has a clock. Here keys are any text, times are given.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

BUCKET = "b"


@dataclass
class Objects:
    """What the bucket holds, and what was asked of it.

    Attributes:
        contents: By key.
        modified_s: When all of them were put, in seconds since 1970.
        page: So many keys an answer holds.
        asked: The requests: method, path with query, headers.
        cut_off: So many of the next answers with content break off in the middle.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    modified_s: int = 1_600_000_000
    page: int = 1000
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    cut_off: int = 0


def etag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


@contextlib.contextmanager
def s3_stub(objects: Objects) -> Iterator[str]:
    """Run a server with one bucket, `BUCKET`; gives its endpoint."""

    class Handler(_Handler):
        held = objects

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Objects

    def log_message(self, *arguments):
        """Nobody reads it."""

    def do_HEAD(self):
        self._note()
        self._answer_object()

    def do_GET(self):
        self._note()
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._answer_listing({name: values[0] for name, values in query.items()})
        else:
            self._answer_object()

    def _note(self):
        self.held.asked.append((self.command, self.path, dict(self.headers.items())))

    def _answer_listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        modified = datetime.fromtimestamp(self.held.modified_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        found: dict[str, str] = {}
        for key, content in sorted(self.held.contents.items()):
            if not key.startswith(prefix):
                continue
            folder, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
            if slash:
                name = f"{prefix}{folder}{slash}"
                found[name] = f"<CommonPrefixes><Prefix>{quote(name)}</Prefix></CommonPrefixes>"
            else:
                found[key] = (
                    f"<Contents><Key>{quote(key)}</Key><Size>{len(content)}</Size>"
                    f"<LastModified>{modified}.000Z</LastModified>"
                    f"<ETag>&quot;{etag_of(content)}&quot;</ETag></Contents>"
                )
        page = min(self.held.page, int(query.get("max-keys", 1000)))
        start = int(query.get("continuation-token", 0))
        shown = [*found.values()][start : start + page]
        more = start + page < len(found)
        following = f"<NextContinuationToken>{start + page}</NextContinuationToken>" if more else ""
        listing = (
            f"<ListBucketResult><EncodingType>url</EncodingType><KeyCount>{len(shown)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{following}{''.join(shown)}"
            "</ListBucketResult>"
        )
        self._answer(200, listing.encode())

    def _answer_object(self):
        key = unquote(urlsplit(self.path).path.removeprefix(f"/{BUCKET}/"))
        content = self.held.contents.get(key)
        if content is None:
            self._answer(404, b"")
            return
        modified = formatdate(self.held.modified_s, usegmt=True)
        is_cut_off = self.command == "GET" and self.held.cut_off > 0
        self.held.cut_off -= is_cut_off
        self._answer(
            200,
            content,
            {"ETag": f'"{etag_of(content)}"', "Last-Modified": modified},
            sent=len(content) // 2 if is_cut_off else None,
        )

    def _answer(self, status, content, headers=(), *, sent=None):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[:sent])
        if sent is not None:
            self.close_connection = True
