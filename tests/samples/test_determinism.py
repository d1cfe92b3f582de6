"""The same rows on every machine: small tables are pinned by a digest of their contents."""

import hashlib
import json

import pytest

from millpond.samples.wanderbricks.generate import generate
from millpond.samples.wanderbricks.tables import TABLES

DIGESTS = {
    "amenities": "555113cf746d639d",
    "booking_updates": "0801900713eaa027",
    "bookings": "251e8ac575a14fda",
    "clickstream": "67f0a3b53614c123",
    "countries": "53cf0e58ab7fa650",
    "customer_support_logs": "13ce417cdd9c7f57",
    "destinations": "5c0acc77cb73d4dd",
    "employees": "3edd93ecaefddba5",
    "hosts": "08b60c913c186460",
    "page_views": "4496f57ff5cad0b3",
    "payments": "b5bc3450ed407580",
    "properties": "1ca76f01ef518bd6",
    "property_amenities": "1eeda43355b053cb",
    "property_images": "d0b6f699f52b1d4e",
    "reviews": "088bdb1618f2b941",
    "users": "0577e82cd737b306",
    "booking_updates@3": "890838e074a69086",
    "payments@3": "c6fb6179676970f0",
}


def digest(table: str, slice_number: int = 1) -> str:
    rows = generate(table, bookings=100, slice_number=slice_number).to_pylist()
    return hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest()[:16]


@pytest.mark.parametrize("table", TABLES)
def test_the_base_never_changes(table: str) -> None:
    assert digest(table) == DIGESTS[table]


@pytest.mark.parametrize("table", ["booking_updates", "payments"])
def test_later_slices_never_change(table: str) -> None:
    assert digest(table, slice_number=3) == DIGESTS[f"{table}@3"]
