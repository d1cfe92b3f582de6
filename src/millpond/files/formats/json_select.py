"""The SELECT that reads the records of JSON files as columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from millpond.delta.schema import literal, quote
from millpond.errors.file_formats import MalformedRecordError
from millpond.files.formats.base import FILE_INDEX, RESCUED
from millpond.files.formats.file_sql import uri_sql
from millpond.files.formats.json_found import ARRAY, DOUBLE, INTEGER, MIXED, NULL, OBJECT, Found
from millpond.files.formats.json_options import JsonOptions
from millpond.files.formats.json_records import Records
from millpond.files.formats.json_rewriting import CORRUPT_KEY, OWN_KEYS, REST_KEY, TEXT_KEY
from millpond.files.formats.json_values import (
    JsonValues,
    has_rest,
    members,
    pointer,
    rest,
    tagged,
    untagged,
)
from millpond.files.formats.rescue import CORRUPT_RECORD, RescuedPart, rescued_sql
from millpond.files.formats.text_values import TextValues
from millpond.files.formats.typed_values import Value
from millpond.files.options import ParseMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millpond.files.options import FileOptions


@dataclass(frozen=True)
class JsonSelect:
    """Reads records as columns.

    Attributes:
        text_key: Where all values are texts: the field of the text of a value that has others.
    """

    records: Records
    columns: StructType
    given: JsonOptions
    options: FileOptions
    connection: DuckDBPyConnection
    text_key: str | None = None

    def sql(self) -> str:
        """The SELECT that a `Selection` wants."""
        shown = [
            f"{self._column(field).sql} AS {quote(field.name)}" for field in self.columns.fields
        ]
        if len(self.records.sources) > 1:
            shown.append(quote(FILE_INDEX))
        shown.append(f"{self._rescued()} AS {quote(RESCUED)}")
        where = ""
        if not self._keeps and self._misfits and self.options.mode is not ParseMode.PERMISSIVE:
            where = f" WHERE NOT ({self._stop_or_drop()})"
        return f"SELECT {', '.join(shown)} FROM ({self._parsed()}){where}"

    @property
    def _keeps(self) -> bool:
        return self.options.rescued_column is not None

    @cached_property
    def _is_tagged(self) -> bool:
        """Whether some column would not get its numbers as they are written."""
        # It is not known what is under `REST_KEY`, which is rescued.
        needed = (self._keeps and self.records.has_rest) or _needs_digits(
            self.records.found, self.columns, keeps=self._keeps
        )
        return needed and self.records.has_awkward_numbers(self.connection)

    @cached_property
    def _values(self) -> JsonValues:
        values = JsonValues(
            is_tagged=self._is_tagged,
            has_extreme_numbers=self.records.has_extreme_numbers,
            keeps_rest=self._keeps,
            case_sensitive=self.given.case_sensitive,
            formats=self.given.formats,
        )
        if self.text_key is None:
            return values
        return TextValues(**vars(values), text_key=self.text_key)

    @cached_property
    def _keys(self) -> dict[str, list[str]]:
        found = self.records.found.fields
        return {
            field.name: self._values.keys_of(field.name, found)
            for field in self.columns.fields
            if not self._is_corrupt_column(field)
        }

    @cached_property
    def _direct(self) -> dict[str, Any]:
        """The columns that DuckDB reads without a check."""
        found = self.records.found.fields
        direct = {
            field.name: self._values.direct(found.get(field.name), field.dataType)
            for field in self.columns.fields
            if self._keys.get(field.name) == [field.name] and field.name
        }
        return {name: told for name, told in direct.items() if told is not None}

    @cached_property
    def _extracted(self) -> list[str]:
        """The keys whose values are looked at one by one."""
        return [
            key for name, keys in self._keys.items() if name not in self._direct for key in keys
        ]

    def _is_corrupt_column(self, field: StructField) -> bool:
        return field.name == self.given.corrupt_column and isinstance(field.dataType, StringType)

    def _parsed(self) -> str:
        text = tagged("json") if self._is_tagged else "json"
        parts = [quote(FILE_INDEX), f"{text} AS json"]
        records = f"SELECT {', '.join(parts)} FROM ({self.records.sql()})"
        parts = [quote(FILE_INDEX), "json"]
        if self._direct:
            told = json.dumps(self._direct)
            parts.append(f"json_transform(json, {literal(told)}) AS __direct")
        if self._extracted:
            parts.append(f"{members('json', self._extracted)} AS __values")
        return f"SELECT {', '.join(parts)} FROM ({records})"

    def _column(self, field: StructField) -> Value:
        if self._is_corrupt_column(field):
            unread = f"json_extract_string(json, {pointer(CORRUPT_KEY)})"
            if not self._misfits:
                return Value(unread)
            misfit = " OR ".join(self._misfits)
            # A broken record is no JSON, which DuckDB would make of a text beside one that is.
            return Value(f"coalesce({unread}, CASE WHEN {misfit} THEN {self._own_text()} END)")
        if field.name in self._direct:
            value = f"struct_extract(__direct, {literal(field.name)})"
            return Value(self._values.of_direct(value, field.dataType))
        found = self.records.found.fields.get(field.name)
        return self._values.value(self._source(field.name), found, field.dataType)

    def _source(self, name: str) -> str:
        places = [self._place(key) for key in self._keys[name]]
        return places[0] if len(places) == 1 else f"coalesce({', '.join(places)})"

    def _place(self, key: str) -> str:
        return f"__values[{self._extracted.index(key) + 1}]"

    def _raw(self, text: str) -> str:
        return untagged(text) if self._is_tagged else text

    def _own_text(self) -> str:
        """The text of a record: that which was kept of it, else how DuckDB has it."""
        kept = f"json_extract_string(json, {pointer(TEXT_KEY)})"
        return f"coalesce({kept}, CAST({self._raw('json')} AS VARCHAR))"

    @cached_property
    def _misfits(self) -> list[str]:
        """Conditions that a value does not fit."""
        values = [self._column(f) for f in self.columns.fields if not self._is_corrupt_column(f)]
        return [value.misfit for value in values if value.misfit is not None]

    def _rescued(self) -> str:
        if not self._keeps:
            return rescued_sql([])
        parts: list[RescuedPart] = []
        for field in self.columns.fields:
            if self._is_corrupt_column(field) or field.name in self._direct:
                continue
            source = self._source(field.name)
            misfit = self._column(field).misfit or "false"
            parts.append(RescuedPart(field.name, misfit, source))
            # Of keys that differ by case, all but the one that the column has.
            for index, key in enumerate(self._keys[field.name][1:], start=1):
                before = [self._place(other) for other in self._keys[field.name][:index]]
                place = self._place(key)
                when = f"{place} IS NOT NULL AND coalesce({', '.join(before)}) IS NOT NULL"
                parts.append(RescuedPart(key, when, place))
        objects = [rescued_sql(parts, members=self._unasked())]
        if self.records.has_rest:
            objects.insert(0, f"CAST(json_extract(json, {pointer(REST_KEY)}) AS VARCHAR)")
        if self.records.has_corrupt:
            text = f"CAST(json_extract(json, {pointer(CORRUPT_KEY)}) AS VARCHAR)"
            part = RescuedPart(CORRUPT_RECORD, f"{text} IS NOT NULL", text)
            objects.append(rescued_sql([part]))
        return self._raw(_merged(objects))

    def _unasked(self) -> list[str]:
        """Members of the rescued object for what no column was asked for."""
        known = [key for keys in self._keys.values() for key in keys]
        others = has_rest("json", known, self.records.found)
        if others is None:
            return []
        inside = _inside(rest("json", [*known, *sorted(OWN_KEYS)]))
        return [f"CASE WHEN {others} THEN {inside} END"]

    def _stop_or_drop(self) -> str:
        misfit = " OR ".join(self._misfits)
        if self.options.mode is ParseMode.DROP_MALFORMED:
            return misfit
        error = MalformedRecordError.from_values()
        uris = [source.file.uri for source in self.records.sources]
        where = uri_sql(uris, quote(FILE_INDEX))
        message = f"{where} || {literal(': ' + str(error) + ' ')} || {self._own_text()}"
        return f"CASE WHEN {misfit} THEN CAST(error({message}) AS BOOLEAN) ELSE false END"


def _merged(objects: Sequence[str]) -> str:
    """One object of those that are not NULL: of a key that several have, the value of the last.

    Where both values are objects, they are merged likewise.
    """
    if len(objects) == 1:
        return objects[0]
    listed = f"list_filter([{', '.join(objects)}], lambda __object: __object IS NOT NULL)"
    merge = "CAST(json_merge_patch(__first, __second) AS VARCHAR)"
    # There is nothing to reduce in an empty list.
    return f"list_reduce(nullif({listed}, []), lambda __first, __second: {merge})"


def _inside(text: str) -> str:
    """The members of an object as they are written; NULL for an empty one, or other values."""
    return f"CASE WHEN {text} LIKE '{{_%}}' THEN substr({text}, 2, length({text}) - 2) END"


def _needs_digits(found: Found, wanted: DataType | None, *, keeps: bool) -> bool:
    """Whether it shows how numbers are written: as texts or decimals, or where they are rescued."""
    if not _has_fractions(found):
        return False
    kinds = found.kinds - {NULL}
    if isinstance(wanted, DoubleType | FloatType) and kinds <= {INTEGER, DOUBLE}:
        return False
    if isinstance(wanted, StructType) and kinds == {OBJECT}:
        types = {field.name: field.dataType for field in wanted.fields}
        return any(
            _needs_digits(inner, types.get(key), keeps=keeps) for key, inner in found.fields.items()
        )
    if isinstance(wanted, ArrayType) and kinds == {ARRAY} and found.items is not None:
        return _needs_digits(found.items, wanted.elementType, keeps=keeps)
    return keeps or wanted is not None


def _has_fractions(found: Found) -> bool:
    if found.kinds & {DOUBLE, MIXED}:
        return True
    inner = [*found.fields.values(), *([found.items] if found.items else [])]
    return any(map(_has_fractions, inner))
