"""Sources that are no tables, as Spark reads them by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from millpond.engine.protocol import ServerInput, TableRead
from millpond.engine.spark import SparkEngine
from millpond.errors.spark import NotOnSparkError
from millpond.files.metadata import metadata_field
from millpond.graph import ReadKey
from millpond.options import stream_limits

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# What Spark's open releases do not have.
_ABSENT = {
    "cloudfiles": "The format cloudFiles",
    "read_files": "read_files",
    "read_kafka": "read_kafka",
}
_INSTEAD = (
    "read files with Spark's own reader, which the embedded engine has as well: "
    'spark.readStream.format("csv").schema(...).load(path)'
)


@dataclass(frozen=True)
class SparkSource:
    """One read of something that is no table."""

    name: str
    schema: StructType
    input: ServerInput


class SparkSources:
    """Finds them, each once.

    Args:
        root: What relative paths start from.
    """

    def __init__(
        self, engine: SparkEngine, *, root: Path, configuration: Mapping[str, str]
    ) -> None:
        self._engine = engine
        self._root = root
        self._configuration = configuration
        self._found: dict[tuple[ReadKey, bool], SparkSource] = {}

    def find(self, read: TableRead, *, reader: str, anew: bool = False) -> SparkSource:
        """What a read with a format reads.

        Raises:
            NotOnSparkError: Only the embedded engine reads it.
            QueryAnalysisError: The server can't read it so.
        """
        del reader, anew
        key = (ReadKey.of(read), read.streaming)
        if key not in self._found:
            self._found[key] = self._source(read)
        return self._found[key]

    def _source(self, read: TableRead) -> SparkSource:
        assert read.format is not None
        if read.format in _ABSENT:
            raise NotOnSparkError.of(_ABSENT[read.format], instead=_INSTEAD, where=read.location)
        paths = tuple(self._location(path) for path in read.paths)
        limits = stream_limits(self._configuration) if read.streaming and read.is_files else {}
        given = None if read.columns is None else self._engine.parse_schema(read.columns)
        source = ServerInput(
            format=read.format,
            paths=paths,
            options={**limits, **read.options},
            streaming=read.streaming,
            schema=given,
            gives_schema=given is not None,
        )
        # Files tell more columns than are given where their folders are named after values.
        schema = self._engine.columns_of(source, where=read.location)
        if read.is_files:
            source = replace(source, schema=schema, gives_schema=given is not None)
            schema = type(schema)([*schema.fields, metadata_field()])
        return SparkSource(" ".join(paths) or read.format, schema, replace(source, schema=schema))

    def _location(self, path: str) -> str:
        return path if urlparse(path).scheme else str((self._root / path).absolute())
