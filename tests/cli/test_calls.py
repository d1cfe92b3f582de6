"""The command as a process of its own: quick answers, exit codes, no tracebacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import millpond

COMMAND = Path(sys.executable).with_name("millpond")


def call(*arguments, cwd: Path, **options):
    return subprocess.run(
        [COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, check=False, **options
    )


def test_version(tmp_path):
    assert call("--version", cwd=tmp_path).stdout == f"millpond {millpond.__version__}\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_commands(tmp_path, flag):
    told = call(flag, cwd=tmp_path)
    assert told.returncode == 0
    listed = told.stdout.partition("Commands:")[2].split("\n")
    assert [line.split()[0] for line in listed if line] == [
        *("init", "run", "dry-run", "tables", "query", "events", "maintain")
    ]


def test_no_line_of_help_is_longer_than_100(tmp_path):
    environment = {**os.environ, "COLUMNS": "200"}
    for command in ((), ("run",), ("dry-run",), ("tables",), ("query",), ("events",), ("init",)):
        told = call(*command, "-h", cwd=tmp_path, env=environment)
        assert max(map(len, told.stdout.splitlines())) <= 100


def test_help_waits_for_no_engine():
    imported = subprocess.run(
        [sys.executable, "-c", "import millpond.cli.main, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"pyspark", "pysail", "duckdb", "pyarrow", "deltalake", "rich"} & set(imported)


@pytest.mark.parametrize("arguments", [("shop",), ("--name", "shop")])
def test_init_makes_a_project(tmp_path, arguments):
    told = call("init", *arguments, cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("Made shop. Next:\n  cd shop\n")
    assert (tmp_path / "shop" / "spark-pipeline.yml").exists()
    assert {path.suffix for path in (tmp_path / "shop" / "transformations").iterdir()} == {
        *(".sql", ".py")
    }


def test_init_leaves_what_is_there(tmp_path):
    (tmp_path / "shop").mkdir()
    told = call("init", "shop", cwd=tmp_path)
    assert told.returncode == 2
    assert told.stderr.startswith("[PROJECT_EXISTS] ")
    assert list((tmp_path / "shop").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fly",), "No such command 'fly'"),
        (("run", "--fast"), "No such option"),
        (("init",), "Missing argument 'NAME'"),
        (("init", "a", "--name", "b"), "not both"),
        (("init", "../"), "[PROJECT_NAME"),
        (("query",), "Missing argument 'SQL'"),
        (("query", "  "), "The query is empty"),
        (("tables", "--format", "csv"), "'csv' is not one of"),
        (("run", "--conf", "novalue"), "is not of the form key=value"),
        (("run", "--conf", b"key=\xff"), "the setting 'key' is no UTF-8"),
        (("run", "--refresh", ","), "is not a list of names"),
        (("events", "--limit", "-1"), "--limit"),
        (("run", "--full-refresh-all", "--refresh", "t"), "[CONFLICTING_REFRESH_OPTIONS]"),
        (("run", "--full-refresh-all", "--full-refresh", "t"), "[CONFLICTING_REFRESH_OPTIONS]"),
        (("run",), "[SPEC_NOT_FOUND]"),
        (("run", "--spec", "no/such.yml"), "[SPEC_NOT_FOUND]"),
        (("dry-run",), "[SPEC_NOT_FOUND]"),
        (("tables",), "[SPEC_NOT_FOUND]"),
        (("query", "SELECT 1"), "[SPEC_NOT_FOUND]"),
        (("events",), "[SPEC_NOT_FOUND]"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_why(tmp_path, arguments, words):
    told = call(*arguments, cwd=tmp_path)
    assert told.returncode == 2
    assert words in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == ""


def test_names_with_commas_inside_backticks_are_one_name():
    from millpond.cli.options import NameList

    assert NameList().convert("a, `b,c`.d ,e", None, None) == ("a", "`b,c`.d", "e")


@pytest.mark.parametrize("way", ["argument", "input"])
def test_a_query_that_is_no_text_is_a_wrong_call(tmp_path, way):
    query = b"SELECT '\xff'"
    given = [COMMAND, "query", query if way == "argument" else b"-"]
    told = subprocess.run(given, input=query, cwd=tmp_path, capture_output=True, check=False)
    assert told.returncode == 2
    assert b"The query is no UTF-8." in told.stderr


def test_a_query_from_a_file_of_windows_has_lines_as_any_other(tmp_path):
    assert call("init", "shop", cwd=tmp_path).returncode == 0
    told = subprocess.run(
        [COMMAND, "query", "--format", "json", "-"],
        input=b"SELECT\r\nlength('a\r\nb') AS n",
        cwd=tmp_path / "shop",
        capture_output=True,
        check=False,
    )
    assert json.loads(told.stdout) == [{"n": 3}], told.stderr


def test_a_query_without_an_input_to_read_is_a_wrong_call(tmp_path):
    told = subprocess.run(
        ["sh", "-c", f"'{COMMAND}' query - <&-"], cwd=tmp_path, capture_output=True, check=False
    )
    assert told.returncode == 2
    assert b"no standard input" in told.stderr


def test_a_query_may_begin_with_a_byte_order_mark(tmp_path):
    assert call("init", "shop", cwd=tmp_path).returncode == 0
    query = "\ufeffSELECT 'é' AS e"
    given = [COMMAND, "query", "--format", "csv", "-"]
    told = subprocess.run(
        given, input=query.encode(), cwd=tmp_path / "shop", capture_output=True, check=True
    )
    assert told.stdout.decode() == "e\né\n"
