"""Rows as JSON, CSV and tables."""

import csv
import io
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from millpond.cli.query import print_result

RESULT = pa.table(
    {
        "id": [1, 2],
        "name": ['say "hi", you', None],
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "tags": [["a", "b"], []],
    }
)


def printed(capsys, result, output_format, limit=None):
    print_result(result, output_format=output_format, limit=limit)
    return capsys.readouterr().out


def test_json_is_an_array_of_objects(capsys):
    assert json.loads(printed(capsys, RESULT, "json")) == [
        {"id": 1, "name": 'say "hi", you', "price": 1.5, "tags": ["a", "b"]},
        {"id": 2, "name": None, "price": None, "tags": []},
    ]


def test_json_of_no_rows_is_an_empty_array(capsys):
    assert json.loads(printed(capsys, RESULT.slice(0, 0), "json")) == []


def test_json_keeps_columns_of_the_same_name_apart(capsys):
    result = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert json.loads(printed(capsys, result, "json")) == [{"a": 1, "a_2": 2}]


def test_csv_has_a_heading_and_tells_null_from_empty_text(capsys):
    result = pa.table({"a": ["x", "", None], "b": [True, False, None]})
    assert printed(capsys, result, "csv") == 'a,b\nx,true\n"",false\n,\n'


def test_csv_keeps_the_digits_of_decimals(capsys):
    assert printed(capsys, RESULT.select(["price"]), "csv") == "price\n1.50\n\n"


def test_csv_is_read_back_by_others(capsys):
    result = pa.table({"a": ["x,y", 'q"q', "line\nbreak", "cr\rhere", "é"]})
    read = list(csv.reader(io.StringIO(printed(capsys, result, "csv"), newline="")))
    assert read == [["a"], ["x,y"], ['q"q'], ["line\nbreak"], ["cr\rhere"], ["é"]]


def test_csv_holds_nested_values_as_json(capsys):
    assert printed(capsys, RESULT.select(["tags"]), "csv") == 'tags\n"[""a"", ""b""]"\n[]\n'


def test_a_table_shows_null_and_counts_its_rows(capsys):
    assert printed(capsys, RESULT, "table") == (
        "id  name           price  tags\n"
        "--  -------------  -----  ----------\n"
        ' 1  say "hi", you   1.50  ["a", "b"]\n'
        " 2  NULL            NULL  []\n"
        "(2 rows)\n"
    )


def test_a_table_shows_100_rows_and_says_how_to_see_the_rest(capsys):
    lines = printed(capsys, pa.table({"n": range(1234)}), "table").splitlines()
    assert len(lines) == 2 + 100 + 1
    assert lines[-1] == "(100 of 1,234 rows; --limit 0 shows all)"


@pytest.mark.parametrize(("limit", "shown"), [(0, 1234), (5, 5), (2000, 1234)])
def test_a_limit_that_is_given_holds(capsys, limit, shown):
    lines = printed(capsys, pa.table({"n": range(1234)}), "table", limit=limit).splitlines()
    assert len(lines) == 2 + shown + 1


@pytest.mark.parametrize("output_format", ["csv", "json"])
def test_other_formats_show_all_rows_unless_told(capsys, output_format):
    result = pa.table({"n": range(12345)})
    assert len(printed(capsys, result, output_format).splitlines()) >= 12345
    limited = printed(capsys, result, output_format, limit=3)
    assert "2" in limited
    assert "3" not in limited
