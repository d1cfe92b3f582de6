"""Values that have a type of their own in a file, read as the types that were asked for.

A value that fits is kept exactly; of one that does not, the caller learns by a condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta.schema import duckdb_type, literal, quote, widen_schema
from millpond.errors.delta import SchemaChangeNotAllowedError
from millpond.files.formats.duckdb_types import (
    NANOSECONDS,
    ZONED,
    ZONELESS,
    children,
    element,
    spark_type,
)

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

_NUMBERS = frozenset(
    {
        *("tinyint", "smallint", "integer", "bigint", "hugeint"),
        *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
        *("float", "double", "decimal"),
    }
)
# Their texts differ between DuckDB and Spark, so they are not read as texts.
_NOT_AS_TEXT = frozenset({"float", "double", "blob", "struct", "list", "array", "map"})
_PLAIN_JSON = frozenset({"boolean", "tinyint", "smallint", "integer", "bigint", "varchar"})


@dataclass(frozen=True)
class Value:
    """A value as it was asked for.

    Attributes:
        sql: The value; NULL, or a part of it NULL, where it does not fit.
        misfit: A condition that something of it does not fit; `None` where all values fit.
    """

    sql: str
    misfit: str | None = None


@dataclass(frozen=True)
class Conversion:
    """How values of a file are converted.

    Attributes:
        instants: Whether times without a zone are instants.
        keeps_rest: Whether there is a place for what the wanted types have no room for: fields
            that were not asked for, and parts of a second below a microsecond.
    """

    instants: bool = False
    keeps_rest: bool = True

    def value(self, sql: str, found: DuckDBPyType, wanted: DataType, *, depth: int = 0) -> Value:
        """Read one value, which `sql` gives, as the type that is wanted."""
        if isinstance(wanted, StructType) and found.id == "struct":
            return self._struct(sql, found, wanted, depth)
        if isinstance(wanted, ArrayType) and found.id in {"list", "array"}:
            return self._list(sql, found, wanted, depth)
        if isinstance(wanted, MapType) and found.id == "map":
            return self._map(sql, found, wanted, depth)
        return self._scalar(sql, found, wanted)

    def _struct(self, sql: str, found: DuckDBPyType, wanted: StructType, depth: int) -> Value:
        parts = match_names([name for name, _ in children(found)], wanted.fieldNames())
        types = dict(children(found))
        fields: list[str] = []
        misfits: list[str] = []
        is_same = list(types) == wanted.fieldNames()
        for field in wanted.fields:
            name = parts.get(field.name)
            if name is None:
                value = Value(f"CAST(NULL AS {duckdb_type(field.dataType)})")
            else:
                inner = f"struct_extract({sql}, {literal(name)})"
                value = self.value(inner, types[name], field.dataType, depth=depth)
                is_same = is_same and value.sql == inner
            fields.append(f"{quote(field.name)} := {value.sql}")
            misfits += [value.misfit] if value.misfit else []
        if self.keeps_rest:
            misfits += [
                f"struct_extract({sql}, {literal(name)}) IS NOT NULL"
                for name in types
                if name not in parts.values()
            ]
        if is_same:
            return Value(sql)
        packed = f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"
        return Value(packed, f"({' OR '.join(misfits)})" if misfits else None)

    def _list(self, sql: str, found: DuckDBPyType, wanted: ArrayType, depth: int) -> Value:
        name = f"__element_{depth}"
        inner = self.value(name, element(found), wanted.elementType, depth=depth + 1)
        values = sql if inner.sql == name else f"list_transform({sql}, lambda {name}: {inner.sql})"
        return Value(values, any_of(sql, name, inner.misfit))

    def _map(self, sql: str, found: DuckDBPyType, wanted: MapType, depth: int) -> Value:
        name = f"__element_{depth}"
        (_, key_type), (_, value_type) = children(found)
        key = self.value(f"{name}.key", key_type, wanted.keyType, depth=depth + 1)
        if key.misfit is not None:
            return _nothing(sql, wanted)
        value = self.value(f"{name}.value", value_type, wanted.valueType, depth=depth + 1)
        if (key.sql, value.sql) == (f"{name}.key", f"{name}.value"):
            return Value(sql)
        entries = f"map_entries({sql})"
        pair = f"struct_pack(key := {key.sql}, value := {value.sql})"
        values = f"map_from_entries(list_transform({entries}, lambda {name}: {pair}))"
        return Value(
            f"CASE WHEN {sql} IS NOT NULL THEN {values} END",
            any_of(entries, name, value.misfit),
        )

    def _scalar(self, sql: str, found: DuckDBPyType, wanted: DataType) -> Value:
        kind = found.id
        name = duckdb_type(wanted)
        if kind == "null":
            return Value(f"CAST(NULL AS {name})")
        if str(found) == name:
            return Value(sql)
        if isinstance(wanted, NumericType) and kind in _NUMBERS:
            return _number(sql, found, wanted)
        if isinstance(wanted, TimestampType | TimestampNTZType):
            return self._time(sql, kind, wanted)
        return _text_or_bytes(sql, kind, wanted) or _nothing(sql, wanted)

    def _time(self, sql: str, kind: str, wanted: DataType) -> Value:
        name = duckdb_type(wanted)
        zoned = kind in ZONED or (self.instants and kind in ZONELESS)
        if isinstance(wanted, TimestampNTZType) and (zoned or kind not in ZONELESS | {"date"}):
            return _nothing(sql, wanted)
        if isinstance(wanted, TimestampType) and kind not in ZONED | ZONELESS:
            return _nothing(sql, wanted)
        cast = f"CAST({sql} AS {name})"
        if kind not in NANOSECONDS or not self.keeps_rest:
            return Value(cast)
        # The cast rounds to microseconds.
        return Value(cast, f"coalesce(epoch_ns({sql}) % 1000 <> 0, false)")


def _text_or_bytes(sql: str, kind: str, wanted: DataType) -> Value | None:
    if isinstance(wanted, StringType) and kind == "blob":
        text = f"TRY(decode({sql}))"
        return Value(text, f"({sql} IS NOT NULL AND {text} IS NULL)")
    if isinstance(wanted, StringType) and kind not in _NOT_AS_TEXT | ZONED | ZONELESS:
        return Value(f"CAST({sql} AS VARCHAR)")
    if isinstance(wanted, BinaryType) and kind == "varchar":
        return Value(f"encode({sql})")
    return None


def _number(sql: str, found: DuckDBPyType, wanted: DataType) -> Value:
    name = duckdb_type(wanted)
    if _is_wider(found, wanted):
        return Value(f"CAST({sql} AS {name})")
    cast = f"TRY_CAST({sql} AS {name})"
    # A cast rounds; only a value that comes back unchanged has fitted.
    exact = f"TRY_CAST({cast} AS {found}) IS NOT DISTINCT FROM {sql}"
    return Value(f"CASE WHEN {exact} THEN {cast} END", f"({sql} IS NOT NULL AND NOT ({exact}))")


def _is_wider(found: DuckDBPyType, wanted: DataType) -> bool:
    current = spark_type(found)
    if isinstance(current, StringType):
        return False
    try:
        widened = widen_schema(
            StructType([StructField("v", current)]), StructType([StructField("v", wanted)])
        )
    except SchemaChangeNotAllowedError:
        return False
    return bool(widened.fields[0].dataType == wanted)


def _nothing(sql: str, wanted: DataType) -> Value:
    return Value(f"CAST(NULL AS {duckdb_type(wanted)})", f"{sql} IS NOT NULL")


def any_of(items: str, name: str, condition: str | None) -> str | None:
    """The condition that some item of a list has a condition, or `None` for no condition."""
    if condition is None:
        return None
    return f"coalesce(len(list_filter({items}, lambda {name}: {condition})) > 0, false)"


def match_names(found: list[str], wanted: list[str]) -> dict[str, str]:
    """The name in the file for each wanted name that has one: the same, or else in another case."""
    exact = set(found)
    folded: dict[str, str] = {}
    for name in found:
        if name not in wanted:
            folded.setdefault(name.lower(), name)
    matched = {name: name if name in exact else folded.get(name.lower()) for name in wanted}
    return {name: other for name, other in matched.items() if other is not None}


def json_text(sql: str, found: DuckDBPyType) -> str:
    """A value of a file as the text of a JSON value, which loses nothing of it."""
    return f"CAST(to_json({_printable(sql, found, depth=0)}) AS VARCHAR)"


def _printable(sql: str, found: DuckDBPyType, *, depth: int) -> str:
    name = f"__printed_{depth}"
    if found.id == "struct":
        fields = [
            f"{quote(part)} := "
            + _printable(f"struct_extract({sql}, {literal(part)})", part_type, depth=depth)
            for part, part_type in children(found)
        ]
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"
    if found.id in {"list", "array"}:
        inner = _printable(name, element(found), depth=depth + 1)
        return sql if inner == name else f"list_transform({sql}, lambda {name}: {inner})"
    if found.id == "map":
        (_, key), (_, value) = children(found)
        pair = (
            f"struct_pack(key := {_printable(f'{name}.key', key, depth=depth + 1)}, "
            f"value := {_printable(f'{name}.value', value, depth=depth + 1)})"
        )
        return f"map_from_entries(list_transform(map_entries({sql}), lambda {name}: {pair}))"
    if found.id in _PLAIN_JSON:
        return sql
    return f"CAST({sql} AS VARCHAR)"
