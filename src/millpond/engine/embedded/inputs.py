"""Puts inputs into plans: Delta tables, Parquet files, and no rows at all, as Sail reads them."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

from pyspark.sql.connect import proto

from millpond.delta import Snapshot, write_one_entry_log
from millpond.engine.connect.messages import empty_relation, schema_json
from millpond.engine.protocol import (
    DeltaInput,
    EmptyInput,
    Input,
    ParquetInput,
    PlanInput,
    ServerInput,
)
from millpond.storage import new_scratch_folder

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./=+-]+\Z")


class Inputs:
    """Makes relations of inputs.

    Sail finds no Delta table below a folder with unusual characters in its name. Such a table is
    read through a link of a plain name, in a folder of the engine's own. It fails over a version
    before the newest checkpoint, and over a checkpoint that is damaged or was written since the
    version was chosen; so a version that is known is read from a log of its own.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._links: dict[str, str] = {}
        self._versions: dict[tuple[Any, ...], str] = {}
        self._lock = threading.Lock()

    def relation(self, source: Input) -> Any:
        match source:
            case DeltaInput():
                return self._delta(source)
            case ParquetInput():
                return parquet_relation(source) if source.files else empty_relation(source.schema)
            case EmptyInput():
                return empty_relation(source.schema)
            case PlanInput():
                message = "plans are put in place by what binds them"
                raise TypeError(message)
            case ServerInput():
                message = "there is no server that reads by itself"
                raise TypeError(message)
        assert_never(source)

    def close(self) -> None:
        with self._lock:
            self._links.clear()
            self._versions.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def _delta(self, source: DeltaInput) -> Any:
        relation = proto.Relation()
        reader = relation.read.data_source
        reader.format = "delta"
        if source.snapshot is not None and source.snapshot.version == source.version:
            reader.paths.append(self._version_alone(source.snapshot))
            return relation
        reader.paths.append(self._plain_path(str(Path(source.path).absolute())))
        if source.version is not None:
            reader.options["versionAsOf"] = str(source.version)
        return relation

    def _plain_path(self, path: str) -> str:
        if _PLAIN_PATH.match(path):
            return path
        with self._lock:
            if path not in self._links:
                link = self._own_folder() / f"table{len(self._links)}"
                link.symlink_to(path, target_is_directory=True)
                self._links[path] = str(link)
            return self._links[path]

    def _version_alone(self, snapshot: Snapshot) -> str:
        """A table with the rows of a snapshot, in a folder of the engine's own."""
        version = (str(snapshot.path), snapshot.version, snapshot.entry_identity)
        with self._lock:
            if version in self._versions:
                return self._versions[version]
            own = self._own_folder()
        # Other flows need not wait for a long log; at worst two write the same one.
        folder = Path(tempfile.mkdtemp(prefix="version-", dir=own))
        write_one_entry_log(snapshot, folder)
        with self._lock:
            return self._versions.setdefault(version, str(folder))

    def _own_folder(self) -> Path:
        if self._folder is None:
            self._folder = new_scratch_folder("tables")
        return self._folder.resolve()


def parquet_relation(source: ParquetInput) -> Any:
    """A read of Parquet files. As URLs, their names hold no pattern."""
    relation = proto.Relation()
    reader = relation.read.data_source
    reader.format = "parquet"
    reader.schema = schema_json(source.schema)
    reader.paths.extend(file_url(Path(file)) for file in source.files)
    return relation


def file_url(path: Path) -> str:
    return "file://" + quote(str(path.absolute()))
