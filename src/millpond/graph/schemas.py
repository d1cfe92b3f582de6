"""The columns of a table: declared, or those of its flows; and what does not fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millpond.definitions import ColumnDefinition, Dataset, DatasetKind, Flow
from millpond.delta import FILE_COLUMN, ROW_COLUMN, widen_schema
from millpond.delta.schema import check_names, invalid_decimal
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.errors.delta import DECIMAL_HINT
from millpond.errors.graph import (
    DeclaredSchemaMismatchError,
    FlowSchemaConflictError,
    ReservedColumnNameError,
    UnknownTableColumnError,
    UnsupportedColumnDefinitionError,
    UnsupportedColumnTypeError,
)
from millpond.graph.inferred import hint_for
from millpond.graph.resolved import ResolvedFlow

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


# Spark's keys for the default value of a column, and for a length that nobody checks here.
_OF_THE_SOURCE = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT", "__CHAR_VARCHAR_TYPE_STRING"})
_RESERVED_NAMES = frozenset({FILE_COLUMN, ROW_COLUMN, "file_row_number"})


def table_schema(
    dataset: Dataset,
    flows: Sequence[ResolvedFlow],
    *,
    existing: StructType | None,
    engine: Engine,
) -> StructType:
    """The columns that the dataset's table is to have.

    Args:
        existing: The columns that the table has now; those that the queries no longer give stay.

    Raises:
        MillpondError: The declaration can't be read, or two flows contradict each other.
    """
    wanted = declared_schema(dataset, engine) or _united(dataset, flows)
    if existing is None:
        return wanted
    try:
        return widen_schema(existing, wanted)
    except MillpondError:
        # Only a full refresh can bring this table to the new columns; the update says so.
        return wanted


def declared_schema(dataset: Dataset, engine: Engine) -> StructType | None:
    """The columns that the source file declares, or `None`."""
    from pyspark.sql.types import StructType

    declared = dataset.schema
    if declared is None:
        return None
    if isinstance(declared, StructType):
        decimal = invalid_decimal(declared)
        if decimal is not None:
            raise DeclaredSchemaMismatchError.from_text(
                str(dataset.name),
                decimal.simpleString(),
                reason=DECIMAL_HINT,
                where=dataset.location,
            )
        return _with_nullable_parts(declared)
    if isinstance(declared, str):
        return _with_nullable_parts(_parsed(dataset, declared, engine))
    if not any(column.type_text for column in declared):
        return None
    fields = [_declared_field(dataset, column, engine) for column in declared]
    return _with_nullable_parts(StructType(fields))


def declared_names(dataset: Dataset, flow: Flow, schema: StructType) -> tuple[str, ...]:
    """The names that a view gives its query's columns, without types; none where it gives none.

    Raises:
        DeclaredSchemaMismatchError: They are not as many as the query's columns.
    """
    from pyspark.sql.types import StructType

    declared = dataset.schema
    if declared is None or isinstance(declared, str | StructType):
        return ()
    names = tuple(column.name for column in declared if not column.type_text)
    if names and len(names) != len(schema.fields):
        raise DeclaredSchemaMismatchError.from_count(
            flow.name, declared=len(names), found=len(schema.fields), where=flow.location
        )
    return names


def check_query(flow: Flow, schema: StructType) -> None:
    """Raise where a query gives a column that no table can hold, for its type or for its name."""
    from pyspark.sql.types import (
        CalendarIntervalType,
        DayTimeIntervalType,
        NullType,
        YearMonthIntervalType,
    )

    refused = (NullType, CalendarIntervalType, DayTimeIntervalType, YearMonthIntervalType)
    for field in schema.fields:
        if field.name.lower() in _RESERVED_NAMES:
            raise ReservedColumnNameError.from_column(
                f"Flow {flow.name}", field.name, where=flow.location
            )
        if _holds(field.dataType, refused):
            raise UnsupportedColumnTypeError.from_column(
                flow.name,
                field.name,
                type_text=field.dataType.simpleString(),
                where=flow.location,
            )
        decimal = invalid_decimal(field.dataType)
        if decimal is not None:
            raise UnsupportedColumnTypeError.from_decimal(
                flow.name, field.name, type_text=decimal.simpleString(), where=flow.location
            )


def check_nested_names(flow: ResolvedFlow) -> list[MillpondError]:
    """Where fields of one struct are the same to a table, because only case tells them apart."""
    try:
        check_names(flow.schema)
    except MillpondError as problem:
        problem.where = problem.where or flow.flow.location
        return [problem]
    return []


def check_declared(dataset: Dataset, flow: ResolvedFlow, schema: StructType) -> list[MillpondError]:
    """Where a flow's columns do not fit the declared ones."""
    from pyspark.sql.types import StructType

    if not dataset.schema:
        return []
    problems: list[MillpondError] = []
    where = flow.flow.location
    declared = {field.name.lower(): field for field in schema.fields}
    given = {field.name.lower(): field for field in flow.schema.fields}
    extra = [field.name for folded, field in given.items() if folded not in declared]
    if extra:
        problems.append(DeclaredSchemaMismatchError.from_extra(flow.name, extra, where=where))
    for folded, field in declared.items():
        if folded not in given:
            if not field.nullable:
                problems.append(
                    DeclaredSchemaMismatchError.from_missing(flow.name, field.name, where=where)
                )
            continue
        found = given[folded].dataType
        if not _fits(StructType([field]), StructType([given[folded]])):
            types = (field.dataType.simpleString(), found.simpleString())
            problems.append(_type_mismatch(flow, given[folded], *types))
    return problems


def _type_mismatch(
    flow: ResolvedFlow, column: StructField, declared: str, found: str
) -> DeclaredSchemaMismatchError:
    where = flow.flow.location
    option = hint_for(flow.streams, column, declared)
    if option is None:
        return DeclaredSchemaMismatchError.from_type(
            flow.name, column.name, declared=declared, found=found, where=where
        )
    return DeclaredSchemaMismatchError.from_inferred(
        flow.name, column.name, declared=declared, found=found, option=option, where=where
    )


def check_columns(dataset: Dataset, schema: StructType) -> list[MillpondError]:
    """Partition and cluster columns that the table does not have."""
    known = {name.lower() for name in schema.names}
    clauses = (("partitioned", dataset.partition_cols), ("clustered", dataset.cluster_by))
    return [
        UnknownTableColumnError.from_column(
            str(dataset.name), column, clause=clause, known=schema.names, where=dataset.location
        )
        for clause, columns in clauses
        for column in columns
        if column.lower() not in known
    ]


def _united(dataset: Dataset, flows: Sequence[ResolvedFlow]) -> StructType:
    """The columns of all flows together; those of a view as they are."""
    schema = _commented(dataset, _nullable(flows[0].schema))
    if dataset.kind is not DatasetKind.STREAMING_TABLE:
        return schema
    for flow in flows[1:]:
        try:
            schema = widen_schema(schema, _nullable(flow.schema))
        except MillpondError as problem:
            raise FlowSchemaConflictError.from_flow(
                flow.name, str(dataset.name), reason=problem.what, where=flow.flow.location
            ) from problem
    return schema


def _nullable(schema: StructType) -> StructType:
    """A query's guess that a column is never null is no promise of the table's."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(field.name, _stored(field.dataType), True, _of_the_query(field.metadata))
            for field in schema.toNullable().fields
        ]
    )


def _of_the_query(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a column keeps of the metadata that it has in a table that the query reads.

    How that table is written is its own affair: a default, an identity, a length, its types before.
    """
    return {
        key: value
        for key, value in metadata.items()
        if key not in _OF_THE_SOURCE and not key.startswith("delta.")
    }


def _with_nullable_parts(schema: StructType) -> StructType:
    """The columns as they are, what is inside them nullable.

    Files are written without a promise for elements of arrays, values of maps and fields of
    structs, and Sail fails over them where the table's schema makes one.
    """
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(field.name, inside.dataType, field.nullable, field.metadata)
            for field, inside in zip(schema.fields, schema.toNullable().fields, strict=True)
        ]
    )


def _commented(dataset: Dataset, schema: StructType) -> StructType:
    """The schema with the comments of columns that are declared without a type."""
    from pyspark.sql.types import StructField, StructType

    if dataset.schema is None or isinstance(dataset.schema, str | StructType):
        return schema
    comments = {column.name: column.comment for column in dataset.schema if column.comment}
    return StructType(
        [
            StructField(
                field.name, field.dataType, field.nullable, {"comment": comments[field.name]}
            )
            if field.name in comments
            else field
            for field in schema.fields
        ]
    )


def _stored(data_type: DataType) -> DataType:
    """The type that a table keeps: Delta has no CHAR and VARCHAR, only strings."""
    from pyspark.sql.types import CharType, StringType, VarcharType

    return StringType() if isinstance(data_type, CharType | VarcharType) else data_type


def _declared_field(dataset: Dataset, column: ColumnDefinition, engine: Engine) -> StructField:
    from pyspark.sql.types import StructField

    where = column.location or dataset.location
    if column.generated is not None or column.default is not None:
        what = "GENERATED ALWAYS AS" if column.generated is not None else "DEFAULT"
        raise UnsupportedColumnDefinitionError.from_column(
            str(dataset.name), column.name, what=what, where=where
        )
    parsed = _parsed(dataset, f"c {column.type_text}", engine)
    metadata = {"comment": column.comment} if column.comment else {}
    data_type = _stored(parsed.fields[0].dataType)
    return StructField(column.name, data_type, column.nullable, metadata)


def _parsed(dataset: Dataset, text: str, engine: Engine) -> StructType:
    try:
        return engine.parse_schema(text)
    except MillpondError as problem:
        raise DeclaredSchemaMismatchError.from_text(
            str(dataset.name), text, reason=problem.what, where=dataset.location
        ) from problem


def _fits(declared: StructType, found: StructType) -> bool:
    """Whether values of the found type can be kept in the declared one without loss."""
    try:
        united = widen_schema(declared, found)
    except MillpondError:
        return False
    return united.fields[0].dataType == declared.fields[0].dataType


def _holds(data_type: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, ArrayType):
        return _holds(data_type.elementType, kinds)
    if isinstance(data_type, MapType):
        return _holds(data_type.keyType, kinds) or _holds(data_type.valueType, kinds)
    if isinstance(data_type, StructType):
        return any(_holds(field.dataType, kinds) for field in data_type.fields)
    return isinstance(data_type, kinds)
