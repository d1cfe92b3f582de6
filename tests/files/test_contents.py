"""The plain content of compressed files: all of it, or an error."""

from __future__ import annotations

import os
import zlib

import pytest

from millpond.errors.file_formats import FileUnreadableError
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


@pytest.mark.parametrize(
    "data", [b"", zlib.compress(LONG)[:-1], zlib.compress(b"1\n") + b"garbage"]
)
def test_a_deflated_file_that_is_torn_or_has_something_else_behind_can_not_be_read(content, data):
    with pytest.raises(FileUnreadableError, match="its compressed content is broken"):
        content("deflate", data)
