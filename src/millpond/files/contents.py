"""The plain content of a file: here, not compressed, and as UTF-8 where it is text."""

from __future__ import annotations

import codecs
import shutil
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from millpond.errors.file_formats import FileCompressionError, FileUnreadableError
from millpond.files.compressions import BROKEN, OPENERS, UNKNOWN
from millpond.files.formats.base import LocalFile
from millpond.files.known_options import TEXT_FORMATS
from millpond.files.listed_file import ListedFile
from millpond.files.options import FileOptions
from millpond.files.stores import local_copy

_CHUNK_BYTES = 1 << 20
_SIGNS_OF_PATTERNS = frozenset("*?[")
_UTF8 = frozenset({"utf-8", "us-ascii", "ascii"})


def plain_content(file: ListedFile, options: FileOptions, *, folder: Path) -> LocalFile:
    """Bring a file's content here.

    Args:
        folder: For what has to be written for it. It exists.

    Raises:
        FileUnreadableError: Its compression is broken.
        FileCompressionError: Its compression is none that can be read.
        OSError: It can't be opened.
    """
    path = local_copy(file, folder, options.store_options)
    if options.format in TEXT_FORMATS:
        ending = file.name.rpartition(".")[2].lower()
        # A file of no bytes has no rows, whatever it is called.
        if file.size_bytes and ending in OPENERS:
            path = _rewritten(path, file, folder, OPENERS[ending])
        elif ending in UNKNOWN and UNKNOWN[ending].is_that_of(path):
            raise FileCompressionError.from_content(file.uri, compression=UNKNOWN[ending].name)
        encoding = _encoding(options)
        if encoding not in _UTF8:
            path = _rewritten(path, file, folder, lambda source: _Transcoded(source, encoding))
    path = _plainly_named(path, folder)
    return LocalFile(path, file.uri, size_bytes=file.size_bytes, modified_ns=file.modified_ns)


def _plainly_named(path: Path, folder: Path) -> Path:
    """A name for a file that other programs can open it by.

    They may know only UTF-8. To find a name that looks like a pattern, DuckDB lists the folder, and
    fails at a neighbour whose name begins with a backslash.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        is_plain = False
    else:
        is_plain = _SIGNS_OF_PATTERNS.isdisjoint(str(path))
    if is_plain:
        return path
    link = folder / uuid.uuid4().hex
    link.symlink_to(path.absolute())
    return link


def _encoding(options: FileOptions) -> str:
    given = options.format_options
    return codecs.lookup(given.get("encoding") or given.get("charset") or "UTF-8").name


def _rewritten(
    path: Path, file: ListedFile, folder: Path, opened: Callable[[Path], IO[bytes] | Any]
) -> Path:
    target = folder / uuid.uuid4().hex
    try:
        with closing(opened(path)) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, _CHUNK_BYTES)
    except BROKEN as error:
        raise FileUnreadableError.from_file(
            file.uri, reason=f"its compressed content is broken: {error}"
        ) from error
    except OSError as error:
        if error.errno is not None:
            raise
        # What bz2 and pyarrow raise for content that is not what they expect.
        raise FileUnreadableError.from_file(
            file.uri, reason=f"its compressed content is broken: {error}"
        ) from error
    except UnicodeError as error:
        raise FileUnreadableError.from_file(file.uri, reason=str(error)) from error
    return target


class _Transcoded:
    """The content in UTF-8; what can't be decoded becomes U+FFFD, as in Spark."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._file = path.open("rb")
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def read(self, size: int = -1) -> bytes:
        del size
        while data := self._file.read(_CHUNK_BYTES):
            if text := self._decoder.decode(data):
                return text.encode()
        return self._decoder.decode(b"", final=True).encode()

    def close(self) -> None:
        self._file.close()
