"""Reading rows: files of every age and shape give the table's columns, and only rows that live."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from millpond.delta import Table, connect, live_rows_sql, write_data_files
from tests.delta.tables import (
    KEY_VALUE,
    append,
    columns,
    create,
    delete_where,
    log_files,
    rows,
    sorted_rows,
)
from tests.readers import READERS


def test_a_table_without_files_gives_its_columns_and_no_row(tmp_path):
    table = create(tmp_path / "t")
    with connect() as connection:
        sql = live_rows_sql(connection, table.snapshot(), [], positions=True)
        described = connection.execute(f"DESCRIBE {sql}").fetchall()
        assert [(row[0], row[1]) for row in described] == [
            ("k", "BIGINT"),
            ("v", "VARCHAR"),
            ("__file", "INTEGER"),
            ("__row", "BIGINT"),
        ]
        assert connection.execute(sql).fetchall() == []


def test_columns_can_be_chosen(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'a' AS v")
    assert rows(table.snapshot(), columns=["v"]) == [{"v": "a"}]
    assert len(rows(table.snapshot(), columns=[], positions=True)[0]) == 2


def test_files_written_before_a_column_was_added_give_null(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'a' AS v")
    wider = columns(k=LongType(), v=StringType(), x=DoubleType())
    append(table, "SELECT 2 AS k, 'b' AS v, 0.5 AS x", schema=wider)
    assert sorted_rows(rows(table.snapshot())) == [(1, "a", None), (2, "b", 0.5)]
    files = list(table.snapshot().files.values())
    with connect() as connection:
        old = live_rows_sql(connection, table.snapshot(), files[:1])
        assert connection.execute(old).fetchall() == [(1, "a", None)]
    delete_where(table, "k = 2")
    for read in READERS.values():
        assert read(table.path) == [{"k": 1, "v": "a", "x": None}]


def test_fields_added_to_a_struct_are_null_in_older_rows(tmp_path):
    narrow = columns(s=columns(a=LongType()), l=ArrayType(columns(a=LongType())))
    wide = columns(
        s=columns(a=LongType(), b=StringType()), l=ArrayType(columns(a=LongType(), b=StringType()))
    )
    table = create(tmp_path / "t", narrow)
    append(table, "SELECT {'a': 1} AS s, [{'a': 1}] AS l UNION ALL SELECT NULL, NULL")
    append(table, "SELECT {'b': 'x', 'a': 2} AS s, [{'a': 2, 'b': 'x'}] AS l", schema=wide)
    old, new = {"a": 1, "b": None}, {"a": 2, "b": "x"}
    assert sorted_rows(rows(table.snapshot())) == [(None, None), (old, [old]), (new, [new])]


def test_files_written_before_a_type_was_widened_are_cast(tmp_path):
    table = create(
        tmp_path / "t",
        columns(n=IntegerType(), d=DecimalType(5, 2), f=IntegerType()),
        enableTypeWidening="true",
    )
    append(table, "SELECT 1 AS n, 1.5 AS d, 7 AS f")
    wider = columns(n=LongType(), d=DecimalType(20, 4), f=DoubleType())
    append(table, f"SELECT {2**40} AS n, 2.0625 AS d, 0.5 AS f", schema=wider)
    assert sorted_rows(rows(table.snapshot())) == [
        (1, Decimal("1.5000"), 7.0),
        (2**40, Decimal("2.0625"), 0.5),
    ]
    files = table.snapshot().files.values()
    with connect() as connection:
        for order in (list(files), list(files)[::-1]):
            sql = live_rows_sql(connection, table.snapshot(), order, columns=["n"], positions=True)
            assert sorted(r[0] for r in connection.execute(sql).fetchall()) == [1, 2**40]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["a", "b"], {"a", "b"}),
        (["a/b", "..", "é %", "x=y", "it's", '"q"'], {"a/b", "..", "é %", "x=y", "it's", '"q"'}),
        ([None, "", "__HIVE_DEFAULT_PARTITION__"], {None, "__HIVE_DEFAULT_PARTITION__"}),
    ],
)
def test_partition_values_of_any_text_come_back(tmp_path, values, texts):
    table = create(tmp_path / "t", columns(p=StringType(), k=LongType()), partitioned_by=["p"])
    with connect() as connection:
        connection.register("given", pa.table({"p": values, "k": range(len(values))}))
        transaction = table.begin()
        for file in write_data_files(
            connection, "FROM given", snapshot=table.snapshot(), store=table.store
        ):
            transaction.add(file)
        transaction.commit("WRITE")
    expected = sorted(((value or None, k) for k, value in enumerate(values)), key=repr)
    assert sorted_rows(rows(Table(table.path).snapshot())) == expected
    assert {f.partition_values["p"] for f in table.snapshot().files.values()} == texts
    for name, read in READERS.items():
        if name == "polars" and "__HIVE_DEFAULT_PARTITION__" in texts:
            continue  # it takes the name that stands for null for null, however it is written
        assert (name, sorted_rows(read(table.path))) == (name, expected)


def test_rows_of_partitioned_tables_are_deleted_for_every_reader(tmp_path):
    schema = columns(k=LongType(), day=DateType(), n=IntegerType())
    table = create(tmp_path / "t", schema, partitioned_by=["day", "n"])
    append(
        table,
        "SELECT range AS k, DATE '2024-01-01' + (range % 2)::INT AS day, "
        "if(range % 3 = 0, NULL, range % 3) AS n FROM range(12)",
    )
    assert len(table.snapshot().files) == 6
    delete_where(table, "k IN (0, 5) OR n = 1")
    expected = [2, 3, 6, 8, 9, 11]
    assert sorted(row["k"] for row in rows(table.snapshot())) == expected
    for read in READERS.values():
        assert sorted(row["k"] for row in read(table.path)) == expected


def test_a_vector_is_advised_against_where_a_reader_would_overlook_it(tmp_path):
    table = create(tmp_path / "t", columns(p=StringType(), k=LongType()), partitioned_by=["p"])
    append(table, "SELECT 1 AS k, 'plain' AS p UNION ALL SELECT 2, 'a b'")
    snapshot = table.snapshot()
    advice = {
        file.partition_values["p"]: snapshot.takes_deletion_vector(file)
        for file in snapshot.files.values()
    }
    assert advice == {"plain": True, "a b": False}


@pytest.mark.parametrize("name", ["a[b]*?{c,d}", "it's", "sp ace", "per%20cent", "é", 'q"'])
def test_folders_of_any_name_can_be_read_and_written(tmp_path, name):
    table = create(tmp_path / name / "t", KEY_VALUE, checkpointInterval="1")
    append(table, "SELECT range AS k, 'a' AS v FROM range(3)")
    delete_where(table, "k = 1")
    # delta-rs can't find its way into a folder with a percent sign; it works beside the table.
    assert f"{2:020}.checkpoint.parquet" in log_files(table)
    assert sorted_rows(rows(Table(table.path).snapshot())) == [(0, "a"), (2, "a")]


def test_hidden_columns_are_kept_beside_the_schema(tmp_path):
    table = create(tmp_path / "t")
    transaction = table.begin()
    with connect() as connection:
        for file in write_data_files(
            connection,
            "SELECT range AS k, 'a' AS v, range + 100 AS __millpond_sequence FROM range(2)",
            snapshot=transaction.snapshot,
            store=table.store,
            hidden_columns=["__millpond_sequence"],
        ):
            transaction.add(file)
    snapshot = transaction.commit("WRITE")
    (file,) = snapshot.files.values()
    assert "__millpond" not in file.stats_text
    hidden = ["__millpond_sequence"]
    assert sorted_rows(rows(snapshot, hidden_columns=hidden)) == [(0, "a", 100), (1, "a", 101)]
    assert sorted_rows(rows(snapshot, columns=hidden, hidden_columns=hidden)) == [(100,), (101,)]
    append(table, "SELECT 9 AS k, 'by hand' AS v")
    assert sorted_rows(rows(table.snapshot(), hidden_columns=hidden))[2] == (9, "by hand", None)
    for read in READERS.values():
        assert sorted(read(table.path)[0]) == ["k", "v"]


def test_tables_of_delta_rs_are_read_and_written(tmp_path):
    given = pa.table(
        {
            "k": pa.array([1, 2]),
            "z": pa.array([0, 1], pa.timestamp("us", tz="UTC")),
            "p": ["a b", None],
        }
    )
    write_deltalake(tmp_path / "t", given, partition_by=["p"])
    table = Table(tmp_path / "t")
    assert sorted_rows(rows(table.snapshot())) == sorted_rows(given.to_pylist())
    assert table.snapshot().metadata.schema == columns(
        k=LongType(), z=TimestampType(), p=StringType()
    )
    append(table, "SELECT 3 AS k, 'a b' AS p")
    assert sorted(row["k"] for row in READERS["delta-rs"](table.path)) == [1, 2, 3]


def test_a_large_write_is_split_into_files(tmp_path, monkeypatch):
    monkeypatch.setattr("millpond.delta.data_files.MAX_FILE_SIZE_BYTES", 1_000_000)
    table = create(tmp_path / "t")
    append(table, "SELECT range AS k, md5(range::VARCHAR) AS v FROM range(400000)")
    snapshot = table.snapshot()
    assert len(snapshot.files) > 2
    assert sum(file.num_rows for file in snapshot.files.values()) == 400_000
    with connect() as connection:
        sql = live_rows_sql(connection, snapshot, snapshot.files.values(), columns=["k"])
        found = connection.execute(f"SELECT count(DISTINCT k) FROM ({sql})").fetchall()
    assert found == [(400_000,)]


def test_writing_no_rows_writes_no_file(tmp_path):
    table = create(tmp_path / "t")
    snapshot = append(table, "SELECT 1 AS k, 'a' AS v WHERE false")
    assert not snapshot.files
    assert [path.name for path in table.path.iterdir()] == ["_delta_log"]
