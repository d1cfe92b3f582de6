"""This machine as the place where tables are and flows run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from millpond.definitions import Dataset, DatasetKind
from millpond.engine.embedded import EmbeddedEngine
from millpond.errors import MillpondError
from millpond.graph import (
    FolderTables,
    Graph,
    LocalSources,
    ResolvedDataset,
    delta_table,
    properties,
)
from millpond.maintenance import Upkeep
from millpond.profiling import phase
from millpond.project import Spec
from millpond.runner.embedded.file_sources import FileSources
from millpond.runner.embedded.flow_run import FlowRun
from millpond.runner.embedded.inputs import UserQueryInputs
from millpond.runner.embedded.tables import ReadyTable, set_up
from millpond.runner.runtime import BatchOutcome, ResolvedPipeline, RunningUpdate, TableState
from millpond.runner.schedule import Task
from millpond.runner.upkeep import upkeep_of
from millpond.storage import Layout, Store, scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, ...]


class EmbeddedRuntime:
    """Tables in folders, and Sail in this process.

    Args:
        engine: One that runs already, or `None` to start one. Closed with the runtime.
    """

    def __init__(
        self, spec: Spec, *, layout: Layout, store: Store, engine: EmbeddedEngine | None = None
    ) -> None:
        self._spec = spec
        self._layout = layout
        self._store = store
        self._ready: dict[Key, ReadyTable] = {}
        self._upkeep: dict[Key, Upkeep] = {}
        self._file_sources = FileSources()
        self.tables = FolderTables(layout, store, root=spec.root, configuration=spec.configuration)
        self.engine = engine or EmbeddedEngine(
            configuration=spec.configuration, catalog=spec.catalog, schema=spec.schema
        )

    def external(self, *, keeps_columns: bool) -> LocalSources:
        return LocalSources(
            self.engine,
            layout=self._layout,
            store=self._store if keeps_columns else None,
            root=self._spec.root,
            configuration=self._spec.configuration,
        )

    def left_out(self, dataset: Dataset) -> tuple[str, ...]:
        return properties.left_out(dataset)

    def set_up(self, dataset: ResolvedDataset, *, reset: bool) -> Mapping[str, str]:
        ready = set_up(dataset, layout=self._layout, reset=reset)
        self._ready[dataset.key] = ready
        self._upkeep[dataset.key] = upkeep_of(
            dataset, ready.table, layout=self._layout, checkpoints=ready.checkpoints
        )
        return ready.checkpoints

    def batches(self, task: Task, update: RunningUpdate) -> Iterator[BatchOutcome]:
        flow_run = FlowRun(
            update=update,
            engine=self.engine,
            layout=self._layout,
            store=self._store,
            configuration=self._spec.configuration,
            file_sources=self._file_sources,
        )
        ready, upkeep = self._ready[task.dataset.key], self._upkeep[task.dataset.key]
        for outcome in flow_run.batches(task, ready):
            yield outcome
            with phase("upkeep"):
                upkeep.after_batch()

    def clean_sources(self, graph: Graph) -> Mapping[str, MillpondError]:
        return dict(self._file_sources.clean(graph))

    def clean_up(self, dataset: ResolvedDataset) -> None:
        """Remove checkpoints that no table names any more; a full refresh leaves them behind."""
        if dataset.dataset.kind is not DatasetKind.STREAMING_TABLE:
            return
        for flow, checkpoint_id in self._ready[dataset.key].checkpoints.items():
            folder = self._layout.checkpoint(flow, checkpoint_id).parent
            # What can't be looked at now is looked at by the next update.
            with suppress(OSError):
                for name in self._store.list(folder):
                    if name != checkpoint_id:
                        self._store.remove_tree(folder / name)

    def look_after(self, dataset: ResolvedDataset) -> Upkeep:
        upkeep = self._upkeep[dataset.key]
        upkeep.finish()
        return upkeep

    def query(self, text: str, pipeline: ResolvedPipeline) -> pa.Table:
        with scratch_folder("query") as folder:
            inputs = UserQueryInputs(pipeline, folder=folder)
            return self.engine.query(
                text, inputs, catalog=self._spec.catalog, schema=self._spec.schema
            )

    def state(self, dataset: ResolvedDataset) -> TableState:
        table = delta_table(dataset.table)
        if not table.exists():
            return TableState(None, None, str(table.path))
        snapshot = table.snapshot()
        return TableState(snapshot.row_count, snapshot.version, str(table.path))

    def close(self) -> None:
        self.engine.close()
