"""What resolving a pipeline gives: flows with their plans, columns and dependencies."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millpond.definitions import Dataset, Flow, FlowKind
from millpond.engine.protocol import PlanInput, QueryPlan, StateDescription, TableRead
from millpond.graph.external import ExternalSource, ReadKey
from millpond.graph.replace_using import sequence_text
from millpond.graph.stored_tables import StoredTable
from millpond.names import TableName
from millpond.streaming import StreamTraits

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Key = tuple[str, ...]
StreamKey = tuple[Hashable, ...]
_NUMBER = re.compile(r"#\d+\Z")


def stream_key(read: TableRead, table: StoredTable | None) -> StreamKey:
    """What tells a stream from the other streams of a query.

    Args:
        table: The table that is read, `None` where it is none.
    """
    return (None if table is None else table.place, ReadKey.of(read))


@dataclass(frozen=True)
class StreamRead:
    """A stream that a flow follows.

    Attributes:
        source: Stable name within the flow: the table's name, with a number where the flow reads
            it with other options, too.
        key: What the reads of the stream have in common, and those of others don't.
        table: The table; `None` for what is none.
        options: Reader options, keys in lower case.
        external: What it is where it is no table.
        read: The read of it, likewise.
        views: Names of the views through which it is read, likewise.
        has_metadata: Whether the query asks for `_metadata` of it.
        reads: At how many places the query reads it.
    """

    source: str
    key: StreamKey
    options: Mapping[str, str]
    table: StoredTable | None = None
    external: ExternalSource | None = None
    read: TableRead | None = None
    views: tuple[str, ...] = ()
    has_metadata: bool = False
    reads: int = 1

    @property
    def place(self) -> str:
        """What it reads, which another stream of the flow may read, too."""
        if self.external is not None:
            return self.external.name
        return _NUMBER.sub("", self.source)

    @property
    def traits(self) -> StreamTraits:
        """What tells it from other streams of its flow, also in a later update."""
        from millpond.graph.files import FileRead

        options: dict[str, str | None] = dict(self.options)
        if self.read is not None:
            options = {"format": self.read.format, "schema": self.read.columns, **options}
        return StreamTraits.of(
            self.place,
            options=options,
            is_files=isinstance(self.external, FileRead),
            reads=self.reads,
        )


@dataclass(frozen=True)
class FileKey:
    """How the keys of a REPLACE USING flow stand for files.

    Attributes:
        field: The field of `_metadata` that is the key: `file_path` or `file_name`.
        follows_removals: Whether the key of a file that is gone is emptied.
    """

    field: str
    follows_removals: bool


@dataclass(frozen=True)
class ResolvedFlow:
    """A flow whose query was understood.

    Attributes:
        kind: May differ from the definition's: a table with a batch query becomes a
            materialized view.
        schema: The query's columns.
        streams: Streams that it follows, through views as well.
        inputs: Names of all tables and views that it reads.
        upstream: Keys of the stored datasets of the pipeline that it reads, through views.
        state: What its operators keep from batch to batch.
        keys: Key columns of a REPLACE USING flow, spelled as the query spells them.
        sequence_type: Spark type of the sequence of a REPLACE USING flow.
        sequence_column: The query's column that is the sequence, or `None` for an expression.
        file_key: How its keys stand for files, where files without rows empty them.
    """

    flow: Flow
    kind: FlowKind
    plan: QueryPlan
    schema: StructType
    streams: tuple[StreamRead, ...]
    inputs: tuple[str, ...]
    upstream: frozenset[Key]
    state: StateDescription = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    sequence_type: DataType | None = None
    sequence_column: str | None = None
    file_key: FileKey | None = None

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def sequence_text(self) -> str | None:
        """The sequence of a REPLACE USING flow, as its definition has it."""
        given = self.flow.sequence_by
        return None if given is None else sequence_text(given)


@dataclass(frozen=True)
class ResolvedDataset:
    """A dataset with the columns of its table and the flows that feed it.

    Attributes:
        schema: The columns its table gets; for a view the query's.
        table: Its table, or `None` for a view.
    """

    dataset: Dataset
    schema: StructType
    flows: tuple[ResolvedFlow, ...]
    table: StoredTable | None

    @property
    def name(self) -> TableName:
        return self.dataset.name

    @property
    def key(self) -> Key:
        return self.dataset.name.key

    def as_input(self) -> PlanInput:
        """A view as its readers get it: its query's rows, less those that it drops."""
        return PlanInput(self.flows[0].plan, expectations=self.dataset.expectations)

    @property
    def upstream(self) -> frozenset[Key]:
        return frozenset().union(*(flow.upstream for flow in self.flows))


@dataclass(frozen=True)
class Graph:
    """A resolved pipeline. `datasets` come after everything that they read."""

    datasets: Mapping[Key, ResolvedDataset]

    def tables(self) -> Iterator[ResolvedDataset]:
        """The stored datasets, in order."""
        return (found for found in self.datasets.values() if found.dataset.kind.is_stored)
