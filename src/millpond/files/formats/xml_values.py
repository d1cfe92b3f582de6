"""A row of XML as a JSON object, whose values are all texts, and what types these texts have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from xml.parsers import expat

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.errors.file_formats import TooManyKeysError
from millpond.files.formats.json_found import MAX_FIELDS
from millpond.files.formats.json_lenient import MAX_DEPTH
from millpond.files.formats.xml_options import XmlOptions

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LONG = 1 << 63


@dataclass
class _Element:
    name: str
    members: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=lambda: [""])
    has_parts: bool = False

    def add(self, name: str, value: Any) -> None:
        """Take in a member; one that is there already becomes a list."""
        if name not in self.members:
            self.members[name] = value
        elif isinstance(self.members[name], list):
            self.members[name].append(value)
        else:
            self.members[name] = [self.members[name], value]


def row_values(text: str, options: XmlOptions) -> dict[str, Any]:
    """The values of a row by column: texts, `None`, objects, or lists of these.

    Raises:
        ValueError: It is not well-formed.
    """
    reader = _RowParser(options)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    try:
        parser.Parse(_SURROGATE.sub("\ufffd", text), True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from None
    return reader.row


class _RowParser:
    def __init__(self, options: XmlOptions) -> None:
        self._options = options
        self._open: list[_Element] = []
        self.row: dict[str, Any] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        element = _Element(self._local(name))
        if not self._options.without_attributes:
            for key, value in attributes.items():
                if key != "xmlns" and not key.startswith("xmlns:"):
                    element.has_parts = True
                    prefixed = self._options.attribute_prefix + self._local(key)
                    element.add(prefixed, self._text(value))
        self._open.append(element)

    def end(self, _name: str) -> None:
        element = self._open.pop()
        value = self._value(element, is_row=not self._open)
        if self._open:
            parent = self._open[-1]
            parent.has_parts = True
            parent.texts.append("")
            parent.add(element.name, value)
        else:
            self.row = value

    def data(self, text: str) -> None:
        self._open[-1].texts[-1] += text

    def _value(self, element: _Element, *, is_row: bool) -> Any:
        if not element.has_parts and not is_row:
            return self._text("".join(element.texts))
        for text in element.texts:
            if text.strip():
                element.add(self._options.value_tag, self._text(text))
        return element.members

    def _text(self, text: str) -> str | None:
        value = text.strip() if self._options.trims else text
        return None if value == self._options.null_value else value

    def _local(self, name: str) -> str:
        return name.rpartition(":")[2] if self._options.ignores_namespaces else name


@dataclass
class XmlFound:
    """The values at one place of many rows.

    Attributes:
        kinds: The types of texts.
        fields: What is within elements, if they are more than a text.
        is_repeated: Whether there are several in one row.
        has_more: Whether there are more fields than a table could have columns.
    """

    kinds: set[type[DataType]] = field(default_factory=set)
    fields: dict[str, XmlFound] = field(default_factory=dict)
    is_repeated: bool = False
    has_more: bool = False

    def add(self, value: Any) -> None:
        """Take in a value as `row_values` gives it."""
        if isinstance(value, list):
            self.is_repeated = True
            for item in value:
                self.add(item)
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name not in self.fields and len(self.fields) >= MAX_FIELDS:
                    self.has_more = True
                else:
                    self.fields.setdefault(name, XmlFound()).add(inner)
        elif value:
            self.kinds.add(_type_of_text(value))

    def schema(self, options: XmlOptions, *, types: bool, decimals: bool = False) -> StructType:
        """The columns of rows, in the order of their names as in Spark.

        Raises:
            TooManyKeysError: There are more than a table could have.
        """
        if self.has_more:
            raise TooManyKeysError.from_limit(MAX_FIELDS)
        names = {name.lower(): name for name in sorted(self.fields)}
        return StructType(
            [
                StructField(name, self.fields[name].type(options, types=types, decimals=decimals))
                for name in sorted(names.values())
            ]
        )

    def type(self, options: XmlOptions, *, types: bool, decimals: bool = False) -> DataType:
        """The type of the values; texts if types are not looked for."""
        if self.fields and not self.has_more:
            inner = XmlFound(fields=dict(self.fields))
            if self.kinds:
                text = inner.fields.setdefault(options.value_tag, XmlFound())
                text.kinds |= self.kinds
            found: DataType = inner.schema(options, types=types, decimals=decimals)
        else:
            is_text = not types or bool(self.fields)
            found = StringType() if is_text else _common_type(self.kinds, decimals=decimals)
        return ArrayType(found) if self.is_repeated else found


def _type_of_text(value: str) -> type[DataType]:
    text = value.strip()
    if _INTEGER.match(text):
        return LongType if -_LONG <= int(text) < _LONG else DoubleType
    if _DOUBLE.match(text):
        return DoubleType
    if text.lower() in {"true", "false"}:
        return BooleanType
    try:
        if _DATE.match(text):
            date.fromisoformat(text)
            return DateType
        if _TIMESTAMP.match(text):
            datetime.fromisoformat(text)
            return TimestampType
    except ValueError:
        pass
    return StringType


def _common_type(kinds: set[type[DataType]], *, decimals: bool) -> DataType:
    if len(kinds) == 1:
        (kind,) = kinds
        return DecimalType(38, 18) if kind is DoubleType and decimals else kind()
    if kinds == {LongType, DoubleType}:
        return DecimalType(38, 18) if decimals else DoubleType()
    if kinds == {DateType, TimestampType}:
        return TimestampType()
    return StringType()
