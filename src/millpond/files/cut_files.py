"""Tells a file that was emptied from one that was cut off before its first row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions, csv_options
from millpond.files.formats.csv_records import Record, records
from millpond.files.formats.csv_survey import unique_names
from millpond.files.options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_CHUNK_BYTES = 1 << 16
# Comments, declarations and the document type: what may stand before the root and behind it.
_BESIDE_ROOT = re.compile(r"<!--.*?-->|<\?.*?\?>|<![A-Z][^>]*>", re.DOTALL)
_ROOT = re.compile(r"\s*<([^\s<>/!?]+)")


def check_not_cut(file: LocalFile, options: FileOptions, columns: StructType) -> None:
    """Refuse a file that has no rows and may have been cut off before its first one.

    A file of no bytes, or of blank lines, is empty. So is a CSV file whose header ends its line, or
    names all columns, and an XML file whose root is closed. Files of other formats tell of such a
    cut when they are read, or have nothing before their first row.

    Args:
        columns: Those that are looked for inside.

    Raises:
        FileUnreadableError: It may be cut off.
        MillpondError: It can't be read.
    """
    reason = None
    match options.format:
        case "csv":
            reason = _cut_header(file, csv_options(options), columns)
        case "xml":
            reason = _open_root(file, options)
    if reason is not None:
        raise FileUnreadableError.from_file(file.uri, reason=reason)


def _cut_header(file: LocalFile, options: CsvOptions, columns: StructType) -> str | None:
    if not options.header:
        return None
    rows = records(file, options)
    header = next(rows, None)
    if header is None:
        return None if _is_blank(file) else "it has no header and no rows: it may be cut off"
    if next(rows, None) is not None or _ends_line(file, header, options):
        return None
    lacking = _lacking(header, columns.names, options)
    if not lacking:
        return None
    return (
        f"it has no rows, and its header ends without {lacking[0]!r} and without the end of a "
        "line: it may be cut off. One that is meant to be empty ends the line of its header, or "
        "has no bytes"
    )


def _lacking(header: Record, names: Sequence[str], options: CsvOptions) -> list[str]:
    fold = str if options.case_sensitive else str.lower
    found = set(map(fold, unique_names(header.values, options)))
    return [
        name
        for name in names
        if fold(name) not in found and name.lower() != options.corrupt_record.lower()
    ]


def _ends_line(file: LocalFile, header: Record, options: CsvOptions) -> bool:
    # Within quotes, the end of a line may be that of no row.
    if options.multi_line and options.quote and options.quote in header.text:
        return False
    ends = (options.line_separator,) if options.line_separator else ("\n", "\r")
    most = max(len(end.encode()) for end in ends)
    with file.path.open("rb") as content:
        content.seek(-min(most, file.path.stat().st_size), 2)
        last = content.read()
    return any(last.endswith(end.encode()) for end in ends)


def _is_blank(file: LocalFile) -> bool:
    with file.path.open(encoding="utf-8-sig", errors="replace") as text:
        while chunk := text.read(_CHUNK_BYTES):
            if not chunk.isspace():
                return False
    return True


def _open_root(file: LocalFile, options: FileOptions) -> str | None:
    from millpond.files.formats.xml_options import xml_options
    from millpond.files.formats.xml_rows import RowReader, open_text

    with open_text(file, options) as content:
        row_tag = xml_options(options.format_options).row_tag
        if next(iter(RowReader(content, row_tag, file.uri)), None) is not None:
            return None
    with open_text(file, options) as content:
        head = tail = content.read(_CHUNK_BYTES)
        while chunk := content.read(_CHUNK_BYTES):
            tail = tail[-_CHUNK_BYTES:] + chunk
    head = _BESIDE_ROOT.sub("", head).lstrip("\ufeff")
    tail = _BESIDE_ROOT.sub("", tail).rstrip()
    if not head.strip():
        return None
    root = _ROOT.match(head)
    if root is not None:
        name = re.escape(root.group(1))
        if re.search(rf"(?:</{name}\s*|<{name}(?:\s[^<>]*)?/)>\Z", tail):
            return None
    return "it has no rows, and its root is not closed: it may be cut off"
