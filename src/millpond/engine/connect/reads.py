"""The reads of a plan: named tables, paths, and the tables that SQL text names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond.engine.connect.call_sites import site_of
from millpond.engine.protocol import TableRead
from millpond.errors import SourceLocation
from millpond.errors.engine import (
    UnsupportedReadError,
    UnsupportedStreamingSourceError,
)
from millpond.errors.suggestion import did_you_mean
from millpond.names import split_name

# Formats of files that are read before the engine sees their rows.
FILE_READS = frozenset({"avro", "binaryfile", "csv", "json", "parquet", "text", "xml"})
# Formats that there are only as streams.
_STREAMS = frozenset({"cloudfiles", "rate", "rate-micro-batch"})
_FORMATS = FILE_READS | _STREAMS | {"kafka"}
# As they are documented.
_SPELLINGS = (*(_FORMATS - {"cloudfiles", "binaryfile"}), "cloudFiles", "binaryFile", "delta")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def location_of(relation: Any) -> SourceLocation | None:
    site = site_of(relation.common.plan_id)
    return site.location if site else None


def table_read(relation: Any, *, catalog: str | None, schema: str | None) -> TableRead:
    """What a relation of kind `read` reads.

    Raises:
        UnsupportedStreamingSourceError: It streams from what can't be streamed.
        UnsupportedReadError: Its format is none that millpond knows, or has no path.
    """
    read, where = relation.read, location_of(relation)
    kind = read.WhichOneof("read_type")
    if kind == "named_table":
        return _named(relation, catalog=catalog, schema=schema)
    source = read.data_source
    format_name = (source.format or "delta").lower()
    if format_name == "delta":
        return _delta_path(relation)
    if format_name not in _FORMATS:
        meant = did_you_mean(format_name, _SPELLINGS)
        if read.is_streaming:
            raise UnsupportedStreamingSourceError.of(
                f"The format {source.format}", meant=meant, where=where
            )
        raise UnsupportedReadError.of(
            f"The format {source.format}",
            where=where,
            instead=f"did you mean {meant}?"
            if meant
            else "read a table, a Delta path, or files of format " + ", ".join(sorted(FILE_READS)),
        )
    if format_name in _STREAMS and not read.is_streaming:
        instead = "read it with spark.readStream"
        if format_name == "cloudfiles":
            instead += ', or the files by their format: spark.read.format("csv").load(path)'
        raise UnsupportedReadError.of(
            f"The format {source.format} in a batch read", where=where, instead=instead
        )
    return _other(relation, format_name, catalog=catalog, schema=schema)


def _other(
    relation: Any, format_name: str, *, catalog: str | None, schema: str | None
) -> TableRead:
    """A read of files, or of a source that has no files."""
    source, where = relation.read.data_source, location_of(relation)
    options = _options(source.options)
    files = format_name in FILE_READS or format_name == "cloudfiles"
    paths = _paths(relation, options) if files else ()
    options = {key: value for key, value in options.items() if key != "path" or not files}
    if files and not paths:
        kind = "spark.readStream" if relation.read.is_streaming else "spark.read"
        raise UnsupportedReadError.of(
            f"A read of format {source.format} without a path",
            where=where,
            instead=f'give one: {kind}.format("{source.format}").load(path)',
        )
    return TableRead(
        format=format_name,
        paths=paths,
        columns=source.schema or None,
        streaming=relation.read.is_streaming,
        options=options,
        option_names=_names(source.options),
        location=where,
        catalog=catalog,
        schema=schema,
    )


def _paths(relation: Any, options: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of a read, from the folder of the code that builds it; URLs as they are."""
    source, site = relation.read.data_source, site_of(relation.common.plan_id)
    if source.paths and "path" in options:
        raise UnsupportedReadError.of(
            f"The option path beside a path in a read of format {source.format}",
            where=location_of(relation),
            instead="give all paths to load([...]), or the option alone and nothing to load()",
        )
    folder = Path(site.folder) if site else Path.cwd()
    paths = source.paths or [options.get("path", "")]
    return tuple(path if _URL.match(path) else str(folder / path) for path in paths if path)


def _options(given: Mapping[str, str]) -> dict[str, str]:
    """Options with keys in lower case; PySpark writes a Python boolean in either case."""
    return {
        key.lower(): value.lower() if value in {"True", "False"} else value
        for key, value in given.items()
    }


def _names(given: Mapping[str, str]) -> dict[str, str]:
    """Names of options as the user wrote them, by those in lower case."""
    return {key.lower(): key for key in given}


def _named(relation: Any, *, catalog: str | None, schema: str | None) -> TableRead:
    table, where = relation.read.named_table, location_of(relation)
    parts = split_name(table.unparsed_identifier, where=where)
    if len(parts) == 2 and parts[0].lower() == "live":
        parts = parts[1:]
    is_path = len(parts) == 2 and parts[0].lower() == "delta"
    if len(parts) > 3:
        raise UnsupportedReadError.of(
            f"The table name {table.unparsed_identifier}, which has more than three parts,",
            where=where,
            instead="give catalog.schema.table",
        )
    return TableRead(
        name=() if is_path else parts,
        path=parts[1] if is_path else None,
        streaming=relation.read.is_streaming,
        options=_options(table.options),
        option_names=_names(table.options),
        location=where,
        catalog=catalog,
        schema=schema,
    )


def _delta_path(relation: Any) -> TableRead:
    source, where = relation.read.data_source, location_of(relation)
    options = _options(source.options)
    paths = [*source.paths]
    if "path" in options:
        paths.append(options.pop("path"))
    if len(paths) != 1:
        raise UnsupportedReadError.of(
            f"A Delta read of {len(paths)} paths",
            where=where,
            instead='give one path: spark.read.format("delta").load(path)',
        )
    if source.schema:
        raise UnsupportedReadError.of(
            "A Delta read with a schema of its own",
            where=where,
            instead="leave schema() out: a Delta table has its columns",
        )
    return TableRead(
        path=paths[0],
        streaming=relation.read.is_streaming,
        options=options,
        option_names=_names(source.options),
        location=where,
    )
