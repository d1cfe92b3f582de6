"""What a batch gives to the engine has the table's rows and types, whatever its files are like."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import types as t

from millpond.delta import Metadata, Table, connect, write_data_files, write_deletion_vectors
from millpond.engine.protocol import ParquetInput
from millpond.errors.streaming import StreamSourceChangedError, StreamSourceFileUnreadableError
from millpond.storage import LocalStore
from millpond.streaming import DeltaSource
from tests.streaming.toy_flow import Stream, append, expected, read_rows

STORE = LocalStore()
TEXTS = t.StructType().add("id", t.LongType()).add("text", t.StringType())


def create(path, schema=TEXTS, partition_columns=()):
    return Table(path).create(Metadata("4f2a", schema, partition_columns))


def insert(path, select, hidden_columns=()):
    transaction = Table(path).begin()
    with connect() as connection:
        files = write_data_files(
            connection,
            select,
            snapshot=transaction.snapshot,
            store=STORE,
            hidden_columns=hidden_columns,
        )
    for file in files:
        transaction.add(file)
    transaction.commit("WRITE")
    return files


def insert_ids(path, first, stop):
    return insert(path, f"SELECT i AS id, 'row ' || i AS text FROM range({first}, {stop}) r(i)")


def delete_rows(path, positions, *, add_select=None):
    """Delete rows by deletion vector, in one commit with new rows if a query gives any."""
    transaction = Table(path).begin()
    for log_path, new in write_deletion_vectors(
        transaction.snapshot, positions, store=STORE
    ).items():
        transaction.remove(transaction.snapshot.files[log_path])
        transaction.add(new)
    if add_select is not None:
        with connect() as connection:
            for file in write_data_files(
                connection, add_select, snapshot=transaction.snapshot, store=STORE
            ):
                transaction.add(file)
    transaction.commit("REPLACE USING")


def whole_input(path, folder, **options):
    source = DeltaSource(Table(path), options)
    end = source.latest_offset()
    return source.input(source.first_offset(end), end, folder=folder)


def ids(rows):
    return sorted(row[0] for row in rows)


def test_deleted_rows_of_the_snapshot_are_left_out(table, stream):
    create(table)
    [first] = insert_ids(table, 0, 10)
    insert_ids(table, 10, 12)
    delete_rows(table, {first.path: [0, 3, 9]})
    stream.run()
    assert stream.target.rows() == expected([1, 2, 4, 5, 6, 7, 8, 10, 11])


def test_files_without_deleted_rows_stay_in_place_beside_others(table, tmp_path):
    create(table)
    [first] = insert_ids(table, 0, 10)
    [second] = insert_ids(table, 10, 12)
    delete_rows(table, {first.path: [0]})
    given = whole_input(table, tmp_path / "staging")
    assert str(table / second.path) in given.files
    assert [path for path in given.files if path.startswith(str(tmp_path / "staging"))] != []
    assert ids(read_rows(given)) == list(range(1, 12))


def test_a_replacing_commit_stops_the_stream_and_names_itself(table, stream):
    create(table)
    [first] = insert_ids(table, 0, 3)
    stream.run()
    insert_ids(table, 3, 4)
    delete_rows(table, {first.path: [1]}, add_select="SELECT 1 AS id, 'new' AS text")
    with pytest.raises(StreamSourceChangedError, match="At version 3, REPLACE USING changed"):
        stream.run()
    assert stream.target.rows() == expected(range(4))
    stream.run(skipChangeCommits="true")
    insert_ids(table, 5, 6)
    stream.run(skipChangeCommits="true")
    assert stream.target.rows() == expected([0, 1, 2, 3, 5])


def test_the_same_file_twice_in_a_batch_is_read_with_each_of_its_deletion_vectors(table, stream):
    create(table)
    [first] = insert_ids(table, 0, 4)
    stream.run()
    delete_rows(table, {first.path: [0]})
    delete_rows(table, {first.path: [1]})
    assert len(stream.run(ignoreChanges="true")) == 1
    assert ids(stream.target.rows()) == [0, 1, 1, 2, 2, 2, 3, 3, 3]


def test_partition_values_are_columns_of_the_rows(table, stream, tmp_path):
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "region": pa.array(["a/b ü%", "", None, "x=y"], pa.string()),
            "day": pa.array(
                [date(2026, 1, 31), None, date(1, 1, 1), date(2026, 1, 31)], pa.date32()
            ),
        }
    )
    write_deltalake(table, rows, partition_by=["region", "day"])
    given = whole_input(table, tmp_path / "staging")
    assert sorted(read_rows(given)) == sorted(
        tuple(row.values())
        for row in DeltaTable(table).to_pyarrow_table().select(["id", "region", "day"]).to_pylist()
    )
    stream.run()
    write_deltalake(table, rows.slice(0, 1), mode="append")
    stream.run()
    assert ids(stream.target.rows()) == [1, 1, 2, 3, 4]


ALL_TYPES = (
    t.StructType()
    .add("boolean", t.BooleanType())
    .add("byte", t.ByteType())
    .add("short", t.ShortType())
    .add("integer", t.IntegerType())
    .add("long", t.LongType())
    .add("float", t.FloatType())
    .add("double", t.DoubleType())
    .add("decimal", t.DecimalType(20, 4))
    .add("string", t.StringType())
    .add("binary", t.BinaryType())
    .add("date", t.DateType())
    .add("timestamp", t.TimestampType())
    .add("timestamp_ntz", t.TimestampNTZType())
    .add("array", t.ArrayType(t.IntegerType()))
    .add("map", t.MapType(t.StringType(), t.LongType()))
    .add("struct", t.StructType().add("a", t.IntegerType()).add("b", t.ArrayType(t.StringType())))
)
ONE_OF_EACH = (
    "SELECT true AS boolean, -128 AS byte, -32768 AS short, 2147483647 AS integer, "
    "9223372036854775807 AS long, 'nan'::FLOAT AS float, -0.0::DOUBLE AS double, "
    "1234567890123456.7891 AS decimal, 'Ä''\"' AS string, '\\x00\\xFF'::BLOB AS binary, "
    "DATE '0001-01-01' AS date, TIMESTAMPTZ '2026-01-31 12:00:00.123456+00' AS timestamp, "
    "TIMESTAMP '1900-01-01 00:00:00.000001' AS timestamp_ntz, [1, NULL] AS array, "
    "MAP {'k': 1::BIGINT} AS map, {'a': 1, 'b': ['x']} AS struct"
)
AS_PYTHON = {
    "boolean": True,
    "byte": -128,
    "short": -32768,
    "integer": 2147483647,
    "long": 9223372036854775807,
    "double": -0.0,
    "decimal": Decimal("1234567890123456.7891"),
    "string": "Ä'\"",
    "binary": b"\x00\xff",
    "date": date(1, 1, 1),
    "timestamp": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
    "timestamp_ntz": datetime(1900, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - that is its meaning
    "array": [1, None],
    "map": [("k", 1)],
    "struct": {"a": 1, "b": ["x"]},
}


@pytest.mark.parametrize("deleted", [False, True], ids=["in place", "written anew"])
def test_every_type_comes_through(table, tmp_path, deleted):
    create(table, ALL_TYPES)
    [file] = insert(table, f"{ONE_OF_EACH} UNION ALL {ONE_OF_EACH}")
    if deleted:
        delete_rows(table, {file.path: [1]})
    given = whole_input(table, tmp_path / "staging")
    assert isinstance(given, ParquetInput)
    assert (given.files == (str(table / file.path),)) is not deleted
    rows = read_rows(given)
    assert len(rows) == (1 if deleted else 2)
    for row in rows:
        found = dict(zip(given.schema.names, row, strict=True))
        assert str(found.pop("float")) == "nan"
        assert found == AS_PYTHON
        assert str(found["double"]) == "-0.0"


def test_files_of_another_writer_with_its_own_types_are_written_anew(table, tmp_path):
    """A timestamp in nanoseconds, as pandas has it, is no Spark timestamp."""
    create(table, t.StructType().add("at", t.TimestampType()))
    rows = pa.table({"at": pa.array([1_767_268_800_123_456_000], pa.timestamp("ns", "UTC"))})
    import pyarrow.parquet as pq

    [file] = insert(table, "SELECT now() AS at")
    pq.write_table(rows, table / file.path)
    given = whole_input(table, tmp_path / "staging")
    assert given.files[0].startswith(str(tmp_path / "staging"))
    assert read_rows(given) == [(datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC),)]


def test_columns_in_other_letter_case_are_written_anew(table, tmp_path):
    import pyarrow.parquet as pq

    append(table, [1])
    [path] = table.glob("*.parquet")
    pq.write_table(pa.table({"ID": pa.array([1], pa.int64()), "text": ["row 1"]}), path)
    given = whole_input(table, tmp_path / "staging")
    assert given.files[0].startswith(str(tmp_path / "staging"))
    assert read_rows(given) == [(1, "row 1")]


def test_a_column_that_only_the_files_have_is_not_part_of_the_rows(table, tmp_path):
    create(table)
    insert(
        table,
        "SELECT 1::BIGINT AS id, 'row 1' AS text, 7 AS __millpond_sequence",
        ["__millpond_sequence"],
    )
    given = whole_input(table, tmp_path / "staging")
    assert given.schema.names == ["id", "text"]
    assert read_rows(given) == [(1, "row 1")]


def test_a_column_declared_not_null_is_nullable_in_what_is_read(table, tmp_path):
    tags = t.ArrayType(t.StringType(), containsNull=False)
    create(table, t.StructType().add("id", t.LongType(), nullable=False).add("tags", tags))
    insert(table, "SELECT 1 AS id, ['a'] AS tags")
    given = whole_input(table, tmp_path / "staging")
    nullable = t.StructType().add("id", t.LongType()).add("tags", t.ArrayType(t.StringType()))
    assert given.schema == nullable


def test_a_table_in_a_folder_of_an_odd_name_is_read(tmp_path):
    table = tmp_path / "a [b] %41 'c'\"* ü"
    create(table)
    [file] = insert_ids(table, 0, 3)
    delete_rows(table, {file.path: [0]})
    insert_ids(table, 3, 4)
    stream = Stream(tmp_path / "flow", {"s": table})
    stream.run()
    assert ids(stream.target.rows()) == [1, 2, 3]


@pytest.mark.parametrize("deleted", [False, True], ids=["in place", "written anew"])
@pytest.mark.parametrize("length", [0, 3, 100])
def test_a_torn_data_file_stops_the_stream_and_is_named(table, stream, deleted, length):
    create(table)
    [file] = insert_ids(table, 0, 5)
    if deleted:
        delete_rows(table, {file.path: [1]})
    path = table / file.path
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StreamSourceFileUnreadableError, match=file.path):
        stream.run()
    assert stream.target.rows() == []


def test_a_data_file_of_other_types_stops_the_stream(table, stream):
    import pyarrow.parquet as pq

    append(table, [1])
    [path] = table.glob("*.parquet")
    pq.write_table(pa.table({"id": ["one"], "text": ["row 1"]}), path)
    with pytest.raises(StreamSourceFileUnreadableError, match="one"):
        stream.run()
    assert stream.target.rows() == []
