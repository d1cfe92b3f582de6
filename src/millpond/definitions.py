"""What a pipeline is made of: datasets, flows, expectations, queries. Plain values, no behaviour.

The Python API and the SQL front end build these; nothing below knows which of the two did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from millpond.errors import SourceLocation
from millpond.names import DEFAULT_CATALOG, DEFAULT_SCHEMA, TableName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class DatasetKind(StrEnum):
    STREAMING_TABLE = "STREAMING_TABLE"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
    TEMPORARY_VIEW = "TEMPORARY_VIEW"
    VIEW = "VIEW"

    @property
    def is_stored(self) -> bool:
        """Whether the dataset has a Delta table of its own."""
        return self in {DatasetKind.STREAMING_TABLE, DatasetKind.MATERIALIZED_VIEW}


class FlowKind(StrEnum):
    APPEND = "APPEND"
    REPLACE_USING = "REPLACE_USING"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
    VIEW = "VIEW"


class Language(StrEnum):
    PYTHON = "PYTHON"
    SQL = "SQL"


class ExpectationAction(StrEnum):
    WARN = "WARN"
    DROP = "DROP"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Expectation:
    """A rule on each row: `constraint` is a Spark SQL boolean; null counts as not met."""

    name: str
    constraint: str
    action: ExpectationAction = ExpectationAction.WARN
    location: SourceLocation | None = None


@dataclass(frozen=True)
class ColumnDefinition:
    """A declared column.

    Attributes:
        type_text: The type as Spark SQL text, such as `DECIMAL(10,2)`; empty where a view gives
            only a name.
        generated: The expression of `GENERATED ALWAYS AS`, as text.
        default: The expression of `DEFAULT`, as text.
    """

    name: str
    type_text: str
    nullable: bool = True
    comment: str | None = None
    generated: str | None = None
    default: str | None = None
    location: SourceLocation | None = None


@dataclass(frozen=True)
class SqlQuery:
    """A query as the user's own text, never printed anew from a syntax tree.

    Attributes:
        text: The query alone, from `SELECT` or `WITH` on, `${k}` already replaced.
        location: Where `text` starts.
        file_text: The whole file, for carets.
        catalog: Default catalog for names in the text (`USE CATALOG`).
        schema: Default schema for names in the text.
        replaced: Where `text` holds the value of a variable: the value's start and length in
            `text`, and the length of what stands for it in the file. `millpond.sql.query_location`
            uses it.
    """

    text: str
    location: SourceLocation
    file_text: str = ""
    catalog: str = DEFAULT_CATALOG
    schema: str = DEFAULT_SCHEMA
    replaced: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class PythonQuery:
    """A user's function that returns a DataFrame."""

    function: Callable[[], DataFrame]
    location: SourceLocation
    catalog: str = DEFAULT_CATALOG
    schema: str = DEFAULT_SCHEMA


Query = SqlQuery | PythonQuery


@dataclass(frozen=True)
class Dataset:
    """A table or view of the pipeline.

    Attributes:
        schema: Declared columns: a `StructType`, DDL text, or column definitions.
        private: Not published; visible only inside the pipeline.
        path: A location of the user's own for the table, or `None`.
    """

    name: TableName
    kind: DatasetKind
    location: SourceLocation
    comment: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    cluster_by_auto: bool = False
    schema: StructType | str | tuple[ColumnDefinition, ...] | None = None
    expectations: tuple[Expectation, ...] = ()
    private: bool = False
    path: str | None = None


@dataclass(frozen=True)
class Flow:
    """A query that feeds a dataset. A view has one flow of its own, too, of kind VIEW.

    Attributes:
        name: Unique in the pipeline; names the flow's checkpoint.
        once: The query is a batch query and runs once, and again after a full refresh.
        replace_using: Key columns of a REPLACE USING flow, empty for other kinds.
        sequence_by: The sequence: a column name, SQL-parsable column text, or a `Column`.
        by_name: Whether the text said `BY NAME` where it is needed; always true from Python.
    """

    name: str
    target: TableName
    kind: FlowKind
    query: Query
    language: Language
    location: SourceLocation
    once: bool = False
    comment: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    replace_using: tuple[str, ...] = ()
    sequence_by: str | Column | None = None
    by_name: bool = True


@dataclass(frozen=True)
class Pipeline:
    """All that the source files of one pipeline define, in file order."""

    datasets: tuple[Dataset, ...] = ()
    flows: tuple[Flow, ...] = ()
