"""Two streams meet: each pair once, whichever row came first; who meets nobody comes out once."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.state import Due, Side, StreamJoin, observe
from millpond.state.batch_rows import files_sql
from tests.state.stream import (
    KEYS,
    TICK_US,
    TIME,
    Batch,
    Watermark,
    at,
    batches,
    new_folder,
    normal,
    read,
    run,
    same,
)

DELAY_MS = 4
# A right row matches from so long before a left row on, and until so long after it.
BEFORE, AFTER = 6, 10
SCHEMA = pa.schema([("c0", pa.float64()), ("c1", TIME), ("c2", pa.int32()), ("fits", pa.bool_())])
COLUMNS = SCHEMA.names
CONDITION = (
    f"l.c0 = r.c0 AND epoch_us(r.c1) BETWEEN epoch_us(l.c1) - {BEFORE * TICK_US} "
    f"AND epoch_us(l.c1) + {AFTER * TICK_US} AND (l.c2 + r.c2) % 2 = 0"
)
OUTERS = [frozenset(), frozenset({"left"}), frozenset({"right"}), frozenset({"left", "right"})]
outers = st.sampled_from(OUTERS)


def row(ticks: int | None, key: float | None, number: int, fits: bool | None) -> tuple:
    return (key, at(ticks), number, fits)


some_batches = batches(
    row,
    KEYS,
    st.integers(0, 3),
    st.sampled_from([True, True, True, True, False, None]),
    names=["left", "right"],
)


def matches(left: tuple, right: tuple) -> bool:
    if None in (left[0], right[0], left[1], right[1]) or not (left[3] and right[3]):
        return False
    return (
        normal(left[0]) == normal(right[0])
        and -BEFORE * TICK_US <= right[1] - left[1] <= AFTER * TICK_US
        and (left[2] + right[2]) % 2 == 0
    )


def expected(outer, given_batches):
    """Told without any state: from all rows that were not late, and when each came."""
    watermark = Watermark(DELAY_MS)
    came: dict[str, list[tuple[int, tuple]]] = {"left": [], "right": []}
    marks = []
    for number, batch in enumerate(given_batches):
        times = [row[1] for side in came for row in batch.rows[side]]
        late_us, now_us = watermark.next_batch(times)
        marks.append(now_us)
        for side, rows_of_side in came.items():
            in_time = (row for row in batch.rows[side] if row[1] is None or row[1] > late_us)
            rows_of_side += [(number, row) for row in in_time]
    came_out = [{"pairs": [], "left": [], "right": []} for _ in given_batches]
    for left_number, left in came["left"]:
        for right_number, right in came["right"]:
            if matches(left, right):
                came_out[max(left_number, right_number)]["pairs"].append(left + right)
    lags = {"left": AFTER, "right": BEFORE}
    for side in outer:
        for number, row in came[side]:
            leaves = leaving(row, number, marks, lags[side])
            if leaves is not None and not any(
                matches(row, other) if side == "left" else matches(other, row)
                for _, other in came["right" if side == "left" else "left"]
            ):
                came_out[leaves][side].append(row)
    return came_out


def leaving(row: tuple, number: int, marks: list[int], lag: int) -> int | None:
    """The batch in which a row that meets nobody comes out."""
    if not row[3]:
        return number
    if row[1] is None:
        return None
    dead_us = row[1] + lag * TICK_US
    return next((n for n in range(number, len(marks)) if marks[n] >= dead_us), None)


def actual(outer, given_batches, *, due=True, observed=lambda _: None):
    def side(files, lag):
        return Side(
            files,
            ["c0"],
            event_time="c1",
            due=Due("c1", lag * TICK_US) if due else None,
            matchable="fits",
        )

    def operator(state, files, folder):
        # As the least of two watermarks would stand still at first, both streams are one's events.
        together = files["left"] + files["right"]
        observe(state, "w", together, event_time="c1", delay_us=DELAY_MS * 1000)
        join = StreamJoin(
            state,
            "j",
            side(files["left"], AFTER),
            side(files["right"], BEFORE),
            outer=outer,
            folder=folder / "out",
        )
        observed(join)
        pairs, met = engine_joins(join, folder)
        left, right = join.unmatched(met, left_id="l_id", right_id="r_id")
        return {"pairs": pairs, "left": read(left, COLUMNS), "right": read(right, COLUMNS)}

    with new_folder() as folder:
        return run(
            operator, given_batches, schemas={"left": SCHEMA, "right": SCHEMA}, folder=folder
        )


def engine_joins(join, folder):
    """Join the terms by the whole condition. `row_id` is the last column of each side."""
    pairs, met = [], ()
    for number, (left, right) in enumerate(join.terms):
        if not (left and right):
            continue
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            joined = f"{files_sql(left)} AS l JOIN {files_sql(right)} AS r ON {CONDITION}"
            values = ", ".join(
                f"{'epoch_us' if name == 'c1' else ''}({side}.{name})"
                for side in "lr"
                for name in COLUMNS
            )
            pairs += connection.execute(f"SELECT {values} FROM {joined}").fetchall()
            path = folder / f"met-{number}.parquet"
            ids = "l.row_id AS l_id, r.row_id AS r_id"
            connection.execute(f"COPY (SELECT {ids} FROM {joined}) TO '{path}'")
            met += (path,)
    return pairs, met


def check(outer, given_batches):
    wanted, found = expected(outer, given_batches), actual(outer, given_batches)
    for one, other in zip(wanted, found, strict=True):
        assert same(one, other)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(outer=outers, given_batches=some_batches)
def test_pairs_and_lonely_rows_come_out_once(outer, given_batches):
    check(outer, given_batches)


def both(left=(), right=(), fails=None):
    return Batch({"left": list(left), "right": list(right)}, fails=fails)


def test_a_row_that_met_a_partner_long_ago_is_not_lonely():
    left, right = (1.0, at(0), 0, True), (1.0, at(1), 0, True)
    later = [both([(2.0, at(tick), 0, True)]) for tick in (2, 3, 60, 90)]
    came_out = actual(frozenset({"left"}), [both([left]), both([], [right]), *later, both()])
    assert came_out[1]["pairs"] == [left + right]
    lonely = [row for out in came_out for row in out["left"]]
    assert sorted(lonely) == [(2.0, at(tick), 0, True) for tick in (2, 3, 60)]


def test_only_rows_whose_key_is_in_the_batch_are_given_to_the_engine():
    seen = []

    def observed(join):
        seen.append([[read(files, ["c0"]) for files in term] for term in join.terms])

    many = [(float(key), at(key % 7), 0, True) for key in range(1000)]
    actual(
        frozenset(),
        [both(many, many), both([many[17], (None, at(3), 0, True)], [many[23]])],
        observed=observed,
    )
    assert seen[-1] == [[[(17.0,)], [(17.0,), (23.0,)]], [[(23.0,)], [(23.0,)]]]


def test_a_side_that_is_never_due_is_kept_for_ever():
    left, right = (1.0, at(0), 0, True), (1.0, at(2000), 0, True)
    pairs = [
        len(out["pairs"])
        for out in actual(
            frozenset({"left"}),
            [both([left]), both([], [(3.0, at(1995), 0, True)]), both(), both([], [right])],
            due=False,
        )
    ]
    assert pairs == [0, 0, 0, 0]
    terms = []
    actual(
        frozenset({"left"}),
        [both([left]), both([], [(3.0, at(1995), 0, True)]), both(), both([], [right])],
        due=False,
        observed=lambda join: terms.append([read(files, ["c0"]) for files in join.terms[1]]),
    )
    assert terms[-1] == [[(1.0,)], [(1.0,)]]


def test_nan_and_zero_are_keys_like_others():
    left = [(math.nan, at(0), 0, True), (0.0, at(0), 0, True)]
    right = [(math.nan, at(1), 0, True), (-0.0, at(1), 0, True)]
    came_out = actual(frozenset(), [both(left), both([], right)])
    assert len(came_out[1]["pairs"]) == 2


def test_null_in_a_struct_is_a_key_like_others():
    schema = pa.schema([("c0", pa.int32()), ("k0", pa.struct([("col1", pa.float64())]))])
    terms = []

    def operator(state, files, folder):
        left, right = (Side(files[name], ["k0"]) for name in ("left", "right"))
        join = StreamJoin(state, "j", left, right, folder=folder / "out")
        terms.append([[read(part, ["c0"]) for part in term] for term in join.terms])
        return {}

    wrapped = [(number, {"col1": value}) for number, value in enumerate([None, math.nan, 0.0])]
    given_batches = [both([*wrapped, (3, None)]), both([], [(7, {"col1": None}), (8, None)])]
    with new_folder() as folder:
        run(operator, given_batches, schemas={"left": schema, "right": schema}, folder=folder)
    assert terms[1] == [[[], [(7,)]], [[(0,)], [(7,)]]]
