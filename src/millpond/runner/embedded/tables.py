"""Brings a table to what its definition asks for before its flows run: create, widen, reset.

A full refresh is one commit that clears the rows and names new checkpoints, so there is no moment
in between; of a materialized view, it is the commit of its new rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from millpond.definitions import DatasetKind, FlowKind
from millpond.delta import Metadata, Snapshot, Table, Transaction
from millpond.errors import MillpondError
from millpond.errors.delta import CommitConflictError
from millpond.errors.runner import StorageNotWritableError
from millpond.graph import ResolvedDataset, ResolvedFlow, delta_table
from millpond.graph.properties import kept
from millpond.runner.begun_reset import has_begun_reset
from millpond.runner.table_properties import (
    CHECKPOINT_PROPERTY,
    NO_MORE_BATCHES,
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
from millpond.runner.takeover import Takeover, spark_writers
from millpond.state import FlowState
from millpond.storage import Layout, Store

MAX_ATTEMPTS = 20
_CHECKPOINTS = CHECKPOINT_PROPERTY.format(flow="")


@dataclass(frozen=True)
class ReadyTable:
    """A table that its flows can write to.

    Attributes:
        table_id: The id in its metadata, which tells it from a table put in its place.
        checkpoints: Checkpoint id by flow name.
        anew: What a materialized view that begins anew becomes with its next rows.
    """

    table: Table
    table_id: str
    checkpoints: Mapping[str, str]
    anew: Metadata | None = None

    def app_id(self, flow: str) -> str:
        """Under this id the table's commits carry the numbers of a flow's batches."""
        return app_id(flow, self.checkpoints[flow])


def set_up(dataset: ResolvedDataset, *, layout: Layout, reset: bool) -> ReadyTable:
    """Create the dataset's table, or bring it to the definition, in at most one commit.

    Raises:
        MillpondError: The table, or what its flows keep, can't get there without a full refresh.
    """
    table = delta_table(dataset.table)
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        try:
            anew = _new_view(dataset, table, reset=reset)
            metadata = anew or _bring_to_definition(dataset, table, layout=layout, reset=reset)
            break
        except CommitConflictError:
            if not attempts_left:
                raise
        except OSError as error:
            if isinstance(error, MillpondError):
                raise
            raise StorageNotWritableError.from_error(str(table.path), error) from error
    return ReadyTable(
        table=table,
        table_id=metadata.id,
        checkpoints=checkpoints_of(dataset, metadata.configuration),
        anew=anew,
    )


def _new_view(dataset: ResolvedDataset, table: Table, *, reset: bool) -> Metadata | None:
    """What a materialized view becomes that begins anew. Until its rows are there, nothing."""
    if dataset.dataset.kind is not DatasetKind.MATERIALIZED_VIEW or not table.exists():
        return None
    current = table.snapshot().metadata
    if not is_still_a_view(dataset, current.configuration):
        return None
    is_reset = reset or has_begun_reset(current.configuration)
    if not is_reset and not is_partitioned_otherwise(dataset, current.partition_columns):
        return None
    check_owner(dataset, current.configuration)
    return _at_the_place_of(current, dataset)


def _bring_to_definition(
    dataset: ResolvedDataset, table: Table, *, layout: Layout, reset: bool
) -> Metadata:
    if not table.exists():
        metadata = _new_metadata(dataset)
        table.create(metadata)
        return metadata
    if reset or has_begun_reset(table.snapshot().metadata.configuration):
        return _reset(dataset, table, layout)
    return _evolve(dataset, table, layout)


def _new_metadata(dataset: ResolvedDataset) -> Metadata:
    definition = dataset.dataset
    return Metadata(
        id=str(uuid.uuid4()),
        schema=dataset.schema,
        partition_columns=partition_columns(dataset),
        configuration=defined_properties(dataset, kept(definition), checkpoints_of(dataset)),
        name=definition.name.table,
        description=definition.comment,
    )


def _at_the_place_of(current: Metadata, dataset: ResolvedDataset) -> Metadata:
    return replace(_new_metadata(dataset), id=current.id, created_time_ms=current.created_time_ms)


def _reset(dataset: ResolvedDataset, table: Table, layout: Layout) -> Metadata:
    """Clear a table and point its flows to new, empty checkpoints.

    A query that still runs on a server is kept from writing, as where a flow is taken over.
    """
    transaction = table.begin()
    current = transaction.snapshot.metadata
    check_owner(dataset, current.configuration)
    metadata = _at_the_place_of(current, dataset)
    for file in transaction.snapshot.files.values():
        transaction.remove(file)
    for key, checkpoint in current.configuration.items():
        if key.startswith(_CHECKPOINTS) and checkpoint.startswith(SPARK_PREFIX):
            flow = key.removeprefix(_CHECKPOINTS)
            for writer in spark_writers(flow, checkpoint, layout, table.store):
                transaction.set_app_version(writer, NO_MORE_BATCHES)
    transaction.set_metadata(metadata)
    transaction.commit("FULL REFRESH")
    return metadata


def _evolve(dataset: ResolvedDataset, table: Table, layout: Layout) -> Metadata:
    transaction = table.begin()
    current = transaction.snapshot.metadata
    properties = current.configuration
    check_owner(dataset, properties)
    check_kind(dataset, properties)
    check_partitioning(dataset, current.partition_columns)
    check_drift(dataset, properties)
    for flow in dataset.flows:
        _check_state(flow, transaction.snapshot, layout=layout, store=table.store)
    is_streaming = dataset.dataset.kind is DatasetKind.STREAMING_TABLE
    schema = widened(dataset, current.schema) if is_streaming else current.schema
    checkpoints = _taken_over(dataset, transaction, layout=layout, store=table.store)
    wanted = replace(
        current,
        schema=schema,
        configuration={
            **properties,
            **defined_properties(dataset, kept(dataset.dataset), checkpoints),
        },
        description=dataset.dataset.comment,
    )
    if wanted != current:
        transaction.set_metadata(wanted)
        transaction.commit("SET UP TABLE")
    return wanted


def _taken_over(
    dataset: ResolvedDataset, transaction: Transaction, *, layout: Layout, store: Store
) -> dict[str, str]:
    """The checkpoints of the flows; new ones for those that Spark ran last.

    A query that still runs on a server is kept from writing: to Delta its batches are in the table.
    """
    snapshot = transaction.snapshot
    checkpoints = checkpoints_of(dataset, snapshot.metadata.configuration)
    for flow in dataset.flows:
        checkpoint = checkpoints[flow.name]
        if not checkpoint.startswith(SPARK_PREFIX):
            continue
        if flow.kind is FlowKind.MATERIALIZED_VIEW:
            checkpoints[flow.name] = uuid.uuid4().hex
        else:
            takeover = Takeover(flow, checkpoint, snapshot.app_versions, layout, store)
            checkpoints[flow.name] = takeover.to_embedded()
            for writer in takeover.spark_writers():
                transaction.set_app_version(writer, NO_MORE_BATCHES)
    return checkpoints


def _check_state(flow: ResolvedFlow, snapshot: Snapshot, *, layout: Layout, store: Store) -> None:
    """Raise where what the flow's operators kept so far is of no use to its query as it is now."""
    name = CHECKPOINT_PROPERTY.format(flow=flow.name)
    if flow.kind is FlowKind.MATERIALIZED_VIEW or name not in snapshot.metadata.configuration:
        return
    checkpoint = snapshot.metadata.configuration[name]
    kept = FlowState(layout.state(flow.name, checkpoint), store)
    try:
        kept.check(
            snapshot.app_versions.get(app_id(flow.name, checkpoint)), flow.state, flow=flow.name
        )
    except MillpondError as error:
        error.where = error.where or flow.flow.location
        raise
