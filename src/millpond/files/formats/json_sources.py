"""The files that JSON records are in, and the SQL that reads these; by DuckDB's own reader."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from millpond.delta.schema import literal, quote
from millpond.files.formats.base import FILE_INDEX, LocalFile
from millpond.files.formats.file_sql import file_index_sql, paths_sql
from millpond.files.formats.json_options import JsonOptions
from millpond.files.formats.json_rewriting import MAX_RECORD_BYTES

LINES = "newline_delimited"
_ARRAY = "array"
_VALUES = "unstructured"
_CLOSING = {b"[": b"]", b"{": b"}"}
_BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Source:
    """A file, and how DuckDB reads its records.

    Attributes:
        is_torn: Whether the end of its last value is missing, or something else is there. DuckDB
            does not tell it from a whole one where an array ends behind a comma.
    """

    file: LocalFile
    layout: str = LINES
    is_torn: bool = False


def source_of(file: LocalFile, options: JsonOptions) -> Source:
    """A file with the way its records are laid out in it."""
    if not options.multi_line:
        return Source(file)
    with file.path.open("rb") as content:
        first = content.read(_BLOCK_BYTES).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        last = _last_byte(content)
    return Source(
        file,
        _ARRAY if first == b"[" else _VALUES,
        is_torn=first in _CLOSING and last != _CLOSING[first],
    )


def _last_byte(content: IO[bytes]) -> bytes:
    """The last byte of a file that is no blank; nothing where there is none."""
    end = content.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK_BYTES)
        content.seek(start)
        if found := content.read(end - start).rstrip():
            return found[-1:]
        end = start
    return b""


def records_sql(sources: Sequence[Source]) -> str:
    """A SELECT of the records as `json`, NULL for one that DuckDB can't read; and `FILE_INDEX`."""
    return " UNION ALL ".join(
        f"SELECT {file_index_sql(indexes)} AS {quote(FILE_INDEX)}, json "
        f"FROM {_reader([sources[index] for index in indexes], layout)}"
        for layout, indexes in _by_layout(sources)
    )


def strict_sqls(sources: Sequence[Source], columns: Mapping[str, str]) -> Iterator[str]:
    """SELECTs of the records as columns of some types, which fail where one does not fit.

    Records may have other keys, and lack some; but no key of a STRUCT may be there twice.
    """
    types = ", ".join(f"{literal(name)}: {literal(told)}" for name, told in columns.items())
    for layout, indexes in _by_layout(sources):
        paths = paths_sql(sources[index].file.path for index in indexes)
        yield (
            f"SELECT * FROM read_json({paths}, columns = {{{types}}}, records = 'true', "
            f"hive_partitioning = false, {_read_as(layout)})"
        )


def _by_layout(sources: Sequence[Source]) -> Iterator[tuple[str, list[int]]]:
    layouts: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        layouts.setdefault(source.layout, []).append(index)
    yield from layouts.items()


def _reader(sources: Sequence[Source], layout: str) -> str:
    paths = paths_sql(source.file.path for source in sources)
    # Only lines can be told from one another where one is broken.
    skips = ", ignore_errors = true" if layout == LINES else ""
    return f"read_json_objects({paths}, {_read_as(layout)}{skips})"


def _read_as(layout: str) -> str:
    return (
        f"format = {literal(layout)}, compression = 'none', "
        f"maximum_object_size = {MAX_RECORD_BYTES}"
    )
