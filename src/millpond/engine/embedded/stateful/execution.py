"""Computes a query that holds operators with state, cut by cut, from the sources up.

The rows below an operator with state are computed and written to files; the operator's state says
what comes out of it; and a read of that takes the operator's place in the query. Without a batch
the same is done over no rows: that finds what a query's columns are, what its operators keep, and
what can't be done, before any data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.types import (
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    LongType,
    NullType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from millpond.engine.connect.cuts import Cut, cut_of, without_cuts
from millpond.engine.connect.early_filters import filter_early
from millpond.engine.connect.expressions import called, named
from millpond.engine.connect.failures import analysing, running
from millpond.engine.connect.messages import empty_relation, input_relations
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.connect.scope import (
    ROW_COLUMN,
    NamesUsed,
    Scope,
    identified,
    own_plan_id,
    scope_of,
)
from millpond.engine.embedded.inputs import parquet_relation
from millpond.engine.embedded.planning import check_planned
from millpond.engine.embedded.staging import write_parquet
from millpond.engine.embedded.stateful.descriptions import Description, described
from millpond.engine.embedded.stateful.event_time import mark_windows
from millpond.engine.protocol import ParquetInput
from millpond.errors.state import StateUnreadableError
from millpond.names import path_segment
from millpond.state import ROW_ID_COLUMN, BatchState

# Rows of several writes are numbered apart by this much.
_NUMBERS_APART = 1 << 58
_NOT_KEPT = (NullType, CalendarIntervalType, DayTimeIntervalType, YearMonthIntervalType)

Files = tuple[Path, ...]
Naming = Callable[[StructType], Sequence[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Where a batch's state is, and a folder for files that live as long as the batch."""

    state: BatchState
    folder: Path


@dataclass(frozen=True)
class CutRows:
    """The rows below an operator.

    Attributes:
        scope: How the query names their columns.
        schema: The columns, with their own names.
        names: What the columns are called in files.
        helpers: Types of further columns by name.
        files: Parquet files. None where there is no batch, or no row.
        number: A further column that tells rows apart, where the scope has several parts.
    """

    scope: Scope
    schema: StructType
    names: tuple[str, ...]
    helpers: Mapping[str, DataType] = field(default_factory=dict)
    files: Files = ()
    number: str = ROW_COLUMN


@dataclass(frozen=True)
class Carried:
    """A column of files beside the query's own, and what it is called in the query."""

    name: str
    visible_name: str
    data_type: DataType


def column_names(schema: StructType) -> tuple[str, ...]:
    """What the columns of a schema are called in files: by their place."""
    return tuple(f"c{index}" for index in range(len(schema.fields)))


Operation = Callable[["Execution", Cut, Any], Any]


class Execution:
    """One pass over a bound query, for a batch or for the analysis alone.

    Attributes:
        batch: `None` where only the analysis is wanted.
        description: What each operator keeps: equal descriptions can use each other's state.
        delays_us: Of the watermarks that were met so far.
        delays_below_us: Of those below the operator that is at work.
    """

    def __init__(
        self,
        plan: ConnectPlan,
        client: Any,
        *,
        operations: Mapping[str, Operation],
        batch: Batch | None = None,
    ) -> None:
        self.batch = batch
        self.client = client
        self.description: dict[str, Description] = {}
        self.delays_us: list[int] = []
        self.delays_below_us: Sequence[int] = ()
        self._plan = plan
        self._operations = operations
        self._used: NamesUsed | None = None

    def resolved(self, root: Any) -> Any:
        """The query with a read of its rows in the place of every operator with state."""
        found = proto.Relation()
        found.CopyFrom(root)
        self._filter_early(found)
        self._used = NamesUsed.of(found)
        self._resolve(found)
        return found

    def _filter_early(self, relation: Any) -> None:
        filter_early(relation, self._resolves)
        for child in input_relations(relation):
            self._filter_early(child)

    def _resolve(self, relation: Any) -> None:
        assert self._used is not None
        met_before = len(self.delays_us)
        for child in input_relations(relation):
            self._resolve(child)
        self.delays_below_us = self.delays_us[met_before:]
        cut = cut_of(relation)
        if cut is not None:
            node = relation.hint.input
            operation = self._operations[node.WhichOneof("rel_type")]
            used = own_plan_id(node) & self._used.plan_ids.keys()
            with _reading_state(cut):
                found = operation(self, cut, node)
            relation.CopyFrom(identified(found, used))
        else:
            mark_windows(relation, self.column)

    def schema(self, relation: Any) -> StructType:
        with analysing(self._plan):
            found: StructType = self.client.schema(proto.Plan(root=relation))
        return found

    def column(self, relation: Any, expression: Any) -> StructField:
        """The column that an expression over a relation is."""
        project = proto.Relation()
        project.project.input.CopyFrom(relation)
        project.project.expressions.append(expression)
        field: StructField = self.schema(project).fields[0]
        return field

    def scope(self, relation: Any) -> Scope:
        """By which names the rest of the query reaches the columns of a relation."""
        assert self._used is not None
        return self._used.besides(relation).needed(scope_of(relation, self._names))

    def cut(
        self,
        cut: Cut,
        relation: Any,
        *,
        name: str = "input",
        helpers: Mapping[str, Any] | None = None,
        is_kept: bool = False,
        naming: Naming | None = None,
    ) -> CutRows:
        """Compute the rows of a relation, once.

        Args:
            name: Tells the inputs of one operator apart.
            helpers: Further columns by name, as expressions over the relation.
            is_kept: Whether the operator keeps the rows and gives them back with a number. A number
                of this batch's would not tell them from those of others.
            naming: What to call the columns in files, where their places say too little.
        """
        helpers = dict(helpers or {})
        scope = self.scope(relation)
        if scope.needs_row_numbers and not is_kept:
            helpers[ROW_COLUMN] = called("monotonically_increasing_id")
        wide = with_columns(relation, helpers)
        fields = self.schema(wide).fields
        count = len(fields) - len(helpers)
        schema = StructType(fields[:count])
        self._check_types(cut, schema)
        own_names = tuple((naming or column_names)(schema))
        files: Files = ()
        if self.batch is None:
            check_planned(self._plan, wide, self.client)
        else:
            files = self.write(cut, renamed(wide, [*own_names, *helpers]), name=name)
        types = {field.name: field.dataType for field in fields[count:]}
        number = ROW_ID_COLUMN if is_kept else ROW_COLUMN
        return CutRows(scope, schema, own_names, types, files, number)

    def write(self, cut: Cut, relation: Any, *, name: str) -> Files:
        """Write the rows of a relation to files of the batch."""
        folder = self.folder(cut) / name
        with running(self._plan):
            self.client.execute_command(write_parquet(relation, folder))
        return tuple(sorted(folder.glob("**/*.parquet")))

    def folder(self, cut: Cut) -> Path:
        """A folder for an operator's files. It is there."""
        assert self.batch is not None
        folder = self.batch.folder / path_segment(cut.operator)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def rows(self, rows: CutRows, files: Files, *, carried: Sequence[Carried] = ()) -> Any:
        """A relation of a cut's columns, over files that hold them.

        Args:
            carried: Further columns of the files, to have behind the others.
        """
        fields = [
            StructField(name, field.dataType, True, field.metadata)
            for name, field in zip(rows.names, rows.schema.fields, strict=True)
        ]
        fields += [StructField(column.name, column.data_type, True) for column in carried]
        if rows.scope.needs_row_numbers and rows.number not in {column.name for column in carried}:
            fields.append(StructField(rows.number, LongType(), True))
        schema = StructType(fields).toNullable()
        read = parquet_relation(ParquetInput(tuple(map(str, files)), schema)) if files else None
        visible = {column.name: column.visible_name for column in carried}
        return rows.scope.over(
            read or empty_relation(schema), rows.names, number=rows.number, carried=visible
        )

    def found(self, cut: Cut, find_out: Callable[[], T]) -> T:
        """What can be found out about an operator once for all batches."""
        if cut.operator not in self._plan.findings:
            self._plan.findings[cut.operator] = find_out()
        known: T = self._plan.findings[cut.operator]
        return known

    def describe(self, cut: Cut, **kept: Any) -> None:
        """Say what an operator keeps. Values are JSON."""
        self.description[cut.operator] = described(cut, kept)

    def _resolves(self, relation: Any) -> bool:
        try:
            self.client.schema(proto.Plan(root=without_cuts(relation)))
        except PySparkException:
            return False
        return True

    def _names(self, relation: Any) -> Sequence[str]:
        return list(self.schema(relation).names)

    def _check_types(self, cut: Cut, schema: StructType) -> None:
        for column in schema.fields:
            if isinstance(column.dataType, _NOT_KEPT):
                raise cut.refused(
                    f"the column {column.name} has the type {column.dataType.simpleString()}, "
                    "which can't be kept between batches",
                    instead="cast it, or leave it out",
                )


@contextmanager
def _reading_state(cut: Cut) -> Iterator[None]:
    """Say whose state it is that can't be read."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        # What DuckDB raises for a Parquet file that is torn inside has no class of its own.
        if type(error) not in {duckdb.Error, duckdb.InvalidInputException}:
            raise
        raise StateUnreadableError.from_operator(cut.place.name, reason=str(error)) from error


def with_columns(relation: Any, columns: Mapping[str, Any]) -> Any:
    """A relation with further columns behind its own."""
    if not columns:
        return relation
    project = proto.Relation()
    project.project.input.CopyFrom(relation)
    project.project.expressions.add().unresolved_star.SetInParent()
    for name, expression in columns.items():
        project.project.expressions.append(named(expression, name))
    return project


def renamed(relation: Any, names: Sequence[str]) -> Any:
    """A relation with other names for all of its columns."""
    found = proto.Relation()
    found.to_df.input.CopyFrom(relation)
    found.to_df.column_names.extend(names)
    return found


def row_numbers(write: int) -> Any:
    """An expression that numbers rows, other than those of other writes."""
    offset = proto.Expression()
    offset.literal.long = write * _NUMBERS_APART
    return called("+", called("monotonically_increasing_id"), offset)
