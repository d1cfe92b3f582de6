"""What is in compressed files: all of their streams to the end, or an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_CHUNK_BYTES = 1 << 20
# Zeros behind a stream of xz are padding if they are as many as this, or a multiple of it.
_XZ_PADDING_BYTES = 4


class _Decompressor(Protocol):
    """What bz2 and lzma have for one stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Streams:
    """Streams of one compression, one behind the other.

    `bz2.open` and `lzma.open` take a damaged later stream, and whatever is behind it, for garbage
    that may be left out.
    """

    def __init__(
        self, path: Path, start: Callable[[], _Decompressor], *, padding_bytes: int | None = None
    ) -> None:
        """Open a file.

        Args:
            start: Makes what a stream is read by.
            padding_bytes: Zeros may stand behind a stream, in multiples of so many.
        """
        self._file = path.open("rb")
        self._start = start
        self._padding_bytes = padding_bytes
        self._stream = start()
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while True:
            if self._stream.eof and not self._next_stream():
                return b""
            data = b""
            if self._stream.needs_input:
                data = self._rest or self._file.read(_CHUNK_BYTES)
                self._rest = b""
                if not data:
                    raise EOFError("it ends too early")
            if plain := self._stream.decompress(data, size):
                return plain

    def _next_stream(self) -> bool:
        """Begin with the stream behind the one that ended, if there is any."""
        data = self._stream.unused_data or self._rest or self._file.read(_CHUNK_BYTES)
        if self._padding_bytes is not None:
            zeros = 0
            while data and not (found := data.lstrip(b"\0")):
                zeros += len(data)
                data = self._file.read(_CHUNK_BYTES)
            if data:
                zeros += len(data) - len(found)
                data = found
            if zeros % self._padding_bytes:
                raise EOFError(f"{zeros} bytes of zeros stand behind a part of it")
        self._rest = data
        if data:
            self._stream = self._start()
        return bool(data)

    def close(self) -> None:
        self._file.close()


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


def _bz2(path: Path) -> _Streams:
    return _Streams(path, bz2.BZ2Decompressor)


def _xz(path: Path) -> _Streams:
    return _Streams(
        path, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding_bytes=_XZ_PADDING_BYTES
    )


def _lzma(path: Path) -> _Streams:
    return _Streams(path, lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE))


def _arrow(codec: str) -> Callable[[Path], Any]:
    def opened(path: Path) -> Any:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.OSFile(str(path)), codec)

    return opened


# By the ending that tells of them.
OPENERS: dict[str, Callable[[Path], Any]] = {
    "gz": gzip.open,
    "gzip": gzip.open,
    "bz2": _bz2,
    "xz": _xz,
    "lzma": _lzma,
    "zst": _arrow("zstd"),
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
    "deflate": _Deflated,
}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What they raise for content that is not of the compression; bz2 and pyarrow raise an `OSError`
without a number."""

_SNAPPY = b"\xff\x06\x00\x00sNaPpY"


@dataclass(frozen=True)
class UnknownCompression:
    """A compression that can't be read.

    Attributes:
        name: As people call it.
        signatures: What its content begins with.
    """

    name: str
    signatures: tuple[bytes, ...]

    def is_that_of(self, path: Path) -> bool:
        """Whether a file has such content: endings such as `.z` or `.sz` may mean anything."""
        with path.open("rb") as file:
            return file.read(max(map(len, self.signatures))).startswith(self.signatures)


UNKNOWN = {
    "7z": UnknownCompression("7-Zip", (b"7z\xbc\xaf\x27\x1c",)),
    "lzo": UnknownCompression("LZO", (b"\x89LZO",)),
    # Hadoop's begins with a length, the high byte of which is zero.
    "snappy": UnknownCompression("Snappy", (_SNAPPY, b"\0")),
    "sz": UnknownCompression("Snappy", (_SNAPPY,)),
    "z": UnknownCompression("compress", (b"\x1f\x9d",)),
    "zip": UnknownCompression("ZIP", (b"PK\x03\x04", b"PK\x05\x06")),
}
"""What other endings may tell of, which can't be read. Without such content, files are plain."""
ENDINGS_OF_COMPRESSIONS = frozenset({*OPENERS, *UNKNOWN})
