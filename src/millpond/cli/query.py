"""`millpond query`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.grid import Column
from millpond.cli.options import (
    conf_option,
    engine_option,
    format_option,
    limit_option,
    open_project,
    prints_aside,
    spec_option,
)
from millpond.cli.rows import print_csv, print_json, print_table, row_limit

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 10_000


@click.command()
@click.argument("sql")
@spec_option
@engine_option
@conf_option
@format_option("table", "csv", "json")
@limit_option
def query(
    sql: str,
    *,
    spec: Path | None,
    engine: str | None,
    conf: Mapping[str, str],
    output_format: str,
    limit: int | None,
) -> None:
    """Run a Spark SQL query over the pipeline's tables.

    Sources and samples can be queried as well: Delta tables elsewhere by delta.`/path`, the event
    log as event_log. SQL may be - to read the query from the standard input.

    As JSON: an array of objects. Numbers that a double can't hold exactly are text, as are NaN and
    infinity; dates and times are ISO 8601, binary is base64.
    """
    text = _standard_input() if sql == "-" else sql
    try:
        text.encode("utf-8")
    except UnicodeError:
        raise click.UsageError("The query is no UTF-8.") from None
    if not text.strip():
        raise click.UsageError("The query is empty.")
    project = open_project(spec, conf, engine=engine)
    from millpond import runner

    with prints_aside():
        result = runner.run_query(project, text)
    print_result(result, output_format=output_format, limit=limit)


def _standard_input() -> str:
    if sys.stdin is None:
        raise click.UsageError("There is no standard input to read the query from.")
    try:
        read = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeError:
        raise click.UsageError("The query is no UTF-8.") from None
    return read.replace("\r\n", "\n")


def print_result(result: pa.Table, *, output_format: str, limit: int | None) -> None:
    """Print the rows of a query."""
    from millpond.cli.values import plain_values, text_values, unique_names

    total = result.num_rows
    most = row_limit(limit, output_format=output_format)
    shown = result if most is None else result.slice(0, most)
    if output_format == "json":
        names = unique_names(result.column_names)
        print_json(dict(zip(names, row, strict=True)) for row in _rows(shown, plain_values))
    elif output_format == "csv":
        print_csv(result.column_names, _rows(shown, text_values))
    else:
        columns = [Column(field.name, is_number=_is_number(field.type)) for field in result.schema]
        rows = _rows(shown, text_values)
        print_table(columns, rows, total=total, hint="--limit 0 shows all")


def _rows(
    result: pa.Table, values: Callable[[pa.ChunkedArray], list[Any]]
) -> Iterator[tuple[Any, ...]]:
    for start in range(0, result.num_rows, ROWS_AT_A_TIME):
        part = result.slice(start, ROWS_AT_A_TIME)
        yield from zip(*(values(column) for column in part.columns), strict=True)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as is_type

    return is_type.is_integer(kind) or is_type.is_floating(kind) or is_type.is_decimal(kind)
