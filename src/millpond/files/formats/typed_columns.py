"""Files whose columns have types of their own, such as Parquet: read as the columns asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from millpond.delta.schema import duckdb_type, literal, quote
from millpond.errors.file_formats import FileColumnTypeError, FileUnreadableError
from millpond.files.damage import is_damage
from millpond.files.formats.base import FILE_INDEX, RESCUED
from millpond.files.formats.duckdb_types import ZONELESS, columns_of, spark_type
from millpond.files.formats.file_sql import file_index_sql, paths_sql, uri_sql
from millpond.files.formats.merged_types import OnConflict, merge_structs
from millpond.files.formats.rescue import RescuedPart, rescued_sql
from millpond.files.formats.typed_values import Conversion, Value, json_text, match_names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

    from millpond.files.formats.base import LocalFile
    from millpond.files.options import FileOptions


@dataclass(frozen=True)
class TypedFile:
    """A file and its columns.

    Attributes:
        columns: Names and types as DuckDB gives them.
        instants: Whether times without a zone are instants.
    """

    file: LocalFile
    columns: tuple[tuple[str, DuckDBPyType], ...]
    instants: bool = False

    @property
    def schema(self) -> StructType:
        """The columns with Spark's types."""
        return StructType(
            [
                StructField(name, spark_type(found, instants=self.instants))
                for name, found in self.columns
            ]
        )

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for files that one query can read."""
        return (self.instants, *((name, str(found)) for name, found in self.columns))


def typed_file(file: LocalFile, connection: DuckDBPyConnection) -> TypedFile:
    """Look at the columns of a Parquet file.

    Raises:
        FileUnreadableError: It is none, or its footer is damaged.
    """
    import duckdb

    paths = paths_sql([file.path])
    try:
        columns = columns_of(f"SELECT * FROM {reader_sql(paths)}", connection)
        instants = any(_has_time(str(found)) for _, found in columns) and bool(
            connection.execute(
                f"SELECT count(*) FROM parquet_schema({paths}) WHERE type = 'INT96'"
            ).fetchall()[0][0]
        )
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:
        if isinstance(error, RuntimeError) and not is_damage(error):
            raise
        # Names that are no UTF-8 are beyond DuckDB's client.
        raise FileUnreadableError.from_file(file.uri, reason=str(error)) from error
    return TypedFile(file, tuple(columns), instants)


def _has_time(name: str) -> bool:
    return any(kind.upper() in name for kind in ZONELESS)


def merged_schema(files: Sequence[TypedFile], options: FileOptions) -> StructType:
    """The columns of all files, those of the first one first.

    Raises:
        FileColumnTypeError: Two files have a column of types that have no common type, and there
            is no column for what does not fit.
    """
    merged = StructType([])
    for file in files:
        on_conflict = None if options.rescued_column else _refusal(file)
        merged = merge_structs(merged, file.schema, on_conflict=on_conflict)
    return merged


def _refusal(file: TypedFile) -> OnConflict:
    def refuse(column: str, wanted: str, found: str) -> None:
        raise FileColumnTypeError.between_files(
            file.file.uri, column=column, found=found, wanted=wanted
        )

    return refuse


def new_columns(files: Sequence[TypedFile], columns: StructType) -> StructType:
    """What the files have and the columns lack; of a struct with new fields, the whole column."""
    merged = columns
    for file in files:
        merged = merge_structs(merged, file.schema, keep_types=True)
    known = {field.name: field.dataType for field in columns.fields}
    return StructType([f for f in merged.fields if known.get(f.name) != f.dataType])


def select_sql(files: Sequence[TypedFile], columns: StructType, options: FileOptions) -> str:
    """The SELECT of the columns from all files."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, file in enumerate(files):
        groups.setdefault(file.shape, []).append(index)
    return " UNION ALL ".join(
        _group_sql(files, indexes, columns, options) for indexes in groups.values()
    )


def reader_sql(paths: str) -> str:
    """How Parquet files are read, by a list of their paths."""
    return f"read_parquet({paths}, hive_partitioning = false)"


def _group_sql(
    files: Sequence[TypedFile],
    indexes: Sequence[int],
    columns: StructType,
    options: FileOptions,
) -> str:
    first = files[indexes[0]]
    keeps = options.rescued_column is not None
    conversion = Conversion(instants=first.instants, keeps_rest=keeps)
    types = dict(first.columns)
    names = match_names(list(types), columns.fieldNames())
    shown: list[str] = []
    rescued: list[RescuedPart] = []
    for field in columns.fields:
        name = names.get(field.name)
        if name is None:
            value = Value(f"CAST(NULL AS {duckdb_type(field.dataType)})")
        else:
            source = f"content.{quote(name)}"
            value = conversion.value(source, types[name], field.dataType)
            if value.misfit is not None and keeps:
                rescued.append(RescuedPart(name, value.misfit, json_text(source, types[name])))
            elif value.misfit is not None:
                value = Value(_or_error(value, files, indexes, field, types[name]))
        shown.append(f"{value.sql} AS {quote(field.name)}")
    if keeps:
        rescued += [
            RescuedPart(name, f"{source} IS NOT NULL", json_text(source, found))
            for name, found in first.columns
            if name not in names.values()
            for source in [f"content.{quote(name)}"]
        ]
    if len(files) > 1:
        shown.append(f"{file_index_sql(indexes)} AS {quote(FILE_INDEX)}")
    shown.append(f"{rescued_sql(rescued)} AS {quote(RESCUED)}")
    paths = paths_sql(files[index].file.path for index in indexes)
    return f"SELECT {', '.join(shown)} FROM {reader_sql(paths)} AS content"


def _or_error(
    value: Value,
    files: Sequence[TypedFile],
    indexes: Sequence[int],
    field: StructField,
    found: DuckDBPyType,
) -> str:
    """A value that stops the query where it does not fit: there is no place to keep it."""
    error = FileColumnTypeError.from_column(
        column=field.name, found=str(found), wanted=field.dataType.simpleString()
    )
    where = uri_sql([files[index].file.uri for index in indexes], "CAST(file_index AS BIGINT)")
    return (
        f"CASE WHEN {value.misfit} THEN error({where} || {literal(': ' + str(error))}) "
        f"ELSE {value.sql} END"
    )
