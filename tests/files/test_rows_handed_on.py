"""Rows that a query hands on as they are become the table's without being written again."""

from __future__ import annotations

import errno
import os

import pytest

from millpond.runner import run_update
from millpond.storage import LocalStore
from tests.pipeline_folder import PipelineFolder


def load(folder: PipelineFolder, query: str, definition: str = "") -> list[tuple[object, ...]]:
    """One update over a folder with two files, and the rows of the table."""
    source = folder.root / "source"
    source.mkdir(exist_ok=True)
    (source / "a.csv").write_text("a,b\n1,x\n2,y\n")
    (source / "b.csv").write_text("a,b\n3,z\n,w\n")
    reads = f"read_files('{source}', format => 'csv', header => true, schema => 'a INT, b STRING')"
    folder.write("t.sql", f"CREATE STREAMING TABLE t {definition} AS {query.format(reads)};")
    result = folder.run()
    assert [flow.error for flow in result.flows] == [None]
    return folder.rows("t")


def codecs(folder: PipelineFolder) -> set[str]:
    """How the table's files are packed: those that a flow writes itself, by zstd."""
    import pyarrow.parquet as pq

    files = folder.table("t").glob("**/*.parquet")
    return {
        pq.ParquetFile(path).metadata.row_group(0).column(0).compression
        for path in files
        if "_delta_log" not in path.parts
    }


ROWS = [(1, "x"), (2, "y"), (3, "z"), (None, "w")]


@pytest.mark.parametrize("query", ["SELECT * FROM STREAM {0}", "SELECT * FROM STREAM({0}) AS f"])
def test_the_files_of_a_star_become_the_tables_own(folder, query):
    assert load(folder, query) == ROWS
    assert codecs(folder) == {"SNAPPY"}
    assert folder.rows("t", reader="polars") == ROWS
    assert folder.rows("t", reader="sail") == ROWS


@pytest.mark.parametrize(
    ("query", "definition", "rows"),
    [
        ("SELECT * FROM STREAM {0} WHERE a > 1", "", ROWS[1:3]),
        ("SELECT b, a FROM STREAM {0}", "", sorted(((b, a) for a, b in ROWS), key=repr)),
        ("SELECT * FROM STREAM {0}", "(a BIGINT, b STRING)", ROWS),
        ("SELECT * FROM STREAM {0}", "PARTITIONED BY (b)", ROWS),
        (
            "SELECT * FROM STREAM {0}",
            "(CONSTRAINT c EXPECT (a > 1) ON VIOLATION DROP ROW)",
            ROWS[1:3],
        ),
        ("SELECT * FROM STREAM {0} LIMIT 2", "", None),
        ("SELECT DISTINCT * FROM STREAM {0}", "", ROWS),
    ],
)
def test_rows_that_are_changed_on_the_way_are_written_by_the_flow(folder, query, definition, rows):
    found = load(folder, query, definition)
    assert found == rows if rows is not None else len(found) == 2
    assert codecs(folder) == {"ZSTD"}


def test_files_that_cannot_be_linked_are_written_again(folder, monkeypatch):
    def refuse(_store, _source, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(target))

    monkeypatch.setattr(LocalStore, "link", refuse)
    assert load(folder, "SELECT * FROM STREAM {0}") == ROWS
    assert codecs(folder) == {"ZSTD"}


def test_another_writer_that_is_faster_loses_no_row(folder, monkeypatch):
    load(folder, "SELECT * FROM STREAM {0}")
    (folder.root / "source" / "c.csv").write_text("a,b\n4,v\n")
    sync, meddled = LocalStore.sync, []

    def meddling(self, paths):
        sync(self, paths)
        if not meddled:
            meddled.append(True)
            folder.feed("t", [{"a": 9, "b": "by hand"}])

    monkeypatch.setattr(LocalStore, "sync", meddling)
    result = run_update(folder.project())
    assert [flow.error for flow in result.flows] == [None]
    assert sorted(folder.rows("t"), key=repr) == sorted([*ROWS, (4, "v"), (9, "by hand")], key=repr)


def test_a_null_in_a_column_that_has_none_fails_the_flow(folder):
    with pytest.raises(AssertionError, match="not null"):
        load(folder, "SELECT * FROM STREAM {0}", "(a INT NOT NULL, b STRING)")
    assert folder.rows("t") == []
