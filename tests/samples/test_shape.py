"""Counts, shares and quirks of the sample data, at the size of the original and small."""

from collections import Counter

import duckdb
import pytest

from millpond.samples.wanderbricks.generate import generate

ORIGINAL = 72_247
SMALL = 2_000

LATEST = """
    SELECT coalesce(latest.status, bookings.status) AS status, count(*) FROM bookings LEFT JOIN
    (SELECT booking_id, arg_max(status, booking_update_id) AS status FROM booking_updates GROUP BY 1)
    AS latest USING (booking_id) GROUP BY 1 ORDER BY 1
"""


@pytest.fixture(scope="module")
def original() -> duckdb.DuckDBPyConnection:
    return tables_of(ORIGINAL)


@pytest.fixture(scope="module")
def small() -> duckdb.DuckDBPyConnection:
    return tables_of(SMALL)


def tables_of(bookings: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in ("bookings", "booking_updates", "payments", "reviews"):
        connection.register(table, generate(table, bookings=bookings))
    return connection


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple]:
    return connection.sql(query).fetchall()


def test_bookings_have_the_original_statuses(original) -> None:
    assert rows(original, "SELECT status, count(*) FROM bookings GROUP BY 1 ORDER BY 1") == [
        ("cancelled", 15_285),
        ("completed", 7_439),
        ("confirmed", 17_948),
        ("pending", 31_575),
    ]


def test_the_newest_update_of_each_booking_gives_the_original_statuses(original) -> None:
    assert rows(original, LATEST) == [
        ("cancelled", 28_428),
        ("completed", 36_835),
        ("confirmed", 5_768),
        ("pending", 1_216),
    ]


def test_updates_have_the_original_counts(original) -> None:
    query = "SELECT count(*), count(DISTINCT booking_id), count(DISTINCT booking_update_id)"
    assert rows(original, f"{query} FROM booking_updates") == [(83_068, 47_726, 83_068)]


def test_payments_have_the_original_counts(original) -> None:
    attempts = "SELECT count(*) AS n FROM payments GROUP BY booking_id"
    assert rows(original, f"SELECT n, count(*) FROM ({attempts}) GROUP BY 1 ORDER BY 1") == [
        (1, 45_958 - 3_680),
        (2, 3_680),
    ]


def test_review_ids_are_shared_by_25_records(original) -> None:
    query = "SELECT count(*), count(DISTINCT review_id), count(DISTINCT booking_id) FROM reviews"
    assert rows(original, query) == [(24_999, 1_000, 24_999)]


def test_the_two_known_bookings_are_there(original) -> None:
    query = "SELECT total_amount::DECIMAL(9, 2)::VARCHAR, status, updated_at FROM booking_updates"
    tied = rows(original, f"{query} WHERE booking_id = 13594 ORDER BY booking_update_id")
    assert [row[:2] for row in tied] == [("818.56", "confirmed"), ("775.56", "confirmed")]
    assert tied[0][2] == tied[1][2]
    last = rows(
        original, f"{query} WHERE booking_id = 50928 ORDER BY booking_update_id DESC LIMIT 1"
    )
    assert last[0][1] == "completed"


def test_the_small_tables_have_the_same_tie_at_the_booking_in_the_same_place(small) -> None:
    query = (
        "SELECT total_amount::DECIMAL(9, 2)::VARCHAR FROM booking_updates WHERE booking_id = 376"
    )
    assert rows(small, f"{query} ORDER BY booking_update_id") == [("818.56",), ("775.56",)]


def test_ties_on_updated_at_are_common_within_a_booking_and_with_its_first_state(small) -> None:
    within = """SELECT count(*) FROM booking_updates GROUP BY booking_id, updated_at HAVING count(*) > 1"""
    assert len(rows(small, within)) > 100
    with_first = "SELECT 1 FROM booking_updates u JOIN bookings b USING (booking_id, updated_at)"
    assert len(rows(small, with_first)) > 100


def test_update_ids_rise_with_time(small) -> None:
    query = "SELECT updated_at FROM booking_updates ORDER BY booking_update_id"
    moments = [row[0] for row in rows(small, query)]
    assert moments == sorted(moments)


def test_updates_are_full_records_but_for_created_at(small) -> None:
    nulls = rows(small, "SELECT * FROM (SUMMARIZE booking_updates) WHERE null_percentage > 0")
    assert [row[0] for row in nulls] == ["created_at"]
    query = """SELECT count(*) FROM booking_updates u JOIN bookings b USING (booking_id)
               WHERE u.created_at <> b.created_at OR u.user_id <> b.user_id"""
    assert rows(small, query) == [(0,)]


def test_payment_ids_recur_with_other_bookings(small) -> None:
    query = """SELECT count(*) FROM payments GROUP BY payment_id HAVING count(DISTINCT booking_id) > 1"""
    assert len(rows(small, query)) > 20


def test_updates_and_payments_are_of_bookings_that_exist(small) -> None:
    query = "SELECT count(*) FROM {} ANTI JOIN bookings USING (booking_id)"
    for table in ("booking_updates", "payments", "reviews"):
        assert rows(small, query.format(table)) == [(0,)]


def test_no_booking_is_ever_paid_for_twice_slices_included() -> None:
    paid: Counter[int] = Counter()
    for slice_number in range(1, 25):
        table = generate("payments", bookings=SMALL, slice_number=slice_number)
        for booking, status in zip(
            table["booking_id"].to_pylist(), table["status"].to_pylist(), strict=True
        ):
            paid[booking] += status == "completed"
    assert max(paid.values()) == 1


def test_a_slice_brings_new_versions_new_bookings_and_late_updates() -> None:
    newest: dict[int, int] = {}
    seen: set[int] = set()
    for slice_number in range(1, 5):
        table = generate("booking_updates", bookings=SMALL, slice_number=slice_number)
        ids = table.select(["booking_id", "booking_update_id"]).to_pydict()
        pairs = list(zip(ids["booking_id"], ids["booking_update_id"], strict=True))
        assert seen.isdisjoint(update for _, update in pairs)
        seen.update(update for _, update in pairs)
        if slice_number > 1:
            touched = {booking for booking, _ in pairs}
            late = [update for booking, update in pairs if update < newest.get(booking, 0)]
            assert late
            assert touched & newest.keys()
            assert touched - newest.keys()
            assert len(touched) < SMALL / 10
        for booking, update in pairs:
            newest[booking] = max(update, newest.get(booking, 0))
    assert max(seen) - len(seen) < 30  # what the last slice keeps back
