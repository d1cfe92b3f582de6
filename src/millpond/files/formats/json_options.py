"""The options of Spark's JSON reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millpond.errors.file_formats import InvalidFormatOptionError, UnsupportedFormatOptionError
from millpond.files.formats.casts import TextFormats, text_formats
from millpond.files.formats.rescue import CORRUPT_RECORD

_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class JsonOptions:
    """How JSON is read.

    Attributes:
        multi_line: Whether a file holds one value, or an array of records, over several lines.
        line_separator: What ends a line, or `None` for the usual ends of lines.
        corrupt_column: The column, if there is one, for the text of records that can't be read.
        case_sensitive: Whether a key of another case than its column's is no value of it.
        lenient: Which departures from JSON are allowed, by the lower-case names of the options.
        formats: How dates and timestamps are written.
    """

    multi_line: bool = False
    line_separator: str | None = None
    corrupt_column: str = CORRUPT_RECORD
    case_sensitive: bool = True
    primitives_as_string: bool = False
    prefers_decimal: bool = False
    drop_if_all_null: bool = False
    infer_timestamp: bool = False
    lenient: frozenset[str] = frozenset({"allowsinglequotes", "allownonnumericnumbers"})
    formats: TextFormats = field(default_factory=TextFormats)


_LENIENT = {
    "allowComments": False,
    "allowUnquotedFieldNames": False,
    "allowSingleQuotes": True,
    "allowNumericLeadingZeros": False,
    "allowBackslashEscapingAnyCharacter": False,
    "allowUnquotedControlChars": False,
    "allowNonNumericNumbers": True,
}


def json_options(given: Mapping[str, str]) -> JsonOptions:
    """Read the options; their keys are in lower case.

    Raises:
        InvalidFormatOptionError: A value is none of its option.
        UnsupportedFormatOptionError: One asks for what there is not.
    """
    if given.get("singlevariantcolumn"):
        raise UnsupportedFormatOptionError.from_value(
            "singleVariantColumn",
            given["singlevariantcolumn"],
            instead="there is no variant type; read the records as text and use get_json_object",
        )

    def boolean(name: str, *, default: bool = False) -> bool:
        return boolean_option(given, name, default=default)

    return JsonOptions(
        multi_line=boolean("multiLine"),
        line_separator=given.get("linesep") or None,
        corrupt_column=given.get("columnnameofcorruptrecord", CORRUPT_RECORD),
        case_sensitive=boolean("readerCaseSensitive", default=True),
        primitives_as_string=boolean("primitivesAsString"),
        prefers_decimal=boolean("prefersDecimal"),
        drop_if_all_null=boolean("dropFieldIfAllNull"),
        infer_timestamp=boolean("inferTimestamp"),
        lenient=frozenset(
            name.lower() for name, default in _LENIENT.items() if boolean(name, default=default)
        ),
        formats=text_formats(given),
    )


def boolean_option(given: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """An option that is true or false.

    Raises:
        InvalidFormatOptionError: It is neither.
    """
    value = given.get(name.lower())
    if value is None:
        return default
    try:
        return _BOOLEANS[value.strip().lower()]
    except KeyError:
        raise InvalidFormatOptionError.from_value(name, value, must_be="true or false") from None
