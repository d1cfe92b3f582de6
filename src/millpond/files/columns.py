"""The columns that a read of files has: those inside the files, and those beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.delta.schema import is_reserved
from millpond.errors.file_reads import TooManyColumnsError
from millpond.files.metadata import METADATA_NAME, metadata_field
from millpond.files.options import Dialect

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

# So many columns are inferred at most: what is done with a row takes time and memory for each.
MAX_INFERRED = 2000


@dataclass(frozen=True)
class NewColumn:
    """A column that files have and a read lacks, or fields of one that it has.

    Attributes:
        of_folder: Whether its values stand in the names of folders.
    """

    field: StructField
    of_folder: bool = False

    def __str__(self) -> str:
        return f"{self.field.name!r} {self.field.dataType.simpleString()}"


@dataclass(frozen=True)
class FileColumns:
    """The columns of a read of files.

    Attributes:
        schema: All that a star gives, in order.
        of_folders: Names of those whose values stand in the names of folders.
        rescued: The name of the one that keeps values that did not fit, or `None`.
        has_metadata: Whether an engine gets `_metadata` beside them.
    """

    schema: StructType
    of_folders: frozenset[str] = field(default_factory=frozenset)
    rescued: str | None = None
    has_metadata: bool = True

    @cached_property
    def inside(self) -> StructType:
        """The columns that are looked for inside the files."""
        return self.without_those_beside(self.schema)

    def without_those_beside(self, columns: StructType) -> StructType:
        """Columns of files, less those that are called like one of folders, or the rescued one."""
        from pyspark.sql.types import StructType

        beside = {name.lower() for name in (*self.of_folders, self.rescued or "")}
        return StructType([f for f in columns.fields if f.name.lower() not in beside])

    @cached_property
    def input_schema(self) -> StructType:
        """The columns as an engine gets them."""
        from pyspark.sql.types import StructType

        hidden = [metadata_field()] if self.has_metadata else []
        return StructType([*self.schema.fields, *hidden])


def storable(columns: StructType, dialect: Dialect) -> StructType:
    """Columns found in files, less those whose names no column can have that nobody gave.

    These are rescued: names that no table can have, and `_metadata`, which any file could take over
    from the queries that mean the file's own. Only in Spark's own reader a column of the files
    comes first.
    """
    from pyspark.sql.types import StructType

    return StructType([f for f in _named(columns).fields if not is_kept_aside(f.name, dialect)])


def is_kept_aside(name: str, dialect: Dialect) -> bool:
    """Whether a column that files have is none of a read's, unless the user gives it."""
    takes_over = name.lower() == METADATA_NAME and dialect is not Dialect.SPARK
    return takes_over or is_reserved(name)


def check_count(columns: StructType, *, uris: Sequence[str] = ()) -> None:
    """Raise where inferred columns are too many.

    Args:
        uris: The files that they are of, where these are not told anyway.

    Raises:
        TooManyColumnsError: They are.
    """
    count = _count(columns)
    if count > MAX_INFERRED and uris:
        raise TooManyColumnsError.from_files(uris, count, limit=MAX_INFERRED)
    if count > MAX_INFERRED:
        raise TooManyColumnsError.from_count(count, limit=MAX_INFERRED)


def _count(data_type: DataType) -> int:
    """The columns of a type, those within others too."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match data_type:
        case StructType():
            return sum(max(_count(field.dataType), 1) for field in data_type.fields)
        case ArrayType():
            return _count(data_type.elementType)
        case MapType():
            return _count(data_type.valueType)
    return 1


def _named(columns: StructType) -> StructType:
    """Columns, at any depth, whose names are neither empty nor end at a NUL for other programs."""
    from pyspark.sql.types import StructField, StructType

    found = []
    for column in columns.fields:
        data_type = _with_names(column.dataType)
        if column.name and "\0" not in column.name and data_type is not None:
            found.append(StructField(column.name, data_type))
    return StructType(found)


def _with_names(data_type: DataType) -> DataType | None:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match data_type:
        case StructType():
            inner = _named(data_type)
            return inner if inner.fields else None
        case ArrayType():
            element = _with_names(data_type.elementType)
            return None if element is None else ArrayType(element)
        case MapType():
            value = _with_names(data_type.valueType)
            return None if value is None else MapType(data_type.keyType, value)
    return data_type
