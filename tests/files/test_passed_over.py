"""A file that is passed over for good is told of once, in the event log and on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millpond.events import Level
from millpond.runner import read_events


def test_files_passed_over_are_a_warning_with_the_reason_of_each(folder):
    source = folder.root / "source"
    source.mkdir()
    (source / "good.json").write_text('{"a": 1}\n')
    (source / "torn.json.gz").write_bytes(b"\x1f\x8b no gzip")
    folder.write(
        "t.sql",
        f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{source}', "
        "format => 'json', schema => 'a INT', ignoreCorruptFiles => true);",
    )
    shown = run(folder)
    assert shown.returncode == 0
    assert "warning: Flow main.sales.t passed over 1 file that can't be read" in shown.stderr
    assert "torn.json.gz: " in shown.stderr
    (warning,) = [event for event in read_events(folder.project()) if event.level is Level.WARN]
    (reason,) = warning.details["flow_progress"]["passed_over"].items()
    assert reason[0].endswith("torn.json.gz")
    assert "compressed" in reason[1]
    assert "passed over" not in run(folder).stderr
    assert folder.rows("t") == [(1,)]


@pytest.mark.parametrize(
    "options", ["'csv', header => true, schema => 'x INT, y STRING'", "'json', schema => 'a INT'"]
)
def test_files_in_which_no_column_is_found_are_a_warning(folder, options):
    source = folder.root / "source"
    source.mkdir()
    (source / "one.csv").write_text("a,b\n1,2\n")
    folder.write(
        "t.sql",
        "CREATE STREAMING TABLE t AS SELECT *, _metadata.file_name AS f "
        f"FROM STREAM read_files('{source}', format => {options});",
    )
    shown = run(folder)
    assert "warning: Flow main.sales.t read rows that are null in all columns" in shown.stderr
    (warning,) = [event for event in read_events(folder.project()) if event.level is Level.WARN]
    (found,) = warning.details["flow_progress"]["without_values"]
    assert found.endswith("one.csv")
    (source / "two.csv").write_text('{"a": 1}\n' if "json" in options else "x\n7\n")
    assert "warning" not in run(folder).stderr


@pytest.mark.parametrize("content", ["a,b\n1,2\n", '{\n  "a": 1,\n  "b": 2\n}\n'])
def test_files_in_which_no_column_can_be_inferred_are_a_warning(folder, content):
    source = folder.root / "source"
    source.mkdir()
    (source / "one.json").write_text(content)
    folder.write(
        "t.sql",
        f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{source}', "
        "format => 'json');",
    )
    shown = run(folder)
    assert "warning: Flow main.sales.t read rows that are null in all columns" in shown.stderr
    assert "multiLine" in shown.stderr
    assert len(folder.rows("t")) == content.count("\n")


@pytest.mark.parametrize("columns", ["schemaHints", "schema"])
def test_files_without_a_value_are_told_of_beside_good_ones(folder, columns):
    source = folder.root / "source"
    source.mkdir()
    # Rows without a value may also come from files that have others.
    (source / "good.json").write_text('{"a": 1}\n{"a": null}\n')
    (source / "several lines.json").write_text('{\n  "a": 2\n}\n')
    (source / "no rows.json").write_text("")
    folder.write(
        "t.sql",
        f"CREATE STREAMING TABLE t AS SELECT a FROM STREAM read_files('{source}', "
        f"format => 'json', {columns} => 'a INT');",
    )
    shown = run(folder)
    assert "warning: Flow main.sales.t read rows that are null in all columns" in shown.stderr
    (warning,) = [event for event in read_events(folder.project()) if event.level is Level.WARN]
    (found,) = warning.details["flow_progress"]["without_values"]
    assert found.endswith("several%20lines.json")
    assert sorted(folder.rows("t"), key=str) == [(1,), *[(None,)] * 4]
    # Nor is a file without rows told of where the only other one has none with a value.
    (source / "again.json").write_text('{\n  "a": 3\n}\n')
    (source / "no rows again.json").write_text("")
    assert "again.json" in (stderr := run(folder).stderr)
    assert "no%20rows" not in stderr


def run(folder):
    command = [Path(sys.executable).with_name("millpond"), "run"]
    return subprocess.run(command, cwd=folder.root, capture_output=True, text=True, check=False)
