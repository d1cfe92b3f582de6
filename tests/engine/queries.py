"""Short ways to write queries and inputs for the engine's tests."""

from __future__ import annotations

import inspect
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from millpond.definitions import PythonQuery, SqlQuery
from millpond.engine.protocol import EmptyInput, ParquetInput
from millpond.errors import SourceLocation

FILE = "transformations/a.sql"
COLUMNS = "k INT, v INT, s STRING, xs ARRAY<INT>, ts TIMESTAMP"


def sql(text, *, before=""):
    """A query of a file; `before` stands above it."""
    lines = before.split("\n")
    where = SourceLocation(FILE, len(lines), len(lines[-1]) + 1)
    return SqlQuery(text, where, file_text=before + text, catalog="main", schema="sales")


def python(function):
    code = function.__code__
    where = SourceLocation(code.co_filename, code.co_firstlineno)
    return PythonQuery(function, where, catalog="main", schema="sales")


def line_of(function, fragment):
    """The line of this repository's test that holds `fragment` inside a function."""
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, line in enumerate(lines) if fragment in line)


def empty(engine, columns=COLUMNS):
    """A binder that gives no rows of the same columns for every table."""
    schema = engine.parse_schema(columns)
    return lambda _read: EmptyInput(schema)


def tables(engine, folder, **rows):
    """A binder over tables given as lists of dictionaries or Arrow tables, by name."""
    inputs = {}
    for name, given in rows.items():
        data = given if isinstance(given, pa.Table) else pa.Table.from_pylist(given)
        path = Path(folder) / f"{name}.parquet"
        pq.write_table(data, path)
        inputs[name] = ParquetInput((str(path),), spark_schema(data.schema))
    return lambda read: inputs[read.name[-1]]


def spark_schema(schema):
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def plan(engine, query, binder=None):
    with engine.defining(binder or empty(engine)):
        return engine.plan(query)


def rows(staged, columns="*"):
    """What DuckDB reads in a staged batch, sorted."""
    if not staged.files:
        return []
    files = [str(file) for file in staged.files]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(
            f"SELECT {columns} FROM read_parquet($files)", {"files": files}
        ).fetchall()
    return sorted(found, key=repr)
