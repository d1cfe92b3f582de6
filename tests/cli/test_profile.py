"""`millpond run --profile` says where the time of an update went."""

import re

from tests.cli.test_pipeline import TABLES, call, make_project

ROW = re.compile(r"(?P<flow>\S+)  +(?P<phase>\S[\w ]*?)  +(?P<seconds>\d+\.\d+)  +\d+%  +[\d,]+")


def profile(done):
    """The seconds of the whole, and by flow and phase."""
    text = done.stdout.partition("\nWhere ")[2]
    rows = [found for line in text.splitlines()[3:] if (found := ROW.fullmatch(line))]
    total = float(re.match(r"(\d+\.\d) s went:", text)[1])
    return total, {(row["flow"], row["phase"]): float(row["seconds"]) for row in rows}


def test_phases_of_the_update_and_of_each_flow_are_told_and_add_up(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    done = call("run", "--profile", cwd=folder)
    assert done.returncode == 0, done.stderr
    total, spent = profile(done)
    assert {("(update)", "start program"), ("(update)", "start engine")} <= set(spent)
    phases = {phase for flow, phase in spent if flow == "current_bookings"}
    assert {"run query", "match keys", "write rows"} <= phases
    assert ("by_status", "run query") in spent
    # One flow waits for the other here, so nothing is counted twice.
    assert total / 2 < sum(spent.values()) < total + 0.1


def test_an_update_that_fails_is_profiled_as_well(tmp_path):
    broken = TABLES.replace("ON VIOLATION DROP ROW", "ON VIOLATION FAIL UPDATE").replace(
        "status IS NOT NULL", "status = 'none has it'"
    )
    folder = make_project(tmp_path / "shop", tables_sql=broken)
    done = call("run", "--profile", cwd=folder)
    assert done.returncode == 1
    assert ("current_bookings", "run query") in profile(done)[1]


def test_without_the_option_nothing_is_told(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    assert "Where" not in call("run", cwd=folder).stdout
