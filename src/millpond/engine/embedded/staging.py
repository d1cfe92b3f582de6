"""Runs a bound plan once and keeps its rows as Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StructType

from millpond.definitions import Expectation
from millpond.engine.connect.columns import (
    HELPER_COLUMNS,
    check_not_reserved,
    check_unique,
    sequence_expression,
    with_helper_columns,
)
from millpond.engine.connect.failures import analysing, running
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.embedded.inputs import file_url
from millpond.engine.protocol import SEQUENCE_COLUMN, StagedBatch

# The files live for one batch and are read once: little compression is the quickest.
_COMPRESSION = "snappy"


def stage(
    plan: ConnectPlan,
    root: Any,
    *,
    client: Any,
    folder: Path,
    expectations: Sequence[Expectation],
    sequence_by: Any | None,
) -> StagedBatch:
    """Write the rows of a bound plan below `folder`.

    Args:
        root: `plan`, bound.

    Raises:
        MillpondError: The plan can't be analysed, or fails while it runs.
    """
    with analysing(plan):
        schema = client.schema(proto.Plan(root=root))
    check_unique(schema, where=plan.location)
    # Other names with the prefix are right here: stored rows are staged once more at times.
    check_not_reserved(schema, where=plan.location, reserved=HELPER_COLUMNS)
    sequence = None
    if sequence_by is not None:
        sequence = sequence_expression(sequence_by, schema, client)
    staged = with_helper_columns(root, expectations=expectations, sequence=sequence)
    with analysing(plan):
        staged_schema = client.schema(proto.Plan(root=staged)) if staged is not root else schema
    with running(plan):
        client.execute_command(write_parquet(staged, folder))
    return StagedBatch(
        files=tuple(sorted(folder.glob("**/*.parquet"))),
        schema=schema,
        sequence_type=_type_of(staged_schema, SEQUENCE_COLUMN) if sequence_by is not None else None,
        expectations=tuple(expectations),
    )


def write_parquet(relation: Any, folder: Path) -> Any:
    """The command that writes the rows of a relation below a folder."""
    command = proto.Command()
    write = command.write_operation
    write.input.CopyFrom(relation)
    write.source = "parquet"
    write.path = file_url(folder)
    write.mode = proto.WriteOperation.SAVE_MODE_APPEND
    write.options["compression"] = _COMPRESSION
    return command


def _type_of(schema: StructType, name: str) -> object:
    return next(field.dataType for field in schema.fields if field.name == name)
