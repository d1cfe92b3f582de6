"""One row of each key comes out: for ever, or until the watermark lets the key be forgotten."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.state import deduplicate, observe
from tests.state.stream import (
    KEYS,
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

SCHEMA = pa.schema([("c0", pa.float64()), ("c1", TIME), ("c2", pa.string())])
COLUMNS = SCHEMA.names
DELAY_MS = 4
KINDS = {
    # The key's columns, that of event time, and whether keys live for as long as the delay.
    "for ever": (["c0"], None, False),
    "for ever, with a watermark": (["c0"], "c1", False),
    "event time in the key": (["c0", "c1"], "c1", False),
    "within the watermark": (["c0"], "c1", True),
}


def row(ticks: int | None, key: float | None, text: str) -> tuple:
    return (key, at(ticks), text)


some_batches = batches(row, KEYS | st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from(["x", "y"]))
kinds = st.sampled_from(sorted(KINDS))


def expected(kind: str, given_batches: list[Batch]) -> list[dict]:
    keys, event_time, within = KINDS[kind]
    watermark, seen, came_out = Watermark(DELAY_MS), {}, []
    for batch in given_batches:
        late_us, now_us = watermark.next_batch([row[1] for row in batch.rows["in"]])
        out = []
        for row in batch.rows["in"]:
            time_us = row[1]
            if event_time and time_us is not None and time_us <= late_us:
                continue
            key = tuple(normal(row[COLUMNS.index(name)]) for name in keys)
            if key not in seen:
                out.append(row)
                seen[key] = (time_us or 0) + DELAY_MS * 1000 if within else time_us
        if event_time and (within or event_time in keys):
            seen = {key: due for key, due in seen.items() if due is None or due > now_us}
        came_out.append({"out": out})
    return came_out


def actual(kind: str, given_batches: list[Batch]) -> list[dict]:
    keys, event_time, within = KINDS[kind]

    def operator(state, files, folder):
        observe(state, "w", files["in"], event_time="c1", delay_us=DELAY_MS * 1000)
        out = deduplicate(
            state,
            "d",
            files["in"],
            keys=keys,
            event_time=event_time,
            within_us=DELAY_MS * 1000 if within else None,
            folder=folder / "out",
        )
        return {"out": read(out, COLUMNS)}

    with new_folder() as folder:
        return run(operator, given_batches, schemas={"in": SCHEMA}, folder=folder)


def check(kind: str, given_batches: list[Batch]) -> None:
    wanted, found = expected(kind, given_batches), actual(kind, given_batches)
    for one, other in zip(wanted, found, strict=True):
        assert same(one, other)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=kinds, given_batches=some_batches)
def test_the_first_row_of_each_key_comes_out(kind, given_batches):
    check(kind, given_batches)


def test_the_first_is_told_by_the_order_of_files_and_rows(tmp_path):
    many = [(float(index % 1000), at(index), str(index)) for index in range(20_000)]
    batch = Batch({"in": many}, split=10_500)
    assert same(*actual("for ever", [batch]), {"out": many[:1000]})


def test_a_late_row_is_dropped_at_the_watermark_itself():
    first, exactly, after = (1.0, at(28), "x"), (2.0, at(20), "x"), (3.0, at(21), "x")
    came_out = actual(
        "for ever, with a watermark",
        [Batch({"in": [first]}), Batch({"in": []}), Batch({"in": [exactly, after]})],
    )
    assert same(came_out[2], {"out": [after]})


def read_plainly(files):
    return [(value,) for file in files for value in pq.read_table(file)["c0"].to_pylist()]


def test_a_key_may_be_nested():
    schema = pa.schema(
        [("c0", pa.struct([("a", pa.list_(pa.float64())), ("b", pa.decimal128(38, 4))]))]
    )
    values = [{"a": [0.0, None], "b": None}, {"a": [-0.0, None], "b": None}, None, None]

    def operator(state, files, folder):
        out = deduplicate(
            state, "d", files["in"], keys=["c0"], event_time=None, within_us=None, folder=folder
        )
        return {
            "out": [(row,) for file in out for row in pa.parquet.read_table(file)["c0"].to_pylist()]
        }

    batch = Batch({"in": [(value,) for value in values]})
    with new_folder() as folder:
        came_out = run(operator, [batch, batch], schemas={"in": schema}, folder=folder)
    assert [len(out["out"]) for out in came_out] == [2, 0]
