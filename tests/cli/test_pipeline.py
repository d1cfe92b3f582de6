"""All commands on real pipelines, each as a process of its own."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("millpond")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}

SPEC = """\
name: shop
storage: pipeline-storage
catalog: main
schema: shop
configuration:
  api.token: hunter2
libraries:
  - glob:
      include: transformations/**
"""

TABLES = """\
CREATE STREAMING TABLE current_bookings (
  CONSTRAINT has_status EXPECT (status IS NOT NULL) ON VIOLATION DROP ROW
)
FLOW REPLACE USING (booking_id) SEQUENCE BY updated_at BY NAME
SELECT booking_id, status, updated_at FROM STREAM(samples.wanderbricks.booking_updates);

CREATE MATERIALIZED VIEW by_status AS
SELECT status, count(*) AS bookings FROM current_bookings GROUP BY status;
"""

BROKEN = """\
CREATE STREAMING TABLE broken
FLOW REPLACE USING (booking_id) SEQUENCE BY seq BY NAME
SELECT booking_id, CAST(NULL AS INT) AS seq FROM STREAM(samples.wanderbricks.booking_updates);

CREATE MATERIALIZED VIEW below_broken AS SELECT count(*) AS n FROM broken;
"""


def call(*arguments, cwd, **options):
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
        **options,
    )


def make_project(folder: Path, **files: str) -> Path:
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC)
    for name, text in files.items():
        (folder / "transformations" / name.replace("_", ".")).write_text(text)
    return folder


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A pipeline after its first update, and what that update printed."""
    folder = make_project(tmp_path_factory.mktemp("shop"), tables_sql=TABLES)
    return folder, call("run", cwd=folder)


def test_run_prints_plain_lines_into_a_pipe(shop):
    _, told = shop
    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert re.fullmatch(r"Update [0-9a-f]{8} of pipeline shop", lines[0])
    assert any(
        re.fullmatch(r"\S*current_bookings: completed in .* s: [\d,]+ rows in, .* inserted.*", line)
        for line in lines
    )
    assert re.match(r"Update completed in .* s: 2 flows completed; [\d,]+ rows in", lines[-1])
    assert max(map(len, lines)) <= 100


def test_tables_as_json(shop):
    folder, _ = shop
    told = call("tables", "--format", "json", cwd=folder)
    assert told.returncode == 0
    tables = {table["name"]: table for table in json.loads(told.stdout)}
    assert set(tables) == {"main.shop.current_bookings", "main.shop.by_status"}
    bookings = tables["main.shop.current_bookings"]
    assert list(bookings) == ["name", "kind", "flow", "rows", "version", "location"]
    assert (bookings["kind"], bookings["flow"]) == ("STREAMING_TABLE", "REPLACE_USING")
    assert bookings["rows"] > 0
    assert bookings["version"] > 0
    assert (Path(bookings["location"]) / "_delta_log").is_dir()


def test_tables_for_people(shop):
    folder, _ = shop
    lines = call("tables", cwd=folder).stdout.splitlines()
    assert lines[0].split() == ["Name", "Kind", "Flow", "Rows", "Version"]
    assert any("main.shop.current_bookings" in line for line in lines)
    assert max(map(len, lines)) <= 100


def test_query_formats_agree(shop):
    folder, _ = shop
    sql = "SELECT status, bookings FROM by_status ORDER BY status"
    as_csv = call("query", "-", "--format", "csv", cwd=folder, input=sql).stdout
    as_table = call("query", sql, cwd=folder).stdout.splitlines()
    read = list(csv.DictReader(io.StringIO(as_csv)))
    assert len(read) > 1
    assert as_table[0].split() == ["status", "bookings"]
    assert [line.split() for line in as_table[2:-1]] == [list(row.values()) for row in read]
    assert as_table[-1] == f"({len(read)} rows)"


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [("SELECT * FROM no_such_table", "[TABLE_OR_VIEW_NOT_FOUND] "), ("SELEKT 1", "[")],
)
def test_a_query_that_is_wrong_ends_with_1_and_no_traceback(shop, sql, error_class):
    folder, _ = shop
    told = call("query", sql, cwd=folder)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith(error_class)
    assert "bug in millpond" not in told.stderr


def test_events_hold_the_counts_and_the_data_quality(shop):
    folder, _ = shop
    told = call("events", "--format", "json", cwd=folder)
    assert told.returncode == 0
    events = json.loads(told.stdout)
    kinds = {event["event_type"] for event in events}
    assert kinds == {
        *("create_update", "user_action", "update_progress", "flow_progress"),
        *("dataset_definition", "flow_definition"),
    }
    progress = [
        json.loads(event["details"])["flow_progress"]
        for event in events
        if event["event_type"] == "flow_progress"
        and "current_bookings" in event["origin"]["flow_name"]
    ]
    assert progress[-1]["status"] == "COMPLETED"
    batches = [step for step in progress if "metrics" in step]
    rows = json.loads(
        call(
            "query", "SELECT count(*) AS n FROM current_bookings", "--format", "json", cwd=folder
        ).stdout
    )
    inserted = sum(step["metrics"]["num_upserted_rows"] for step in batches)
    removed = sum(step["metrics"]["num_deleted_rows"] for step in batches)
    assert inserted - removed == rows[0]["n"]
    (expectation,) = batches[0]["data_quality"]["expectations"]
    assert expectation["name"] == "has_status"
    assert expectation["dataset"] == "main.shop.current_bookings"
    assert "hunter2" not in told.stdout


def test_the_event_log_can_be_queried(shop):
    folder, _ = shop
    sql = """
        SELECT origin.update_id AS id, message,
               get_json_object(details, '$.update_progress.state') AS state
        FROM event_log WHERE event_type = 'update_progress' ORDER BY timestamp DESC LIMIT 1
    """
    (row,) = json.loads(call("query", sql, "--format", "json", cwd=folder).stdout)
    assert row["state"] == "COMPLETED"
    assert row["message"] == f"Update {row['id']} completed."


def test_events_for_people_fit_the_screen(shop):
    folder, _ = shop
    lines = call("events", "--update", "latest", cwd=folder).stdout.splitlines()
    assert lines[0].split() == ["Time", "(UTC)", "Update", "Level", "Message"]
    assert max(map(len, lines)) <= 100
    assert call("events", "--update", "nope", cwd=folder).returncode == 2


def test_a_reader_that_goes_away_is_no_error(shop):
    folder, _ = shop
    process = subprocess.Popen(
        [COMMAND, "query", "SELECT repeat('x', 1000) AS x FROM range(1000)", "--format=csv"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, "")


def test_an_unknown_dataset_is_a_wrong_call(shop):
    folder, _ = shop
    told = call("run", "--refresh", "no_such", cwd=folder)
    assert told.returncode == 2
    assert told.stderr.startswith("[UNKNOWN_DATASET]")


def test_a_dataset_in_both_lists_is_a_wrong_call(shop):
    folder, _ = shop
    told = call(
        "run", "--refresh", "by_status", "--full-refresh", "main.shop.by_status", cwd=folder
    )
    assert told.returncode == 2
    assert told.stderr.startswith("[CONFLICTING_REFRESH_OPTIONS]")


def test_a_second_update_has_nothing_to_do(shop):
    folder, _ = shop
    told = call("run", cwd=folder)
    assert told.returncode == 0
    assert "current_bookings: completed" in told.stdout
    assert told.stdout.splitlines()[-1].endswith(" rows in, no change.")


def test_progress_on_a_terminal_is_a_table(shop):
    folder, _ = shop
    code, text = on_a_terminal("run", "--full-refresh-all", cwd=folder, width=90)
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert re.search(r"Flow +Status +Rows in +Replaced +Inserted +Late +Dropped +Time", plain)
    assert re.search(r"current_bookings +completed +[\d,.MK]+ ", plain)
    assert "Update completed in " in plain


def test_a_failed_flow_ends_with_1_while_others_finish(tmp_path):
    folder = make_project(tmp_path, tables_sql=TABLES, broken_sql=BROKEN)
    told = call("run", cwd=folder)
    assert told.returncode == 1
    assert "[REPLACE_USING_NULL_SEQUENCE]" in told.stderr
    assert "Traceback" not in told.stderr
    last = told.stdout.splitlines()[-1]
    assert ": 2 flows completed, 1 failed, 1 skipped; " in last
    events = json.loads(call("events", "--format", "json", cwd=folder).stdout)
    failed = [event for event in events if event["error"] and not event["error"]["fatal"]]
    assert failed[0]["error"]["exceptions"][0]["error_class"] == "REPLACE_USING_NULL_SEQUENCE"


def test_rows_that_are_kept_without_meeting_an_expectation_are_warned_of(tmp_path):
    view = """
        CREATE MATERIALIZED VIEW m (CONSTRAINT big EXPECT (n > 1), CONSTRAINT any EXPECT (true))
        AS SELECT * FROM VALUES (1), (2), (NULL) AS given(n);
    """
    told = call("run", cwd=make_project(tmp_path, tables_sql=view))
    assert told.returncode == 0
    assert "3 inserted" in told.stdout
    assert told.stderr == "warning: Flow m read 2 rows that do not meet the expectation 'big'.\n"


def test_dry_run_reports_every_problem_with_its_place(tmp_path):
    folder = make_project(
        tmp_path,
        a_sql="CREATE STREAMING TABLE a FLOW REPLACE USING (id) SEQUENCE BY s BY NAME\n"
        "SELECT 1 AS id, 2 AS s;",
        b_sql="\nCREATE MATERIALIZED VIEW b AS SELECT * FROM nowhere;",
    )
    told = call("dry-run", "--format", "json", cwd=folder)
    assert (told.returncode, told.stderr) == (1, "")
    problems = json.loads(told.stdout)
    assert {problem["file"] for problem in problems} == {
        *("transformations/a.sql", "transformations/b.sql")
    }
    assert all(problem["error_class"] and problem["message"] for problem in problems)
    told = call("dry-run", cwd=folder)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith("2 problems found.\n")
    assert re.search(r"at transformations/a\.sql:\d", told.stderr)
    assert re.search(r"at transformations/b\.sql:2", told.stderr)


def test_what_source_files_print_is_not_in_the_way_of_a_result(tmp_path):
    printing = """\
from pyspark import pipelines as dp
print("loaded")

@dp.materialized_view
def three():
    print("evaluated")
    return spark.range(3)
"""
    folder = make_project(tmp_path, printing_py=printing)
    for command in (["dry-run"], ["tables"], ["query", "SELECT 1 AS one"]):
        told = call(*command, "--format", "json", cwd=folder)
        assert isinstance(json.loads(told.stdout), list)
        assert "loaded" in told.stderr


def test_dry_run_of_a_good_pipeline(shop):
    folder, _ = shop
    told = call("dry-run", cwd=folder)
    assert (told.returncode, told.stdout, told.stderr) == (0, "No problems found.\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_an_update_cleanly(tmp_path, number, code):
    folder = make_project(
        tmp_path,
        slow_py="import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(60)\n",
    )
    process = subprocess.Popen(
        [COMMAND, "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    began = folder / "began"
    deadline = time.monotonic() + 60
    while not began.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert re.match(r"Update canceled in ", out.splitlines()[-1])
    assert err == "Stopping. What is being committed is finished. Ctrl-C again stops at once.\n"
    events = json.loads(call("events", "--format", "json", cwd=folder).stdout)
    assert json.loads(events[-1]["details"])["update_progress"]["state"] == "CANCELED"


def test_a_second_signal_does_not_wait_for_a_long_query(tmp_path):
    """Sail handles SIGINT itself, so that only a query in flight shows whether it reaches us."""
    folder = make_project(
        tmp_path,
        heavy_sql="CREATE MATERIALIZED VIEW heavy AS "
        "SELECT sum(a.id * b.id % 7) AS n FROM range(1000000) a CROSS JOIN range(1000000) b;",
    )
    process = subprocess.Popen(
        [COMMAND, "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    while process.stdout.readline() != "heavy: running\n":
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline().startswith("Stopping.")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    # What the update wrote down before it died is there.
    events = json.loads(call("events", "--format", "json", cwd=folder).stdout)
    assert events[0]["event_type"] == "create_update"


def on_a_terminal(*arguments: str, cwd: Path, width: int) -> tuple[int, str]:
    """Run the command on a terminal, and return its exit code and all it wrote."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=cwd,
        stdout=its,
        stderr=its,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": str(width), "LINES": "30"},
    )
    os.close(its)
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side has closed it
            break
        written += part
    os.close(ours)
    return process.wait(60), written.decode()
