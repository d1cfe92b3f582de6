"""Rows as JSON has them, so that rows of two programs can be compared, and kept in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain_rows(table: pa.Table) -> list[list[Any]]:
    """The rows of a table, sorted, with the columns in the table's order."""
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return in_order(list(row) for row in zip(*columns, strict=True))


def in_order(rows: Iterable[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=json.dumps)


def plain(value: Any) -> Any:
    """A value as JSON has it. Zero has no sign: which of two equal rows is kept is nobody's promise."""
    match value:
        case float():
            form: Any = str(value) if math.isnan(value) or math.isinf(value) else value + 0.0
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            form = utc.isoformat(sep=" ") + ("Z" if value.tzinfo else "")
        case date() | Decimal():
            form = str(value)
        case bytes():
            form = value.hex()
        case dict():
            form = {name: plain(part) for name, part in value.items()}
        case [tuple(), *_]:  # a map; its entries have no order
            form = in_order([plain(key), plain(part)] for key, part in value)
        case list():
            form = [plain(part) for part in value]
        case _:
            form = value
    return form


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
