"""Tells a file that was emptied from one that was cut off before its first row."""

from __future__ import annotations

from xml.parsers import expat

from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions, csv_options
from millpond.files.formats.csv_records import Record, records
from millpond.files.formats.csv_tokens import Tokenizer, UnfinishedError
from millpond.files.formats.xml_options import xml_options
from millpond.files.formats.xml_rows import RowReader, open_text
from millpond.files.options import FileOptions

_CHUNK_CHARACTERS = 1 << 16


def check_not_cut(file: LocalFile, options: FileOptions) -> None:
    """Refuse a file that has no rows and may have been cut off before its first one.

    A file of no bytes, or of blank lines, is empty. So is a CSV file whose header ends its line,
    and an XML file that is whole. Files of other formats tell of such a cut when they are read, or
    have nothing before their first row.

    Raises:
        FileUnreadableError: It may be cut off.
        MillpondError: It can't be read.
    """
    reason = None
    match options.format:
        case "csv":
            reason = _cut_header(file, csv_options(options))
        case "xml":
            reason = _cut_document(file, options)
    if reason is not None:
        raise FileUnreadableError.from_file(file.uri, reason=f"it has no rows, and {reason}")


def _cut_header(file: LocalFile, options: CsvOptions) -> str | None:
    if not options.header:
        return None
    rows = records(file, options)
    header = next(rows, None)
    if header is None:
        return None if _is_blank(file) else "no header: it may be cut off"
    if next(rows, None) is not None or _ends_line(file, header, options):
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
    ends = (options.line_separator,) if options.line_separator else ("\n", "\r")
    most_bytes = max(len(end.encode()) for end in ends)
    with file.path.open("rb") as content:
        content.seek(-min(most_bytes, file.path.stat().st_size), 2)
        last = content.read()
    return any(last.endswith(end.encode()) for end in ends)


def _is_blank(file: LocalFile) -> bool:
    with file.path.open(encoding="utf-8-sig", errors="replace") as text:
        while chunk := text.read(_CHUNK_CHARACTERS):
            if not chunk.isspace():
                return False
    return True


def _cut_document(file: LocalFile, options: FileOptions) -> str | None:
    with open_text(file, options) as content:
        row_tag = xml_options(options.format_options).row_tag
        if next(iter(RowReader(content, row_tag, file.uri)), None) is not None:
            return None
    parser = expat.ParserCreate("utf-8")
    has_text = False
    try:
        with open_text(file, options) as content:
            while chunk := content.read(_CHUNK_CHARACTERS):
                text = chunk if has_text else chunk.lstrip()
                has_text = has_text or bool(text)
                parser.Parse(text.encode("utf-8", "replace"))
            if has_text:
                parser.Parse(b"", True)
    except expat.ExpatError as error:
        return f"it is no whole document ({error}): it may be cut off"
    return None
