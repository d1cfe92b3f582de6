"""The columns that `key=value` folders give: their names, values and types, as in Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millpond.errors.files import PartitionColumnTwiceError
from millpond.files.columns import is_kept_aside
from millpond.files.globs import alternatives, compiled, fixed_prefix, is_glob
from millpond.files.listed_file import ListedFile
from millpond.files.locations import Location, locate, parse_uri
from millpond.files.options import Dialect, FileOptions

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\Z|NaN\Z|-?Infinity\Z", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?\Z", re.ASCII)
_DECIMAL_DIGITS = 38


class Folders:
    """What the folders of files say of them, below what was listed."""

    def __init__(self, options: FileOptions, *, root: Path) -> None:
        """Set up.

        Args:
            root: What relative paths start from.
        """
        self._options = options
        self._bases = [locate(path, root=root) for path in options.paths]
        if options.discovery.base_path is not None:
            self._bases = [locate(options.discovery.base_path, root=root)]
        chosen = options.partition_columns
        self._chosen = None if chosen is None else frozenset(map(str.lower, chosen))
        self._known: dict[str, Mapping[str, str | None]] = {}

    def values(self, uri: str) -> Mapping[str, str | None]:
        """The values by name, in the order of the folders, of those that are wanted.

        Raises:
            PartitionColumnTwiceError: The path has two folders of one name.
        """
        # Files of one folder say the same.
        folder = uri.rpartition("/")[0]
        if folder not in self._known:
            self._known[folder] = self._values(uri)
        return self._known[folder]

    def _values(self, uri: str) -> dict[str, str | None]:
        all_values = partition_values(uri)
        found: dict[str, str | None] = {}
        for name in filter(self._is_wanted, _names_below(uri, self._bases, self._options)):
            if name.lower() in map(str.lower, found):
                raise PartitionColumnTwiceError.from_uri(uri, column=name)
            found[name] = all_values[name]
        return found

    def _is_wanted(self, name: str) -> bool:
        if self._chosen is not None:
            return name.lower() in self._chosen
        return not is_kept_aside(name, self._options.dialect)


def partition_values(uri: str) -> dict[str, str | None]:
    """What the folders of a path say, all the way up; of two with one name, the deeper one.

    >>> partition_values("file:/data/day=2026-01-31/city=New%2520York/a.csv")
    {'day': '2026-01-31', 'city': 'New York'}
    """
    found: dict[str, str | None] = {}
    for part in parse_uri(uri).path.split("/")[:-1]:
        name, separator, text = part.partition("=")
        if name and separator:
            # Hive, and Spark after it, quote in the name of the folder what it may not hold.
            found[unquote(name)] = None if text in {_NULL, ""} else unquote(text)
    return found


def partition_columns(
    files: Iterable[ListedFile], options: FileOptions, *, root: Path
) -> StructType:
    """The columns of folders below what was listed, in the order of the folders.

    A path that has two folders of one name says nothing: its file can't be read.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    if options.partition_columns == ():
        return StructType([])
    given = _given_types(options)
    infers = options.dialect is Dialect.SPARK or options.infer_types
    fields = []
    for name, values in _values_below(files, options, root=root).items():
        data_type = given.get(name.lower()) or (_type_of(values) if infers else StringType())
        fields.append(StructField(name, data_type))
    return StructType(fields)


def _values_below(
    files: Iterable[ListedFile], options: FileOptions, *, root: Path
) -> dict[str, set[str | None]]:
    folders = Folders(options, root=root)
    found: dict[str, set[str | None]] = {name: set() for name in options.partition_columns or ()}
    spelt = {name.lower(): name for name in found}
    for file in {file.uri.rpartition("/")[0]: file for file in files}.values():
        with suppress(PartitionColumnTwiceError):
            for name, value in folders.values(file.uri).items():
                # Names that differ in case alone are one column.
                found.setdefault(spelt.setdefault(name.lower(), name), set()).add(value)
    return found


def _names_below(uri: str, bases: Iterable[Location], options: FileOptions) -> list[str]:
    file = parse_uri(uri)
    depths = (_depth(file, base, options) for base in bases)
    depth = next((found for found in depths if found is not None), None)
    if depth is None:
        return []
    parts = (part.partition("=") for part in file.path.split("/")[1 + depth : -1])
    return [unquote(name) for name, separator, _ in parts if name and separator]


def _depth(file: Location, base: Location, options: FileOptions) -> int | None:
    """How many folders of a file's path belong to what was named, or `None` if it is not in it."""
    if file.store != base.store:
        return None
    literal = _depth_of(file, base.path)
    if literal is not None or not is_glob(base.path):
        return literal
    if options.dialect is not Dialect.SPARK:
        return _depth_of(file, fixed_prefix(base.path))
    # In Spark, what a pattern matches is what was named.
    parts = file.path.split("/")[1:]
    for pattern in alternatives(base.path):
        named = [part for part in pattern.split("/") if part]
        fits = len(named) <= len(parts) and all(
            compiled(one).match(part) for one, part in zip(named, parts, strict=False)
        )
        if fits:
            return len(named)
    return None


def _depth_of(file: Location, base: str) -> int | None:
    path = base.rstrip("/")
    inside = file.path == path or file.path.startswith(f"{path}/")
    return path.count("/") if inside else None


def _given_types(options: FileOptions) -> Mapping[str, DataType]:
    fields: list[Any] = []
    for given in (options.schema_hints, options.schema):
        fields.extend(given.fields if given is not None else [])
    return {field.name.lower(): field.dataType for field in fields}


def _type_of(values: Iterable[str | None]) -> DataType:
    """The narrowest type that Spark would find for all of some texts."""
    from pyspark.sql.types import (
        DateType,
        DecimalType,
        DoubleType,
        IntegerType,
        LongType,
        StringType,
        TimestampType,
    )

    kinds = {_kind(value) for value in values if value is not None}
    for members, data_type in (
        ({"int"}, IntegerType()),
        ({"int", "long"}, LongType()),
        ({"int", "long", "double"}, DoubleType()),
        ({"date"}, DateType()),
        ({"date", "timestamp"}, TimestampType()),
    ):
        if kinds and kinds <= members:
            return data_type
    if kinds and kinds <= {"int", "long", "decimal"}:
        digits = max(len(value.lstrip("+-0")) for value in values if value is not None)
        return DecimalType(max(digits, 19), 0)
    return StringType()


def _kind(text: str) -> str:
    if _INTEGER.match(text):
        return _kind_of_integer(text)
    if _NUMBER.match(text):
        return "double"
    for pattern, parse, kind in (
        (_DATE, date.fromisoformat, "date"),
        (_TIMESTAMP, datetime.fromisoformat, "timestamp"),
    ):
        if pattern.match(text):
            try:
                parse(text)
            except ValueError:
                break
            return kind
    return "string"


def _kind_of_integer(text: str) -> str:
    digits = len(text.lstrip("+-0"))
    if digits > _DECIMAL_DIGITS:
        return "double"
    number = int(text)
    if -(2**31) <= number < 2**31:
        return "int"
    return "long" if -(2**63) <= number < 2**63 else "decimal"
