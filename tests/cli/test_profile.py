"""`millpond run --profile` says where the time of an update went."""

import re
from dataclasses import dataclass

from tests.cli.test_pipeline import TABLES, call, make_project

ROW = re.compile(
    r"(?P<flow>\S+)  +(?P<phase>\S[\w ]*?)  +(?P<seconds>\d+\.\d+)  +(?P<share>\d+)%  +[\d,]+"
)
# How a whole may be told: 3.2 s, 2 min 5 s, 1 h 3 min. A part of a second was rounded, or one of
# what comes last.
PART = re.compile(r"([\d.]+) (s|min|h)\b")
UNIT_S = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Told:
    """What a profile says.

    Attributes:
        most_s: The whole took no longer.
        least_s: Nor less.
        seconds: By flow and phase.
        shares: Percents, by flow and phase.
    """

    most_s: float
    least_s: float
    seconds: dict[tuple[str, str], float]
    shares: dict[tuple[str, str], int]


def profile(done):
    whole, _, table = done.stdout.partition("\nWhere ")[2].partition(" went:\n")
    rows = [found for line in table.splitlines() if (found := ROW.fullmatch(line))]
    parts = [(float(number), UNIT_S[unit]) for number, unit in PART.findall(whole)]
    total_s = sum(number * unit_s for number, unit_s in parts)
    rounded_s = 0.1 if len(parts) == 1 else parts[-1][1]
    return Told(
        total_s + rounded_s,
        total_s - rounded_s,
        {(row["flow"], row["phase"]): float(row["seconds"]) for row in rows},
        {(row["flow"], row["phase"]): int(row["share"]) for row in rows},
    )


def test_phases_of_the_update_and_of_each_flow_are_told_and_are_parts_of_the_whole(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    done = call("run", "--profile", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = profile(done)
    spent = told.seconds
    assert {("(update)", "start program"), ("(update)", "start engine")} <= set(spent)
    phases = {phase for flow, phase in spent if flow == "current_bookings"}
    assert {"run query", "match keys", "write rows"} <= phases
    assert ("by_status", "run query") in spent
    for flow in {flow for flow, _ in spent}:
        # A flow does one thing after the other, so nothing of it is counted twice.
        assert 0 < sum(spent[key] for key in spent if key[0] == flow) <= told.most_s
    for key, share in told.shares.items():
        assert spent[key] / told.most_s - 0.01 < share / 100 < spent[key] / told.least_s + 0.01


def test_an_update_that_fails_is_profiled_as_well(tmp_path):
    broken = TABLES.replace("ON VIOLATION DROP ROW", "ON VIOLATION FAIL UPDATE").replace(
        "status IS NOT NULL", "status = 'none has it'"
    )
    folder = make_project(tmp_path / "shop", tables_sql=broken)
    done = call("run", "--profile", cwd=folder)
    assert done.returncode == 1
    assert ("current_bookings", "run query") in profile(done).seconds


def test_without_the_option_nothing_is_told(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    assert "Where" not in call("run", cwd=folder).stdout
