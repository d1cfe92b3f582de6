"""The tables `bookings` and `booking_updates`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.samples import draws
from millpond.samples.draws import Ints
from millpond.samples.wanderbricks import columns, lives
from millpond.samples.wanderbricks.lives import Updates

BOOKINGS = pa.schema(
    [
        ("booking_id", pa.int64()),
        ("user_id", pa.int64()),
        ("property_id", pa.int64()),
        ("check_in", pa.date32()),
        ("check_out", pa.date32()),
        ("guests_count", pa.int32()),
        ("total_amount", pa.float32()),
        ("status", pa.string()),
        ("created_at", columns.TIMESTAMP),
        ("updated_at", columns.TIMESTAMP),
    ]
)
BOOKING_UPDATES = pa.schema(
    [
        ("booking_id", pa.int64()),
        ("booking_update_id", pa.int64()),
        ("check_in", pa.date32()),
        ("check_out", pa.date32()),
        ("created_at", columns.TIMESTAMP),
        ("guests_count", pa.int32()),
        ("property_id", pa.int64()),
        ("status", pa.string()),
        ("total_amount", pa.float32()),
        ("updated_at", columns.TIMESTAMP),
        ("user_id", pa.int64()),
    ]
)


def bookings_table(bookings: int) -> pa.Table:
    """Bookings as they were made: their status is stale as soon as updates come in."""
    ids, made = lives.booking_ids(bookings), lives.lives_when_made(bookings)
    return columns.table(
        BOOKINGS,
        booking_id=ids,
        user_id=lives.user_of(ids, bookings),
        property_id=lives.property_of(ids, bookings),
        check_in=columns.dates(made.check_in),
        check_out=columns.dates(made.check_in + made.nights),
        guests_count=made.guests,
        total_amount=columns.money(made.cents),
        status=_status_names(made.status),
        created_at=columns.moments(lives.created_at(ids)),
        updated_at=columns.moments(made.updated_at),
    )


def booking_updates_table(bookings: int, slice_number: int) -> pa.Table:
    """One slice of updates: those of its own time that are heard of, and late ones of before."""
    state, happened = lives.base(bookings)
    before: Updates | None = None
    for number in range(2, slice_number + 1):
        before = happened
        happened = lives.later(state, slice_number=number, first_id=int(before.update_id[-1]) + 1)
    heard = _records(happened, np.flatnonzero(~happened.is_late), bookings=bookings)
    if before is None:
        return heard
    late = _records(before, np.flatnonzero(before.is_late), bookings=bookings)
    return pa.concat_tables([heard, late]).combine_chunks()


def _records(updates: Updates, rows: Ints, *, bookings: int) -> pa.Table:
    ids = updates.booking[rows] + 1
    left_out = draws.chance("updates.without_created_at", updates.update_id[rows], percent=40)
    return columns.table(
        BOOKING_UPDATES,
        booking_id=ids,
        booking_update_id=updates.update_id[rows],
        check_in=columns.dates(updates.check_in[rows]),
        check_out=columns.dates(updates.check_in[rows] + updates.nights[rows]),
        created_at=columns.moments(lives.created_at(ids), mask=left_out),
        guests_count=updates.guests[rows],
        property_id=lives.property_of(ids, bookings),
        status=_status_names(updates.status[rows]),
        total_amount=columns.money(updates.cents[rows]),
        updated_at=columns.moments(updates.updated_at[rows]),
        user_id=lives.user_of(ids, bookings),
    )


def _status_names(status: Ints) -> list[str]:
    return [lives.STATUSES[code] for code in status.tolist()]
