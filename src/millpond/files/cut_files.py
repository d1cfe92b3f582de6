"""Tells a file that was emptied from one that was cut off before its first row."""

from __future__ import annotations

import codecs
import os
from xml.parsers import expat

from millpond.errors.file_formats import FileUnreadableError
from millpond.files.compressions import OPENERS
from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions, csv_options
from millpond.files.formats.csv_records import Record, records
from millpond.files.formats.csv_tokens import Tokenizer, UnfinishedError
from millpond.files.formats.xml_options import xml_options
from millpond.files.formats.xml_rows import RowReader, open_text
from millpond.files.known_options import TEXT_FORMATS
from millpond.files.options import FileOptions

_CHUNK_BYTES = 1 << 16
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LONGEST_MARK = max(map(len, _MARKS))


def check_not_cut(file: LocalFile, options: FileOptions) -> None:
    """Refuse a file that has no rows and may have been cut off before its first one.

    A file of no bytes, or of blank lines, is empty. So is a CSV file whose header ends its line,
    and an XML file that is whole. Files of other formats tell of such a cut when they are read, or
    have nothing before their first row.

    Raises:
        FileUnreadableError: It may be cut off.
        MillpondError: It can't be read.
    """
    reason = _cut_mark(file, options)
    match options.format if reason is None else None:
        case "csv":
            reason = cut_header(file, csv_options(options))
        case "xml":
            reason = _cut_document(file, options)
    if reason is not None:
        raise FileUnreadableError.from_file(file.uri, reason=f"it has no rows, and {reason}")


def _cut_mark(file: LocalFile, options: FileOptions) -> str | None:
    """Why a file that holds a mark of the order of bytes, or a part of one, may be cut off."""
    if options.format not in TEXT_FORMATS:
        return None
    with file.path.open("rb") as content:
        start = content.read(_LONGEST_MARK + 1)
    given = options.format_options
    # Of a file that is written anew in UTF-8, the mark is left out.
    is_left_out = (
        not start
        and bool(file.size_bytes)
        and bool(given.get("encoding") or given.get("charset"))
        and file.uri.rpartition(".")[2].lower() not in OPENERS
    )
    is_mark = bool(start) and any(mark.startswith(start) for mark in _MARKS)
    return "nothing but a byte order mark: it may be cut off" if is_left_out or is_mark else None


def cut_header(file: LocalFile, options: CsvOptions) -> str | None:
    """Why a CSV file without rows may be cut off; `None` if it has rows, or is empty."""
    rows = records(file, options)
    header = next(rows, None)
    if header is None:
        what = "no header" if options.header else "nothing but lines that are no rows"
        return None if _is_blank(file) else f"{what}: it may be cut off"
    has_rows = not options.header or next(rows, None) is not None
    if has_rows or _ends_line(file, header, options):
        return None
    # Which names it has says nothing: a cut may well leave all those that are known.
    return (
        "its header does not end with the end of a line: it may be cut off. In a file that is "
        "meant to be empty, end the line of the header, or leave out the header as well"
    )


def _ends_line(file: LocalFile, header: Record, options: CsvOptions) -> bool:
    if options.multi_line:
        try:
            Tokenizer(options).split_first(header.text, finished=False)
        except UnfinishedError:
            # Within quotes, the end of a line is that of no row.
            return False
    # Where values go on in the next line, a carriage return alone may be the half of an end.
    ends = ("\n",) if options.multi_line else ("\n", "\r")
    if options.line_separator:
        ends = (options.line_separator,)
    with file.path.open("rb") as content:
        content.seek(-min(_CHUNK_BYTES, file.path.stat().st_size), os.SEEK_END)
        # Behind the line of the header, a line may be blank.
        last = content.read().rstrip(b" \t")
    return any(last.endswith(end.encode()) for end in ends)


def _is_blank(file: LocalFile) -> bool:
    """Whether a file has no bytes, or blank lines, maybe behind a mark of the order of bytes."""
    with file.path.open("rb") as content:
        start = content.read(_CHUNK_BYTES)
        found = start.removeprefix(codecs.BOM_UTF8)
        if start and not found:
            return False
        while found:
            if not found.isspace():
                return False
            found = content.read(_CHUNK_BYTES)
    return True


def _cut_document(file: LocalFile, options: FileOptions) -> str | None:
    with open_text(file, options) as content:
        row_tag = xml_options(options.format_options).row_tag
        if next(iter(RowReader(content, row_tag, file.uri)), None) is not None:
            return None
    if _is_blank(file):
        return None
    parser = expat.ParserCreate("utf-8")
    has_begun = False
    try:
        with open_text(file, options) as content:
            while chunk := content.read(_CHUNK_BYTES):
                text = chunk if has_begun else chunk.lstrip()
                has_begun = has_begun or bool(text)
                parser.Parse(text.encode("utf-8", "replace"))
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        return f"it is no whole document ({error}): it may be cut off"
    return None
