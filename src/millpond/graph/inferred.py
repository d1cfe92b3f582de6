"""Columns of a query that come from files as they were inferred, and how to give them a type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.files.options import Dialect
from millpond.graph.resolved import StreamRead

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def hint_for(streams: Sequence[StreamRead], column: StructField, type_text: str) -> str | None:
    """The option that gives a column another type where a query's files are read.

    Args:
        column: As the query gives it.

    Returns:
        `None` where no stream has such a column that was inferred. Strings are left to the query,
        since nothing is lost by reading them.
    """
    from pyspark.sql.types import StringType

    from millpond.graph.files import FileRead

    if isinstance(column.dataType, StringType):
        return None
    for stream in streams:
        read = stream.external
        if not isinstance(read, FileRead) or read.options.schema is not None:
            continue
        for field in read.columns.inside.fields:
            if field.name.lower() == column.name.lower() and field.dataType == column.dataType:
                return _option(read.options.dialect, field.name, type_text)
    return None


def _option(dialect: Dialect, name: str, type_text: str) -> str | None:
    hint = f"{name if _PLAIN.match(name) else f'`{name}`'} {type_text}"
    match dialect:
        case Dialect.READ_FILES:
            return f"schemaHints => '{hint}'"
        case Dialect.CLOUD_FILES:
            return f'.option("cloudFiles.schemaHints", "{hint}")'
        case Dialect.SPARK:
            return None
