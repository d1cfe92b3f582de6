"""A limit lets so many rows through over the whole life of a stream, and the first of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.state import limit
from tests.state.stream import Batch, batches, new_folder, read, run

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])

some_batches = batches(lambda *values: values, st.sampled_from(["x", "y"]))


def actual(count, given_batches):
    def operator(state, files, folder):
        out = limit(state, "l", files["in"], count=count, folder=folder)
        return {"out": read(out, SCHEMA.names)}

    with new_folder() as folder:
        return [
            batch["out"]
            for batch in run(operator, given_batches, schemas={"in": SCHEMA}, folder=folder)
        ]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(count=st.integers(0, 30), given_batches=some_batches)
def test_the_first_rows_come_out(count, given_batches):
    left = count
    for batch, found in zip(given_batches, actual(count, given_batches), strict=True):
        assert found == list(batch.rows["in"][:left])
        left -= len(found)


def test_files_behind_the_last_row_are_not_even_looked_at(tmp_path):
    batch = Batch({"in": [(1, "x"), (2, "y"), (3, "z")]}, split=2)

    def operator(state, files, folder):
        _, second = files["in"]
        second.write_bytes(b"no Parquet file")
        return {"out": read(limit(state, "l", files["in"], count=2, folder=folder), ["c0"])}

    assert run(operator, [batch], schemas={"in": SCHEMA}, folder=tmp_path) == [
        {"out": [(1,), (2,)]}
    ]
