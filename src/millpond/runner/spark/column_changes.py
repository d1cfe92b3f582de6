"""What makes the columns of a table on a server wider: new columns and fields, wider types.

Spark changes a struct, an array or a map only by its parts, each by its own path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millpond.runner.spark.sql import column_sql, quoted, type_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


@dataclass
class ColumnChanges:
    """Clauses of ALTER TABLE.

    Attributes:
        added: The columns and fields to add, as in `ADD COLUMNS (..)`.
        retyped: The changes of types, as in `ALTER COLUMN ..`.
    """

    added: list[str] = field(default_factory=list)
    retyped: list[str] = field(default_factory=list)

    @classmethod
    def between(cls, current: StructType, wanted: StructType) -> ColumnChanges:
        """What leads from some columns to wider ones.

        >>> from pyspark.sql.types import ArrayType, IntegerType, LongType, StructType
        >>> now = StructType().add("p", ArrayType(StructType().add("x", IntegerType())))
        >>> point = StructType().add("x", LongType()).add("y", LongType())
        >>> ColumnChanges.between(now, StructType().add("p", ArrayType(point)))
        ColumnChanges(added=['`p`.element.`y` bigint'], retyped=['`p`.element.`x` TYPE bigint'])
        """
        changes = cls()
        changes._add_struct((), current, wanted)
        return changes

    def _add_struct(self, path: tuple[str, ...], current: StructType, wanted: StructType) -> None:
        known = {column.name.lower(): column for column in current.fields}
        for column in wanted.fields:
            found = known.get(column.name.lower())
            if found is None:
                self.added.append(".".join([*path, column_sql(column)]))
            else:
                self._add((*path, quoted(found.name)), found.dataType, column.dataType)

    def _add(self, path: tuple[str, ...], current: DataType, wanted: DataType) -> None:
        from pyspark.sql.types import ArrayType, MapType, StructType

        if isinstance(current, StructType) and isinstance(wanted, StructType):
            self._add_struct(path, current, wanted)
        elif isinstance(current, ArrayType) and isinstance(wanted, ArrayType):
            self._add((*path, "element"), current.elementType, wanted.elementType)
        elif isinstance(current, MapType) and isinstance(wanted, MapType):
            self._add((*path, "key"), current.keyType, wanted.keyType)
            self._add((*path, "value"), current.valueType, wanted.valueType)
        elif current != wanted:
            self.retyped.append(f"{'.'.join(path)} TYPE {type_sql(wanted)}")
