"""Brings a table on a Spark server to what its definition asks for: create, widen, reset."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.definitions import DatasetKind, FlowKind
from millpond.delta import Table
from millpond.engine.spark import SparkEngine
from millpond.errors.spark import TableNotDeltaError
from millpond.errors.takeover import CheckpointOfOtherEngineError
from millpond.graph import ResolvedDataset, ResolvedFlow
from millpond.runner.begun_reset import BEING_RESET, has_begun_reset
from millpond.runner.spark.clustering import cluster, may_cluster
from millpond.runner.spark.column_changes import ColumnChanges
from millpond.runner.spark.conflicts import retried
from millpond.runner.spark.places import Places
from millpond.runner.spark.sql import (
    column_sql,
    comment_of,
    properties_sql,
    quoted,
    text_sql,
    type_sql,
)
from millpond.runner.spark.tables import SparkTable, TableDetail
from millpond.runner.spark.type_features import features_of_types, is_listed
from millpond.runner.table_properties import (
    CHECKPOINT_PROPERTY,
    NO_MORE_BATCHES,
    PIPELINE_PROPERTY,
    SPARK_PREFIX,
    app_id,
    check_drift,
    check_kind,
    check_owner,
    check_partitioning,
    checkpoints_of,
    defined_properties,
    is_partitioned_otherwise,
    is_still_a_view,
    partition_columns,
    widened,
)
from millpond.runner.takeover import Takeover
from millpond.storage import LocalStore

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Delta on Spark takes these characters in names only where columns are mapped.
_NEED_MAPPING = frozenset(" ,;{}()\n\t=")
CHECKPOINTS = CHECKPOINT_PROPERTY.format(flow="")
# CREATE OR REPLACE replaces no table at a location: to Delta it creates one there.
REPLACE = "REPLACE TABLE"
MAPPING = {"delta.columnMapping.mode": "name"}


@dataclass(frozen=True)
class ReadyTable:
    """A table that its flows can write to.

    Attributes:
        checkpoints: Checkpoint id by flow name.
        detail: What the server tells of it now.
        replace_statement: SQL that makes it anew and empty, for a materialized view to run once it
            has its rows.
    """

    table: SparkTable
    checkpoints: Mapping[str, str]
    detail: TableDetail
    replace_statement: str | None = None

    def app_id(self, flow: str) -> str:
        """Under this id the table's commits carry the numbers of a flow's batches."""
        return app_id(flow, self.checkpoints[flow])


def set_up(
    dataset: ResolvedDataset, engine: SparkEngine, places: Places, *, pipeline: str, reset: bool
) -> ReadyTable:
    """Create the dataset's table, or bring it to the definition.

    Args:
        pipeline: The name of the pipeline, which tables of the server's catalog tell.

    Raises:
        MillpondError: It can't get there without a full refresh.
    """
    table = dataset.table
    assert isinstance(table, SparkTable)
    owner = None if places.has_tables else pipeline
    setup = _Setup(dataset, table, engine, places, owner)
    detail = table.detail()
    if detail is None:
        if table.exists():
            raise TableNotDeltaError.from_table(str(dataset.name), where=dataset.dataset.location)
        setup.create()
    else:
        check_owner(dataset, detail.properties, pipeline=owner)
        if not setup.begins_anew(detail, reset=reset):
            setup.evolve(detail)
        elif is_still_a_view(dataset, detail.properties):
            checkpoints = checkpoints_of(dataset, prefix=SPARK_PREFIX)
            statement = setup.definition(REPLACE, checkpoints, detail)
            return ReadyTable(table, checkpoints, detail, statement)
        else:
            setup.replace(detail)
    # Of two updates that set a table up at once, one has named its checkpoints last.
    now = table.detail()
    if now is None:
        raise TableNotDeltaError.from_table(str(dataset.name), where=dataset.dataset.location)
    return ReadyTable(table, checkpoints_of(dataset, now.properties, prefix=SPARK_PREFIX), now)


def has_other_columns(current: StructType, wanted: StructType) -> bool:
    """Whether names, types or order differ."""
    return [(field.name, type_sql(field.dataType)) for field in current.fields] != [
        (field.name, type_sql(field.dataType)) for field in wanted.fields
    ]


def comment_columns(table: SparkTable, current: StructType, wanted: StructType) -> None:
    """Give columns that are there the comments that they are to have."""
    before = {field.name.lower(): comment_of(field) for field in current.fields}
    for field in wanted.fields:
        comment = comment_of(field)
        if before.get(field.name.lower(), comment) != comment:
            table.alter(f"ALTER COLUMN {quoted(field.name)} COMMENT {text_sql(comment)}")


@dataclass(frozen=True)
class _Setup:
    dataset: ResolvedDataset
    table: SparkTable
    engine: SparkEngine
    places: Places
    owner: str | None

    def create(self) -> None:
        name = self.dataset.name
        if not self.dataset.dataset.path and not self.places.has_tables:
            schema = f"{quoted(name.catalog)}.{quoted(name.schema)}"
            self.engine.rows(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self._create("CREATE TABLE")

    def begins_anew(self, detail: TableDetail, *, reset: bool) -> bool:
        """Whether the table loses its rows and all that it was made with.

        Raises:
            MillpondError: It is that of a dataset of another kind; or it would have to, and is a
                streaming table's.
        """
        if reset or has_begun_reset(detail.properties):
            return True
        check_kind(self.dataset, detail.properties)
        check_partitioning(self.dataset, detail.partition_columns)
        otherwise = is_partitioned_otherwise(self.dataset, detail.partition_columns)
        return otherwise or self._needs_new_constraints()

    def replace(self, detail: TableDetail) -> None:
        """Clear the table and point its flows to new, empty checkpoints, in one commit.

        The commits before it close the checkpoints that the table still names. So that an update
        that ends in between loses no rows, the table says first that it is to be cleared.
        """
        self.table.set_properties(BEING_RESET)
        self._fence_off(detail)
        self._create(REPLACE, detail)

    def evolve(self, detail: TableDetail) -> None:
        """Bring the table to the definition in steps, each of which leaves it right."""
        dataset = self.dataset
        current = self.table.columns()
        is_streaming = dataset.dataset.kind is DatasetKind.STREAMING_TABLE
        check_drift(dataset, detail.properties)
        wider = widened(dataset, current) if is_streaming else current
        wanted = self._properties(self._taken_over(detail))
        changed = {
            key: value
            for key, value in wanted.items()
            if detail.properties.get(key) != value and not is_listed(key, detail.features)
        }
        if changed:
            self.table.set_properties(changed)
        self._widen(current, wider)
        # A view has its new columns only once it is computed.
        if is_streaming or not has_other_columns(current, dataset.schema):
            cluster(dataset, self.table, detail, self.places)
        comment_columns(self.table, current, dataset.schema)
        comment = dataset.dataset.comment
        if (comment or "") != (detail.description or ""):
            text = "NULL" if comment is None else text_sql(comment)
            statement = f"COMMENT ON TABLE {self.table.sql} IS {text}"
            retried(lambda: self.engine.rows(statement))

    def _fence_off(self, detail: TableDetail) -> None:
        """Keep queries that still run, for a client that was killed, from writing any more."""
        for key, checkpoint in detail.properties.items():
            if not key.startswith(CHECKPOINTS) or not checkpoint.startswith(SPARK_PREFIX):
                continue
            flow = key.removeprefix(CHECKPOINTS)
            query = self.places.query_of(flow, checkpoint, self.engine)
            for writer in (app_id(flow, checkpoint), query):
                if writer is not None:
                    closing = functools.partial(self.table.append_nothing, writer, NO_MORE_BATCHES)
                    retried(closing)

    def _taken_over(self, detail: TableDetail) -> dict[str, str]:
        """The checkpoints of the flows; new ones for those that the embedded engine ran last."""
        checkpoints = checkpoints_of(self.dataset, detail.properties, prefix=SPARK_PREFIX)
        for flow in self.dataset.flows:
            if checkpoints[flow.name].startswith(SPARK_PREFIX):
                continue
            if flow.kind is FlowKind.MATERIALIZED_VIEW:
                checkpoints[flow.name] = f"{SPARK_PREFIX}{uuid.uuid4().hex}"
            else:
                checkpoints[flow.name] = self._takeover(flow, checkpoints[flow.name]).to_spark()
        return checkpoints

    def _takeover(self, flow: ResolvedFlow, checkpoint: str) -> Takeover:
        location = self.table.location
        if location is None or not self.places.are_shared:
            raise CheckpointOfOtherEngineError.from_flow(
                flow.name,
                by_spark=False,
                reason="the server's storage is not the folder of this machine",
                where=flow.flow.location,
            )
        store = LocalStore()
        app_versions = Table(Path(location), store).snapshot().app_versions
        return Takeover(flow, checkpoint, app_versions, self.places.layout, store)

    def _needs_new_constraints(self) -> bool:
        """Whether other columns of a view must not be null than those which must not be now.

        Rows can't bring `NOT NULL` along, nor take it away where the columns are the same, so that
        the table has to be made anew.
        """
        wanted = self.dataset.schema
        if self.dataset.dataset.kind is not DatasetKind.MATERIALIZED_VIEW:
            return False
        current = self.table.columns()
        if has_other_columns(current, wanted):
            return any(not field.nullable for field in wanted.fields)
        return [f.nullable for f in current.fields] != [f.nullable for f in wanted.fields]

    def _create(self, statement: str, detail: TableDetail | None = None) -> None:
        checkpoints = checkpoints_of(self.dataset, prefix=SPARK_PREFIX)
        text = self.definition(statement, checkpoints, detail)
        retried(lambda: self.engine.rows(text))

    def definition(
        self, statement: str, checkpoints: Mapping[str, str], detail: TableDetail | None
    ) -> str:
        """SQL that makes the table, empty, with these checkpoints of its flows.

        Args:
            detail: Of the table that is there.
        """
        dataset = self.dataset
        definition = dataset.dataset
        columns = ", ".join(map(column_sql, dataset.schema.fields))
        text = f"{statement} {self.table.sql} ({columns}) USING DELTA"
        partitioning = partition_columns(dataset)
        if partitioning:
            text += f" PARTITIONED BY ({', '.join(map(quoted, partitioning))})"
        elif definition.cluster_by and may_cluster(self.table, detail, self.places):
            text += f" CLUSTER BY ({', '.join(map(quoted, definition.cluster_by))})"
        if definition.comment:
            text += f" COMMENT {text_sql(definition.comment)}"
        return text + f" TBLPROPERTIES ({properties_sql(self._properties(checkpoints))})"

    def _properties(self, checkpoints: Mapping[str, str]) -> dict[str, str]:
        dataset = self.dataset
        given = {**features_of_types(dataset.schema), **dataset.dataset.table_properties}
        if any(_NEED_MAPPING & set(name) for name in _names(dataset.schema)):
            given = {**MAPPING, **given}
        if self.owner is not None:
            given[PIPELINE_PROPERTY] = self.owner
        return defined_properties(dataset, given, checkpoints)

    def _widen(self, current: StructType, wanted: StructType) -> None:
        changes = ColumnChanges.between(current, wanted)
        if changes.added:
            self.table.alter(f"ADD COLUMNS ({', '.join(changes.added)})")
        if changes.retyped:
            self.table.set_properties({"delta.enableTypeWidening": "true"})
        for change in changes.retyped:
            self.table.alter(f"ALTER COLUMN {change}")


def _names(schema: StructType) -> list[str]:
    """The names of all columns and of the fields inside them."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    found: list[str] = []
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, StructType):
            found += part.names
            waiting += [field.dataType for field in part.fields]
        elif isinstance(part, ArrayType):
            waiting.append(part.elementType)
        elif isinstance(part, MapType):
            waiting += [part.keyType, part.valueType]
    return found
