"""What an update asks of the place where its tables are and its flows run.

There are two: this machine, and a Spark server. All that an update is beside (which flows run, in
which order, what is recorded of them) is the same for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millpond.definitions import Dataset
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.flows import BatchResult
from millpond.graph import Catalog, ExternalSources, Graph, ResolvedDataset, StoredTables
from millpond.maintenance import Upkeep
from millpond.runner.schedule import Task
from millpond.streaming import DataSize

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class BatchOutcome:
    """What one micro-batch did.

    Attributes:
        backlog: What the update will still read for this flow, as far as it is known.
        files_read: How many files it read of sources that are files, if it has any and it is known.
    """

    number: int
    result: BatchResult
    backlog: DataSize
    files_read: int | None = None


@dataclass(frozen=True)
class UncountedBatches:
    """Batches whose rows are in the table, and of which no event tells all that it should.

    Attributes:
        first: Their first number.
        last: Their last.
        rows_are_counted: Whether the rows that they wrote are counted; those that expectations
            dropped, and how many met them, are not.
    """

    first: int
    last: int
    rows_are_counted: bool


@dataclass(frozen=True)
class TableState:
    """A table as it is now.

    Attributes:
        rows: `None` before the first update.
        version: Of the Delta table, likewise.
        location: Where it is.
    """

    rows: int | None
    version: int | None
    location: str | None


@dataclass(frozen=True)
class ResolvedPipeline:
    """A pipeline whose names are resolved, as far as they could be."""

    graph: Graph
    catalog: Catalog
    external: ExternalSources


@dataclass(frozen=True)
class RunningUpdate:
    """What the flows of one update share.

    Attributes:
        stop: Set to make flows end after the batch that they are at.
        warn_of_files: Told why a flow passed files over, by their URIs; and which files it read
            that have no value for any column.
        warn_of_batches: Told which committed batches could not be counted whole.
    """

    id: str
    pipeline: ResolvedPipeline
    stop: threading.Event
    warn_of_files: Callable[[Task, Mapping[str, str], Sequence[str]], None]
    warn_of_batches: Callable[[Task, UncountedBatches], None]


class Runtime(Protocol):
    """Where tables are and flows run."""

    @property
    def engine(self) -> Engine: ...

    @property
    def tables(self) -> StoredTables: ...

    def external(self, *, keeps_columns: bool) -> ExternalSources:
        """What reads sources that are no tables.

        Args:
            keeps_columns: Whether columns that it infers are kept for later updates.
        """
        ...

    def left_out(self, dataset: Dataset) -> tuple[str, ...]:
        """Properties that a definition turns on and its table does without."""
        ...

    def set_up(self, dataset: ResolvedDataset, *, reset: bool) -> Mapping[str, str]:
        """Create a dataset's table, or bring it to its definition.

        It may take several commits; after each of them the table is right as it is.

        Args:
            reset: Clear it, and let its flows begin anew.

        Returns:
            The checkpoint id of each of its flows, by name.

        Raises:
            MillpondError: The table, or what its flows keep, can't get there without a full
                refresh.
        """
        ...

    def batches(self, task: Task, update: RunningUpdate) -> Iterator[BatchOutcome]:
        """Run a flow's batches, yielding what each did once it is committed.

        Raises:
            MillpondError: The flow failed; batches before are committed, nothing of this one is.
            FlowStoppedError: The update is being stopped.
        """
        ...

    def clean_sources(self, graph: Graph) -> Mapping[str, MillpondError]:
        """Remove or move files that streams were to be rid of, once all flows have ended.

        Returns:
            Why some could not be, by flow.
        """
        ...

    def clean_up(self, dataset: ResolvedDataset) -> None:
        """Remove what full refreshes left behind of a dataset that was set up."""
        ...

    def look_after(self, dataset: ResolvedDataset) -> Upkeep | None:
        """Tidy the table of a dataset that was set up, once its flows have ended.

        Returns:
            What was done, now and between the batches; `None` where that is others' to do.
        """
        ...

    def query(self, text: str, pipeline: ResolvedPipeline) -> pa.Table:
        """Run one SQL query for a user over the pipeline's tables, views and sources."""
        ...

    def state(self, dataset: ResolvedDataset) -> TableState:
        """A stored dataset's table as it is now."""
        ...

    def close(self) -> None: ...
