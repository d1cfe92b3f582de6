"""Avro's types as Arrow's, as Spark reads them, and the values of the ones that differ."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

# Turns what fastavro gives into what Arrow takes; `None` where these are the same.
Convert = Callable[[Any], Any]
_LARGEST_PRECISION = 38


class UnsupportedAvroError(ValueError):
    """A schema has what no table can hold."""


@dataclass(frozen=True)
class AvroType:
    """How the values of an Avro type are held.

    Attributes:
        arrow: Their type.
        convert: What is done with each, or `None` for nothing.
        accepts: The Python types of what fastavro gives, to tell the branches of a union apart.
        fields: The names of a record's fields, for the same purpose.
    """

    arrow: pa.DataType
    convert: Convert | None = None
    accepts: tuple[type, ...] = ()
    fields: frozenset[str] = frozenset()


def record_type(schema: Any) -> AvroType:
    """The type of the records of a file.

    Args:
        schema: As fastavro parses it.

    Raises:
        UnsupportedAvroError: A type contains itself.
    """
    return _Types().of(schema)


class _Types:
    """Types by their schemas; knows the named ones above."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def of(self, schema: Any) -> AvroType:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._of_name(schema)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.of(kind)
        if "logicalType" in schema and (logical := _logical(schema)) is not None:
            if "name" in schema:
                self._named[schema["name"]] = schema
            return logical
        nested = {"record": self._record, "error": self._record, "array": self._array}
        nested["map"] = self._map
        if kind in nested:
            return nested[kind](schema)
        if kind in {"enum", "fixed"}:
            self._named[schema["name"]] = schema
        return _primitive(kind)

    def _of_name(self, name: str) -> AvroType:
        if name in self._open:
            raise UnsupportedAvroError(f"the type {name} contains itself")
        if name in self._named:
            return self.of(self._named[name])
        return _primitive(name)

    def _record(self, schema: Mapping[str, Any]) -> AvroType:
        import pyarrow as pa

        name = schema["name"]
        self._named[name] = schema
        self._open.append(name)
        parts = [(field["name"], self.of(field["type"])) for field in schema["fields"]]
        self._open.pop()
        converts = [(field, part.convert) for field, part in parts if part.convert is not None]

        def convert(value: dict[str, Any]) -> dict[str, Any]:
            for field, change in converts:
                if value[field] is not None:
                    value[field] = change(value[field])
            return value

        return AvroType(
            pa.struct([pa.field(field, part.arrow) for field, part in parts]),
            convert if converts else None,
            (dict,),
            frozenset(field for field, _ in parts),
        )

    def _array(self, schema: Mapping[str, Any]) -> AvroType:
        import pyarrow as pa

        items = self.of(schema["items"])
        change = items.convert
        if change is None:
            return AvroType(pa.list_(items.arrow), accepts=(list,))
        return AvroType(
            pa.list_(items.arrow),
            lambda values: [None if value is None else change(value) for value in values],
            (list,),
        )

    def _map(self, schema: Mapping[str, Any]) -> AvroType:
        import pyarrow as pa

        values = self.of(schema["values"])
        change = values.convert or (lambda value: value)

        def convert(entries: dict[str, Any]) -> list[tuple[str, Any]]:
            return [
                (key, None if value is None else change(value)) for key, value in entries.items()
            ]

        return AvroType(pa.map_(pa.string(), values.arrow), convert, (dict,))

    def _union(self, branches: list[Any]) -> AvroType:
        import pyarrow as pa

        types = [self.of(branch) for branch in branches if branch != "null"]
        if not types:
            return AvroType(pa.null())
        if len(types) == 1:
            return types[0]
        widest = _common_number([part.arrow for part in types])
        if widest is not None:
            return AvroType(widest, accepts=(int, float))
        names = [f"member{index}" for index in range(len(types))]

        def convert(value: Any) -> dict[str, Any]:
            index = _branch(value, types)
            change = types[index].convert
            return {names[index]: value if change is None else change(value)}

        return AvroType(
            pa.struct(
                [pa.field(name, part.arrow) for name, part in zip(names, types, strict=True)]
            ),
            convert,
        )


def _branch(value: Any, types: list[AvroType]) -> int:
    """Which branch of a union a value is of."""
    fitting = [
        index
        for index, part in enumerate(types)
        if type(value) in part.accepts or (not part.accepts and not isinstance(value, dict))
    ]
    if isinstance(value, dict) and len(fitting) > 1:
        exact = [index for index in fitting if types[index].fields == set(value)]
        fitting = exact or [index for index in fitting if not types[index].fields] or fitting
    if not fitting:
        raise ValueError(f"a value of the type {type(value).__name__} is of no branch of its union")
    return fitting[0]


def _common_number(types: list[pa.DataType]) -> pa.DataType | None:
    import pyarrow as pa

    if set(types) == {pa.int32(), pa.int64()}:
        return pa.int64()
    if set(types) == {pa.float32(), pa.float64()}:
        return pa.float64()
    return None


def _primitive(kind: str) -> AvroType:
    import pyarrow as pa

    types = {
        "null": AvroType(pa.null()),
        "boolean": AvroType(pa.bool_(), accepts=(bool,)),
        "int": AvroType(pa.int32(), accepts=(int,)),
        "long": AvroType(pa.int64(), accepts=(int,)),
        "float": AvroType(pa.float32(), accepts=(float,)),
        "double": AvroType(pa.float64(), accepts=(float,)),
        "bytes": AvroType(pa.binary(), accepts=(bytes,)),
        "fixed": AvroType(pa.binary(), accepts=(bytes,)),
        "string": AvroType(pa.string(), accepts=(str,)),
        "enum": AvroType(pa.string(), accepts=(str,)),
    }
    if kind not in types:
        raise UnsupportedAvroError(f"there is no type {kind!r}")
    return types[kind]


def _logical(schema: Mapping[str, Any]) -> AvroType | None:
    """The type of a logical type that is known; others are what they are based on, as in Avro."""
    import pyarrow as pa

    kind = schema["logicalType"]
    if kind == "decimal":
        precision = schema.get("precision", 0)
        if precision > _LARGEST_PRECISION:
            raise UnsupportedAvroError(f"a decimal has {precision} digits")
        return AvroType(pa.decimal128(precision, schema.get("scale", 0)), accepts=(Decimal,))
    types = {
        "date": AvroType(pa.date32(), accepts=(date,)),
        "timestamp-millis": AvroType(pa.timestamp("us", "UTC"), accepts=(datetime,)),
        "timestamp-micros": AvroType(pa.timestamp("us", "UTC"), accepts=(datetime,)),
        "local-timestamp-millis": AvroType(pa.timestamp("us"), accepts=(datetime,)),
        "local-timestamp-micros": AvroType(pa.timestamp("us"), accepts=(datetime,)),
        "uuid": AvroType(pa.string(), str, (uuid.UUID,)),
        # Spark has no time of the day, and shows the number.
        "time-millis": AvroType(pa.int32(), lambda value: _microseconds(value) // 1000, (time,)),
        "time-micros": AvroType(pa.int64(), _microseconds, (time,)),
    }
    return types.get(kind)


def _microseconds(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond
