"""The table `payments`: at most one completed payment a booking, and ids that are not unique."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.samples import draws
from millpond.samples.draws import Ints
from millpond.samples.wanderbricks import columns, lives, sizes
from millpond.samples.wanderbricks.lives import CANCELLED, COMPLETED, CONFIRMED, PENDING

PAYMENTS = pa.schema(
    [
        ("payment_id", pa.int64()),
        ("booking_id", pa.int64()),
        ("amount", columns.PRICE),
        ("payment_method", pa.string()),
        ("status", pa.string()),
        ("payment_date", columns.TIMESTAMP),
    ]
)
METHODS = {"credit_card": 5, "paypal": 2, "apple_pay": 1, "google_pay": 1, "bank_transfer": 1}

# Chances in percent of how an only or second payment ends, by the booking's status.
_OUTCOMES = {
    COMPLETED: {"completed": 97, "pending": 3},
    CONFIRMED: {"completed": 80, "pending": 15, "failed": 5},
    CANCELLED: {"refunded": 70, "failed": 30},
    PENDING: {"pending": 60, "failed": 40},
}


def payments_table(bookings: int, slice_number: int) -> pa.Table:
    if slice_number == 1:
        return _base(bookings)
    return _later(bookings, slice_number=slice_number)


def _base(bookings: int) -> pa.Table:
    state, _ = lives.base(bookings)
    paid, twice = _paid(bookings, state.status)
    second = np.concatenate(
        [np.zeros(paid.size, dtype=np.int64), np.ones(twice.size, dtype=np.int64)]
    )
    rows = np.concatenate([paid, twice])
    date = lives.created_at(rows + 1) + draws.between("payments.delay", rows, 60, 20 * lives.DAY)
    date += second * draws.between("payments.retry", rows, 3600, 3 * lives.DAY)
    statuses = _outcomes(state.status[rows], rows)
    # Where there is a second payment, the first one has failed.
    for index in np.flatnonzero((second == 0) & np.isin(rows, twice)).tolist():
        statuses[index] = "failed"
    happened = np.lexsort((second, rows, date))
    return _table(
        _ids(rows.size),
        rows[happened],
        cents=state.cents[rows[happened]],
        status=[statuses[index] for index in happened.tolist()],
        date=date[happened],
        method="payments.method.1",
    )


def _paid(bookings: int, status: Ints) -> tuple[Ints, Ints]:
    """The bookings that have payments, and those of them that have two; by index, not id."""
    # Stays that took place were paid for first of all, then those to come.
    rank = np.array([3, 1, 2, 0])[status]
    shuffled = draws.order("payments.paid", bookings)
    paid = shuffled[np.argsort(rank[shuffled], kind="stable")][: sizes.paid_bookings(bookings)]
    twice = paid[draws.order("payments.twice", paid.size)][: sizes.bookings_paid_twice(bookings)]
    return np.sort(paid), np.sort(twice)


def _outcomes(status: Ints, rows: Ints) -> list[str]:
    by_status = {
        code: draws.pick_weighted("payments.outcome", rows, weights)
        for code, weights in _OUTCOMES.items()
    }
    return [by_status[code][index] for index, code in enumerate(status.tolist())]


def _ids(count: int) -> Ints:
    """Ids in the order of payment, but that one in 30 repeats an earlier one."""
    ids = np.arange(1, count + 1, dtype=np.int64)
    repeats = (draws.below("payments.id_repeats", ids, 30) == 0) & (ids > 1)
    earlier = 1 + (
        draws.bits("payments.repeated_id", ids) % np.maximum(ids - 1, 1).astype(np.uint64)
    )
    return np.where(repeats, earlier.astype(np.int64), ids)


def _later(bookings: int, *, slice_number: int) -> pa.Table:
    """Refunds of payments made, first payments of bookings that had none, attempts that failed."""
    base = _base(bookings)
    state, happened = lives.base(bookings)
    for number in range(2, slice_number + 1):
        happened = lives.later(state, slice_number=number, first_id=1)
    touched = np.unique(happened.booking)
    touched = touched[draws.chance(f"payments.slice.{slice_number}", touched, percent=60)]
    first_turn = slice_number - 2 < lives.CYCLE

    booking, status = base["booking_id"].to_numpy() - 1, base["status"].to_pylist()
    newest_row = dict(zip(booking.tolist(), range(booking.size), strict=True))
    id_of = base["payment_id"].to_pylist()
    cents_of = [int(amount * 100) for amount in base["amount"].to_pylist()]
    rows, ids, cents, statuses = [], [], [], []
    for index in touched.tolist():
        paid_row = newest_row.get(index)
        amount = int(state.cents[index])
        payment_id = base.num_rows + (slice_number - 2) * bookings + index + 1
        outcome = "failed"
        if first_turn and paid_row is None:
            outcome = "completed"
        elif first_turn and paid_row is not None and status[paid_row] == "completed":
            outcome, amount, payment_id = "refunded", cents_of[paid_row], id_of[paid_row]
        rows.append(index)
        ids.append(payment_id)
        cents.append(amount)
        statuses.append(outcome)
    moments = lives.slice_start(slice_number) + draws.below(
        f"payments.slice.{slice_number}.moment", np.array(rows, dtype=np.int64), 7 * lives.DAY
    )
    return _table(
        np.array(ids, dtype=np.int64),
        np.array(rows, dtype=np.int64),
        cents=np.array(cents, dtype=np.int64),
        status=statuses,
        date=moments,
        method=f"payments.method.{slice_number}",
    )


def _table(
    ids: Ints, rows: Ints, *, cents: Ints, status: list[str], date: Ints, method: str
) -> pa.Table:
    return columns.table(
        PAYMENTS,
        payment_id=ids,
        booking_id=rows + 1,
        amount=columns.prices(cents),
        payment_method=draws.pick_weighted(method, rows, METHODS),
        status=status,
        payment_date=columns.moments(date),
    )
