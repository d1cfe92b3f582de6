"""Values of JSON as the types that were asked for, in DuckDB's SQL.

A value comes as its text in JSON, or as NULL where there is none. The rules are those of Spark's
reader: a number is none of a text, `1.0` is no whole number, and a text may hold any value.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta.schema import duckdb_type, literal, quote
from millpond.files.formats.casts import TextFormats, cast_sql
from millpond.files.formats.json_found import (
    ARRAY,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    MIXED,
    NULL,
    OBJECT,
    STRING,
    Found,
)
from millpond.files.formats.typed_values import Value, any_of

# Numbers are turned into texts that begin so where DuckDB would not keep how they are written.
# It is no character: Unicode keeps it for the use within programs.
TAG = "\ufdd0"
_QUOTED_TAG = literal(f'"{TAG}')
_NUMBER_OR_TEXT = r'("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)'
_NOT_FINITE = {
    "nan": ("NaN",),
    "inf": ("Infinity", "+Infinity", "INF", "+INF"),
    "-inf": ("-Infinity", "-INF"),
}
# Of more keys than these no list is written into a query.
_LISTED_KEYS = 500
_DIRECT: tuple[tuple[type[DataType], frozenset[str]], ...] = (
    # The kinds of values that DuckDB reads as Spark does.
    (BooleanType, frozenset({BOOLEAN})),
    (LongType, frozenset({INTEGER})),
    (DoubleType, frozenset({INTEGER, DOUBLE})),
    (StringType, frozenset({BOOLEAN, INTEGER, DOUBLE, STRING, OBJECT, ARRAY, MIXED})),
)


def tagged(text: str) -> str:
    """A JSON text with its numbers as texts that keep how they are written."""
    marked = (
        f"regexp_replace({text}, {literal(_NUMBER_OR_TEXT)}, "
        r"'\1' || chr(1) || '\2' || chr(2), 'g')"
    )
    return (
        f"replace(replace(replace({marked}, chr(1) || chr(2), ''), chr(1), {_QUOTED_TAG}), "
        "chr(2), '\"')"
    )


def untagged(text: str) -> str:
    """A JSON text from one with tagged numbers."""
    return rf"""regexp_replace({text}, '"{TAG}([^"]*)"', '\1', 'g')"""


def pointer(*keys: str) -> str:
    """The JSON pointer to a key of an object, or of one within it, as an SQL literal."""
    return literal("".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys))


def members(text: str, keys: Sequence[str]) -> str:
    """The values of an object's keys: a list of JSON texts, NULL where there is none."""
    pointers = ", ".join(map(pointer, keys))
    return (
        f"list_transform(json_extract({text}, [{pointers}]), "
        "lambda __member: nullif(CAST(__member AS VARCHAR), 'null'))"
    )


def rest(text: str, keys: Iterable[str]) -> str:
    """The text of an object without these keys."""
    patch = json.dumps(dict.fromkeys(keys), ensure_ascii=False)
    # A patch of nulls removes keys, and reads the object once, however many others there are.
    return f"CAST(json_merge_patch({text}, {literal(patch)}) AS VARCHAR)"


def has_rest(text: str, keys: Sequence[str], found: Found | None) -> str | None:
    """The condition that an object has values of other keys; `None` where none does."""
    if found is None or found.has_more or MIXED in found.kinds:
        return f"{rest(text, keys)} <> '{{}}'"
    others = sorted(set(found.fields) - set(keys))
    if not others:
        return None
    if len(others) > _LISTED_KEYS:
        return f"{rest(text, keys)} <> '{{}}'"
    pointers = ", ".join(map(pointer, others))
    values = f"json_extract({text}, [{pointers}])"
    return (
        f"len(list_filter({values}, "
        "lambda __member: coalesce(CAST(__member AS VARCHAR), 'null') <> 'null')) > 0"
    )


@dataclass(frozen=True)
class JsonValues:
    """Reads values of JSON.

    Attributes:
        is_tagged: Whether numbers are tagged texts.
        has_extreme_numbers: Whether numbers may be beyond what DuckDB's types hold.
        keeps_rest: Whether a key that was not asked for is a misfit.
        case_sensitive: Whether keys of another case are no values of a field.
        formats: How dates and timestamps are written.
        lenient: Which departures from JSON are allowed.
    """

    is_tagged: bool = False
    has_extreme_numbers: bool = False
    keeps_rest: bool = True
    case_sensitive: bool = True
    formats: TextFormats = dataclasses.field(default_factory=TextFormats)

    def direct(self, found: Found | None, wanted: DataType) -> Any:
        """What `json_transform` has to be told to read a value, or `None` where it can't."""
        kinds = found.kinds - {NULL} if found is not None else frozenset()
        if self.is_tagged:
            return self._direct_tagged(kinds, wanted)
        if isinstance(wanted, StructType) and kinds == {OBJECT}:
            return self._direct_struct(found, wanted)
        if isinstance(wanted, ArrayType) and kinds == {ARRAY}:
            inner = self.direct(found.items, wanted.elementType) if found is not None else None
            return None if inner is None else [inner]
        return duckdb_type(wanted) if self._is_direct(kinds, wanted) else None

    def of_direct(self, value: str, wanted: DataType) -> str:
        """The value of a column from what `json_transform` has read."""
        if not self.is_tagged or isinstance(wanted, BooleanType):
            return value
        number = f"CASE WHEN starts_with({value}, {literal(TAG)}) THEN substr({value}, 2) END"
        if isinstance(wanted, StringType):
            return f"coalesce({_plain_zero(number)}, {value})"
        return f"CAST({number} AS {duckdb_type(wanted)})"

    def _is_direct(self, kinds: AbstractSet[str], wanted: DataType) -> bool:
        if self.has_extreme_numbers and not isinstance(wanted, StringType):
            kinds = {"extreme" if kind in {INTEGER, DOUBLE} else kind for kind in kinds}
        return any(isinstance(wanted, kind) and kinds <= allowed for kind, allowed in _DIRECT)

    def _direct_tagged(self, kinds: AbstractSet[str], wanted: DataType) -> Any:
        # Objects and arrays as texts would have tags inside.
        if kinds & {OBJECT, ARRAY, MIXED} or not self._is_direct(kinds, wanted):
            return None
        return "BOOLEAN" if isinstance(wanted, BooleanType) else "VARCHAR"

    def _direct_struct(self, found: Found | None, wanted: StructType) -> Any:
        fields = found.fields if found is not None else {}
        inner = {
            field.name: self.direct(fields.get(field.name), field.dataType)
            for field in wanted.fields
        }
        others = {name.lower() for name in fields} - {name.lower() for name in inner}
        is_plain = len({name.lower() for name in fields}) == len(fields)
        is_plain = is_plain and found is not None and not found.has_more
        if None in inner.values() or not is_plain or (others and self.keeps_rest):
            return None
        if any(name not in inner and name.lower() not in others for name in fields):
            return None
        return inner

    def value(self, text: str, found: Found | None, wanted: DataType, *, depth: int = 0) -> Value:
        """Read one value as the type that is wanted."""
        if isinstance(wanted, StructType):
            return self._struct(text, found, wanted, depth)
        if isinstance(wanted, ArrayType):
            return self._array(text, found, wanted, depth)
        if isinstance(wanted, MapType):
            return self._map(text, wanted, depth)
        sql = self._scalar(text, wanted)
        return Value(sql, f"({text} IS NOT NULL AND ({sql}) IS NULL)")

    def keys_of(self, name: str, found: Mapping[str, Found]) -> list[str]:
        """The keys that hold a field: its own name, and others of another case where allowed."""
        others = [key for key in found if key != name and key.lower() == name.lower()]
        return [name, *([] if self.case_sensitive and self.keeps_rest else sorted(others))]

    def _struct(self, text: str, found: Found | None, wanted: StructType, depth: int) -> Value:
        inner = found.fields if found is not None else {}
        keys = {field.name: self.keys_of(field.name, inner) for field in wanted.fields}
        flat = [key for names in keys.values() for key in names]
        bound = f"__members_{depth}"
        fields: list[str] = []
        misfits: list[str] = []
        for field in wanted.fields:
            places = [f"{bound}[{flat.index(key) + 1}]" for key in keys[field.name]]
            source = f"coalesce({', '.join(places)})" if len(places) > 1 else places[0]
            value = self.value(source, inner.get(field.name), field.dataType, depth=depth + 1)
            fields.append(f"{quote(field.name)} := {value.sql}")
            misfits += [value.misfit] if value.misfit else []
        if self.keeps_rest and (others := has_rest(text, flat, found)) is not None:
            misfits.append(others)
        listed = f"[{members(text, flat)}]"
        is_object = f"starts_with({text}, '{{')"
        packed = f"list_transform({listed}, lambda {bound}: struct_pack({', '.join(fields)}))[1]"
        any_misfit = " OR ".join(misfits) or "false"
        inside = f"list_transform({listed}, lambda {bound}: {any_misfit})[1]"
        return Value(
            f"CASE WHEN {is_object} THEN {packed} END",
            f"({text} IS NOT NULL AND (NOT {is_object} OR coalesce({inside}, false)))",
        )

    def _array(self, text: str, found: Found | None, wanted: ArrayType, depth: int) -> Value:
        item = f"__item_{depth}"
        inner = self.value(
            item, found.items if found is not None else None, wanted.elementType, depth=depth + 1
        )
        is_array = f"starts_with({text}, '[')"
        items = (
            f"list_transform(json_transform(CASE WHEN {is_array} THEN {text} END, '[\"JSON\"]'), "
            "lambda __member: nullif(CAST(__member AS VARCHAR), 'null'))"
        )
        inside = any_of(items, item, inner.misfit)
        return Value(
            f"list_transform({items}, lambda {item}: {inner.sql})",
            f"({text} IS NOT NULL AND (NOT {is_array} OR {inside or 'false'}))",
        )

    def _map(self, text: str, wanted: MapType, depth: int) -> Value:
        is_object = f"starts_with({text}, '{{')"
        if not isinstance(wanted.keyType, StringType):
            return Value(f"CAST(NULL AS {duckdb_type(wanted)})", f"{text} IS NOT NULL")
        entry = f"__entry_{depth}"
        inner = self.value(f"{entry}.value", None, wanted.valueType, depth=depth + 1)
        entries = (
            "list_transform(map_entries(TRY(json_transform("
            f"CASE WHEN {is_object} THEN {text} END, '\"MAP(VARCHAR, JSON)\"'))), "
            "lambda __member: struct_pack(key := __member.key, "
            "value := nullif(CAST(__member.value AS VARCHAR), 'null')))"
        )
        pair = f"struct_pack(key := {entry}.key, value := {inner.sql})"
        inside = any_of(entries, entry, inner.misfit)
        return Value(
            f"CASE WHEN {is_object} THEN map_from_entries("
            f"list_transform({entries}, lambda {entry}: {pair})) END",
            f"({text} IS NOT NULL AND (NOT {is_object} OR {inside or 'false'}))",
        )

    def _scalar(self, text: str, wanted: DataType) -> str:  # noqa: PLR0911 - a table
        name = duckdb_type(wanted)
        if isinstance(wanted, StringType):
            return self._text(text)
        if isinstance(wanted, BooleanType):
            return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"
        number = self._number(text)
        if isinstance(wanted, IntegralType):
            return _whole(number, name)
        if isinstance(wanted, FloatType | DoubleType):
            return self._float(text, number, name)
        string = self._string(text)
        if isinstance(wanted, BinaryType):
            return f"TRY(from_base64({string}))"
        cast = f"list_transform([{string}], lambda __text: {self._cast('__text', wanted)})[1]"
        if isinstance(wanted, DecimalType):
            return f"coalesce(TRY_CAST({number} AS {name}), {cast})"
        if isinstance(wanted, TimestampType):
            seconds = _whole(number, "BIGINT")  # what a number means
            return f"coalesce(TRY(to_timestamp({seconds})), {cast})"
        assert isinstance(wanted, DateType | TimestampNTZType), wanted
        return cast

    def _cast(self, text: str, wanted: DataType) -> str:
        return cast_sql(text, wanted, formats=self.formats)

    def _float(self, text: str, number: str, name: str) -> str:
        value = f"TRY_CAST({number} AS {name})"
        special = " ".join(
            f"WHEN {text} IN ({', '.join(literal(json.dumps(word)) for word in words)}) "
            f"THEN CAST({literal(result)} AS {name})"
            for result, words in _NOT_FINITE.items()
        )
        return f"CASE WHEN isfinite({value}) THEN {value} {special} END"

    def _text(self, text: str) -> str:
        if not self.is_tagged:
            return f"coalesce({self._string(text)}, {_plain_zero(text)})"
        number = _plain_zero(self._number(text))
        return f"coalesce({self._string(text)}, {number}, {untagged(text)})"

    def _string(self, text: str) -> str:
        """The text that a JSON string holds; NULL for another value."""
        is_string = f"starts_with({text}, '\"')"
        if self.is_tagged:
            is_string += f" AND NOT starts_with({text}, {_QUOTED_TAG})"
        return f"CASE WHEN {is_string} THEN json_extract_string({text}, '$') END"

    def _number(self, text: str) -> str:
        """How a number is written; other values are NULL, or written as no number is."""
        if not self.is_tagged:
            return text
        return (
            f"CASE WHEN starts_with({text}, {_QUOTED_TAG}) "
            f"THEN substr({text}, 3, length({text}) - 3) END"
        )


def _whole(number: str, name: str) -> str:
    """A number that is written as a whole one; NULL for others, and beyond the type."""
    value = f"TRY_CAST({number} AS {name})"
    return f"CASE WHEN CAST({value} AS VARCHAR) = {_plain_zero(number)} THEN {value} END"


def _plain_zero(number: str) -> str:
    """A number as it is written, or as Spark and DuckDB write a zero that has a sign."""
    return f"CASE WHEN {number} = '-0' THEN '0' ELSE {number} END"
