"""Runs a bound plan once and keeps its rows as Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Staging:
    """What to write for a batch.

    Attributes:
        relation: Gives the rows, with helper columns.
        schema: The query's own columns.
        sequence_type: Spark type of `SEQUENCE_COLUMN`, where there is one.
    """

    relation: Any
    schema: StructType
    sequence_type: object | None
    expectations: tuple[Expectation, ...]


def staging(
    plan: ConnectPlan,
    root: Any,
    *,
    client: Any,
    expectations: Sequence[Expectation],
    sequence_by: Any | None,
    keep: Callable[[Any], Any] = lambda relation: relation,
) -> Staging:
    """Analyse a bound plan, and add the helper columns of a batch.

    Args:
        root: `plan`, bound.
        keep: Given the relation with helper columns, may return another that gives the same.

    Raises:
        MillpondError: The plan can't be analysed.
    """
    with analysing(plan):
        schema = client.schema(proto.Plan(root=root))
    check_unique(schema, where=plan.location)
    # Other names with the prefix are right here: stored rows are staged once more at times.
    check_not_reserved(schema, where=plan.location, reserved=HELPER_COLUMNS)
    if sequence_by is None and not expectations:
        return Staging(root, schema, None, ())
    sequence = None
    if sequence_by is not None:
        sequence = sequence_expression(sequence_by, schema, client)
    staged = keep(with_helper_columns(root, expectations=expectations, sequence=sequence))
    with analysing(plan):
        staged_schema = client.schema(proto.Plan(root=staged))
    sequence_type = _type_of(staged_schema, SEQUENCE_COLUMN) if sequence_by is not None else None
    return Staging(staged, schema, sequence_type, tuple(expectations))


def stage(plan: ConnectPlan, found: Staging, *, client: Any, folder: Path) -> StagedBatch:
    """Write the rows below `folder`.

    Raises:
        MillpondError: The plan fails while it runs.
    """
    with running(plan):
        client.execute_command(write_parquet(found.relation, folder))
    return StagedBatch(
        files=tuple(sorted(folder.glob("**/*.parquet"))),
        schema=found.schema,
        sequence_type=found.sequence_type,
        expectations=found.expectations,
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
