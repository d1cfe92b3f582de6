"""`_metadata`: what is known of the file that a row came from.

Files are read with a further column behind their own, which queries reach by the name `_metadata`
and which no star gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

# What users write.
METADATA_NAME = "_metadata"
# What the column is called where the rows of files are handed to an engine; always the last one.
METADATA_COLUMN = "__millpond_metadata"
# Spark's names of its fields.
METADATA_FIELDS = (
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
)


def metadata_field() -> StructField:
    """The column, with Spark's names and types of its fields."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

    types = (StringType(), StringType(), LongType(), LongType(), LongType(), TimestampType())
    fields = list(map(StructField, METADATA_FIELDS, types))
    return StructField(METADATA_COLUMN, StructType(fields))
