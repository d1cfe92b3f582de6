"""An opened pipeline project: its spec, its storage, and what its flows run on."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from millpond.definitions import Pipeline
from millpond.engine.spark.server import is_url
from millpond.errors import MillpondError
from millpond.graph import Catalog, resolve
from millpond.options import EMBEDDED, ENGINE, check_option
from millpond.profiling import phase
from millpond.project import Spec, find_spec, load_pipeline, load_spec
from millpond.runner.runtime import ResolvedPipeline, Runtime
from millpond.storage import Layout, LocalStore, Store


@dataclass(frozen=True)
class Project:
    """A pipeline folder that was found and whose spec was read."""

    spec: Spec
    layout: Layout
    store: Store

    @classmethod
    def open(cls, spec_path: Path | None = None, *, conf: Mapping[str, str] | None = None) -> Self:
        """Find and read the spec.

        Args:
            spec_path: The spec, or `None` to look in the current folder and above it.
            conf: Configuration that overrides the spec's.

        Raises:
            MillpondError: There is no spec, or it is wrong.
        """
        spec = load_spec(spec_path if spec_path is not None else find_spec(Path.cwd()))
        if conf:
            spec = replace(spec, configuration={**spec.configuration, **conf})
            for key in conf:
                problem = check_option(key, spec.configuration)
                if problem is not None:
                    raise problem
        return cls(spec=spec, layout=Layout(spec.storage), store=LocalStore())

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def engine(self) -> str:
        """`embedded`, or the address of a Spark Connect server."""
        if ENGINE.key in self.spec.configuration:
            return ENGINE.read(self.spec.configuration)
        address = os.environ.get("SPARK_REMOTE", "")
        return address if is_url(address) else EMBEDDED

    @property
    def pipeline_id(self) -> str:
        """The same for every update on the same storage."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, self.layout.root.absolute().as_uri()))

    @phase("start engine")
    def start_runtime(self) -> Runtime:
        """Start what the configuration names. The caller closes it."""
        if self.engine != EMBEDDED:
            from millpond.runner.spark import SparkRuntime

            return SparkRuntime(self.spec, layout=self.layout, url=self.engine)
        from millpond.runner.embedded import EmbeddedRuntime

        return EmbeddedRuntime(self.spec, layout=self.layout, store=self.store)


@dataclass(frozen=True)
class LoadedProject:
    """The definitions of a project, resolved as far as they could be."""

    pipeline: Pipeline
    resolved: ResolvedPipeline
    problems: tuple[MillpondError, ...]


@phase("read source files")
def load(
    project: Project,
    runtime: Runtime,
    *,
    for_update: bool = False,
    full_refresh: Sequence[str] = (),
    full_refresh_all: bool = False,
) -> LoadedProject:
    """Read the source files and resolve what they define.

    Reads no data, but for the columns of files that the user does not give.

    Args:
        for_update: Whether such columns are kept for later updates.
        full_refresh: Tables that the update will fill anew.
        full_refresh_all: Whether it will fill all tables anew.
    """
    spec = project.spec
    pipeline, problems = load_pipeline(spec, runtime.engine.session)
    catalog = Catalog(pipeline, runtime.tables, catalog=spec.catalog, schema=spec.schema)
    external = runtime.external(keeps_columns=for_update)
    refreshed = {catalog.name(text).key for text in full_refresh}
    graph, found = resolve(
        pipeline,
        runtime.engine,
        catalog,
        external,
        anew=lambda name: full_refresh_all or name.key in refreshed,
    )
    resolved = ResolvedPipeline(graph, catalog, external)
    return LoadedProject(pipeline, resolved, (*problems, *found))
