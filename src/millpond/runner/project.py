"""An opened pipeline project: its spec, its storage, and the engine once something has to run."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from millpond.definitions import Pipeline
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.graph import Catalog, ExternalSources, Graph, resolve
from millpond.options import check_option
from millpond.project import Spec, find_spec, load_pipeline, load_spec
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
    def pipeline_id(self) -> str:
        """The same for every update on the same storage."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, self.layout.root.absolute().as_uri()))

    def catalog(self, pipeline: Pipeline) -> Catalog:
        return Catalog(
            pipeline,
            layout=self.layout,
            catalog=self.spec.catalog,
            schema=self.spec.schema,
            root=self.spec.root,
            configuration=self.spec.configuration,
        )

    def start_engine(self) -> Engine:
        """Start the engine that the configuration names. The caller closes it."""
        from millpond.engine.embedded import EmbeddedEngine

        return EmbeddedEngine(
            configuration=self.spec.configuration,
            catalog=self.spec.catalog,
            schema=self.spec.schema,
        )


@dataclass(frozen=True)
class LoadedProject:
    """The definitions of a project, resolved as far as they could be."""

    pipeline: Pipeline
    catalog: Catalog
    external: ExternalSources
    graph: Graph
    problems: tuple[MillpondError, ...]


def load(
    project: Project,
    engine: Engine,
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
    pipeline, problems = load_pipeline(project.spec, engine.session)
    catalog = project.catalog(pipeline)
    external = ExternalSources(
        engine,
        layout=project.layout,
        store=project.store if for_update else None,
        root=project.spec.root,
        configuration=project.spec.configuration,
    )
    refreshed = {catalog.name(text).key for text in full_refresh}
    graph, found = resolve(
        pipeline,
        engine,
        catalog,
        external,
        anew=lambda name: full_refresh_all or name.key in refreshed,
    )
    return LoadedProject(pipeline, catalog, external, graph, (*problems, *found))
