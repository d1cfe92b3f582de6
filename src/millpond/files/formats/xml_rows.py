"""Cuts the rows out of XML files, without reading the document around them.

Rows are found by their tags, as Spark does it: so a broken row costs none of the others, and no
document type is ever read, whose entities could grow without end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.base import LocalFile
from millpond.files.formats.json_rewriting import MAX_RECORD_BYTES
from millpond.files.options import FileOptions

_DECLARATION_BYTES = 1024
_CHUNK_CHARACTERS = 1 << 18
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True)
class Row:
    """The text of a row.

    Attributes:
        text: From its first tag to its last one. Bytes that are no characters are lone surrogates.
        is_closed: Whether the last one is there.
    """

    text: str
    is_closed: bool


def open_text(file: LocalFile, options: FileOptions) -> IO[str]:
    """The text of a file; bytes that are no characters become lone surrogates.

    In UTF-8 where options say the encoding, since the content is then written anew, and else as the
    file declares.
    """
    given = options.format_options
    encoding = "utf-8"
    if not (given.get("encoding") or given.get("charset")):
        with file.path.open("rb") as content:
            encoding = declared_encoding(content.read(_DECLARATION_BYTES))
    return file.path.open(encoding=encoding, errors="surrogateescape")


def declared_encoding(start: bytes) -> str:
    """The encoding that the first bytes of an XML file name; UTF-8 by default."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return encoding
    found = _DECLARED.match(start)
    name = found.group(1).decode() if found else "utf-8"
    try:
        # A document that names UTF-16 in single bytes is not written in it.
        "".encode(name)  # not all that there are make text of bytes
        return "utf-8" if codecs.lookup(name).name.startswith("utf-16") else name
    except LookupError:
        return "utf-8"


class RowReader:
    """Finds the rows of one file."""

    def __init__(self, content: IO[str], row_tag: str, uri: str) -> None:
        tag = re.escape(row_tag)
        self._content = content
        self._uri = uri
        self._token = re.compile(
            r"<!--(?:.*?(?P<comment>-->))?|<!\[CDATA\[(?:.*?(?P<data>\]\]>))?"
            rf"|<(?P<end>/)?{tag}(?P<rest>(?:\s(?:[^\"'<>]|\"[^\"]*\"|'[^']*')*|/)?)>",
            re.DOTALL,
        )
        self._buffer = ""
        self._position = 0
        # Where a row begins that has not ended yet, and how many of its tags are open.
        self._start: int | None = None
        self._depth = 0

    def __iter__(self) -> Iterator[Row]:
        while True:
            token = self._token.search(self._buffer, self._position)
            if token is None or _is_open(token):
                if not self._read_on(token):
                    break
            elif (row := self._row_before(token)) is not None:
                yield row
        if self._start is not None:
            yield Row(self._buffer, is_closed=False)

    def _row_before(self, token: re.Match[str]) -> Row | None:
        """The row that ends with a token, if one does."""
        self._position = token.end()
        is_end = token.group("end") is not None
        if token.group("rest") is None or (is_end and self._start is None):
            return None
        if self._start is None:
            self._start = token.start()
        if is_end:
            self._depth -= 1
        elif not token.group("rest").endswith("/"):
            self._depth += 1
        if self._depth > 0:
            return None
        row = Row(self._buffer[self._start : self._position], is_closed=True)
        self._start = None
        return row

    def _read_on(self, token: re.Match[str] | None) -> bool:
        """Read more text; what is done with is dropped. Whether there was more."""
        # What comes last may be a token with what follows.
        resume = self._open_from(token, self._position)
        keep = resume if self._start is None else self._start
        self._position = resume - keep
        if self._start is not None:
            self._start = 0
        return self._refill(keep)

    def _open_from(self, token: re.Match[str] | None, position: int) -> int:
        """From where on the buffer may hold the beginning of a token."""
        if token is not None:
            return token.start()
        return max(self._buffer.rfind("<", position), position)

    def _refill(self, keep: int) -> bool:
        """Drop what is before a place, and read on; whether there was more."""
        self._buffer = self._buffer[keep:]
        if len(self._buffer) > MAX_RECORD_BYTES:
            raise FileUnreadableError.too_long(self._uri, what="row", limit_bytes=MAX_RECORD_BYTES)
        # Ever larger pieces: the text is looked through again with each.
        more = self._content.read(max(_CHUNK_CHARACTERS, len(self._buffer)))
        self._buffer += more
        return bool(more)


def _is_open(token: re.Match[str]) -> bool:
    """Whether a comment, or a section of data, does not end in the text at hand."""
    text = token.group()
    return text in {"<!--", "<![CDATA["}
