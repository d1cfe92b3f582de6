"""Files read in the ways a query can name them give the same rows, with what is known of a file."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from millpond.errors.file_reads import FilesUnreadableError
from tests.files.shared_engine import BEGINNING_S

SQL = "read_files('SENT', format => 'csv', header => true, schema => 'v INT, k STRING')"
ROWS = [(1, "a"), (2, "b"), (3, "c")]


def send(suppliers):
    suppliers.send("one.csv", "v,k\n1,a\n2,b\n")
    suppliers.send("two.csv", "v,k\n3,c\n", at_s=1)


WAYS = {
    "cloudFiles": """
@dp.table
def t():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
            .option("header", "true").schema("v INT, k STRING").load("SENT"))
""",
    "format": """
@dp.table
def t():
    return (spark.readStream.format("csv").schema("v INT, k STRING")
            .option("header", True).load("SENT"))
""",
    "csv": """
@dp.table
def t():
    return spark.readStream.csv("SENT", schema="v INT, k STRING", header=True)
""",
    "text in Python": f"""
@dp.table
def t():
    return spark.sql("SELECT * FROM STREAM {SQL}")
""",
    "a file each": """
dp.create_streaming_table("t")

for name in ("one", "two"):
    @dp.append_flow(target="t", name=name)
    def flow(name=name):
        return spark.readStream.csv(f"SENT/{name}.csv", schema="v INT, k STRING", header=True)
""",
    "materialized view": """
@dp.materialized_view
def t():
    return spark.read.csv("SENT", schema="v INT, k STRING", header=True)
""",
}


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_each_way_in_python_gives_the_same_rows(suppliers, text):
    suppliers.write_python(text)
    send(suppliers)
    suppliers.updated()
    assert suppliers.rows() == ROWS


def test_streams_of_files_go_through_views_unions_and_joins(suppliers):
    suppliers.pipeline.feed("names", [{"k": "a", "name": "Anna"}, {"k": "c", "name": "Carl"}])
    suppliers.write(
        f"""
        CREATE TEMPORARY VIEW shown AS
        SELECT v, k, _metadata.file_name AS f FROM STREAM {SQL};
        CREATE OR REFRESH STREAMING TABLE viewed AS SELECT v, f FROM STREAM(shown) WHERE v > 1;
        CREATE OR REFRESH STREAMING TABLE united AS
        SELECT v, k, 'files' AS part FROM STREAM {SQL}
        UNION ALL SELECT v, k, 'other' FROM STREAM read_files('SENT/more', format => 'json',
          schema => 'v INT, k STRING')
        UNION ALL SELECT NULL, k, name FROM STREAM(names);
        CREATE OR REFRESH STREAMING TABLE joined AS
        SELECT a.v, names.name, a._metadata.file_name AS f
        FROM STREAM {SQL} AS a JOIN names ON a.k = names.k;
        CREATE OR REFRESH MATERIALIZED VIEW whole AS SELECT sum(v) AS total FROM {SQL};
        CREATE OR REFRESH MATERIALIZED VIEW seen AS SELECT count(*) AS n FROM united;
        """.replace("read_files('SENT',", "read_files('SENT/*.csv',")
    )
    send(suppliers)
    suppliers.send("more/m.json", '{"v": 7, "k": "m"}\n')
    suppliers.updated()
    assert suppliers.rows("viewed") == [(2, "one.csv"), (3, "two.csv")]
    assert suppliers.rows("united") == [
        (1, "a", "files"),
        (2, "b", "files"),
        (3, "c", "files"),
        (7, "m", "other"),
        (None, "a", "Anna"),
        (None, "c", "Carl"),
    ]
    assert suppliers.rows("joined") == [(1, "Anna", "one.csv"), (3, "Carl", "two.csv")]
    assert suppliers.rows("whole") == [(6,)]
    assert suppliers.rows("seen") == [(6,)]
    # Only what is new comes with the next update, and the batch reads see all.
    suppliers.send("three.csv", "v,k\n4,a\n", at_s=2)
    suppliers.updated()
    assert suppliers.rows("viewed") == [(2, "one.csv"), (3, "two.csv"), (4, "three.csv")]
    assert len(suppliers.rows("united")) == 7
    assert suppliers.rows("joined")[-1] == (4, "Anna", "three.csv")
    assert suppliers.rows("whole") == [(10,)]


def test_metadata_says_what_is_known_of_each_file(suppliers):
    name = "b ü%'\"\n.csv"
    suppliers.query(
        "SELECT v, _metadata.* FROM STREAM read_files('SENT', format => 'csv', schema => 'v INT')"
    )
    suppliers.send(name, "1\n2\n", at_s=0.123456)
    suppliers.updated()
    columns = suppliers.pipeline.columns("t")
    found = [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]
    modified = datetime.fromtimestamp(BEGINNING_S, UTC).replace(microsecond=123456)
    # As Spark writes both.
    quoted = "b%20ü%25'%22%0A.csv"
    assert found == [
        {
            "v": v,
            "file_path": f"file:{suppliers.sent}/{quoted}",
            "file_name": quoted,
            "file_size": 4,
            "file_block_start": 0,
            "file_block_length": 4,
            "file_modification_time": modified,
        }
        for v in (1, 2)
    ]


def test_a_star_does_not_give_metadata_and_a_given_column_of_the_name_wins(suppliers):
    suppliers.write(
        """
        CREATE OR REFRESH STREAMING TABLE t AS
        SELECT * FROM STREAM read_files('SENT/a', format => 'json');
        CREATE OR REFRESH STREAMING TABLE own AS
        SELECT _metadata AS mine FROM STREAM read_files('SENT/b', format => 'json',
          schemaHints => '_metadata STRING');
        """
    )
    suppliers.send("a/a.json", '{"v": 1}\n')
    suppliers.send("b/b.json", '{"_metadata": "data"}\n')
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["v", "_rescued_data"]
    assert suppliers.rows("own") == [("data",)]


def test_metadata_goes_through_expectations_and_state(suppliers):
    suppliers.write(
        f"""
        CREATE OR REFRESH STREAMING TABLE t
        (CONSTRAINT named EXPECT (f = 'one.csv') ON VIOLATION DROP ROW) AS
        SELECT v, _metadata.file_name AS f FROM STREAM {SQL};
        CREATE OR REFRESH STREAMING TABLE names AS
        SELECT DISTINCT _metadata.file_name AS f FROM STREAM {SQL};
        CREATE OR REFRESH MATERIALIZED VIEW counts AS
        SELECT _metadata.file_name AS f, count(*) AS n FROM {SQL} GROUP BY _metadata.file_name;
        """
    )
    send(suppliers)
    suppliers.updated()
    assert suppliers.rows() == [(1, "one.csv"), (2, "one.csv")]
    assert suppliers.rows("names") == [("one.csv",), ("two.csv",)]
    assert suppliers.rows("counts") == [("one.csv", 2), ("two.csv", 1)]


def test_a_materialized_view_reads_all_files_as_they_are_now(suppliers):
    suppliers.write(
        "CREATE OR REFRESH MATERIALIZED VIEW t AS "
        "SELECT * FROM read_files('SENT', format => 'csv', header => true)"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    # No columns are kept for a batch read.
    suppliers.send("a.csv", "w\nword\n")
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["w", "_rescued_data"]
    assert suppliers.rows() == [("word", None)]


def test_a_batch_read_of_a_broken_file_fails_and_names_it(suppliers):
    suppliers.write(f"CREATE OR REFRESH MATERIALIZED VIEW t AS SELECT * FROM {SQL};")
    suppliers.send("a.csv.gz", b"no gzip")
    suppliers.send("b.csv", "v,k\n1,a\n")
    error = suppliers.error()
    assert isinstance(error, FilesUnreadableError)
    assert suppliers.uri("a.csv.gz") in str(error)
    suppliers.write(
        "CREATE OR REFRESH MATERIALIZED VIEW t AS SELECT * FROM "
        + SQL.replace(")", ", ignoreCorruptFiles => true)")
        + ";"
    )
    suppliers.updated()
    assert suppliers.rows() == [(1, "a")]


def test_a_query_reads_files_and_writes_nothing(suppliers):
    send(suppliers)
    asked = suppliers.asked(
        "SELECT sum(v) AS total, count(DISTINCT _metadata.file_path) AS files FROM "
        "read_files('SENT', format => 'csv', header => true)"
    )
    assert asked == [{"total": 6, "files": 2}]
    assert not suppliers.pipeline.layout.root.exists()


def test_the_command_line_queries_files_that_are_named_from_the_spec(suppliers):
    send(suppliers)
    sql = "SELECT * FROM read_files('suppliers', format => 'csv', header => true) ORDER BY v"
    program = Path(sys.executable).with_name("millpond")
    command = [program, "query", sql, "--format", "json"]
    process = subprocess.run(
        command, cwd=suppliers.pipeline.root, capture_output=True, text=True, check=True
    )
    found = json.loads(process.stdout)
    assert [(row["v"], row["k"]) for row in found] == ROWS
