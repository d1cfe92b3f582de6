"""Updates over a folder of files that share one engine, so that each takes little time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from millpond.engine.embedded import EmbeddedEngine
from millpond.errors import MillpondError
from millpond.runner import Project, UpdateResult, dry_run, run_query, run_update
from millpond.runner.embedded import EmbeddedRuntime
from millpond.storage import LocalStore, Store
from tests.pipeline_folder import PipelineFolder

# Long ago, so that nothing waits for files to settle.
BEGINNING_S = 1_600_000_000


class Died(BaseException):
    """The process is gone: whatever is asked of the store from here on does not happen."""


class DyingStore(LocalStore):
    """Does nothing any more from the n-th write on."""

    def __init__(self, writes_left: int) -> None:
        self.writes_left = writes_left

    def _write(self, name: str, *arguments: Any) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise Died
        getattr(LocalStore, name)(self, *arguments)

    def put(self, *arguments: Any) -> None:
        self._write("put", *arguments)

    def put_if_absent(self, *arguments: Any) -> None:
        self._write("put_if_absent", *arguments)

    def append(self, *arguments: Any) -> None:
        self._write("append", *arguments)

    def sync(self, *arguments: Any) -> None:
        self._write("sync", *arguments)

    def link(self, *arguments: Any) -> None:
        self._write("link", *arguments)

    def remove(self, *arguments: Any) -> None:
        self._write("remove", *arguments)


class SharedRuntime(EmbeddedRuntime):
    """A runtime whose engine several updates use in turn."""

    def close(self) -> None:
        """The engine is closed by who made it."""


@dataclass(frozen=True)
class ProjectOnEngine(Project):
    """A project whose updates share an engine."""

    engine: EmbeddedEngine | None = None

    def start_runtime(self) -> SharedRuntime:
        return SharedRuntime(self.spec, layout=self.layout, store=self.store, engine=self.engine)


def on_engine(project: Project, engine: EmbeddedEngine) -> ProjectOnEngine:
    return ProjectOnEngine(project.spec, project.layout, project.store, engine)


@contextmanager
def started_engine() -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(catalog="main", schema="sales")
    try:
        yield engine
    finally:
        engine.close()


@dataclass(frozen=True)
class Suppliers:
    """A pipeline, and the folder of files that it reads.

    Attributes:
        pipeline: The pipeline's folder.
        engine: What its updates run on.
        sent: The folder of files.
    """

    pipeline: PipelineFolder
    engine: EmbeddedEngine
    sent: Path

    def send(self, name: str, content: str | bytes, *, at_s: float = 0) -> Path:
        """Write a file, or write it again, that was changed a given time after the beginning."""
        path = self.sent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        time_ns = BEGINNING_S * 10**9 + round(at_s * 10**9)
        os.utime(path, ns=(time_ns, time_ns))
        return path

    def uri(self, name: str) -> str:
        """How `_metadata.file_path` and messages call a file."""
        return "file:" + quote(str(self.sent / name))

    def query(self, text: str, *, name: str = "t", properties: str = "") -> None:
        """Make a streaming table the pipeline: the query, in which SENT is the folder."""
        self.write(f"CREATE OR REFRESH STREAMING TABLE {name} {properties} AS {text};")

    def write(self, text: str) -> None:
        """Make this the pipeline. SENT is the folder of files."""
        self.pipeline.write("pipeline.sql", text.replace("SENT", str(self.sent)))

    def write_python(self, text: str) -> None:
        text = f"from pyspark import pipelines as dp\n{text}"
        self.pipeline.write("pipeline.py", text.replace("SENT", str(self.sent)))

    def project(self, store: Store | None = None) -> ProjectOnEngine:
        found = on_engine(self.pipeline.project(), self.engine)
        return (
            found
            if store is None
            else ProjectOnEngine(found.spec, found.layout, store, self.engine)
        )

    def update(self, *, store: Store | None = None, **selection: Any) -> UpdateResult:
        return run_update(self.project(store), **selection)

    def updated(self, **selection: Any) -> None:
        """An update that must go well."""
        result = self.update(**selection)
        assert not result.problems, result.problems
        errors = [flow.error for flow in result.flows if flow.error is not None]
        assert not errors, errors

    def error(self, **selection: Any) -> BaseException:
        """The one error of an update, of its flow or of its source files."""
        result = self.update(**selection)
        errors = [*result.problems, *(flow.error for flow in result.flows if flow.error)]
        assert len(errors) == 1, errors
        return errors[0]

    def dry_run(self) -> tuple[MillpondError, ...]:
        return dry_run(self.project())

    def asked(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query over the pipeline, in any order."""
        return run_query(self.project(), sql.replace("SENT", str(self.sent))).to_pylist()

    def rows(self, name: str = "t") -> list[tuple[Any, ...]]:
        return self.pipeline.rows(name)
