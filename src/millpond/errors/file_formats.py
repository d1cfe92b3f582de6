"""Errors of the content of files: what is not as its format says, and options of formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from millpond.errors.base import MillpondError

SHOWN_CHARACTERS = 100
SHOWN_NAMES = 20


class InvalidFormatOptionError(MillpondError, ValueError):
    """An option of a format of files has a value that it can't have."""

    error_class = "FILE_FORMAT_OPTION_INVALID"
    sqlstate = "42616"

    @classmethod
    def from_value(cls, option: str, value: str, *, must_be: str) -> Self:
        return cls(
            f"{value!r} is not a value for the option {option} of a read of files.",
            hint=f"it must be {must_be}",
        )


class UnsupportedFormatOptionError(MillpondError, NotImplementedError):
    """An option of a format has a value that Spark knows, but millpond does not."""

    error_class = "FILE_FORMAT_OPTION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_value(cls, option: str, value: str, *, instead: str) -> Self:
        return cls(
            f"The value {value!r} of the option {option} is not supported for a read of files.",
            hint=instead,
        )


class UnsupportedDatetimePatternError(MillpondError, ValueError):
    """A pattern of dates or timestamps has something that can't be read."""

    error_class = "FILE_DATETIME_PATTERN_UNSUPPORTED"
    sqlstate = "22007"

    @classmethod
    def from_pattern(cls, pattern: str, *, found: str) -> Self:
        return cls(
            f"The pattern {pattern!r} of dates or timestamps has {found}.",
            hint="patterns are those of Spark, such as yyyy-MM-dd or dd/MM/yyyy HH:mm:ss[.SSS]XXX; "
            "read the column as a string and convert it in the query where no pattern fits",
        )


class FileUnreadableError(MillpondError, ValueError):
    """The content of a file is not of the format that it is read as.

    Attributes:
        is_damage: Whether the content is to blame, and not what can be read of its kind.
    """

    error_class = "FILE_UNREADABLE"
    sqlstate = "22000"
    is_damage: bool = True

    @classmethod
    def from_file(cls, uri: str, *, reason: str) -> Self:
        return cls(
            f"{uri} can't be read: {reason.strip()}",
            hint="the file may be damaged, not written to its end, or of another format",
        )

    @classmethod
    def beyond_reach(cls, uri: str, *, reason: str, hint: str) -> Self:
        """Of a file that may be whole, and that can't be read all the same."""
        return cls._undamaged(f"{uri} can't be read: {reason.strip()}", hint=hint)

    @classmethod
    def too_long(cls, uri: str, *, what: str, limit_bytes: int) -> Self:
        return cls._undamaged(
            f"{uri} can't be read: a {what} in it is longer than {limit_bytes >> 20} MiB, "
            "and is held in memory as a whole.",
            hint=f"split the {what}; if it has none that long, check the option lineSep or rowTag, "
            "or whether the file is of another format",
        )

    @classmethod
    def _undamaged(cls, what: str, *, hint: str) -> Self:
        error = cls(what, hint=hint)
        error.is_damage = False
        return error


class FileCompressionError(MillpondError, NotImplementedError):
    """A file is compressed in a way that can't be read."""

    error_class = "FILE_COMPRESSION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_content(cls, uri: str, *, compression: str) -> Self:
        return cls(
            f"{uri} can't be read: its ending and its content tell of the compression "
            f"{compression}, which is not supported.",
            hint="unpack it, or compress it with gzip, bzip2, xz, zstd or lz4",
        )


class MalformedRecordError(MillpondError, ValueError):
    """A record can't be read, and the mode of the read is FAILFAST."""

    error_class = "MALFORMED_RECORD_IN_PARSING"
    sqlstate = "22023"

    @classmethod
    def in_file(cls, uri: str, *, record: int, text: str, reason: str) -> Self:
        return cls(
            f"Record {record} of {uri} can't be read: {reason}.",
            hint="mend the file; or set mode to PERMISSIVE to keep such records aside, or to "
            "DROPMALFORMED to leave them out",
            detail=text[:200],
        )

    @classmethod
    def from_values(cls) -> Self:
        return cls(
            "A record has a value that its column can't hold.",
            hint="ask for another type; or set mode to PERMISSIVE, or rescuedDataColumn to keep "
            "such values aside",
        )


class FileColumnTypeError(MillpondError, TypeError):
    """A file has values that the column asked for can't hold, and nothing keeps them."""

    error_class = "FILE_COLUMN_TYPE_MISMATCH"
    sqlstate = "42846"

    @classmethod
    def between_files(cls, uri: str, *, column: str, found: str, wanted: str) -> Self:
        return cls(
            f"The column {column} is {found} in {uri}, but {wanted} in files before it.",
            hint="give its type with schemaHints; values that do not fit are kept where there is a "
            "rescued data column",
        )

    @classmethod
    def from_folder(cls, folder: str, *, wanted: str) -> Self:
        return cls(
            f"The value of the folder {folder} is no {wanted}.",
            hint="ask for another type, or set rescuedDataColumn to keep such values aside",
        )

    @classmethod
    def from_reader_schema(cls, uri: str, *, reason: str) -> Self:
        return cls(
            f"{uri} does not fit the option avroSchema: {reason}.",
            hint="correct the option, or leave it out",
        )

    @classmethod
    def from_column(cls, *, column: str, found: str, wanted: str) -> Self:
        return cls(
            f"A value of the column {column}, which is {found} in the file, "
            f"does not fit into {wanted}.",
            hint="ask for another type, or set rescuedDataColumn to keep such values aside",
        )


class CsvQuoteError(MillpondError, ValueError):
    """A value of a CSV file has a quote in the wrong place, and the options don't allow it."""

    error_class = "CSV_QUOTE_UNESCAPED"
    sqlstate = "22000"

    @classmethod
    def from_text(cls, text: str) -> Self:
        shown = text if len(text) <= SHOWN_CHARACTERS else f"...{text[-SHOWN_CHARACTERS:]}"
        return cls(
            f"A quoted value has a quote inside that is not escaped: {shown!r}.",
            hint="mend the file, set the option escape, or leave out unescapedQuoteHandling",
        )


class RowTooLongError(MillpondError, ValueError):
    """A row of a file of text is longer than what is read of one row."""

    error_class = "FILE_ROW_TOO_LONG"
    sqlstate = "54000"

    @classmethod
    def from_line(cls, uri: str, line: int, *, limit_characters: int) -> Self:
        return cls(
            f"The row that begins in line {line} of {uri} has more than {limit_characters} "
            "characters.",
            hint="check the option lineSep, and that each quote that opens is closed",
        )


class TooManyColumnsError(MillpondError, ValueError):
    """A row of a CSV file has more values than the option `maxColumns` allows."""

    error_class = "CSV_TOO_MANY_COLUMNS"
    sqlstate = "54011"

    @classmethod
    def from_line(cls, uri: str, line: int, *, limit: int) -> Self:
        return cls(
            f"The row in line {line} of {uri} has more than {limit} values.",
            hint="check the option sep, or set the option maxColumns to more",
        )


class ValueTooLongError(MillpondError, ValueError):
    """A value of a CSV file is longer than the option `maxCharsPerColumn` allows."""

    error_class = "CSV_VALUE_TOO_LONG"
    sqlstate = "54000"

    @classmethod
    def from_line(cls, uri: str, line: int, *, limit_characters: int) -> Self:
        return cls(
            f"The row in line {line} of {uri} has a value of more than {limit_characters} "
            "characters.",
            hint="set the option maxCharsPerColumn to more, or leave it out",
        )


class MalformedRowError(MillpondError, ValueError):
    """A row does not fit the columns, and the option `mode` is `FAILFAST`."""

    error_class = "FILE_ROW_MALFORMED"
    sqlstate = "22023"

    @classmethod
    def from_line(cls, uri: str, line: int, *, reason: str) -> Self:
        return cls(
            f"The row in line {line} of {uri} does not fit the columns: {reason}.",
            hint="mend the file, or set the option mode to PERMISSIVE",
        )


class HeaderMismatchError(MillpondError, ValueError):
    """The header of a CSV file names other columns than the schema, which must name the same."""

    error_class = "CSV_HEADER_MISMATCH"
    sqlstate = "42703"

    @classmethod
    def from_names(cls, uri: str, *, found: Sequence[str], expected: Sequence[str]) -> Self:
        return cls(
            f"The header of {uri} must name the columns of the schema in their order; it names "
            f"{_listed(found)}, and the schema {_listed(expected)}.",
            hint="mend the file or the schema, or leave out the option enforceSchema; read_files "
            "and cloudFiles match columns by name, in any order",
        )


class UnsupportedColumnTypeError(MillpondError, NotImplementedError):
    """A column of a read of files has a type that the format does not have."""

    error_class = "FILE_COLUMN_TYPE_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_column(cls, column: str, kind: str, *, file_format: str) -> Self:
        return cls(
            f"Files of the format {file_format} have no values of type {kind}, "
            f"which column {column} has.",
            hint="read the column as a string and convert it in the query, with from_json say",
        )

    @classmethod
    def from_text_column(cls, column: str, kind: str) -> Self:
        return cls(
            f"Files of text have one column, of type string; there is no column {column} "
            f"of type {kind}.",
            hint="leave out the schema, and take the lines apart in the query",
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


class TooManyKeysError(MillpondError, ValueError):
    """Records have more different keys than a table could have columns."""

    error_class = "FILE_TOO_MANY_KEYS"
    sqlstate = "54011"

    @classmethod
    def from_limit(cls, limit: int) -> Self:
        return cls(
            f"The records of files have more than {limit} different keys; "
            "so many columns are not inferred.",
            hint="give the schema; keys that are values themselves can be read as a column of the "
            "type map",
        )


class MissingRowTagError(MillpondError, ValueError):
    """A read of XML does not say which elements are rows."""

    error_class = "XML_ROW_TAG_MISSING"
    sqlstate = "42KDF"

    @classmethod
    def in_read(cls) -> Self:
        return cls(
            "A read of XML files must say which elements are rows.",
            hint="set the option rowTag to their name, such as book for <book>...</book>",
        )


class FileReaderMissingError(MillpondError, ImportError):
    """A format of files needs a package that is not installed."""

    error_class = "FILE_READER_MISSING"
    sqlstate = "58000"

    @classmethod
    def from_extra(cls, format: str, *, package: str) -> Self:  # noqa: A002 - its word for it
        return cls(
            f"Reading {format} files needs the package {package}, which is not installed.",
            hint=f"pip install 'millpond[{format}]'",
        )
