"""Where a Spark server keeps a pipeline's checkpoints, and tables below its storage."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

from millpond.engine.spark import SparkEngine
from millpond.engine.spark.connection import connected
from millpond.engine.spark.server import is_on_this_machine, shown
from millpond.errors.spark import StorageNotSharedError
from millpond.names import TableName
from millpond.options import SPARK_STORAGE, SPARK_TABLES
from millpond.project import Spec
from millpond.storage import Layout

_GLOB = re.compile(r"[\\{}\[\]*?]")


@dataclass(frozen=True)
class Places:
    """Locations as the server sees them.

    Attributes:
        root: The storage, without a slash at its end.
        layout: The storage folder on this machine, whose order the server's storage shares.
        has_tables: Whether new tables lie below it, and not where the catalog puts them.
        sees_this_machine: Whether folders of this machine are the server's, too.
    """

    root: str
    layout: Layout
    has_tables: bool
    sees_this_machine: bool

    @classmethod
    def of(cls, spec: Spec, layout: Layout, url: str) -> Self:
        """Find them.

        Raises:
            StorageNotSharedError: The server is elsewhere, and the spec names no storage for it.
        """
        is_local = is_on_this_machine(url)
        root = SPARK_STORAGE.read(spec.configuration)
        if root is None:
            if not is_local:
                raise StorageNotSharedError.from_url(shown(url), key=SPARK_STORAGE.key)
            root = str(layout.root.absolute())
        has_tables = SPARK_TABLES.read(spec.configuration) == "storage"
        return cls(root, layout, has_tables, is_local)

    def proven(self, spec: Spec, engine: SparkEngine) -> Self:
        """The same, once the server has shown whether it sees the folders of this machine.

        An address of this machine may be the end of a tunnel to another one, or a container's.

        Raises:
            StorageNotSharedError: It does not, and the spec names no storage for it.
        """
        if not self.sees_this_machine or _sees(engine, self.layout.root.absolute()):
            return self
        if SPARK_STORAGE.read(spec.configuration) is None:
            raise StorageNotSharedError.from_url(shown(engine.url), key=SPARK_STORAGE.key)
        return replace(self, sees_this_machine=False)

    @property
    def are_shared(self) -> bool:
        """Whether this machine has the same folders at the same places."""
        return self.sees_this_machine and self.root == str(self.layout.root.absolute())

    def checkpoint(self, flow: str, checkpoint_id: str) -> str:
        """The checkpoint of a streaming query."""
        return self._under_root(self.layout.checkpoint(flow, checkpoint_id))

    def query_of(self, flow: str, checkpoint_id: str, engine: SparkEngine) -> str | None:
        """The id of the streaming query that a checkpoint is of; `None` where there is none."""
        from pyspark.errors import PySparkException

        metadata = _plain(f"{self.checkpoint(flow, checkpoint_id)}/metadata")
        try:
            rows = engine.asked(lambda session: session.read.text(metadata).collect())
        except PySparkException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise
        return str(json.loads(rows[0].value)["id"])

    def table(self, name: TableName) -> str | None:
        """Where a table is to be, or `None` where the catalog says."""
        return self._under_root(self.layout.table(name)) if self.has_tables else None

    def _under_root(self, path: object) -> str:
        below = str(path).removeprefix(str(self.layout.root)).strip("/")
        return f"{self.root}/{below}"


def _sees(engine: SparkEngine, folder: Path) -> bool:
    """Whether the server finds a file that was just made in a folder, or above where it will be.

    Where none can be made, nothing can be shared either, and an update says why; so the address is
    believed.
    """
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        marker = NamedTemporaryFile(dir=there, prefix="millpond-seen-")  # noqa: SIM115 - see below
    except OSError:
        return True
    with marker:
        return _finds(engine, marker.name)


def _finds(engine: SparkEngine, path: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        with connected(engine.url):
            engine.asked(lambda session: session.read.text(_plain(path)).schema)
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


def _plain(path: str) -> str:
    """A path as a read of Spark's takes it, which looks for a pattern."""
    return _GLOB.sub(r"\\\g<0>", path)
