"""From exact numbers to Arrow columns of the types that the tables declare."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from millpond.samples.draws import Booleans, Ints

TIMESTAMP = pa.timestamp("us", tz="UTC")
PRICE = pa.decimal128(15, 4)


def table(schema: pa.Schema, /, **values: object) -> pa.Table:
    """Build a table with exactly the schema's columns, in its order."""
    arrays = []
    for field in schema:
        column = values.pop(field.name)
        arrays.append(column if isinstance(column, pa.Array) else pa.array(column, field.type))
    if values:
        raise ValueError(sorted(values))
    return pa.Table.from_arrays(arrays, schema=schema)


def moments(seconds: Ints, *, mask: Booleans | None = None) -> pa.Array:
    """Timestamps from seconds since 1970; null where `mask` is set."""
    return pa.array(seconds * 1_000_000, pa.int64(), mask=mask).cast(TIMESTAMP)


def dates(days: Ints, *, mask: Booleans | None = None) -> pa.Array:
    """Dates from days since 1970; null where `mask` is set."""
    return pa.array(days.astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())


def money(cents: Ints) -> pa.Array:
    """Amounts as the tables' 32-bit floats, each the nearest to its number of cents."""
    return pa.array((cents / 100).astype(np.float32))


def prices(cents: Ints) -> pa.Array:
    """Amounts as `decimal(15,4)`."""
    return pa.array([Decimal(value).scaleb(-2) for value in cents.tolist()], PRICE)
