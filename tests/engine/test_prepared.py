"""The engine is sent the text of a query once, and gives each batch what is its own."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.types import LongType, StringType, StructField, StructType

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.protocol import DeltaInput, EmptyInput, ParquetInput, PlanInput
from millpond.errors.engine import UnresolvedColumnError
from tests.engine.queries import plan, rows, sql

K_V = StructType([StructField("k", LongType()), StructField("v", StringType())])


@pytest.fixture
def sent(monkeypatch):
    """All that is sent to the engine, as text."""
    messages = []
    for name in ("_execute_plan_request_with_metadata", "_analyze_plan_request_with_metadata"):
        original = getattr(SparkConnectClient, name)

        def noted(self, *args, original=original, **kwargs):
            request = original(self, *args, **kwargs)
            messages.append(request)
            return request

        monkeypatch.setattr(SparkConnectClient, name, noted)
    return messages


class Batches:
    """Runs one query over batches, each of them files of its own."""

    def __init__(self, engine, folder, query, **options):
        self.engine = engine
        self.folder = folder
        self.plan = plan(engine, query)
        self.options = options
        self.number = 0
        self.others = {}

    def run(self, **streams):
        """The rows of a batch, given the rows of each stream."""
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        inputs = dict(self.others)
        for name, found in streams.items():
            inputs[name] = EmptyInput(K_V)
            if found:
                # The same name in each batch.
                path = folder / f"{name}.parquet"
                data = [{"k": k, "v": v} for k, v in found]
                schema = pa.schema({"k": pa.int64(), "v": pa.string()})
                pq.write_table(pa.Table.from_pylist(data, schema=schema), path)
                inputs[name] = ParquetInput((str(path),), K_V)

        def bind(read):
            return inputs[read.name[-1]]

        batch = self.engine.stage(self.plan, bind, folder=folder / "rows", **self.options)
        return rows(batch)


def holds_text(request):
    return "sql" in str(request) or "expression_string" in str(request)


def test_a_batch_sends_no_text_once_the_query_is_known(engine, tmp_path, sent):
    expectation = Expectation("positive", "k > 0", ExpectationAction.WARN)
    batches = Batches(
        engine,
        tmp_path,
        sql("SELECT k + 1 AS k, concat(v, '!') AS v FROM STREAM s WHERE k <> 5"),
        expectations=(expectation,),
        sequence_by="k * 2",
    )
    sent.clear()
    batches.run(s=[(2, "a")])
    # Each text once: the query's, and those of the expectation and of the sequence together.
    assert sum(map(holds_text, sent)) == 2
    sent.clear()
    for number in range(3, 8):
        found = batches.run(s=[(number, "a"), (number + 10, "b")])
        left = [n for n in (number, number + 10) if n != 5]
        assert sorted(row[:2] for row in found) == [(n + 1, f"{'ab'[n > 9]}!") for n in left]
    assert len(sent) == 5
    assert not any(map(holds_text, sent))


def test_each_batch_has_the_rows_of_its_own_files(engine, tmp_path):
    batches = Batches(engine, tmp_path, sql("SELECT * FROM STREAM s"))
    for number in range(6):
        given = [(number * 10 + n, str(number)) for n in range(number + 1)]
        assert batches.run(s=given) == given


def test_a_batch_in_which_a_stream_has_no_rows(engine, tmp_path):
    query = sql("SELECT * FROM STREAM s UNION ALL SELECT k, upper(v) FROM STREAM t")
    batches = Batches(engine, tmp_path, query)
    assert batches.run(s=[(1, "a")], t=[]) == [(1, "a")]
    assert batches.run(s=[], t=[(2, "b")]) == [(2, "B")]
    assert batches.run(s=[(3, "c")], t=[(4, "d")]) == [(3, "c"), (4, "D")]
    assert batches.run(s=[], t=[]) == []
    assert batches.run(s=[(5, "e")], t=[]) == [(5, "e")]


def test_a_table_that_changes_between_batches_is_read_as_it_is(engine, tmp_path):
    path = tmp_path / "names"
    query = sql("SELECT s.k, n.name FROM STREAM s JOIN names AS n ON s.k = n.k")
    batches = Batches(engine, tmp_path, query)
    for version in range(6):
        data = pa.table({"k": [1], "name": [f"name {version}"]})
        write_deltalake(path, data, mode="overwrite")
        batches.others["names"] = DeltaInput(str(path), version)
        assert batches.run(s=[(1, "a")]) == [(1, f"name {version}")]
        assert batches.run(s=[(1, "a"), (2, "b")]) == [(1, f"name {version}")]
    batches.others["names"] = DeltaInput(str(path))
    for version in range(6, 9):
        write_deltalake(path, pa.table({"k": [1], "name": [str(version)]}), mode="overwrite")
        assert batches.run(s=[(1, "a")]) == [(1, str(version))]


def test_columns_may_change_between_batches(engine, tmp_path):
    batches = Batches(engine, tmp_path, sql("SELECT * FROM STREAM s"))
    wider = StructType([*K_V.fields, StructField("more", LongType())])
    for number in range(3):
        assert batches.run(s=[(number, "a")]) == [(number, "a")]
    batches.others["s"] = EmptyInput(wider)
    assert batches.run() == []
    assert batches.run(s=[(7, "a")]) == [(7, "a")]


def test_what_differs_from_run_to_run_differs_from_batch_to_batch(engine, tmp_path):
    query = sql("SELECT current_timestamp() AS at, uuid() AS id, rand() AS chance FROM STREAM s")
    batches = Batches(engine, tmp_path, query)
    found = [batches.run(s=[(1, "a")])[0] for _ in range(5)]
    for values in zip(*found, strict=True):
        assert len(set(values)) == 5


def test_the_rows_of_a_view_are_those_of_the_batch(engine, tmp_path):
    view = plan(engine, sql("SELECT k, v FROM STREAM s WHERE k > 1"))
    batches = Batches(engine, tmp_path, sql("SELECT k * 10 AS k, v FROM STREAM w"))
    batches.others["w"] = PlanInput(view)
    for number in range(4):
        assert batches.run(s=[(1, "a"), (number, "b")]) == [(number * 10, "b")] * (number > 1)


def test_a_text_that_can_not_be_a_view_is_explained_at_its_place(engine, tmp_path):
    batches = Batches(engine, tmp_path, sql("SELECT k, nothing FROM STREAM s"))
    with pytest.raises(UnresolvedColumnError, match="nothing") as caught:
        batches.run(s=[(1, "a")])
    assert caught.value.where.column == 11
