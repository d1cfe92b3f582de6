"""New columns and wider types are read across; any other change of the source stops the stream."""

import json

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import types as t

from millpond.errors.streaming import CheckpointSourceChangedError, StreamSourceSchemaError
from millpond.streaming.column_change import incompatible_change
from tests.streaming.toy_flow import append, expected


def struct(**columns):
    return t.StructType([t.StructField(name, data_type) for name, data_type in columns.items()])


LONG, INT, TEXT = t.LongType(), t.IntegerType(), t.StringType()


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (struct(a=LONG), struct(a=LONG)),
        (struct(a=LONG), struct(b=TEXT, a=LONG)),
        (struct(a=INT), struct(a=LONG)),
        (struct(a=t.ByteType()), struct(a=t.DoubleType())),
        (struct(a=t.FloatType()), struct(a=t.DoubleType())),
        (struct(a=t.DateType()), struct(a=t.TimestampNTZType())),
        (struct(a=t.DecimalType(5, 2)), struct(a=t.DecimalType(7, 3))),
        (struct(a=INT), struct(a=t.DecimalType(12, 2))),
        (struct(a=struct(b=INT)), struct(a=struct(b=LONG, c=TEXT))),
        (struct(a=t.ArrayType(INT)), struct(a=t.ArrayType(LONG))),
        (struct(a=t.MapType(TEXT, INT)), struct(a=t.MapType(TEXT, LONG))),
    ],
)
def test_rows_can_be_read_across(earlier, now):
    assert incompatible_change(earlier, now) is None


@pytest.mark.parametrize(
    ("earlier", "now", "change"),
    [
        (struct(a=LONG, b=TEXT), struct(a=LONG), "the column b was dropped or renamed"),
        (struct(a=LONG), struct(A=LONG), "the column a was dropped or renamed"),
        (struct(a=LONG), struct(a=INT), "the column a was bigint and is int"),
        (struct(a=LONG), struct(a=TEXT), "the column a was bigint and is string"),
        (struct(a=t.DateType()), struct(a=t.TimestampType()), "was date and is timestamp"),
        (struct(a=t.DecimalType(7, 3)), struct(a=t.DecimalType(7, 2)), "was decimal(7,3)"),
        (struct(a=t.DecimalType(7, 2)), struct(a=t.DecimalType(8, 4)), "is decimal(8,4)"),
        (struct(a=LONG), struct(a=t.DecimalType(19, 0)), "was bigint"),
        (struct(a=struct(b=INT)), struct(a=struct(c=INT)), "the column a.b was dropped"),
        (struct(a=t.ArrayType(LONG)), struct(a=t.ArrayType(INT)), "the column a.element was"),
        (struct(a=t.MapType(TEXT, LONG)), struct(a=t.MapType(TEXT, INT)), "the column a.value was"),
        (struct(a=t.MapType(LONG, TEXT)), struct(a=t.MapType(INT, TEXT)), "the column a.key was"),
        (struct(a=t.ArrayType(LONG)), struct(a=LONG), "was array<bigint> and is bigint"),
    ],
)
def test_rows_can_not_be_read_across(earlier, now, change):
    assert change in (incompatible_change(earlier, now) or "")


def test_new_columns_are_null_in_earlier_rows(stream, table):
    append(table, [0])
    append(table, [1])
    steps = stream.steps(maxFilesPerTrigger="1")
    next(steps)
    steps.close()
    rows = pa.table({"id": pa.array([2], pa.int64()), "text": ["row 2"], "extra": ["new"]})
    write_deltalake(table, rows, mode="append", schema_mode="merge")
    stream.run(maxFilesPerTrigger="1")
    assert stream.target.batches() == [
        [(0, "row 0")],
        [(1, "row 1", None)],
        [(2, "row 2", "new")],
    ]


def rewrite_schema(table, change=len, **metadata_changes):
    """Add a commit that changes nothing but the table's columns and what else is given."""
    log = table / "_delta_log"
    entries = sorted(log.glob("*.json"))
    metadata = next(
        action["metaData"]
        for entry in reversed(entries)
        for action in map(json.loads, entry.read_text().splitlines())
        if "metaData" in action
    )
    schema = json.loads(metadata["schemaString"])
    change(schema["fields"])
    metadata |= {"schemaString": json.dumps(schema), **metadata_changes}
    (log / f"{len(entries):020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")


def test_a_dropped_column_stops_the_stream_in_a_later_update(stream, table):
    append(table, [0])
    stream.run()
    rewrite_schema(table, lambda fields: fields.pop())
    with pytest.raises(StreamSourceSchemaError, match="the column text was dropped"):
        stream.run()
    assert stream.target.rows() == expected([0])


def test_a_column_dropped_and_added_again_with_rows_between_stops_the_stream(stream, table):
    append(table, [0])
    stream.run()
    append(table, [1])
    dropped = []
    rewrite_schema(table, lambda fields: dropped.append(fields.pop()))
    rewrite_schema(table, lambda fields: fields.append(dropped[0] | {"type": "long"}))
    with pytest.raises(StreamSourceSchemaError, match="was string and is bigint"):
        stream.run()
    assert stream.target.rows() == expected([0])


def test_a_type_that_was_other_for_a_while_stops_the_stream_there(stream, table):
    append(table, [0])
    stream.run()
    append(table, [1])
    rewrite_schema(table, lambda fields: fields[0].update(type="string"))
    rewrite_schema(table, lambda fields: fields[0].update(type="long"))
    with pytest.raises(StreamSourceSchemaError, match="at version 2"):
        stream.run()
    assert stream.target.rows() == expected([0, 1])


def test_a_snapshot_half_read_before_its_columns_changed_stops_the_stream(stream, table):
    append(table, [0])
    append(table, [1])
    steps = stream.steps(maxFilesPerTrigger="1")
    next(steps)
    steps.close()
    rewrite_schema(table, lambda fields: fields.pop())
    with pytest.raises(StreamSourceSchemaError):
        stream.run()


def test_an_integer_that_became_wider_is_read_as_the_wider_type(stream, table):
    write_deltalake(table, pa.table({"id": pa.array([1], pa.int32())}))
    stream.run()
    write_deltalake(table, pa.table({"id": pa.array([2], pa.int32())}), mode="append")
    rewrite_schema(table, lambda fields: fields[0].update(type="long"))
    write_deltalake(table, pa.table({"id": pa.array([2**40], pa.int64())}), mode="append")
    stream.run()
    assert [sorted(batch) for batch in stream.target.batches()] == [[(1,)], [(2,), (2**40,)]]


def test_other_partition_columns_stop_the_stream(stream, table):
    append(table, [0])
    stream.run()
    rewrite_schema(table, partitionColumns=["text"])
    rewrite_schema(table, partitionColumns=[])
    with pytest.raises(StreamSourceSchemaError, match="partitioned by other columns"):
        stream.run()


def test_commits_from_before_the_table_was_replaced_are_not_read(stream, table):
    append(table, [0])
    rewrite_schema(table, id="another")
    append(table, [1])
    with pytest.raises(CheckpointSourceChangedError, match="no longer what"):
        stream.run(startingVersion="0")
