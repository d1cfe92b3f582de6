"""SQL text for a Spark server: names, values, types, columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from millpond.names import TableName

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def table_sql(name: TableName) -> str:
    """A table of the server's catalog."""
    return ".".join(map(quoted, name.parts))


def path_sql(location: str) -> str:
    """The Delta table at a location."""
    return f"delta.{quoted(location)}"


def text_sql(text: str) -> str:
    r"""A text as a literal.

    >>> print(text_sql("it's a \\\\"))
    'it\\'s a \\\\'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def properties_sql(properties: Mapping[str, str]) -> str:
    """What stands in the parentheses of TBLPROPERTIES."""
    return ", ".join(f"{text_sql(key)} = {text_sql(value)}" for key, value in properties.items())


def column_sql(field: StructField) -> str:
    """A column as CREATE TABLE takes it."""
    text = f"{quoted(field.name)} {type_sql(field.dataType)}"
    if not field.nullable:
        text += " NOT NULL"
    comment = comment_of(field)
    return f"{text} COMMENT {text_sql(comment)}" if comment else text


def comment_of(field: StructField) -> str:
    """The comment of a column, or nothing."""
    return (field.metadata or {}).get("comment") or ""


def type_sql(data_type: DataType) -> str:
    """A type with the names inside it quoted, which `simpleString` leaves as they are."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_sql(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{type_sql(data_type.keyType)}, {type_sql(data_type.valueType)}>"
    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}: {type_sql(field.dataType)}" for field in data_type.fields)
        return f"STRUCT<{', '.join(fields)}>"
    return data_type.simpleString()
