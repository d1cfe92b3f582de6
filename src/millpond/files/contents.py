"""The plain content of a file: here, not compressed, and as UTF-8 where it is text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import shutil
import uuid
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from millpond.errors.file_formats import FileUnreadableError
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
        OSError: It can't be opened.
    """
    path = local_copy(file, folder, options.store_options)
    if options.format in TEXT_FORMATS:
        ending = file.name.rpartition(".")[2].lower()
        if ending in _OPENERS:
            path = _rewritten(path, file, folder, _OPENERS[ending])
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
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
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


def _arrow(codec: str) -> Callable[[Path], Any]:
    def opened(path: Path) -> Any:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.OSFile(str(path)), codec)

    return opened


class _Deflated:
    """Zlib content, as Hadoop's `.deflate` files hold it: one stream after the other."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._zlib = zlib.decompressobj()
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while True:
            data = self._rest or self._file.read(_CHUNK_BYTES)
            if self._zlib.eof:
                if not data:
                    return b""
                self._zlib = zlib.decompressobj()
            # Even without more data there may be more to give.
            plain = self._zlib.decompress(data, max(size, 0))
            self._rest = self._zlib.unused_data or self._zlib.unconsumed_tail
            if plain:
                return plain
            if not data and not self._zlib.eof:
                raise EOFError("it ends too early")

    def close(self) -> None:
        self._file.close()


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


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "gz": gzip.open,
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
    "lzma": lzma.open,
    "zst": _arrow("zstd"),
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
    "deflate": _Deflated,
}
