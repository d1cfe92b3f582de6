"""The life of every booking: how it was made, what happened to it, when we hear of it.

`bookings`, `booking_updates` and `payments` are three views of these lives. Money is in cents,
moments in seconds and dates in days since 1970, so that every step is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from millpond.samples import draws
from millpond.samples.draws import Booleans, Ints
from millpond.samples.wanderbricks import sizes
from millpond.samples.wanderbricks.homes import nightly_cents

STATUSES = ("pending", "confirmed", "cancelled", "completed")
PENDING, CONFIRMED, CANCELLED, COMPLETED = range(4)

DAY = 86_400
_FIRST_BOOKING = 1_688_169_600  # 2023-07-01T00:00:00Z
_SPAN_DAYS = 640
_SECOND_SLICE = 1_754_006_400  # 2025-08-01T00:00:00Z, after everything in the base
_SLICE_DAYS = 7

# A slice touches one booking in 20; after 20 slices the same bookings have their turn again.
CYCLE = 20

# (status when made, status after the last update or None where there is none, bookings of 72,247).
_FATES: tuple[tuple[int, int | None, int], ...] = (
    (COMPLETED, None, 7_439),
    (CANCELLED, None, 15_285),
    (PENDING, None, 1_216),
    (CONFIRMED, None, 581),
    (PENDING, COMPLETED, 18_700),
    (PENDING, CANCELLED, 8_359),
    (PENDING, CONFIRMED, 3_300),
    (CONFIRMED, COMPLETED, 10_696),
    (CONFIRMED, CANCELLED, 4_784),
    (CONFIRMED, CONFIRMED, 1_887),
)

# Two bookings of the original that people know: one whose last two updates share a moment, the
# first at 818.56 and the last at 775.56, and one that ends completed.
_TIED_BOOKING, _TIED_CENTS = 13_594, (81_856, 77_556)
_COMPLETED_BOOKING = 50_928


@dataclass(frozen=True)
class Fates:
    """What becomes of each booking, decided before its details are drawn; one entry a booking."""

    first_status: Ints
    last_status: Ints
    updates: Ints
    has_late_update: Booleans
    tied_booking: int


@dataclass
class Lives:
    """The newest state of every booking; one entry a booking."""

    status: Ints
    check_in: Ints
    nights: Ints
    guests: Ints
    cents: Ints
    updated_at: Ints

    def copy(self) -> Lives:
        return Lives(**{name: values.copy() for name, values in vars(self).items()})


@dataclass(frozen=True)
class Updates:
    """Full records of bookings after a change, in the order of `update_id`."""

    update_id: Ints
    booking: Ints
    number: Ints
    status: Ints
    check_in: Ints
    nights: Ints
    guests: Ints
    cents: Ints
    updated_at: Ints
    is_late: Booleans


def booking_ids(bookings: int) -> Ints:
    return np.arange(1, bookings + 1, dtype=np.int64)


def created_at(ids: Ints) -> Ints:
    return _FIRST_BOOKING + draws.below("bookings.created_at", ids, _SPAN_DAYS * DAY)


def property_of(ids: Ints, bookings: int) -> Ints:
    return 1 + draws.below("bookings.property", ids, sizes.properties(bookings))


def user_of(ids: Ints, bookings: int) -> Ints:
    return 1 + draws.below("bookings.user", ids, sizes.users(bookings))


@lru_cache(maxsize=2)
def fates(bookings: int) -> Fates:
    # The share of every fate is exact: bookings are shuffled and cut at the shares' bounds.
    bounds = np.cumsum([0, *(count for _, _, count in _FATES)])
    cuts = [sizes.share(bookings, int(bound)) for bound in bounds]
    widths = np.diff(cuts)
    first = np.repeat([fate[0] for fate in _FATES], widths)
    last = np.repeat([fate[0] if fate[1] is None else fate[1] for fate in _FATES], widths)
    counts = _update_counts(bookings, without=cuts[4])
    late = (counts > 0) & (np.arange(bookings) % 100 == 7)

    place = np.empty(bookings, dtype=np.int64)
    place[draws.order("bookings.fate", bookings)] = np.arange(bookings)
    tied = min(_TIED_BOOKING, sizes.share(bookings, _TIED_BOOKING)) - 1
    _move(place, tied, np.flatnonzero((last == CONFIRMED) & (counts == 2) & ~late))
    if bookings >= _COMPLETED_BOOKING:
        _move(place, _COMPLETED_BOOKING - 1, np.flatnonzero((last == COMPLETED) & (counts == 3)))
    return Fates(first[place], last[place], counts[place], late[place], tied)


def _update_counts(bookings: int, *, without: int) -> Ints:
    """Updates of each fate's place: none for the first `without`, one to four for the others."""
    updated = bookings - without
    further = sizes.updates(bookings) - updated
    four, three = updated * 4 // 100, updated * 14 // 100
    two = further - 2 * three - 3 * four
    counts = np.repeat([4, 3, 2, 1], [four, three, two, updated - four - three - two])
    shuffled = counts[draws.order("bookings.update_counts", updated)]
    return np.concatenate([np.zeros(without, dtype=np.int64), shuffled])


def _move(place: Ints, booking: int, wanted: Ints) -> None:
    """Give a booking one of the wanted places, by exchange, unless it has one or there is none."""
    if wanted.size and place[booking] not in wanted:
        other = np.flatnonzero(place == wanted[0])[0]
        place[booking], place[other] = place[other], place[booking]


def lives_when_made(bookings: int) -> Lives:
    ids = booking_ids(bookings)
    created = created_at(ids)
    nights = draws.between("bookings.nights", ids, 1, 14)
    fees = draws.below("bookings.fees", ids, 9_000)
    return Lives(
        status=fates(bookings).first_status.copy(),
        check_in=created // DAY + draws.between("bookings.lead_days", ids, 1, 90),
        nights=nights,
        guests=draws.between("bookings.guests", ids, 1, 8),
        cents=nightly_cents(property_of(ids, bookings)) * nights + fees,
        updated_at=created + draws.below("bookings.first_change", ids, 2 * DAY),
    )


def base(bookings: int) -> tuple[Lives, Updates]:
    """The state at the end of slice 1, and every update up to then, those not heard of yet too."""
    lives, fate = lives_when_made(bookings), fates(bookings)
    planned = fate.updates + fate.has_late_update
    steps = []
    for number in range(1, int(planned.max()) + 1):
        rows = np.flatnonzero(planned >= number)
        is_last = planned[rows] == number
        may_wait = (lives.status[rows] == PENDING) & draws.chance(
            f"updates.waits.{number}", rows, percent=30
        )
        between = np.where(may_wait, PENDING, CONFIRMED)
        status = np.where(is_last, fate.last_status[rows], between)
        _change(lives, rows, name=f"base.{number}", status=status)
        if number <= 2 and fate.updates[fate.tied_booking] == 2:
            lives.cents[fate.tied_booking] = _TIED_CENTS[number - 1]
        moved_on = draws.between(f"updates.wait_seconds.{number}", rows, 600, 20 * DAY)
        # Changes of one moment are common, the moment of the booking's first state included.
        tied = draws.chance(f"updates.tie.{number}", rows, percent=15 if number == 1 else 30)
        tied |= (rows == fate.tied_booking) & (number == 2)
        lives.updated_at[rows] += np.where(tied, 0, moved_on)
        is_late = fate.has_late_update[rows] & (number == 1)
        steps.append(_records(lives, rows, number=number, is_late=is_late))
    return lives, _numbered(steps, first_id=1)


def later(lives: Lives, *, slice_number: int, first_id: int) -> Updates:
    """The updates of one later slice; brings `lives` to its end.

    Most touched bookings change once; some twice in one moment. Of some a change that came before
    is not heard of until the next slice.
    """
    everyone = np.arange(lives.status.size, dtype=np.int64)
    touched = everyone[draws.below("slices.turn", everyone, CYCLE) == (slice_number - 2) % CYCLE]
    moment = slice_start(slice_number) + draws.below(
        f"slice.{slice_number}.moment", touched, _SLICE_DAYS * DAY - 3600
    )
    lives.updated_at[touched] = moment
    steps = []
    waits = draws.chance(f"slice.{slice_number}.late", touched, percent=10)
    twice = draws.chance(f"slice.{slice_number}.twice", touched, percent=25)
    for number, chosen in enumerate((waits, twice, np.ones_like(waits)), start=1):
        rows = touched[chosen]
        name = f"slice.{slice_number}.{number}"
        _change(lives, rows, name=name, status=_next_status(lives.status[rows], rows, name=name))
        is_late = np.full(rows.size, number == 1)
        steps.append(_records(lives, rows, number=number, is_late=is_late))
        if number == 1:
            lives.updated_at[rows] += 1800
    return _numbered(steps, first_id=first_id)


def slice_start(slice_number: int) -> int:
    return _SECOND_SLICE + (slice_number - 2) * _SLICE_DAYS * DAY


def _next_status(status: Ints, rows: Ints, *, name: str) -> Ints:
    ends = np.where(draws.chance(f"{name}.ends_well", rows, percent=70), COMPLETED, CANCELLED)
    return np.select(
        [status == PENDING, status == CONFIRMED], [np.full_like(ends, CONFIRMED), ends], status
    )


def _change(lives: Lives, rows: Ints, *, name: str, status: Ints) -> None:
    lives.status[rows] = status
    other_price = draws.chance(f"{name}.other_price", rows, percent=35)
    factor = np.where(other_price, draws.between(f"{name}.factor", rows, 80, 120), 100)
    lives.cents[rows] = lives.cents[rows] * factor // 100
    other_guests = draws.chance(f"{name}.other_guests", rows, percent=10)
    lives.guests[rows] = np.where(
        other_guests, draws.between(f"{name}.guests", rows, 1, 8), lives.guests[rows]
    )
    other_days = draws.chance(f"{name}.other_days", rows, percent=15)
    lives.check_in[rows] += np.where(other_days, draws.between(f"{name}.shift", rows, 1, 10), 0)


def _records(lives: Lives, rows: Ints, *, number: int, is_late: Booleans) -> Updates:
    return Updates(
        update_id=np.zeros_like(rows),
        booking=rows,
        number=np.full_like(rows, number),
        status=lives.status[rows],
        check_in=lives.check_in[rows],
        nights=lives.nights[rows],
        guests=lives.guests[rows],
        cents=lives.cents[rows],
        updated_at=lives.updated_at[rows],
        is_late=is_late,
    )


def _numbered(steps: list[Updates], *, first_id: int) -> Updates:
    """Put updates in the order in which they happened, and number them."""
    columns = {
        name: np.concatenate([getattr(step, name) for step in steps]) for name in vars(steps[0])
    }
    happened = np.lexsort((columns["number"], columns["booking"], columns["updated_at"]))
    ordered = {name: values[happened] for name, values in columns.items()}
    ordered["update_id"] = first_id + np.arange(happened.size, dtype=np.int64)
    return Updates(**ordered)
