"""A Spark server as the place where tables are and flows run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from millpond.definitions import Dataset
from millpond.engine.spark import SparkEngine
from millpond.errors import MillpondError
from millpond.errors.spark import NotOnSparkError
from millpond.graph import ExternalSources, Graph, ResolvedDataset
from millpond.graph.empty_files import SETTING as EMPTY_FILES
from millpond.project import Spec
from millpond.runner.runtime import BatchOutcome, ResolvedPipeline, RunningUpdate, TableState
from millpond.runner.schedule import Task
from millpond.runner.spark import batch_program
from millpond.runner.spark.failures import set_up_explained
from millpond.runner.spark.flow_run import FlowRun
from millpond.runner.spark.inputs import ServerInputs
from millpond.runner.spark.places import Places
from millpond.runner.spark.sources import SparkSources
from millpond.runner.spark.table_setup import ReadyTable, set_up
from millpond.runner.spark.tables import SparkTable, SparkTables
from millpond.storage import Layout

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, ...]


class SparkRuntime:
    """Tables of a Spark server's catalog, and its Structured Streaming.

    Args:
        url: Of the server, `sc://host:port`.
    """

    def __init__(self, spec: Spec, *, layout: Layout, url: str) -> None:
        # The server's Python has no millpond: what runs there is sent whole.
        cloudpickle.register_pickle_by_value(batch_program)
        self._spec = spec
        places = Places.of(spec, layout, url)
        self._ready: dict[Key, ReadyTable] = {}
        self.engine = SparkEngine(
            url, configuration=spec.configuration, catalog=spec.catalog, schema=spec.schema
        )
        try:
            self._places = places.proven(spec, self.engine)
        except BaseException:
            self.engine.close()
            raise
        self.tables = SparkTables(
            self.engine,
            self._places,
            root=spec.root,
            configuration=spec.configuration,
            catalog=spec.catalog,
        )

    def external(self, *, keeps_columns: bool) -> ExternalSources:
        del keeps_columns
        return SparkSources(
            self.engine, root=self._spec.root, configuration=self._spec.configuration
        )

    def left_out(self, dataset: Dataset) -> tuple[str, ...]:
        """Delta on Spark has all that there is."""
        del dataset
        return ()

    def set_up(self, dataset: ResolvedDataset, *, reset: bool) -> Mapping[str, str]:
        for flow in dataset.flows:
            if flow.file_key is not None:
                raise NotOnSparkError.of(
                    f"{EMPTY_FILES} of flow {flow.name}",
                    instead="run the pipeline on the embedded engine, or leave the setting out",
                    where=flow.flow.location,
                )
        with set_up_explained(dataset, self.engine):
            ready = set_up(
                dataset, self.engine, self._places, pipeline=self._spec.name, reset=reset
            )
        self._ready[dataset.key] = ready
        return ready.checkpoints

    def batches(self, task: Task, update: RunningUpdate) -> Iterator[BatchOutcome]:
        run = FlowRun(
            task,
            self._ready[task.dataset.key],
            update,
            engine=self.engine,
            places=self._places,
            configuration=self._spec.configuration,
        )
        return run.batches()

    def clean_sources(self, graph: Graph) -> Mapping[str, MillpondError]:
        """Spark's own readers of files do so as they read."""
        del graph
        return {}

    def clean_up(self, dataset: ResolvedDataset) -> None:
        """Checkpoints lie on the server's storage, which only the server can clean."""

    def look_after(self, dataset: ResolvedDataset) -> None:
        """The server's tables are its own to look after."""

    def query(self, text: str, pipeline: ResolvedPipeline) -> pa.Table:
        inputs = ServerInputs("The query", pipeline, self._spec.configuration)
        return self.engine.query(text, inputs, catalog=self._spec.catalog, schema=self._spec.schema)

    def state(self, dataset: ResolvedDataset) -> TableState:
        table = dataset.table
        assert isinstance(table, SparkTable)
        detail = table.detail()
        if detail is None:
            return TableState(None, None, table.place)
        return TableState(table.row_count(), table.newest_version(), detail.location)

    def close(self) -> None:
        self.engine.close()
