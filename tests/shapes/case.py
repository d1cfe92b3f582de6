"""What a case of the table of query shapes is, and the cuts of its input into batches and updates.

This module and those that hold the cases import nothing of millpond: Apache Spark reads them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

BEATS = 6

# A cut says which beats of the input come in one batch, and which batches in one update:
# between two updates the program ends, and starts again.
Cut = tuple[tuple[tuple[int, ...], ...], ...]
CUTS: Mapping[str, Cut] = {
    "a beat a batch": (((0,), (1,), (2,)), ((3,), (4,), (5,))),
    "restarts": (((0, 1), (2,)), ((3,),), ((4, 5),)),
    "few and large": (((0, 1, 2), (3, 4)), ((5,),)),
}


@dataclass(frozen=True)
class StreamTable:
    """A table that grows: its rows in the order in which they come, a list for each beat.

    A beat without rows adds no file to the table, so its batch comes to the next beat's rows.
    """

    schema: pa.Schema
    beats: tuple[Sequence[tuple[Any, ...]], ...]

    def __post_init__(self) -> None:
        assert len(self.beats) == BEATS

    def rows(self, beats: Sequence[int] = range(BEATS)) -> pa.Table:
        return _arrow(self.schema, [row for beat in beats for row in self.beats[beat]])


@dataclass(frozen=True)
class StaticTable:
    """A table that is read whole."""

    schema: pa.Schema
    all: Sequence[tuple[Any, ...]]

    def rows(self) -> pa.Table:
        return _arrow(self.schema, self.all)


@dataclass(frozen=True)
class Case:
    """One shape of query, in SQL and in Python.

    Attributes:
        sql: A query over streams, or `None` where only Python can say it.
        python: An expression that gives the DataFrame, with `spark`, `sf` (the functions) and what
            `setup` defines; or `None` where only SQL can say it.
        setup: Python statements before the function, such as the functions of a UDF.
        judged: `batch`: whatever the cut, the rows are those of the same query over all the input
            at once. `stream`: the rows are those of Structured Streaming in the same cut.
        expected: The rows of a case judged `batch` that can be told beforehand, in place of what
            Spark says of the whole input.
        spark_errs: Of a case judged `batch`: what Spark does wrong where it streams the query, so
            that only its rows of the whole input count.
        keys: With `sequence`, the case also runs as a REPLACE USING flow.
    """

    name: str
    sql: str | None
    python: str | None
    setup: str = ""
    judged: Literal["batch", "stream"] = "batch"
    expected: tuple[tuple[Any, ...], ...] | None = None
    spark_errs: str | None = None
    keys: tuple[str, ...] = ()
    sequence: str | None = None

    @property
    def forms(self) -> list[str]:
        return [form for form in ("sql", "python") if getattr(self, form) is not None]

    def text(self, form: str) -> str:
        text = self.sql if form == "sql" else self.python
        assert text is not None
        return text


def _arrow(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    )
