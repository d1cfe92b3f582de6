"""Values of XML in JSON: all are texts, single ones stand for lists, and texts for elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from millpond.delta.schema import literal
from millpond.files.formats.json_found import NULL, STRING, Found
from millpond.files.formats.json_values import JsonValues
from millpond.files.formats.rescue import json_name
from millpond.files.formats.typed_values import Value


@dataclass(frozen=True)
class TextValues(JsonValues):
    """Reads values of JSON that are texts.

    Attributes:
        text_key: The field of an element's text.
    """

    text_key: str = "_VALUE"

    def direct(self, found: Found | None, wanted: DataType) -> Any:
        """Only texts are read without a check."""
        kinds = found.kinds if found is not None else set[str]()
        return "VARCHAR" if isinstance(wanted, StringType) and kinds <= {STRING, NULL} else None

    def value(self, text: str, found: Found | None, wanted: DataType, *, depth: int = 0) -> Value:
        """Read one value as the type that is wanted."""
        value = super().value(text, found, wanted, depth=depth)
        if isinstance(wanted, StringType | StructType | ArrayType | MapType):
            return value
        # An empty element is no value of other types, and nothing is lost by that.
        return Value(value.sql, f"({value.misfit} AND {text} <> '\"\"')")

    def _struct(self, text: str, found: Found | None, wanted: StructType, depth: int) -> Value:
        start = literal("{" + json_name(self.text_key) + ":")
        element = (
            f"CASE WHEN {text} = '\"\"' THEN '{{}}' "
            f"WHEN starts_with({text}, '\"') THEN {start} || {text} || '}}' ELSE {text} END"
        )
        return super()._struct(f"({element})", found, wanted, depth)

    def _array(self, text: str, found: Found | None, wanted: ArrayType, depth: int) -> Value:
        items = f"CASE WHEN starts_with({text}, '[') THEN {text} ELSE '[' || {text} || ']' END"
        inner = found.items if found is not None and found.items is not None else found
        single = Found(items=inner)
        return super()._array(f"({items})", single, wanted, depth)

    def _scalar(self, text: str, wanted: DataType) -> str:
        if isinstance(wanted, StringType):
            return super()._scalar(text, wanted)
        string = f"trim({self._string(text)})"
        return f"list_transform([{string}], lambda __text: {self._cast('__text', wanted)})[1]"
