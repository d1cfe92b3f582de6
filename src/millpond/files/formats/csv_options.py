"""The options of a read of CSV files, as Spark's reader knows them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from millpond.errors.file_formats import InvalidFormatOptionError, UnsupportedFormatOptionError
from millpond.files.formats.casts import TextFormats, text_formats
from millpond.files.options import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.files.options import FileOptions

DEFAULT_MAX_COLUMNS = 20480
_ESCAPED = {r"\t": "\t", r"\b": "\b", r"\r": "\r", r"\n": "\n", r"\f": "\f", r"\0": "\0"}


class UnescapedQuotes(Enum):
    """What becomes of a quoted value that has a quote inside which is not escaped."""

    STOP_AT_DELIMITER = "STOP_AT_DELIMITER"
    STOP_AT_CLOSING_QUOTE = "STOP_AT_CLOSING_QUOTE"
    SKIP_VALUE = "SKIP_VALUE"
    RAISE_ERROR = "RAISE_ERROR"


@dataclass(frozen=True)
class CsvOptions:
    """How the rows of CSV files are written and read.

    Attributes:
        header: Whether the first row names the columns.
        separator: What stands between values: one character or more.
        quote: What stands around values, or empty for nothing.
        escape: What stands before a quote within quotes, or empty for nothing.
        escape_escape: What stands before such an escape that is none.
        comment: What a line begins with that is none of the rows, or empty for nothing.
        line_separator: What ends rows, or `None` for line feeds and carriage returns.
        multi_line: Whether quoted values may go on in the next line.
        by_position: Whether columns are found by their place although the files name them.
        checks_header: Whether the files must name the columns as the schema does.
        case_sensitive: Whether names that differ in case are those of other columns.
        prefers_date: Whether inference knows dates, or timestamps only.
        null_value: The text of a NULL, beside nothing at all.
        empty_value: What an empty value in quotes means.
        max_characters: Characters of a value at most, or `None`.
        skip_rows: Lines at the beginning that are not looked at.
        corrupt_record: The column that gets the text of a malformed row, if there is one.
    """

    header: bool
    separator: str
    quote: str
    escape: str
    escape_escape: str
    comment: str
    line_separator: str | None
    multi_line: bool
    trims_left: bool
    trims_right: bool
    unescaped_quotes: UnescapedQuotes
    by_position: bool
    checks_header: bool
    case_sensitive: bool
    prefers_date: bool
    null_value: str
    empty_value: str
    max_columns: int
    max_characters: int | None
    skip_rows: int
    corrupt_record: str
    formats: TextFormats


def csv_options(options: FileOptions) -> CsvOptions:
    """The options of CSV files that a read asks for.

    Raises:
        InvalidFormatOptionError: A value is none of its option.
        UnsupportedFormatOptionError: A value is not offered.
        UnsupportedDatetimePatternError: A pattern can't be read by.
    """
    given = options.format_options
    header = _flag(given, "header", default=False)
    quote = _character(given, "quote", default='"')
    escape = _character(given, "escape", default="\\")
    enforced = _flag(given, "enforceSchema", default=True)
    ordered = options.dialect is Dialect.SPARK and options.schema is not None
    most = _number(given, "maxCharsPerColumn", default=-1)
    return CsvOptions(
        header=header,
        separator=_separator(given),
        quote=quote,
        escape=escape,
        escape_escape=_escape_escape(given, quote, escape),
        comment=_character(given, "comment", default=""),
        line_separator=_line_separator(given),
        multi_line=_flag(given, "multiLine", default=False),
        trims_left=_flag(given, "ignoreLeadingWhiteSpace", default=False),
        trims_right=_flag(given, "ignoreTrailingWhiteSpace", default=False),
        unescaped_quotes=_unescaped_quotes(given),
        by_position=not header or (ordered and enforced),
        checks_header=header and ordered and not enforced,
        case_sensitive=_flag(given, "readerCaseSensitive", default=False),
        prefers_date=_flag(given, "preferDate", default=True),
        null_value=given.get("nullvalue", ""),
        empty_value=given.get("emptyvalue", ""),
        max_columns=_number(given, "maxColumns", default=DEFAULT_MAX_COLUMNS, least=1),
        max_characters=most if most >= 0 else None,
        skip_rows=_number(given, "skipRows", default=0, least=0),
        corrupt_record=given.get("columnnameofcorruptrecord", "_corrupt_record"),
        formats=text_formats(given),
    )


def _flag(given: Mapping[str, str], option: str, *, default: bool) -> bool:
    value = given.get(option.lower())
    if value is None:
        return default
    known = {"true": True, "false": False}.get(value.strip().lower())
    if known is None:
        raise InvalidFormatOptionError.from_value(option, value, must_be="true or false")
    return known


def _number(
    given: Mapping[str, str], option: str, *, default: int, least: int | None = None
) -> int:
    value = given.get(option.lower())
    if value is None:
        return default
    must_be = "a whole number" if least is None else f"a whole number of at least {least}"
    try:
        number = int(value)
    except ValueError:
        raise InvalidFormatOptionError.from_value(option, value, must_be=must_be) from None
    if least is not None and number < least:
        raise InvalidFormatOptionError.from_value(option, value, must_be=must_be)
    return number


def _character(given: Mapping[str, str], option: str, *, default: str) -> str:
    """One character; nothing and the character of code 0 mean that there is none."""
    value = given.get(option.lower())
    if value is None:
        return default
    value = _ESCAPED.get(value, value)
    if len(value) > 1:
        raise InvalidFormatOptionError.from_value(option, value, must_be="one character or none")
    return "" if value == "\0" else value


def _separator(given: Mapping[str, str]) -> str:
    option = "sep" if "sep" in given else "delimiter"
    value = given.get(option, ",")
    separator = value
    for written, meant in _ESCAPED.items():
        separator = separator.replace(written, meant)
    separator = separator.replace("\\\\", "\\")
    if not separator or "\n" in separator or "\r" in separator:
        must_be = "one character or more, and no end of a line"
        raise InvalidFormatOptionError.from_value(option, value, must_be=must_be)
    return separator


def _line_separator(given: Mapping[str, str]) -> str | None:
    value = given.get("linesep")
    if value is None:
        return None
    separator = _ESCAPED.get(value, value).replace(r"\r", "\r").replace(r"\n", "\n")
    if not separator:
        raise InvalidFormatOptionError.from_value("lineSep", value, must_be="not empty")
    return separator


def _escape_escape(given: Mapping[str, str], quote: str, escape: str) -> str:
    """Spark escapes escapes by themselves, if they are no quotes."""
    default = "" if escape == quote else escape
    return _character(given, "charToEscapeQuoteEscaping", default=default)


def _unescaped_quotes(given: Mapping[str, str]) -> UnescapedQuotes:
    option = "unescapedQuoteHandling"
    value = given.get(option.lower(), UnescapedQuotes.STOP_AT_DELIMITER.value)
    if value.upper() == "BACK_TO_DELIMITER":
        raise UnsupportedFormatOptionError.from_value(
            option, value, instead="leave it out, or use STOP_AT_CLOSING_QUOTE"
        )
    try:
        return UnescapedQuotes(value.upper())
    except ValueError:
        must_be = "one of " + ", ".join(kind.value for kind in UnescapedQuotes)
        raise InvalidFormatOptionError.from_value(option, value, must_be=must_be) from None
