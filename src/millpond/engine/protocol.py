"""What millpond asks of an engine that runs Spark queries.

A query is a plan before it runs: it is searched for the tables it reads, each of which is then
bound to an input (a version of a Delta table, the files of a micro-batch, another plan), and only
the bound plan runs. An engine never looks a table of the pipeline up by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from millpond.definitions import Expectation, Query
from millpond.errors import SourceLocation

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType

    from millpond.delta import Snapshot, WrittenFile
    from millpond.engine.shapes import Operator

# Columns that a staged batch may carry beside the query's own. No query may name a column so.
SEQUENCE_COLUMN = "__millpond_sequence"
EXPECTATION_COLUMN = "__millpond_expectation_{index}"
# Formats of `TableRead` that are no files.
_NO_FILES = frozenset({"rate", "rate-micro-batch", "kafka"})


@dataclass(frozen=True)
class TableRead:
    """One place where a query reads a table, or what is read like one: files, a topic.

    Attributes:
        name: The parts of the name as written, one to three, or empty where there is none.
        path: The location for `format("delta").load(path)` and ``delta.`path` ``.
        format: Of what is no table, in lower case: `csv`, `json`, `parquet`, `avro`, `text`, `xml`,
            `binaryfile`, `cloudfiles`, `read_files`, `rate`, `rate-micro-batch`, `kafka`. `None`
            for a table.
        paths: Locations of files, as written.
        columns: The columns that the user gives for files, as DDL or JSON.
        streaming: Whether it is read as a stream.
        options: Reader options, keys in lower case.
        option_names: By those keys, the names as the user wrote them, for messages.
        location: The line of user code that reads it.
        catalog: Default catalog for a name of fewer than three parts, where the query has one.
        schema: Default schema for a name of one part, where the query has one.
        metadata: Whether the query asks for `_metadata` of the files.
    """

    name: tuple[str, ...] = ()
    path: str | None = None
    format: str | None = None
    paths: tuple[str, ...] = ()
    columns: str | None = None
    streaming: bool = False
    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    option_names: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    location: SourceLocation | None = None
    catalog: str | None = None
    schema: str | None = None
    metadata: bool = field(default=False, compare=False)

    @property
    def is_files(self) -> bool:
        """Whether it reads files, whose rows have `_metadata`."""
        return self.format is not None and self.format not in _NO_FILES

    @property
    def written_options(self) -> Mapping[str, str]:
        """The options by their names as the user wrote them."""
        return {self.option_names.get(key, key): value for key, value in self.options.items()}


@dataclass(frozen=True)
class DeltaInput:
    """A Delta table, as of a version or the newest.

    Attributes:
        snapshot: The table at that version, for an engine that need not read its log then.
    """

    path: str
    version: int | None = None
    snapshot: Snapshot | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        return cls(str(snapshot.path), snapshot.version, snapshot)


@dataclass(frozen=True)
class ParquetInput:
    """Plain Parquet files that hold the columns of `schema`; a column that a file lacks is null.

    Attributes:
        written: The same files, where they were written for this read alone and lack no column.
    """

    files: tuple[str, ...]
    schema: StructType
    written: tuple[WrittenFile, ...] = ()

    @classmethod
    def of_written(cls, files: Sequence[WrittenFile], schema: StructType) -> Self:
        """Files that were written for one read."""
        return cls(tuple(str(file.path) for file in files), schema, tuple(files))


@dataclass(frozen=True)
class EmptyInput:
    """No rows, of a known schema: enough to analyse a query.

    Attributes:
        source: What tells a stream from others, the same in each update; may be unknown.
    """

    schema: StructType
    source: str = ""


@dataclass(frozen=True)
class PlanInput:
    """The plan of a view, put in the place of its name; its reads are bound in turn.

    Attributes:
        expectations: Those of the view. Rows that fail one with the action DROP are left out, and
            one with the action FAIL fails the query that reads the view.
    """

    plan: QueryPlan
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class ServerInput:
    """What a server reads by itself: a table of its catalog, files, a topic.

    Attributes:
        table: The name as SQL text, quoted, of a table in the server's catalog.
        format: Of what is none, as Spark calls it; `delta` for a table at a location.
        schema: Its columns; with `has_metadata` those of files and one more, for `_metadata`.
        gives_schema: Whether the server is told the columns, and need not find them out.
    """

    table: str | None = None
    format: str | None = None
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    streaming: bool = False
    schema: StructType | None = None
    gives_schema: bool = False
    has_metadata: bool = False


# By operator, what it keeps, as JSON; empty for a query without state. A flow can go on with the
# state of an earlier update as long as the description is the same.
StateDescription = Mapping[str, Mapping[str, Any]]

Input = DeltaInput | ParquetInput | EmptyInput | PlanInput | ServerInput
Binder = Callable[[TableRead], Input]


class QueryPlan(Protocol):
    """An engine's form of one query, not yet bound."""

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """Every table that the query names, in the order of its text, streams and others."""
        ...

    @property
    def operators(self) -> tuple[Operator, ...]:
        """What the query does, step by step, from its sources on."""
        ...


@dataclass(frozen=True)
class StagedBatch:
    """The rows of one micro-batch, computed once and written as Parquet.

    Attributes:
        files: Parquet files; none where the query gave no rows.
        schema: The query's own columns, without the two kinds of helper column.
        sequence_type: Spark type of `SEQUENCE_COLUMN`, which the files then carry, or `None`.
        expectations: Each with a boolean column `EXPECTATION_COLUMN` of its index, never null:
            whether the row meets it.
        written: The same files, where a table may take them for its own.
    """

    files: tuple[Path, ...]
    schema: StructType
    sequence_type: object | None = None
    expectations: tuple[Expectation, ...] = ()
    written: tuple[WrittenFile, ...] = ()


class Engine(Protocol):
    """Runs Spark queries. Safe to use from several threads after the source files were read."""

    @property
    def session(self) -> SparkSession:
        """The session that source files see as `spark`."""
        ...

    def defining(self, binder: Binder) -> AbstractContextManager[None]:
        """While open, user code may build queries and ask for schemas, but not run or write.

        `binder` gives the input for each table that user code asks the schema of.
        """
        ...

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise for settings of a flow that the engine would take, and not do.

        Raises:
            EngineConfigurationError: There is one.
        """
        ...

    def plan(self, query: Query) -> QueryPlan:
        """Evaluate a flow's query, calling the user's function where it is one.

        Raises:
            MillpondError: The text can't be parsed, the function fails or returns no DataFrame, or
                the query holds an operation that no flow supports.
        """
        ...

    def renamed(self, plan: QueryPlan, names: Sequence[str]) -> QueryPlan:
        """Return the same plan with other names for its columns, as many as it has."""
        ...

    def schema(self, plan: QueryPlan, binder: Binder) -> StructType:
        """Analyse the plan over bound inputs and return its columns. Reads no data."""
        ...

    def state(self, plan: QueryPlan, binder: Binder) -> StateDescription:
        """Say what the operators of a plan keep from batch to batch. Reads no data.

        Raises:
            MillpondError: An operator can't be computed batch by batch.
        """
        ...

    def metadata_origin(self, plan: QueryPlan, column: str) -> str | None:
        """The field of `_metadata` that a column of a query is as it stands, in lower case.

        `None` where it is anything else, or can't be told.
        """
        ...

    def check_expectation(self, expectation: Expectation, schema: StructType) -> None:
        """Raise a `MillpondError` unless the constraint is one boolean expression on a row."""
        ...

    def parse_schema(self, text: str) -> StructType:
        """Read columns written as Spark DDL, such as `a INT, b STRING NOT NULL`.

        Raises:
            MillpondError: The text can't be read.
        """
        ...

    def sequence_type(self, sequence_by: str | Column, schema: StructType) -> object:
        """Return the Spark type of a sequence expression over a query's columns."""
        ...

    def query(self, text: str, binder: Binder, *, catalog: str, schema: str) -> pa.Table:
        """Run one SQL query for a user and return its rows."""
        ...

    def interrupt(self) -> None:
        """Cancel the queries that run now; each fails in the thread that waits for it."""
        ...

    def close(self) -> None: ...
