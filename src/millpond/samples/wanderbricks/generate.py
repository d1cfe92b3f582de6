"""From a table's name to the function that makes its rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millpond.samples.wanderbricks import activity, bookings, homes, payments, people, places

_GROWING: dict[str, Callable[[int, int], pa.Table]] = {
    "booking_updates": bookings.booking_updates_table,
    "payments": payments.payments_table,
}
_FIXED: dict[str, Callable[[], pa.Table]] = {
    "amenities": homes.amenities_table,
    "countries": places.countries_table,
    "destinations": places.destinations_table,
}
_SCALED: dict[str, Callable[[int], pa.Table]] = {
    "bookings": bookings.bookings_table,
    "clickstream": activity.clickstream_table,
    "customer_support_logs": activity.customer_support_logs_table,
    "employees": people.employees_table,
    "hosts": people.hosts_table,
    "page_views": activity.page_views_table,
    "properties": homes.properties_table,
    "property_amenities": homes.property_amenities_table,
    "property_images": homes.property_images_table,
    "reviews": activity.reviews_table,
    "users": people.users_table,
}


def generate(table: str, *, bookings: int, slice_number: int = 1) -> pa.Table:
    """Make the rows of one slice of a table; the same rows whenever and wherever it is called.

    Args:
        table: One of `tables.TABLES`.
        bookings: How many bookings the marketplace has.
        slice_number: 1 for the base; more only for one of `tables.GROWING_TABLES`.
    """
    if table in _GROWING:
        return _GROWING[table](bookings, slice_number)
    if table in _FIXED:
        return _FIXED[table]()
    return _SCALED[table](bookings)
