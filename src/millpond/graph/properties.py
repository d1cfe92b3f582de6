"""Checks what a dataset asks of its table beside its columns: properties and partitioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.definitions import Dataset
from millpond.delta import Metadata
from millpond.errors import MillpondError
from millpond.errors.graph import ReservedTablePropertyError
from millpond.graph.empty_files import SETTING
from millpond.graph.stored_tables import StoredTable
from millpond.maintenance import Settings

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_RESERVED_PREFIX = "millpond."
# Settings that users may give as properties of a table.
_ALLOWED = frozenset({SETTING.lower()})
# What many pipelines ask of a managed service's tables by habit. No row that a reader of the table
# gets is another without them; who asks for a table's changes is told that there are none.
_LEFT_OUT = frozenset(
    {"delta.columnmapping.mode", "delta.enablechangedatafeed", "delta.enablerowtracking"}
)


def left_out(dataset: Dataset) -> tuple[str, ...]:
    """Properties that the definition turns on and the table does without."""
    return tuple(
        key
        for key, value in dataset.table_properties.items()
        if key.lower() in _LEFT_OUT and value.lower() not in {"false", "none"}
    )


def kept(dataset: Dataset) -> dict[str, str]:
    """The properties that the table gets from its definition."""
    return {
        key: value
        for key, value in dataset.table_properties.items()
        if key.lower() not in _LEFT_OUT
    }


def check(dataset: Dataset, schema: StructType, table: StoredTable) -> list[MillpondError]:
    """What no table that millpond makes can have."""
    problems: list[MillpondError] = [
        ReservedTablePropertyError.from_property(
            str(dataset.name), key, settings=(SETTING,), where=dataset.location
        )
        for key in dataset.table_properties
        if key.lower().startswith(_RESERVED_PREFIX) and key.lower() not in _ALLOWED
    ]
    names = {field.name.lower(): field.name for field in schema.fields}
    columns = tuple(names.get(column.lower(), column) for column in dataset.partition_cols)
    try:
        Settings.of(dataset.table_properties)
    except MillpondError as problem:
        problem.where = dataset.location
        problems.append(problem)
    metadata = Metadata(
        id="", schema=schema, partition_columns=columns, configuration=kept(dataset)
    )
    try:
        table.check(metadata)
    except MillpondError as problem:
        problem.where = problem.where or dataset.location
        problems.append(problem)
    return problems
