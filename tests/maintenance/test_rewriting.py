"""Files are written anew without any change of rows, to any reader, stream or writer."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.delta import Table, connect, live_rows_sql
from millpond.errors.delta import DataFileUnreadableError
from millpond.errors.maintenance import CompactionRowsDifferError
from millpond.maintenance.groups import AUTOMATIC, BY_HAND, groups_due
from millpond.maintenance.rewriting import rewrite
from tests.delta.tables import append, columns, create, delete_where, rows, sorted_rows
from tests.flows.target import Target
from tests.maintenance.conftest import K_V, scattered, seen_by_all, upkeep
from tests.streaming.toy_flow import Stream

TARGET = 1 << 27


def groups(table, how=BY_HAND, *keys):
    return list(groups_due(table.snapshot(), how, target_bytes=TARGET, sorted_by=keys))


def rewrite_all(table, *keys, target_bytes=TARGET):
    found = [
        rewrite(table, group, sorted_by=keys, target_bytes=target_bytes)
        for group in groups(table, BY_HAND, *keys)
    ]
    assert found
    return found


def rows_in_order(table):
    """The rows of each file, file by file, in the order in which they lie."""
    snapshot = Table(table.path).snapshot()
    with connect(threads=1) as connection:
        return [
            connection.sql(live_rows_sql(connection, snapshot, [file])).fetchall()
            for file in snapshot.files.values()
        ]


def test_small_files_become_one_with_the_same_rows_to_every_reader(table):
    before = seen_by_all(table.path)
    (report,) = rewrite_all(table)
    assert (report.files_compacted, report.files_written) == (12, 1)
    assert len(DeltaTable(table.path).file_uris()) == 1
    assert seen_by_all(table.path) == before


def test_rows_are_sorted_by_the_keys(table):
    rewrite_all(table, "K")
    assert rows_in_order(table) == [[(k, f"v{k // 12}") for k in range(600)]]


def test_without_keys_rows_stay_in_the_order_in_which_they_came(tmp_path):
    table = create(tmp_path / "t", K_V)
    for low in (50, 0, 100):
        append(table, f"SELECT {low} + range AS k, 'x' AS v FROM range(50)")
    rewrite_all(table)
    assert [k for k, _ in rows_in_order(table)[0]] == [
        *range(50, 100),
        *range(50),
        *range(100, 150),
    ]


def test_files_are_cut_by_range_of_keys_so_that_others_can_be_skipped(tmp_path):
    table = create(tmp_path / "t", K_V)
    for number in range(8):
        append(
            table,
            f"SELECT range * 8 + {number} AS k, md5(concat(range, {number})) AS v "
            "FROM range(250000)",
        )
    rewrite_all(table, "k", target_bytes=10_000_000)
    ranges = sorted(
        (file.stats.min_values["k"], file.stats.max_values["k"])
        for file in table.snapshot().files.values()
    )
    assert len(ranges) > 3
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))


def test_deleted_rows_and_their_vectors_are_gone(table):
    delete_where(table, "k % 5 = 0")
    before = seen_by_all(table.path)
    (report,) = rewrite_all(table, "k")
    assert report.vectors_purged == 12
    (file,) = table.snapshot().files.values()
    assert file.deletion_vector is None
    assert file.stats.num_records == 480
    assert seen_by_all(table.path) == before


def test_a_file_whose_rows_are_all_deleted_leaves_none(tmp_path):
    table = create(tmp_path / "t", K_V)
    append(table, "SELECT range AS k, 'x' AS v FROM range(10)")
    delete_where(table, "true")
    (report,) = rewrite_all(table)
    assert (report.files_compacted, report.files_written) == (1, 0)
    assert rows(table.snapshot()) == []


ODD = StructType(
    [
        StructField("z", DoubleType()),
        StructField("k", LongType(), nullable=False),
        StructField("f", FloatType()),
        StructField("d", DecimalType(38, 10)),
        StructField("day", DateType()),
        StructField("at", TimestampType()),
        StructField("s", StructType([StructField("a", ArrayType(StringType()))])),
        StructField("m", MapType(StringType(), LongType())),
        StructField("t", StringType()),
    ]
)


def test_types_nulls_and_order_of_columns_stay_and_floats_get_no_bounds(tmp_path):
    table = create(tmp_path / "t", ODD)
    literal = (
        "SELECT {z} AS z, {k} AS k, {z}::FLOAT AS f, 1.5::DECIMAL(38,10) AS d, "
        "DATE '2026-01-01' AS day, TIMESTAMPTZ '2026-01-01 00:00:00.123456+00' AS at, "
        "{{'a': ['x', NULL]}} AS s, MAP {{'a': 1}} AS m, {t} AS t"
    )
    append(table, literal.format(z="'NaN'::DOUBLE", k=3, t="NULL"))
    append(table, literal.format(z="-0.0::DOUBLE", k=1, t="''"))
    append(table, literal.format(z="NULL::DOUBLE", k=2, t="'t'"))
    rewrite_all(table, "k", "m")
    found = rows(table.snapshot())
    assert list(found[0]) == [field.name for field in ODD.fields]
    assert [row["k"] for row in found] == [1, 2, 3]
    assert math.copysign(1, found[0]["z"]) == -1
    assert found[1]["z"] is None
    assert math.isnan(found[2]["z"])
    assert math.isnan(found[2]["f"])
    assert [row["t"] for row in found] == ["", "t", None]
    assert found[0]["d"] == Decimal("1.5")
    assert found[0]["day"] == date(2026, 1, 1)
    assert found[0]["at"] == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert found[0]["s"] == {"a": ["x", None]}
    assert found[0]["m"] == [("a", 1)]
    (file,) = table.snapshot().files.values()
    assert not {"z", "f", "d"} & {*file.stats.min_values, *file.stats.max_values}
    assert file.stats.null_count["z"] == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (StringType(), ["'a b/c=%'", "NULL", "'ü'"]),
        (DoubleType(), ["0.1::DOUBLE", "NULL", "'NaN'::DOUBLE"]),
        (TimestampType(), ["TIMESTAMPTZ '2026-01-01 00:00:00.5+00'", "NULL"]),
        (DateType(), ["DATE '2026-01-01'", "NULL"]),
    ],
    ids=["string", "double", "timestamp", "date"],
)
def test_partitions_stay_apart_with_their_values(tmp_path, kind, values):
    table = create(tmp_path / "t", columns(p=kind, k=LongType()), partitioned_by=["p"])
    for number in range(3):
        for value in values:
            append(table, f"SELECT {value} AS p, {number} AS k")
    before = repr(sorted_rows(rows(table.snapshot())))
    values_before = {
        tuple(file.partition_values.values()) for file in table.snapshot().files.values()
    }
    assert len(rewrite_all(table, "k")) == len(values)
    after = table.snapshot().files.values()
    assert {tuple(file.partition_values.values()) for file in after} == values_before
    assert len(after) == len(values)
    assert repr(sorted_rows(rows(table.snapshot()))) == before


def test_a_sequence_beside_the_columns_stays_with_its_row(tmp_path):
    """The flow goes on to compare with it, and needs not compute it anew."""
    target = Target(
        tmp_path,
        K_V,
        keys=("k",),
        sequence=None,
        sequence_type=LongType(),
        hidden_sequence=lambda row: int(row["v"][1:]),
    )
    for number in range(10):
        target.apply([{"k": number % 3, "v": f"v{number}"}])
    append(target.table, "SELECT 7 AS k, 'v5' AS v")
    target.recompute = None
    rewrite_all(target.table, "k")
    target.restart()
    target.apply([{"k": 0, "v": "v4"}, {"k": 1, "v": "v20"}])
    left = {(row["k"], row["v"]) for row in rows(target.table.snapshot())}
    assert left == {(0, "v9"), (1, "v20"), (2, "v8"), (7, "v5")}


def test_a_batch_that_the_table_holds_is_known_after_its_files_were_rewritten(tmp_path):
    schema = columns(k=LongType(), s=LongType())
    target = Target(tmp_path, schema, keys=("k",), sequence="s")
    for number in range(10):
        target.apply([{"k": number, "s": 1}, {"k": number, "s": 1}])
    rewrite_all(target.table, "k")
    target.restart()
    assert not target.apply([{"k": 9, "s": 1}, {"k": 9, "s": 1}], batch_id=9).committed
    assert len(rows(target.table.snapshot())) == 20


def test_a_stream_that_follows_the_table_reads_nothing_anew(tmp_path):
    path = tmp_path / "source"
    for number in range(3):
        write_deltalake(path, pa.table({"id": [number], "text": ["x"]}), mode="append")
    stream = Stream(tmp_path / "flow", {"main.shop.source": path})
    stream.run()
    table = Table(path)
    rewrite_all(table)
    stream.run()
    write_deltalake(path, pa.table({"id": [7], "text": ["x"]}), mode="append")
    rewrite_all(table)
    stream.run()
    assert [row[0] for row in stream.target.rows()] == [0, 1, 2, 7]


def test_the_commit_says_that_no_data_changed_and_what_was_done(table):
    rewrite_all(table)
    (commit,) = table.commits(table.snapshot().version - 1, table.snapshot().version)
    assert not any(file.data_change for file in (*commit.adds, *commit.removes))
    assert commit.commit_info["operation"] == "OPTIMIZE"
    assert commit.commit_info["operationMetrics"]["numRemovedFiles"] == "12"
    assert DeltaTable(table.path).history(1)[0]["operation"] == "OPTIMIZE"


def test_a_table_that_only_takes_rows_is_rewritten_too(tmp_path):
    table = scattered(tmp_path / "t", files=3, appendOnly="true")
    rewrite_all(table)
    assert len(table.snapshot().files) == 1


class Meanwhile:
    """A store that lets other writers in just before a commit is put, once."""

    def __init__(self, store, *others):
        self._store = store
        self._others = list(others)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put_if_absent(self, path, data):
        if self._others and path.parent.name == "_delta_log":
            self._others.pop(0)()
        self._store.put_if_absent(path, data)


def test_rows_that_others_append_meanwhile_stay_and_the_rewrite_stands(table):
    (group,) = groups(table)

    def append_with_delta_rs():
        write_deltalake(table.path, pa.table({"k": [-1], "v": ["new"]}), mode="append")

    busy = Table(table.path, Meanwhile(table.store, append_with_delta_rs, append_with_delta_rs))
    report = rewrite(busy, group, target_bytes=TARGET)
    assert report.files_written == 1
    assert len(table.snapshot().files) == 3
    found = seen_by_all(table.path)
    assert len(found) == 602
    assert found.count((-1, "new")) == 2


def test_a_rewrite_of_files_that_others_change_meanwhile_is_given_up(table):
    (group,) = groups(table)
    busy = Table(
        table.path, Meanwhile(table.store, lambda: delete_where(Table(table.path), "k = 5"))
    )
    report = rewrite(busy, group, target_bytes=TARGET)
    assert (report.given_up, report.files_written) == (1, 0)
    found = seen_by_all(table.path)
    assert len(found) == 599
    assert len(list(table.path.glob("*.parquet"))) == 12


def test_a_group_whose_files_have_changed_since_is_left_alone(table):
    (group,) = groups(table)
    delete_where(table, "k = 5")
    assert rewrite(table, group, target_bytes=TARGET).given_up == 1


def test_files_that_hold_other_rows_than_the_log_says_are_left_alone(table):
    snapshot = table.snapshot()
    path = next(iter(snapshot.files))
    import pyarrow.parquet as pq

    data = pq.read_table(table.path / path)
    pq.write_table(data.slice(0, 10), table.path / path)
    (group,) = groups(table)
    with pytest.raises(CompactionRowsDifferError, match="600 rows into 560"):
        rewrite(table, group, target_bytes=TARGET)
    assert len(Table(table.path).snapshot().files) == 12
    assert len(list(table.path.glob("*.parquet"))) == 12


def test_by_itself_files_are_put_together_only_where_there_are_enough(tmp_path):
    table = scattered(tmp_path / "t", files=AUTOMATIC.min_files - 1)
    work = upkeep(table, "k")
    work.finish()
    assert not work.report
    append(table, "SELECT 1 AS k, 'x' AS v")
    work.finish()
    assert work.report.files_compacted == AUTOMATIC.min_files
    assert work.problem is None


@pytest.mark.parametrize(
    "property_name", ["delta.autoOptimize.autoCompact", "pipelines.autoOptimize.managed"]
)
def test_a_property_keeps_a_table_from_being_compacted_by_itself(tmp_path, property_name):
    table = scattered(tmp_path / "t")
    transaction = table.begin()
    from dataclasses import replace

    metadata = transaction.snapshot.metadata
    properties = {**metadata.configuration, property_name: "false"}
    transaction.set_metadata(replace(metadata, configuration=properties))
    transaction.commit("SET TBLPROPERTIES")
    work = upkeep(table)
    work.finish()
    assert not work.report
    assert work.by_hand().files_compacted == 12


def test_a_preview_changes_nothing_and_tells_what_would_be_done(table):
    version, before = table.snapshot().version, {*table.path.rglob("*")}
    preview = upkeep(table, "k").preview()
    assert {*table.path.rglob("*")} == before
    assert table.snapshot().version == version
    done = upkeep(table, "k").by_hand()
    assert (preview.files_compacted, preview.files_written) == (12, 1)
    assert (done.files_compacted, done.files_written) == (12, 1)


def test_what_was_compacted_by_hand_is_left_alone_the_next_time(table):
    assert upkeep(table, "k").by_hand().files_compacted
    assert not upkeep(table, "k").by_hand()


def test_while_batches_come_small_files_and_worn_ones_are_both_seen_to(tmp_path):
    table = create(tmp_path / "t", K_V)
    append(table, "SELECT range AS k, md5(range::VARCHAR) AS v FROM range(100000)")
    (large,) = table.snapshot().files
    delete_where(table, "k % 4 = 0")
    work = upkeep(table, "k")
    for number in range(16):
        append(table, f"SELECT {number} AS k, 'v' AS v")
        work.after_batch()
    assert work.problem is None
    assert work.report.vectors_purged == 1
    assert large not in table.snapshot().files
    assert len(table.snapshot().files) <= 3


def test_a_failure_is_kept_and_the_table_left_alone_afterwards(table):
    work = upkeep(table, "k")
    next(iter(table.path.glob("*.parquet"))).unlink()
    work.finish()
    assert work.problem is not None
    assert not work.report
    version = table.snapshot().version
    for _ in range(20):
        work.after_batch()
    assert Table(table.path).snapshot().version == version


def test_a_file_with_damaged_pages_is_told_as_that_and_stays(tmp_path):
    table = scattered(tmp_path / "t")
    before = table.snapshot().version
    path = next(path for path in table.path.glob("*.parquet"))
    data = bytearray(path.read_bytes())
    size = len(data) - 12 - int.from_bytes(data[-8:-4], "little")
    data[4 : 4 + size] = b"\xff" * size
    path.write_bytes(data)
    with pytest.raises(DataFileUnreadableError):
        rewrite_all(table)
    assert table.snapshot().version == before
    assert path.exists()
