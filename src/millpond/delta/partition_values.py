"""The text of a partition value, as it stands in the log and in the names of folders.

Follows "Partition Value Serialization" of Delta's PROTOCOL.md; timestamps are written in UTC.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta.schema import duckdb_type


def text_sql(expression: str, data_type: DataType) -> str:
    """Return a DuckDB expression for the text of a value; null for null and the empty string."""
    typed = f"CAST({expression} AS {duckdb_type(data_type)})"
    if isinstance(data_type, StringType):
        return f"nullif({typed}, '')"
    if isinstance(data_type, TimestampType):
        return f"strftime(timezone('UTC', {typed}), '%Y-%m-%dT%H:%M:%S.%fZ')"
    if isinstance(data_type, TimestampNTZType):
        return f"strftime({typed}, '%Y-%m-%d %H:%M:%S.%f')"
    if isinstance(data_type, FloatType | DoubleType):
        return (
            f"CASE WHEN isnan({typed}) THEN 'NaN' WHEN isinf({typed}) AND {typed} > 0 "
            f"THEN 'Infinity' WHEN isinf({typed}) THEN '-Infinity' "
            f"ELSE CAST({typed} AS VARCHAR) END"
        )
    return f"CAST({typed} AS VARCHAR)"


def value_sql(expression: str, data_type: DataType) -> str:
    """Return a DuckDB expression for the value of a text from the log."""
    if isinstance(data_type, BinaryType):
        return f"encode({expression})"
    given = f"nullif({expression}, '')"
    return (
        given if isinstance(data_type, StringType) else f"CAST({given} AS {duckdb_type(data_type)})"
    )
