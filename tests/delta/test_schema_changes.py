"""A table's schema grows with its rows; what would make old rows unreadable is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta import (
    Metadata,
    Table,
    connect,
    is_type_widened,
    live_rows_sql,
    widen_schema,
    write_data_files,
)
from millpond.errors.delta import SchemaChangeNotAllowedError
from tests.delta.tables import TABLE_ID, append, columns, create, delete_where, rows, sorted_rows
from tests.readers import READERS


def simple(schema: StructType) -> str:
    return schema.simpleString()


def test_new_columns_come_last_and_may_be_null():
    current = columns(a=LongType(), b=StringType())
    new = StructType([StructField("c", LongType(), False), StructField("A", LongType())])
    widened = widen_schema(current, new)
    assert simple(widened) == "struct<a:bigint,b:string,c:bigint>"
    assert all(field.nullable for field in widened.fields)


@pytest.mark.parametrize(
    ("current", "new", "widened"),
    [
        (ByteType(), LongType(), "bigint"),
        (LongType(), ByteType(), "bigint"),
        (ShortType(), IntegerType(), "int"),
        (FloatType(), DoubleType(), "double"),
        (IntegerType(), DoubleType(), "double"),
        (DoubleType(), ShortType(), "double"),
        (DateType(), TimestampNTZType(), "timestamp_ntz"),
        (DecimalType(5, 2), DecimalType(10, 4), "decimal(10,4)"),
        (DecimalType(10, 2), DecimalType(6, 4), "decimal(12,4)"),
        (IntegerType(), DecimalType(12, 2), "decimal(12,2)"),
        (IntegerType(), DecimalType(5, 2), "decimal(12,2)"),
        (LongType(), DecimalType(10, 2), "decimal(22,2)"),
        (ArrayType(IntegerType()), ArrayType(LongType()), "array<bigint>"),
        (
            MapType(StringType(), FloatType()),
            MapType(StringType(), DoubleType()),
            "map<string,double>",
        ),
        (columns(x=LongType()), columns(y=LongType()), "struct<x:bigint,y:bigint>"),
    ],
)
def test_types_are_widened_as_delta_allows(current, new, widened):
    (field,) = widen_schema(columns(x=current), columns(x=new)).fields
    assert field.dataType.simpleString() == widened


@pytest.mark.parametrize(
    ("current", "new"),
    [
        (LongType(), StringType()),
        (StringType(), LongType()),
        (LongType(), DoubleType()),
        (DoubleType(), DecimalType(10, 2)),
        (FloatType(), DecimalType(10, 2)),
        (DateType(), TimestampType()),
        (TimestampType(), TimestampNTZType()),
        (BooleanType(), ByteType()),
        (DecimalType(38, 0), DecimalType(38, 10)),
        (ArrayType(LongType()), LongType()),
        (columns(x=LongType()), columns(x=StringType())),
    ],
)
def test_other_changes_of_type_are_refused(current, new):
    with pytest.raises(SchemaChangeNotAllowedError, match=r"'x"):
        widen_schema(columns(x=current), columns(x=new))


def test_changes_of_type_are_recorded_at_the_nearest_field():
    current = columns(
        n=ByteType(), a=ArrayType(MapType(StringType(), FloatType())), s=columns(x=ShortType())
    )
    new = columns(
        n=LongType(), a=ArrayType(MapType(StringType(), DoubleType())), s=columns(x=IntegerType())
    )
    widened = widen_schema(current, new)
    assert widened["n"].metadata == {"delta.typeChanges": [{"fromType": "byte", "toType": "long"}]}
    assert widened["a"].metadata["delta.typeChanges"] == [
        {"fromType": "float", "toType": "double", "fieldPath": "element.value"}
    ]
    assert widened["s"].metadata == {}
    assert widened["s"].dataType["x"].metadata["delta.typeChanges"] == [
        {"fromType": "short", "toType": "integer"}
    ]
    assert is_type_widened(current, widened)
    assert not is_type_widened(current, widen_schema(current, columns(z=LongType())))
    assert widen_schema(widened, new) == widened


def test_widening_a_type_rewrites_files_so_that_every_reader_gets_the_rows(tmp_path):
    table = create(tmp_path / "t", columns(k=IntegerType(), x=DecimalType(5, 2)))
    append(table, "SELECT range AS k, 1.5 AS x FROM range(4)")
    delete_where(table, "k = 1")
    wider = widen_schema(
        table.snapshot().metadata.schema, columns(k=LongType(), x=DecimalType(10, 4))
    )
    append(table, f"SELECT {2**40} AS k, 2.0625 AS x", schema=wider)
    snapshot = table.snapshot()
    assert "typeWidening" not in snapshot.protocol.reader_features
    assert "typeChanges" not in snapshot.metadata.schema.json()
    expected = sorted_rows(rows(snapshot))
    assert [row[0] for row in expected] == [0, 2**40, 2, 3]
    for name, read in READERS.items():
        assert (name, sorted_rows(read(table.path))) == (name, expected)
    moved = next(table.commits(snapshot.version - 1, snapshot.version))
    assert [remove.data_change for remove in moved.removes] == [False]
    assert sorted(add.data_change for add in moved.adds) == [False, True]


@pytest.mark.parametrize("had_rows", [False, True])
def test_widening_a_type_of_no_file_that_stays_leaves_no_trace_of_it(tmp_path, had_rows):
    table = create(tmp_path / "t", columns(k=IntegerType()))
    if had_rows:
        append(table, "SELECT 1 AS k")
    wider = widen_schema(table.snapshot().metadata.schema, columns(k=LongType()))
    transaction = table.begin()
    for file in transaction.snapshot.files.values():
        transaction.remove(file)
    transaction.set_metadata(replace(transaction.snapshot.metadata, schema=wider))
    transaction.commit("FULL REFRESH")
    snapshot = append(table, f"SELECT {2**40} AS k")
    assert "typeWidening" not in snapshot.protocol.reader_features
    assert "typeChanges" not in snapshot.metadata.schema.json()
    for name, read in READERS.items():
        assert (name, read(table.path)) == (name, [{"k": 2**40}])


def test_hidden_columns_survive_the_rewriting_of_files(tmp_path):
    table = create(tmp_path / "t", columns(k=IntegerType()))
    hidden = ["__millpond_sequence"]
    transaction = table.begin()
    with connect() as connection:
        for file in write_data_files(
            connection,
            "SELECT 1 AS k, 77 AS __millpond_sequence",
            snapshot=transaction.snapshot,
            store=table.store,
            hidden_columns=hidden,
        ):
            transaction.add(file)
    transaction.commit("WRITE")
    transaction = table.begin()
    transaction.set_metadata(Metadata(TABLE_ID, columns(k=LongType())))
    snapshot = transaction.commit("SET UP TABLE")
    assert rows(snapshot, hidden_columns=hidden) == [{"k": 1, "__millpond_sequence": 77}]


def test_a_table_may_ask_for_the_widening_feature_instead(tmp_path):
    table = create(tmp_path / "t", columns(k=IntegerType()), enableTypeWidening="true")
    (file,) = append(table, "SELECT 1 AS k").files
    wider = widen_schema(table.snapshot().metadata.schema, columns(k=LongType()))
    snapshot = append(table, f"SELECT {2**40} AS k", schema=wider)
    assert file in snapshot.files
    assert snapshot.protocol.reader_features >= {"typeWidening"}
    assert sorted(row["k"] for row in READERS["sail"](table.path)) == [1, 2**40]
    assert Table(table.path).snapshot() == snapshot


@pytest.mark.parametrize(
    ("schema", "partitioned_by"),
    [
        (columns(k=StringType(), p=LongType()), ["p"]),
        (columns(K=LongType(), p=LongType()), ["p"]),
        (columns(k=IntegerType(), p=LongType()), ["p"]),
        (columns(k=LongType(), p=LongType()), []),
    ],
)
def test_metadata_that_old_files_do_not_fit_is_refused_while_they_are_there(
    tmp_path, schema, partitioned_by
):
    table = create(tmp_path / "t", columns(k=LongType(), p=LongType()), partitioned_by=["p"])
    append(table, "SELECT 1 AS k, 2 AS p")
    metadata = Metadata(TABLE_ID, schema, tuple(partitioned_by))
    transaction = table.begin()
    transaction.set_metadata(metadata)
    with pytest.raises(SchemaChangeNotAllowedError):
        transaction.commit("SET UP TABLE")
    transaction = table.begin()
    for file in transaction.snapshot.files.values():
        transaction.remove(file)
    transaction.set_metadata(metadata)
    assert transaction.commit("FULL REFRESH").metadata.schema == schema


def test_a_column_can_be_left_out_of_the_schema(tmp_path):
    table = create(tmp_path / "t", columns(k=LongType(), v=StringType()))
    append(table, "SELECT 1 AS k, 'a' AS v")
    append(table, "SELECT 2 AS k", schema=columns(k=LongType()))
    assert sorted_rows(rows(table.snapshot())) == [(1,), (2,)]
    with connect() as connection:
        sql = live_rows_sql(connection, table.snapshot(), table.snapshot().files.values())
        assert connection.execute(f"DESCRIBE {sql}").fetchall()[0][:2] == ("k", "BIGINT")
