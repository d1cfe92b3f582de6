"""What later updates must know of a table: it stands in the table's own properties.

Which checkpoint each flow follows, and the keys and sequence that a REPLACE USING flow filled it
with. A definition that contradicts what is there needs a full refresh.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millpond.definitions import DatasetKind, FlowKind
from millpond.delta import widen_schema
from millpond.errors.delta import SchemaChangeNotAllowedError
from millpond.errors.replace_using import (
    ReplaceUsingKeyDriftError,
    ReplaceUsingSequenceTypeDriftError,
)
from millpond.errors.runner import (
    TableNotFromPipelineError,
    TableReplacedError,
    TableSchemaChangedError,
)
from millpond.graph import ResolvedDataset, ResolvedFlow

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# How ids of checkpoints begin that Spark writes.
SPARK_PREFIX = "spark-"
# Under this number of a batch Delta takes all that a writer may still send for applied.
NO_MORE_BATCHES = 1 << 62
CHECKPOINT_PROPERTY = "millpond.checkpoint.{flow}"
KIND_PROPERTY = "millpond.datasetKind"
PIPELINE_PROPERTY = "millpond.pipeline"
KEYS_PROPERTY = "millpond.replaceUsing.keys"
SEQUENCE_PROPERTY = "millpond.replaceUsing.sequence"


def app_id(flow: str, checkpoint: str) -> str:
    """Under this id the table's commits carry the numbers of a flow's batches."""
    return f"{flow}/{checkpoint}"


def partition_columns(dataset: ResolvedDataset) -> tuple[str, ...]:
    """The partition columns, spelled as the table's columns are."""
    names = {field.name.lower(): field.name for field in dataset.schema.fields}
    return tuple(names[column.lower()] for column in dataset.dataset.partition_cols)


def checkpoints_of(
    dataset: ResolvedDataset, properties: Mapping[str, str] | None = None, *, prefix: str = ""
) -> dict[str, str]:
    """The checkpoint id of each flow by its name: the one that the table names, or a new one.

    Args:
        properties: The table's, or `None` where all flows begin anew.
        prefix: How a new one begins.
    """
    known = properties or {}
    return {
        flow.name: known.get(CHECKPOINT_PROPERTY.format(flow=flow.name))
        or f"{prefix}{uuid.uuid4().hex}"
        for flow in dataset.flows
    }


def defined_properties(
    dataset: ResolvedDataset, given: Mapping[str, str], checkpoints: Mapping[str, str]
) -> dict[str, str]:
    """The properties that a definition asks for.

    Args:
        given: Those that the user writes.
    """
    found = dict(given)
    found.setdefault("delta.enableDeletionVectors", "true")
    found[KIND_PROPERTY] = dataset.dataset.kind
    for flow, checkpoint in checkpoints.items():
        found[CHECKPOINT_PROPERTY.format(flow=flow)] = checkpoint
    for resolved in dataset.flows:
        if resolved.kind is FlowKind.REPLACE_USING:
            found[KEYS_PROPERTY] = json.dumps(_keys(resolved, dataset))
            found[SEQUENCE_PROPERTY] = json.dumps(_sequence(resolved))
    return found


def check_owner(
    dataset: ResolvedDataset, properties: Mapping[str, str], *, pipeline: str | None = None
) -> None:
    """Raise where the table was not made by this pipeline, so its rows are somebody else's.

    Args:
        pipeline: The name of this one, where the table lies among those of others.

    Raises:
        TableNotFromPipelineError: Another program made it, or another pipeline.
    """
    name, where = str(dataset.name), dataset.dataset.location
    if KIND_PROPERTY not in properties:
        raise TableNotFromPipelineError.from_table(name, where=where)
    maker = properties.get(PIPELINE_PROPERTY)
    if pipeline is not None and maker is not None and maker != pipeline:
        raise TableNotFromPipelineError.from_other_pipeline(
            name, maker=maker, property_name=PIPELINE_PROPERTY, where=where
        )


def check_kind(dataset: ResolvedDataset, properties: Mapping[str, str]) -> None:
    """Raise where the table was made for a dataset of another kind.

    Raises:
        TableReplacedError: It was.
    """
    before = properties[KIND_PROPERTY]
    if before != dataset.dataset.kind:
        raise TableReplacedError.from_kind(
            str(dataset.name),
            before=before,
            now=dataset.dataset.kind,
            where=dataset.dataset.location,
        )


def is_still_a_view(dataset: ResolvedDataset, properties: Mapping[str, str]) -> bool:
    """Whether a materialized view has the table of one, and no query that follows a stream."""
    kinds = {dataset.dataset.kind, properties.get(KIND_PROPERTY)}
    return kinds == {DatasetKind.MATERIALIZED_VIEW}


def is_partitioned_otherwise(dataset: ResolvedDataset, current: Sequence[str]) -> bool:
    """Whether a table would have to be made anew for its partitioning."""
    wanted = partition_columns(dataset)
    return [column.lower() for column in wanted] != [column.lower() for column in current]


def check_partitioning(dataset: ResolvedDataset, current: Sequence[str]) -> None:
    """Refuse another partitioning of a streaming table, whose rows stay.

    Raises:
        TableSchemaChangedError: It has another.
    """
    is_streaming = dataset.dataset.kind is DatasetKind.STREAMING_TABLE
    if is_streaming and is_partitioned_otherwise(dataset, current):
        raise TableSchemaChangedError.from_partitioning(
            str(dataset.name),
            before=tuple(current),
            now=partition_columns(dataset),
            where=dataset.dataset.location,
        )


def widened(dataset: ResolvedDataset, current: StructType) -> StructType:
    """The columns that a streaming table is to have, whose rows stay.

    Raises:
        TableSchemaChangedError: It can't get there.
    """
    try:
        return widen_schema(current, dataset.schema)
    except SchemaChangeNotAllowedError as error:
        raise TableSchemaChangedError.from_change(
            str(dataset.name), reason=error.what, where=dataset.dataset.location
        ) from error


def check_drift(dataset: ResolvedDataset, properties: Mapping[str, str]) -> None:
    """Raise where a REPLACE USING flow has other keys or another sequence than before.

    Raises:
        ReplaceUsingKeyDriftError: Other keys.
        ReplaceUsingSequenceTypeDriftError: A sequence of another type.
    """
    for flow in dataset.flows:
        if flow.kind is FlowKind.REPLACE_USING and KEYS_PROPERTY in properties:
            _check_flow(flow, dataset, properties)


def _check_flow(
    flow: ResolvedFlow, dataset: ResolvedDataset, properties: Mapping[str, str]
) -> None:
    where = flow.flow.location
    stored = json.loads(properties[KEYS_PROPERTY])
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
    stored_type = json.loads(properties[SEQUENCE_PROPERTY])["type"]
    defined_type = _sequence(flow)["type"]
    if stored_type != defined_type:
        raise ReplaceUsingSequenceTypeDriftError.from_flow(
            flow.name,
            target=str(dataset.name),
            stored=stored_type,
            defined=str(defined_type),
            where=where,
        )


def _keys(flow: ResolvedFlow, dataset: ResolvedDataset) -> list[dict[str, str]]:
    types = {field.name.lower(): field.dataType for field in dataset.schema.fields}
    return [{"name": key.lower(), "type": types[key.lower()].simpleString()} for key in flow.keys]


def _sequence(flow: ResolvedFlow) -> dict[str, Any]:
    assert flow.sequence_type is not None
    return {"type": flow.sequence_type.simpleString(), "column": flow.sequence_column}


def _key_text(key: Mapping[str, str]) -> str:
    return f"{key['name']} {key['type']}"
