"""Reads the pages on queries and on state: their source tables, examples and stated rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

DOCS = Path(__file__).parents[2] / "docs"
QUERIES = (DOCS / "queries.md").read_text(encoding="utf-8")
STATE = (DOCS / "state.md").read_text(encoding="utf-8")

TIME = pa.timestamp("us", "UTC")
SCHEMAS = {
    "orders": pa.schema(
        {
            "id": pa.int64(),
            "customer": pa.string(),
            "articles": pa.list_(pa.string()),
            "ordered": TIME,
        }
    ),
    "payments": pa.schema({"order_id": pa.int64(), "method": pa.string(), "paid": TIME}),
    "customers": pa.schema({"customer": pa.string(), "city": pa.string()}),
}
# A block of code with its language, or a table.
_PART = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^\|[^\n]*\|\n)+)", re.MULTILINE | re.DOTALL)
_PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf


@dp.table
def {name}():
    return ({query})
"""
Row = tuple[str, ...]


@dataclass(frozen=True)
class PageTable:
    header: Row
    rows: list[Row]

    @classmethod
    def read(cls, text: str) -> PageTable:
        header, _, *rows = (
            tuple(cell.strip() for cell in line.strip("|").split("|"))
            for line in text.strip().split("\n")
        )
        return cls(header, rows)


@dataclass(frozen=True)
class Example:
    """A query in one language; what it gives, where the page says that.

    Attributes:
        name: Of the table that it is to fill.
    """

    name: str
    language: str
    code: str
    result: PageTable | None = None

    @property
    def file(self) -> str:
        return f"{self.name}.{'sql' if self.language == 'sql' else 'py'}"

    @property
    def source(self) -> str:
        """A source file that defines a table of the example's name."""
        defined = re.search(r"STREAMING TABLE (\w+)|^def (\w+)\(\):", self.code, re.MULTILINE)
        if defined:
            return re.sub(rf"\b{defined[1] or defined[2]}\b", self.name, self.code)
        if self.language == "sql":
            return f"CREATE STREAMING TABLE {self.name} AS {self.code};"
        return _PYTHON.format(name=self.name, query=self.code)


def section(page: str, title: str) -> str:
    behind = re.split(rf"^#+ {title}\n", page, maxsplit=1, flags=re.MULTILINE)[1]
    return re.split(r"^#+ ", behind, maxsplit=1, flags=re.MULTILINE)[0]


def tables(text: str) -> list[PageTable]:
    return [PageTable.read(found[3]) for found in _PART.finditer(text) if found[3]]


def examples(text: str, *, name: str = "example") -> Iterator[Example]:
    """Every block of code, with the first table behind it for its result."""
    waiting: list[Example] = []
    count = 0
    for found in _PART.finditer(text):
        if found[1] in {"sql", "python"}:
            count += 1
            waiting.append(Example(f"{name}_{count}", found[1], found[2]))
        elif found[3]:
            result = PageTable.read(found[3])
            yield from (Example(e.name, e.language, e.code, result) for e in waiting)
            waiting = []
    yield from waiting


SOURCES = dict(zip(SCHEMAS, tables(section(QUERIES, "The examples")), strict=False))


def delivery(name: str, number: int) -> pa.Table:
    """The rows of a delivery to one of the streams of the examples."""
    return typed(name, [row[1:] for row in SOURCES[name].rows if row[0] == str(number)])


def typed(name: str, rows: Sequence[Row]) -> pa.Table:
    schema = SCHEMAS[name]
    values = [
        {field.name: _value(field.type, cell) for field, cell in zip(schema, row, strict=True)}
        for row in rows
    ]
    return pa.Table.from_pylist(values, schema=schema)


def _value(data_type: pa.DataType, cell: str) -> Any:
    if pa.types.is_list(data_type):
        return [part.strip() for part in cell.split(",") if part.strip()]
    if pa.types.is_timestamp(data_type):
        return datetime.fromisoformat(f"2026-01-05 {cell}").replace(tzinfo=UTC)
    return int(cell) if pa.types.is_integer(data_type) else cell


def shown(value: Any) -> str:
    """A value as the pages show it."""
    match value:
        case None:
            return "NULL"
        case datetime() if value.year == 1970:
            return "1970"
        case datetime():
            return value.astimezone(UTC).strftime("%H:%M")
    return str(value)
