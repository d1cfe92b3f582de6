"""What stands far behind the beginning of CSV files is read by the same rules as what is first."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from millpond.errors.file_formats import MalformedRowError
from millpond.files.columns import FileColumns
from millpond.files.formats import csv
from millpond.files.formats.base import Selection
from millpond.files.options import FileOptions
from millpond.files.reading import FilesRead, read_files
from millpond.files.stores import stat
from tests.files.format_reads import options_of, read, struct

ROWS = 30_000


@pytest.fixture(autouse=True)
def _small_sample(monkeypatch):
    """Inference looks at no more than 50 rows of each file."""
    monkeypatch.setattr(csv, "_SAMPLE_BYTES", 0)
    monkeypatch.setattr(csv, "_SAMPLE_ROWS", 0)
    monkeypatch.setattr(csv, "_SAMPLE_ROWS_OF_A_FILE", 50)


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number:02}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def numbers(first: int = 0, rows: int = ROWS) -> str:
    return "".join(f"{number},{number}\n" for number in range(first, first + rows))


def read_into(
    folder: Path, paths: list[Path], columns: str, options: FileOptions
) -> tuple[FilesRead, Path]:
    """The files as a stream reads them, and the folder of what was written."""
    listed = [stat(path.as_uri(), {}) for path in paths]
    target = folder / "written"
    given = FileColumns(struct(columns), rescued=options.rescued_column)
    return read_files(
        [file for file in listed if file], options, given, root=target, folder=target
    ), target


def test_a_last_value_that_does_not_fit_the_inferred_type_is_rescued(tmp_path):
    paths = write(tmp_path, f"a,b\n{numbers()}", f"a,b\n{numbers(ROWS)}word,1.5\n")
    found = read("csv", paths, header="true")
    assert found.schema == "a:int,b:int"
    assert len(found.rows) == 2 * ROWS + 1
    assert sum(row["a"] or 0 for row in found.rows) == sum(range(2 * ROWS))
    assert [text for text in found.rescued if text] == [{"a": "word", "b": "1.5"}]


def test_a_last_row_that_is_too_long_or_too_short_is_read_as_far_as_it_goes(tmp_path):
    paths = write(
        tmp_path, f"a,b\n{numbers()}1,2,3\n", f"a,b\n{numbers()}", f"a,b\n{numbers()}-7\n"
    )
    found = read("csv", paths, header="true")
    assert Counter(found.indexes) == {0: ROWS + 1, 1: ROWS, 2: ROWS + 1}
    assert [text for text in found.rescued if text] == [{"_c2": "3"}]
    assert {"a": -7, "b": None} in found.rows


def test_a_quote_that_never_closes_in_one_of_many_files_costs_none_of_the_others(tmp_path):
    texts = [f"a,b\n{numbers(rows=200)}" for _ in range(40)]
    texts[36] = f'a,b\n{numbers(rows=150)}1,"open\n{numbers(rows=49)}'
    found = read("csv", write(tmp_path, *texts), header="true")
    assert Counter(found.indexes) == dict.fromkeys(range(40), 200)
    assert [text for text in found.rescued if text] == [{"b": "open"}]


@pytest.mark.parametrize("rescues", [True, False])
def test_a_line_is_a_row_although_quotes_go_on_far_behind(tmp_path, rescues):
    """In a column that was not asked for, too."""
    paths = write(tmp_path, f'a,b\n{numbers()}7,"x\ny"\n', f'a,b\n1,"z"\n{numbers()}')
    found = read("csv", paths, "a INTEGER", header="true", rescues=rescues)
    assert Counter(found.indexes) == {0: ROWS + 2, 1: ROWS + 1}
    assert Counter(row["a"] for row in found.rows)[None] == 1
    assert ({"a": 'y"'} in found.rescued) is rescues


def test_a_line_far_behind_that_is_too_long_for_duckdb_is_read(tmp_path):
    long = "x" * 3_000_000
    paths = write(tmp_path, f"a,b\n{numbers()}1,{long}\n2,y\n")
    found = read("csv", paths, "a INTEGER, b VARCHAR", header="true")
    assert len(found.rows) == ROWS + 2
    assert {"a": 1, "b": long} in found.rows
    assert {"a": 2, "b": "y"} in found.rows


def test_what_a_read_wrote_until_it_failed_is_gone(tmp_path):
    paths = write(tmp_path, f"a,b\n{numbers(rows=400_000)}", f"a,b\n{numbers()}1\n")
    read_, folder = read_into(
        tmp_path, paths, "a INTEGER, b INTEGER", options_of("csv", header="true", rescues=False)
    )
    assert sum(file.rows for file in read_.parquet) == 400_000 + ROWS + 1
    assert sorted(folder.glob("*.parquet")) == sorted(file.path for file in read_.parquet)


def test_new_columns_are_found_in_files_that_duckdb_cannot_read(tmp_path):
    paths = write(tmp_path, f"a,b\n{numbers()}1\n")
    found = read("csv", paths, "a INTEGER", header="true")
    assert found.new_columns == "b:string"
    options = options_of("csv", header="true")
    read_, _ = read_into(tmp_path, paths, "a INTEGER", options)
    assert read_.failed == {}
    assert sum(file.rows for file in read_.parquet) == ROWS + 1


@pytest.mark.parametrize(
    ("early", "late", "kind"),
    [
        ("1", "2", "int"),
        ("1", "9999999999", "bigint"),
        ("1", "99999999999999999999", "decimal(20,0)"),
        ("99999999999999999999", "9999999999999999999999", "decimal(22,0)"),
        ("99999999999999999999", "1e3", "double"),
        ("1", "1.5", "double"),
        ("1.5", "x", "string"),
        ("1", "2026-01-31", "string"),
        ("2026-01-31", "2026-01-31 12:30:00", "timestamp"),
        ("true", "FALSE", "boolean"),
        ("true", "1", "string"),
        ("", "2026-01-31", "date"),
        ("", "", "string"),
        ("x", "1", "string"),
    ],
)
def test_the_type_of_a_column_is_that_of_all_rows_of_the_sample(
    tmp_path, monkeypatch, early, late, kind
):
    monkeypatch.setattr(csv, "_SAMPLE_ROWS_OF_A_FILE", 1000)
    text = "k,v\n" + f"1,{early}\n" * 800 + f"2,{late}\n"
    found = read("csv", write(tmp_path, text), header="true")
    assert found.schema == f"k:int,v:{kind}"


def test_a_sample_may_end_within_a_value_that_goes_over_lines(tmp_path):
    rows = '1,"x\ny\nz"\n' * 100
    found = read(
        "csv", write(tmp_path, f"a,b\n{rows}", f"a,b\n1,1\n{rows}"), header="true", multiLine="true"
    )
    assert found.schema == "a:int,b:string"
    assert Counter(row["b"] for row in found.rows) == {"x\ny\nz": 200, "1": 1}


def test_files_with_other_line_ends_are_sampled_too(tmp_path):
    text = "a,b\r" + "1,2\r" * 100 + "x,y\r"
    assert read("csv", write(tmp_path, text), header="true").schema == "a:int,b:int"
    options = {"header": "true", "lineSep": "|"}
    found = read("csv", write(tmp_path, text.replace("\r", "|")), **options)
    assert found.schema == "a:int,b:int"
    assert [json.dumps(text) for text in found.rescued if text] == ['{"a": "x", "b": "y"}']


def test_lines_that_are_no_rows_do_not_count_as_the_first(tmp_path):
    text = "of a system\n" + "\n# comment\n" * 100 + f"a,b\n{numbers()}"
    found = read("csv", write(tmp_path, text), header="true", comment="#", skipRows="1")
    assert found.schema == "a:int,b:int"
    assert len(found.rows) == ROWS


def test_values_are_trimmed_beside_values_with_quotes(tmp_path):
    trims = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
    paths = write(tmp_path, f'a,b\n{numbers()} x , y \n1,"z"\n')
    found = read("csv", paths, "a VARCHAR, b VARCHAR", header="true", **trims)
    assert {"a": "x", "b": "y"} in found.rows
    assert {"a": "1", "b": "z"} in found.rows


def test_the_lines_of_rows_behind_many_empty_ones_are_told(tmp_path):
    (path,) = write(tmp_path, "a,b\n1,1\n" + "\n" * 5000 + "word,1\n")
    with pytest.raises(MalformedRowError, match="The row in line 5003 of"):
        read("csv", path, "a INT, b INT", mode="FAILFAST", rescues=False, header="true")


def test_files_that_duckdb_has_no_way_to_read_are_read_otherwise():
    def take(selection):
        return duckdb.connect().execute(selection.sql).fetchall()

    unknown = Selection("CREATE INDEX ON t (a)", struct("a INT"))
    with pytest.raises(duckdb.NotImplementedException):
        unknown.taken(take)
    other = Selection("SELECT 1", struct("a INT"))
    assert replace(unknown, otherwise=lambda: other).taken(take) == [(1,)]
