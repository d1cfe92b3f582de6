"""Checks what a dataset asks of its table beside its columns: properties and partitioning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millpond.definitions import Dataset
from millpond.delta import Metadata, check_definition
from millpond.errors import MillpondError
from millpond.errors.graph import ReservedTablePropertyError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_RESERVED_PREFIX = "millpond."


def check(dataset: Dataset, schema: StructType, path: Path) -> list[MillpondError]:
    """What no table that millpond makes can have."""
    problems: list[MillpondError] = [
        ReservedTablePropertyError.from_property(str(dataset.name), key, where=dataset.location)
        for key in dataset.table_properties
        if key.lower().startswith(_RESERVED_PREFIX)
    ]
    names = {field.name.lower(): field.name for field in schema.fields}
    columns = tuple(names.get(column.lower(), column) for column in dataset.partition_cols)
    metadata = Metadata(
        id="", schema=schema, partition_columns=columns, configuration=dataset.table_properties
    )
    try:
        check_definition(path, metadata)
    except MillpondError as problem:
        problem.where = problem.where or dataset.location
        problems.append(problem)
    return problems
