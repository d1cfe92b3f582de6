"""No secret is printed, kept in the event log, or needed on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline_folder import PipelineFolder

COMMAND = Path(sys.executable).with_name("millpond")
SECRET = "hunter2-of-the-mill"  # noqa: S105 - of nothing
TABLE = "CREATE MATERIALIZED VIEW t AS SELECT '${db.region}' AS region"
# The engine tells the text in its error.
BROKEN = "CREATE MATERIALIZED VIEW broken AS SELECT CAST('${db.password}' AS INT) AS n"


@pytest.fixture
def folder(tmp_path):
    folder = PipelineFolder.made(tmp_path / "project")
    folder.write("table.sql", TABLE)
    return folder


def call(folder, *arguments, **variables):
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=folder.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **variables},
    )


def recorded(folder):
    """All that the event log tells, as users see it."""
    return call(folder, "events", "--format", "json").stdout


def test_settings_may_stand_in_a_file_and_what_comes_later_on_the_command_line_counts(folder):
    folder.write("table.sql", TABLE.replace(" AS region", " AS region, '${db.mill}' AS mill"))
    settings = folder.root / "s.yml"
    settings.write_text("db.region: north\ndb.mill: pond\n", encoding="utf-8")
    told = call(folder, "run", "--conf", f"@{settings}", "--conf", "db.region=south")
    assert (told.returncode, told.stderr) == (0, "")
    rows = call(folder, "query", "SELECT region, mill FROM t", "--format", "json")
    assert json.loads(rows.stdout) == [{"region": "south", "mill": "pond"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no file s.yml"),
        ("- a list", "must be a block of keys"),
        ("db.password: 12345678", "must be a string, not [REDACTED] (a number)"),
        ("db.password: [12345678", "db.password: [REDACTED]"),
        ("millpond.engine: 'sc:/spark;token=12345678'", "'sc:/spark;token=[REDACTED]'"),
        ("millpond.fast: 'yes'", "There is no setting millpond.fast"),
    ],
)
def test_a_wrong_file_of_settings_is_a_wrong_call(folder, text, words):
    if text is not None:
        (folder.root / "s.yml").write_text(text, encoding="utf-8")
    told = call(folder, "run", "--conf", "@s.yml")
    assert told.returncode == 2
    assert words in told.stderr
    assert "12345678" not in told.stderr


@pytest.mark.parametrize("command", [("run",), ("dry-run", "--format", "json")])
def test_secrets_are_not_shown_where_a_query_fails(folder, command):
    folder.write("broken.sql", BROKEN)
    (folder.root / "s.yml").write_text(f"db.password: {SECRET}\ndb.region: a\n", encoding="utf-8")
    folder.write("unknown.sql", "CREATE MATERIALIZED VIEW u AS SELECT '${db.password}' x FROM nil")
    told = call(folder, "--debug", *command, "--conf", "@s.yml")
    assert told.returncode == 1
    assert SECRET not in told.stdout + told.stderr
    if command == ("run",):
        events = recorded(folder)
        assert "nil" in events
        assert SECRET not in events


def test_secrets_are_not_shown_where_a_flow_fails_as_it_runs(folder):
    folder.write("broken.sql", BROKEN)
    (folder.root / "s.yml").write_text(f"db.password: {SECRET}\ndb.region: a\n", encoding="utf-8")
    told = call(folder, "--debug", "run", "--conf", "@s.yml")
    assert told.returncode == 1
    assert "[REDACTED]" in told.stderr
    assert SECRET not in told.stdout + told.stderr
    events = recorded(folder)
    assert "[REDACTED]" in events
    assert SECRET not in events


def test_the_token_of_a_server_is_not_shown_where_nobody_answers(folder):
    address = f"sc://127.0.0.1:1/;token={SECRET}"
    for arguments, variables in (
        (("--engine", address), {}),
        ((), {"SPARK_REMOTE": f"{address}=x"}),
    ):
        told = call(folder, "--debug", "run", *arguments, **variables)
        assert told.returncode == 1
        assert "[SPARK_SERVER_UNREACHABLE]" in told.stderr
        assert SECRET not in told.stdout + told.stderr
    assert SECRET not in recorded(folder)
