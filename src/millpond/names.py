"""Three-part names, `catalog.schema.table`, and how they are read, quoted and put into paths."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from millpond.errors import SourceLocation
from millpond.errors.names import InvalidNameError

DEFAULT_CATALOG = "spark_catalog"
DEFAULT_SCHEMA = "default"

MAX_PART_BYTES = 255
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PATH_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_")
# Quantifiers are possessive: text that is no name must fail in one pass, however long.
_PART = re.compile(r"\s*+(?:`((?:[^`]++|``)*+)`\s*+|([^`.]*+))(\.|\Z)")


@dataclass(frozen=True, order=True)
class TableName:
    """A full name of a dataset. Parts keep the case they were written in and compare without it.

    Use `key` to look a name up: Spark's identifiers are case-insensitive.
    """

    catalog: str
    schema: str
    table: str

    @property
    def parts(self) -> tuple[str, str, str]:
        return (self.catalog, self.schema, self.table)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(part.lower() for part in self.parts)

    def __str__(self) -> str:
        return ".".join(quote_identifier(part) for part in self.parts)


def split_name(text: str, *, where: SourceLocation | None = None) -> tuple[str, ...]:
    """Split a dotted name into its parts, taking backticks off.

    >>> split_name("main.`my schema`.t")
    ('main', 'my schema', 't')

    Raises:
        InvalidNameError: The text is not a dotted name, or a part of it can't be a name.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise InvalidNameError.from_text(text, reason="it can't be read", where=where)
        quoted, plain, end = match.groups()
        part = quoted.replace("``", "`") if quoted is not None else plain.rstrip()
        parts.append(check_part(part, whole=text, where=where))
        position = match.end()
        if end == "":
            return tuple(parts)


def check_part(part: str, *, whole: str | None = None, where: SourceLocation | None = None) -> str:
    """Return `part` if it can be one part of a name.

    Raises:
        InvalidNameError: It is empty, blank, too long for a folder, or holds control characters.
    """
    reason = None
    if not part.strip():
        reason = "a part of it is empty"
    elif any(unicodedata.category(char) in {"Cc", "Cs"} for char in part):
        reason = "it holds a control character"
    elif len(path_segment(part)) > MAX_PART_BYTES:
        reason = f"a part of it is longer than {MAX_PART_BYTES} bytes"
    if reason is not None:
        raise InvalidNameError.from_text(whole or part, reason=reason, where=where)
    return part


def resolve_name(
    text: str,
    *,
    catalog: str = DEFAULT_CATALOG,
    schema: str = DEFAULT_SCHEMA,
    where: SourceLocation | None = None,
) -> TableName:
    """Fill in the catalog and schema that `text` leaves out.

    >>> str(resolve_name("t", catalog="main", schema="sales"))
    'main.sales.t'

    Raises:
        InvalidNameError: The text has more than three parts, or `split_name` refuses it.
    """
    parts = split_name(text, where=where)
    match parts:
        case (table,):
            return TableName(catalog, schema, table)
        case (own_schema, table):
            return TableName(catalog, own_schema, table)
        case (own_catalog, own_schema, table):
            return TableName(own_catalog, own_schema, table)
    raise InvalidNameError.from_text(text, reason="it has more than three parts", where=where)


def quote_identifier(part: str) -> str:
    """Quote one part for Spark SQL, where it needs it.

    >>> quote_identifier("my table")
    '`my table`'
    """
    return part if _PLAIN.match(part) else "`" + part.replace("`", "``") + "`"


def path_segment(part: str) -> str:
    """The folder name for one part: in lower case, and every byte but `a-z`, `0-9` and `_` escaped.

    Names that differ only in case get the same folder; others never do. The escape is
    a hyphen and two hexadecimal digits: percent signs, spaces and tildes in paths are read wrongly,
    or not at all, by one or the other of delta-rs 1.6, Polars 2.1 and Sail 0.7.

    >>> path_segment("../Up and down")
    '-2e-2e-2fup-20and-20down'
    """
    return "".join(
        chr(byte) if byte in _PATH_BYTES else f"-{byte:02x}"
        for byte in part.lower().encode("utf-8")
    )
