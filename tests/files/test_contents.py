"""The plain content of compressed files: all of it, or an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib

import pytest

from millpond.errors.file_formats import FileCompressionError, FileUnreadableError
from millpond.files.contents import plain_content
from millpond.files.listed_file import ListedFile
from millpond.files.options import FileOptions


@pytest.fixture
def content(tmp_path):
    """The content of a file with an ending."""
    folder = tmp_path / "scratch"
    folder.mkdir()

    def content(ending, data):
        path = tmp_path / f"a.{ending}"
        path.write_bytes(data)
        file = ListedFile(f"file:{path}", len(data), 0)
        found = plain_content(file, FileOptions("text", (str(tmp_path),)), folder=folder)
        return found.path.read_bytes()

    return content


LONG = os.urandom(1 << 20) + b"0" * (9 << 20) + os.urandom(1 << 20)


@pytest.mark.parametrize("parts", [[b"1\n", b"2\n", b"3\n"], [LONG, LONG], [b"", b"x"], [b""]])
def test_all_streams_of_a_deflated_file_are_read(content, parts):
    assert content("deflate", b"".join(map(zlib.compress, parts))) == b"".join(parts)


@pytest.mark.parametrize("data", [zlib.compress(LONG)[:-1], zlib.compress(b"1\n") + b"garbage"])
def test_a_deflated_file_that_is_torn_or_has_something_else_behind_can_not_be_read(content, data):
    with pytest.raises(FileUnreadableError, match="its compressed content is broken"):
        content("deflate", data)


def xz(data):
    return lzma.compress(data, preset=0)


def alone(data):
    return lzma.compress(data, lzma.FORMAT_ALONE, preset=0)


SHORT = os.urandom(5000)


def broken(data, at):
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("ending", "compress"), [("bz2", bz2.compress), ("xz", xz), ("gz", gzip.compress)]
)
@pytest.mark.parametrize("parts", [[b"1\n", b"2\n", b"3\n"], [LONG, b"x"], [b"", b"x"], [b""]])
def test_all_streams_of_a_compressed_file_are_read(content, ending, compress, parts):
    assert content(ending, b"".join(map(compress, parts))) == b"".join(parts)


@pytest.mark.parametrize("padding", [b"\0" * 4, b"\0" * (1 << 20), b"\0" * (3 << 20)])
def test_zeros_between_and_behind_streams_of_xz_are_padding(content, padding):
    data = xz(b"1\n") + padding + xz(b"2\n") + padding
    assert content("xz", data) == b"1\n2\n"


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        *[("xz", xz(b"1\n") + broken(xz(SHORT), at)) for at in (0, 60)],
        *[("bz2", bz2.compress(b"1\n") + broken(bz2.compress(SHORT), at)) for at in (0, 60)],
        ("xz", xz(b"1\n") + b"\0" * 3),
        ("xz", xz(b"1\n") + b"\0" * 5 + xz(b"2\n")),
        ("xz", b"\0" * 4 + xz(b"1\n")),
        ("xz", xz(b"1\n") + b"rubbish"),
        ("bz2", bz2.compress(b"1\n") + b"\0" * 4),
        ("bz2", bz2.compress(b"1\n") + b"rubbish"),
        ("lzma", alone(b"1\n") + b"rubbish"),
        *[("xz", xz(SHORT)[:-cut]) for cut in (1, 1000)],
        *[("bz2", bz2.compress(b"1\n") + bz2.compress(SHORT)[:-cut]) for cut in (1, 1000)],
    ],
)
def test_a_file_with_a_broken_stream_can_not_be_read(content, ending, data):
    with pytest.raises(FileUnreadableError, match="its compressed content is broken"):
        content(ending, data)


def test_a_file_of_the_older_format_of_xz_is_read(content):
    assert content("lzma", alone(LONG)) == LONG


@pytest.mark.parametrize(
    ("ending", "name", "data"),
    [
        ("snappy", "Snappy", b"\0\0\0\x05\0\0\0\x07\x05\x10hello"),
        ("snappy", "Snappy", b"\xff\x06\0\0sNaPpY\x01\x09\0\0"),
        ("sz", "Snappy", b"\xff\x06\0\0sNaPpY\x01\x09\0\0"),
        ("Z", "compress", b"\x1f\x9d\x90a\0"),
        ("lzo", "LZO", b"\x89LZO\0\r\n\x1a\n"),
        ("zip", "ZIP", b"PK\x03\x04\x14\0"),
        ("7z", "7-Zip", b"7z\xbc\xaf\x27\x1c\0\x04"),
    ],
)
def test_a_compression_that_can_not_be_read_is_named(content, ending, name, data):
    with pytest.raises(FileCompressionError, match=f"the compression {name}, which is not"):
        content(ending, data)


@pytest.mark.parametrize("ending", ["com.br", "snappy", "sz", "Z", "lzo", "zip", "7z"])
def test_plain_files_are_read_whatever_a_compression_their_ending_could_tell_of(content, ending):
    assert content(ending, b"1.2.3.4 - GET /\n") == b"1.2.3.4 - GET /\n"


@pytest.mark.parametrize(
    "ending", ["gz", "bz2", "xz", "lzma", "zst", "lz4", "deflate", "snappy", "Z", "csv"]
)
def test_a_file_of_no_bytes_has_no_content_whatever_its_ending(content, ending):
    assert content(ending, b"") == b""
