"""Walks the protobuf messages of Spark Connect plans, and makes the simplest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from pyspark.sql.connect import proto
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

RELATION = proto.Relation.DESCRIPTOR.full_name
EXPRESSION = proto.Expression.DESCRIPTOR.full_name


def children(message: Message) -> Iterator[Message]:
    """The messages directly inside a message, those in lists and maps included."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if not descriptor.is_repeated:
            yield value
        elif descriptor.message_type.GetOptions().map_entry:
            yield from (item for item in value.values() if isinstance(item, Message))
        else:
            yield from value


def name_of(message: Message) -> str:
    return str(message.DESCRIPTOR.full_name)


def input_relations(relation: Message) -> Iterator[Any]:
    """The relations directly below a relation, in order."""
    for child in children(relation):
        if name_of(child) == RELATION:
            yield child
        else:
            yield from input_relations(child)


def own_expressions(message: Message) -> Iterator[Any]:
    """Every expression of a relation, nested ones included, not those of relations below it."""
    for child in children(message):
        if name_of(child) == RELATION:
            continue
        if name_of(child) == EXPRESSION:
            yield child
        yield from own_expressions(child)


def leaves(relation: Any) -> Iterator[Any]:
    """Relations that read a table or hold SQL text, from first to last; subqueries included."""
    if relation.WhichOneof("rel_type") in {"read", "sql", "relation_changes"}:
        yield relation
    for child in input_relations(relation):
        yield from leaves(child)


def empty_relation(schema: StructType) -> Any:
    """No rows of a schema."""
    relation = proto.Relation()
    relation.local_relation.schema = schema_json(schema)
    return relation


def schema_json(schema: StructType) -> str:
    """A schema as engines take it, without what Delta notes about a table's own columns.

    Such notes, as of types that have been widened, say nothing of rows that a query reads, and
    Sail takes no metadata but texts.
    """
    return str(_without_notes(schema).json())


def _without_notes(data_type: DataType) -> DataType:
    if isinstance(data_type, ArrayType):
        return ArrayType(_without_notes(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        key, value = _without_notes(data_type.keyType), _without_notes(data_type.valueType)
        return MapType(key, value, data_type.valueContainsNull)
    if not isinstance(data_type, StructType):
        return data_type
    return StructType(
        [
            StructField(
                field.name,
                _without_notes(field.dataType),
                field.nullable,
                {
                    key: value
                    for key, value in (field.metadata or {}).items()
                    if isinstance(value, str) and not key.startswith("delta.")
                },
            )
            for field in data_type.fields
        ]
    )


def flatten_references(relation: Any) -> None:
    """Let a text that got relations for names twice have all at once: Spark knows no others."""
    for child in input_relations(relation):
        flatten_references(child)
    outer = relation.with_relations
    if not relation.HasField("with_relations") or not outer.root.HasField("with_relations"):
        return
    inner = proto.WithRelations()
    inner.CopyFrom(outer.root.with_relations)
    inner.references.extend(outer.references)
    outer.CopyFrom(inner)
