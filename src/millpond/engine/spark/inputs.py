"""Puts inputs into plans as Spark reads them: tables of its catalog, files, topics, no rows."""

from __future__ import annotations

from typing import Any, assert_never

from pyspark.sql.connect import proto

from millpond.engine.connect.expressions import attribute, named
from millpond.engine.connect.messages import empty_relation
from millpond.engine.protocol import (
    DeltaInput,
    EmptyInput,
    Input,
    ParquetInput,
    PlanInput,
    ServerInput,
)
from millpond.files.metadata import METADATA_COLUMN, METADATA_NAME


def input_relation(source: Input) -> Any:
    """What stands in a plan for an input that is no plan."""
    match source:
        case ServerInput():
            return _with_metadata(_read(source)) if source.has_metadata else _read(source)
        case EmptyInput():
            return empty_relation(source.schema)
        case DeltaInput() | ParquetInput():
            message = "files of this machine are no input on a server"
            raise TypeError(message)
        case PlanInput():
            message = "plans are put in place by what binds them"
            raise TypeError(message)
    assert_never(source)


def _read(source: ServerInput) -> Any:
    relation = proto.Relation()
    read = relation.read
    read.is_streaming = source.streaming
    if source.table is not None:
        read.named_table.unparsed_identifier = source.table
        read.named_table.options.update(source.options)
        return relation
    assert source.format is not None
    read.data_source.format = source.format
    read.data_source.paths.extend(source.paths)
    read.data_source.options.update(source.options)
    if source.schema is not None and source.gives_schema:
        fields = [field for field in source.schema.fields if field.name != METADATA_COLUMN]
        read.data_source.schema = type(source.schema)(fields).json()
    return relation


def _with_metadata(relation: Any) -> Any:
    """The rows of files with `_metadata` as one more column, last."""
    project = proto.Relation()
    project.project.input.CopyFrom(relation)
    project.project.expressions.add().unresolved_star.SetInParent()
    project.project.expressions.append(named(attribute(METADATA_NAME), METADATA_COLUMN))
    return project
