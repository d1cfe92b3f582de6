"""How many rows each kind of thing has, for a number of bookings.

The counts of the original that are known stand here, as shares of its 72,247 bookings; with that
many bookings they come out exactly. Where no count is known, a likely one is taken.
"""

from __future__ import annotations

ORIGINAL_BOOKINGS = 72_247


def share(bookings: int, original_count: int) -> int:
    """The count that stands to `bookings` as `original_count` to the original's bookings."""
    return (bookings * original_count + ORIGINAL_BOOKINGS // 2) // ORIGINAL_BOOKINGS


def updates(bookings: int) -> int:
    return share(bookings, 83_068)


def paid_bookings(bookings: int) -> int:
    return share(bookings, 45_958)


def bookings_paid_twice(bookings: int) -> int:
    return share(bookings, 3_680)


def reviews(bookings: int) -> int:
    return share(bookings, 24_999)


def users(bookings: int) -> int:
    return max(20, bookings // 4)


def properties(bookings: int) -> int:
    return max(12, bookings // 10)


def hosts(bookings: int) -> int:
    return max(6, bookings // 25)


def page_views(bookings: int) -> int:
    return 2 * bookings


def clicks(bookings: int) -> int:
    return 3 * bookings


def support_tickets(bookings: int) -> int:
    return max(5, bookings // 20)
