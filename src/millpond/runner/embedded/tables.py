"""Brings a table to what its definition asks for before its flows run: create, widen, reset.

What later updates must know of a table stands in its properties: which checkpoint each flow
follows, and the keys and sequence that a REPLACE USING flow filled it with. A full refresh is one
commit that clears the rows and names new checkpoints, so there is no moment in between.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from millpond.definitions import DatasetKind, FlowKind
from millpond.delta import Metadata, Snapshot, Table, widen_schema
from millpond.errors import MillpondError
from millpond.errors.delta import CommitConflictError, SchemaChangeNotAllowedError
from millpond.errors.replace_using import (
    ReplaceUsingKeyDriftError,
    ReplaceUsingSequenceTypeDriftError,
)
from millpond.errors.runner import TableReplacedError, TableSchemaChangedError
from millpond.graph import ResolvedDataset, ResolvedFlow, folder_of, properties
from millpond.state import FlowState
from millpond.storage import Layout, Store

CHECKPOINT_PROPERTY = "millpond.checkpoint.{flow}"
MAX_ATTEMPTS = 20
KIND_PROPERTY = "millpond.datasetKind"
KEYS_PROPERTY = "millpond.replaceUsing.keys"
SEQUENCE_PROPERTY = "millpond.replaceUsing.sequence"


@dataclass(frozen=True)
class ReadyTable:
    """A table that its flows can write to.

    Attributes:
        table_id: The id in its metadata, which tells it from a table put in its place.
        checkpoints: Checkpoint id by flow name.
    """

    table: Table
    table_id: str
    checkpoints: Mapping[str, str]

    def app_id(self, flow: str) -> str:
        """Under this id the table's commits carry the numbers of a flow's batches."""
        return _app_id(flow, self.checkpoints[flow])


def set_up(dataset: ResolvedDataset, store: Store, *, layout: Layout, reset: bool) -> ReadyTable:
    """Create the dataset's table, or bring it to the definition, in at most one commit.

    Raises:
        MillpondError: The table, or what its flows keep, can't get there without a full refresh.
    """
    table = Table(folder_of(dataset.table), store)
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        try:
            metadata = _bring_to_definition(dataset, table, layout=layout, reset=reset)
            break
        except CommitConflictError:
            if not attempts_left:
                raise
    return ReadyTable(
        table=table,
        table_id=metadata.id,
        checkpoints={flow.name: _checkpoint(metadata, flow) for flow in dataset.flows},
    )


def _bring_to_definition(
    dataset: ResolvedDataset, table: Table, *, layout: Layout, reset: bool
) -> Metadata:
    if not table.exists():
        metadata = _new_metadata(dataset)
        table.create(metadata)
        return metadata
    return _reset(dataset, table) if reset else _evolve(dataset, table, layout)


def _new_metadata(dataset: ResolvedDataset) -> Metadata:
    definition = dataset.dataset
    return Metadata(
        id=str(uuid.uuid4()),
        schema=dataset.schema,
        partition_columns=_partition_columns(dataset),
        configuration=_configuration(dataset, checkpoints=_new_checkpoints(dataset)),
        name=definition.name.table,
        description=definition.comment,
    )


def _partition_columns(dataset: ResolvedDataset) -> tuple[str, ...]:
    names = {field.name.lower(): field.name for field in dataset.schema.fields}
    return tuple(names[column.lower()] for column in dataset.dataset.partition_cols)


def _reset(dataset: ResolvedDataset, table: Table) -> Metadata:
    """Clear a table and point its flows to new, empty checkpoints."""
    transaction = table.begin()
    current = transaction.snapshot.metadata
    metadata = replace(
        _new_metadata(dataset), id=current.id, created_time_ms=current.created_time_ms
    )
    for file in transaction.snapshot.files.values():
        transaction.remove(file)
    transaction.set_metadata(metadata)
    transaction.commit("FULL REFRESH")
    return metadata


def _evolve(dataset: ResolvedDataset, table: Table, layout: Layout) -> Metadata:
    transaction = table.begin()
    current = transaction.snapshot.metadata
    kind_before = current.configuration.get(KIND_PROPERTY)
    if kind_before is not None and kind_before != dataset.dataset.kind:
        raise TableReplacedError.from_kind(
            str(dataset.name),
            before=kind_before,
            now=dataset.dataset.kind,
            where=dataset.dataset.location,
        )
    partitioning = _partition_columns(dataset)
    if [c.lower() for c in partitioning] != [c.lower() for c in current.partition_columns]:
        if dataset.dataset.kind is DatasetKind.MATERIALIZED_VIEW:
            return _reset(dataset, table)
        raise TableSchemaChangedError.from_partitioning(
            str(dataset.name),
            before=current.partition_columns,
            now=partitioning,
            where=dataset.dataset.location,
        )
    for flow in dataset.flows:
        if flow.kind is FlowKind.REPLACE_USING:
            _check_drift(flow, dataset, current.configuration)
        _check_state(flow, transaction.snapshot, layout=layout, store=table.store)
    schema = current.schema
    if dataset.dataset.kind is DatasetKind.STREAMING_TABLE:
        try:
            schema = widen_schema(current.schema, dataset.schema)
        except SchemaChangeNotAllowedError as error:
            raise TableSchemaChangedError.from_change(
                str(dataset.name), reason=error.what, where=dataset.dataset.location
            ) from error
    kept = {
        CHECKPOINT_PROPERTY.format(flow=flow.name): _checkpoint(current, flow)
        for flow in dataset.flows
        if CHECKPOINT_PROPERTY.format(flow=flow.name) in current.configuration
    }
    wanted = replace(
        current,
        schema=schema,
        configuration={
            **current.configuration,
            **_configuration(dataset, checkpoints={**_new_checkpoints(dataset), **kept}),
        },
        description=dataset.dataset.comment,
    )
    if wanted != current:
        transaction.set_metadata(wanted)
        transaction.commit("SET UP TABLE")
    return wanted


def _configuration(dataset: ResolvedDataset, *, checkpoints: Mapping[str, str]) -> dict[str, str]:
    configuration = properties.kept(dataset.dataset)
    configuration.setdefault("delta.enableDeletionVectors", "true")
    configuration[KIND_PROPERTY] = dataset.dataset.kind
    configuration.update(checkpoints)
    for flow in dataset.flows:
        if flow.kind is FlowKind.REPLACE_USING:
            configuration[KEYS_PROPERTY] = json.dumps(_keys(flow, dataset))
            configuration[SEQUENCE_PROPERTY] = json.dumps(_sequence(flow))
    return configuration


def _new_checkpoints(dataset: ResolvedDataset) -> dict[str, str]:
    return {CHECKPOINT_PROPERTY.format(flow=flow.name): uuid.uuid4().hex for flow in dataset.flows}


def _app_id(flow: str, checkpoint: str) -> str:
    return f"{flow}/{checkpoint}"


def _checkpoint(metadata: Metadata, flow: ResolvedFlow) -> str:
    return metadata.configuration[CHECKPOINT_PROPERTY.format(flow=flow.name)]


def _check_drift(
    flow: ResolvedFlow, dataset: ResolvedDataset, configuration: Mapping[str, str]
) -> None:
    if KEYS_PROPERTY not in configuration:
        return
    where = flow.flow.location
    stored = json.loads(configuration[KEYS_PROPERTY])
    defined = _keys(flow, dataset)
    # The order of the keys makes no difference to what is replaced.
    if sorted(map(_key_text, stored)) != sorted(map(_key_text, defined)):
        raise ReplaceUsingKeyDriftError.from_flow(
            flow.name,
            target=str(dataset.name),
            stored=[_key_text(key) for key in stored],
            defined=[_key_text(key) for key in defined],
            where=where,
        )
    stored_type = json.loads(configuration[SEQUENCE_PROPERTY])["type"]
    defined_type = _sequence(flow)["type"]
    if stored_type != defined_type:
        raise ReplaceUsingSequenceTypeDriftError.from_flow(
            flow.name,
            target=str(dataset.name),
            stored=stored_type,
            defined=str(defined_type),
            where=where,
        )


def _check_state(flow: ResolvedFlow, snapshot: Snapshot, *, layout: Layout, store: Store) -> None:
    """Raise where what the flow's operators kept so far is of no use to its query as it is now."""
    name = CHECKPOINT_PROPERTY.format(flow=flow.name)
    if flow.kind is FlowKind.MATERIALIZED_VIEW or name not in snapshot.metadata.configuration:
        return
    checkpoint = snapshot.metadata.configuration[name]
    kept = FlowState(layout.state(flow.name, checkpoint), store)
    try:
        kept.check(
            snapshot.app_versions.get(_app_id(flow.name, checkpoint)), flow.state, flow=flow.name
        )
    except MillpondError as error:
        error.where = error.where or flow.flow.location
        raise


def _keys(flow: ResolvedFlow, dataset: ResolvedDataset) -> list[dict[str, str]]:
    types = {field.name.lower(): field.dataType for field in dataset.schema.fields}
    return [{"name": key.lower(), "type": types[key.lower()].simpleString()} for key in flow.keys]


def _sequence(flow: ResolvedFlow) -> dict[str, Any]:
    assert flow.sequence_type is not None
    return {"type": flow.sequence_type.simpleString(), "column": flow.sequence_column}


def _key_text(key: Mapping[str, str]) -> str:
    return f"{key['name']} {key['type']}"
