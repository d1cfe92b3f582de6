"""The benchmark: a figure is shown only of a tool whose result was right, and words of the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from benchmarks.environments import first_line
from benchmarks.goals import GOALS, goal_table
from benchmarks.measuring import WrongError, check, rotated
from benchmarks.page import write_page
from benchmarks.peers import PEERS
from benchmarks.report import markdown
from benchmarks.suites import MATRIX, SUITES
from benchmarks.workload import Workload, make_batches, make_table

from benchmarks import oracle

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "replace_using.py"


def run_program(folder, *words, path=""):
    """Run the benchmark with the tools of this environment, and return its report."""
    places = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    results = folder / "results"
    process = subprocess.run(
        [sys.executable, PROGRAM, "--here", *words, "--folder", folder, "--results", results],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return (results / "report.md").read_text()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What the benchmark writes of a stream with late rows, ties, null keys and dropped rows."""
    folder = tmp_path_factory.mktemp("bench")
    words = ["--suite", "R1", "--scale", "0.001", "--batches", "11", "--rounds", "1"]
    for peer in ("millpond", "millpond-pipeline", "duckdb", "delta-rs-overwrite", "dlt"):
        words += ["--peer", peer]
    # Whatever else is installed here, these two can't be imported.
    missing = folder / "missing"
    missing.mkdir()
    for name in ("dlt", "matplotlib"):
        (missing / f"{name}.py").write_text(
            f'raise ModuleNotFoundError("No module named {name!r}", name={name!r})\n'
        )
    return run_program(folder, *words, path=missing)


def row_of(page: str, peer: str) -> list[str]:
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {PEERS[peer].label} ")]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("peer", ["millpond", "millpond-pipeline"])
def test_millpond_gives_the_closed_form_of_a_stream_with_rough_edges(page, peer):
    assert "wrong" not in row_of(page, peer)[1]
    assert all(row_of(page, peer)[column] for column in (1, 3, 4, 5, 6, 7, 8))


@pytest.mark.parametrize("peer", ["duckdb", "delta-rs-overwrite"])
def test_a_tool_whose_rows_are_wrong_gets_words_and_no_figure(page, peer):
    cells = row_of(page, peer)
    assert cells[1].startswith("**wrong**: ")
    assert not any(cells[2:])


def test_a_page_says_who_was_right_and_who_was_not(page):
    (line,) = [line for line in page.splitlines() if line.startswith("**Right**")]
    right, _, others = line.partition("**Wrong**: ")
    wrong, _, failed = others.partition("**Failed**: ")
    assert PEERS["millpond"].label in right
    assert PEERS["duckdb"].label in wrong
    assert PEERS["dlt"].label in failed


def test_a_tool_that_is_not_there_gets_the_line_of_its_error(page):
    assert row_of(page, "dlt")[1].endswith("ModuleNotFoundError: No module named 'dlt'")


def test_a_plot_that_can_not_be_drawn_gets_words(page):
    assert "(No plot: ModuleNotFoundError: No module named 'matplotlib'.)" in page


def test_after_small_commits_a_delta_table_is_read_beside_a_fresh_one(tmp_path):
    words = ["--suite", "U3", "--scale", "0.001", "--batches", "11", "--rounds", "1"]
    page = run_program(tmp_path, *words, "--peer", "millpond", "--peer", "duckdb")
    assert row_of(page, "millpond")[7].endswith(" of a fresh table's)")
    assert float(row_of(page, "duckdb")[7])
    (goal,) = [li for li in page.splitlines() if f"fresh table: {PEERS['millpond'].label} " in li]
    assert "not measured" not in goal


def test_a_whole_run_of_the_program_gives_the_rows_of_its_file(tmp_path):
    words = ["--suite", "S", "--scale", "0.1", "--rounds", "1", "--peer", "millpond-run"]
    page = run_program(tmp_path, *words)
    assert all(row_of(page, "millpond-run")[column] for column in (1, 4, 6, 7))
    (goal,) = [line for line in page.splitlines() if line.startswith("| S | ")]
    assert "not measured" not in goal


@pytest.mark.parametrize(
    ("found", "words"),
    [((9, 5), "9 rows, 10 expected"), ((10, 4), "10 rows as expected, but not these")],
)
def test_a_table_with_other_rows_is_wrong(found, words):
    check((10, 5), (10, 5))
    with pytest.raises(WrongError, match=words):
        check(found, (10, 5))


def test_each_peer_has_its_turn_at_each_place_of_a_round():
    assert list(rotated(["a", "b", "c"], rounds=3)) == [
        *[(0, "a"), (0, "b"), (0, "c")],
        *[(1, "b"), (1, "c"), (1, "a")],
        *[(2, "c"), (2, "a"), (2, "b")],
    ]


def test_the_line_of_an_error_is_pips_first_or_a_tracebacks_exception():
    assert first_line("Looking\nERROR: No such package\nERROR: Giving up") == "No such package"
    trace = "Traceback (most recent call last):\n  File x\n    y()\nSomeError: why\nmore of it\n"
    assert first_line("a warning\n" + trace) == "SomeError: why"


ROUGH = Workload(keys=40, files=2, batches=12, batch_keys=20, rows_a_key=3, rough=True)


def test_a_rough_stream_has_late_rows_ties_null_keys_and_rows_to_drop(tmp_path):
    workload = Workload(keys=4_000, files=1, batches=2, batch_keys=2_000, rough=True)
    files = make_batches(workload, tmp_path / "batches")
    count = {
        name: duckdb.sql(f"SELECT count(*) FROM '{files[1]}' WHERE {condition}").fetchall()[0][0]
        for name, condition in {
            "all": "true",
            "late": "seq = 0",
            "ties": "seq = 2",
            "null": "k IS NULL",
            "dropped": "NOT (amount >= 100000)",
        }.items()
    }
    shares = {name: found / count["all"] for name, found in count.items()}
    assert 0.15 < shares["late"] < 0.25
    assert 0.02 < shares["ties"] < 0.06
    assert 0.004 < shares["null"] < 0.016
    assert 0.08 < shares["dropped"] < 0.12


def test_the_closed_form_keeps_the_rows_of_each_keys_highest_sequence(tmp_path):
    """Against the same rule written with a window, over the rows that met the expectation."""
    make_table(ROUGH, tmp_path / "table", vectors=False)
    base = list((tmp_path / "table").glob("*.parquet"))
    batches = make_batches(ROUGH, tmp_path / "batches")
    kept = f"SELECT * FROM {oracle.parquet(batches)} WHERE amount >= 100000"
    with oracle.connection() as duck:
        window = (
            f"(SELECT * FROM (SELECT * FROM {oracle.parquet(base)} UNION ALL {kept}) "
            "QUALIFY seq = max(seq) OVER (PARTITION BY k))"
        )
        assert oracle.expected(ROUGH, base, batches) == oracle.fetch(
            duck, oracle.FINGERPRINT.format(window)
        )


@pytest.mark.parametrize("name", [name for name in SUITES if name not in MATRIX])
def test_every_suite_has_its_batches_at_a_small_size(tmp_path, name):
    workload = SUITES[name].workload.scaled(0.0001)
    batch = make_batches(Workload(**{**vars(workload), "batches": 1}), tmp_path / "batches")[0]
    keys, rows = duckdb.sql(f"SELECT count(DISTINCT k), count(*) FROM '{batch}'").fetchall()[0]
    assert keys
    assert rows >= keys


@pytest.mark.parametrize("name", MATRIX)
def test_a_cell_of_the_matrix_touches_what_it_says(tmp_path, name):
    workload = replace(SUITES[name].workload.scaled(0.1), rows_a_key=1)
    (_, batch) = make_batches(workload, tmp_path / "batches")
    files, rows, added = map(float, name.split("-")[1:])
    old, new, last = duckdb.sql(
        f"SELECT count(*) FILTER (k < 50000), count(*) FILTER (k >= 50000), "
        f"max(k) FILTER (k < 50000) FROM (SELECT DISTINCT k FROM '{batch}')"
    ).fetchall()[0]
    touched = 50_000 * files
    assert (old, new) == (touched * rows, max(touched * added // 1, 1 if added else 0))
    assert old == 0 or 0.8 * touched < last < touched


def outcome(seconds, *, state="ok", reason="", written=1, peak=1):
    figures = {
        "seconds": [seconds],
        "first_s": [1.0],
        "start_s": [1.0],
        "peak_bytes": [peak],
        "written_bytes": [written],
        "grown_bytes": [0],
        "alive_bytes": 1,
        "scan_s": 1.0,
        "point_s": 1.0,
        "batches": len(seconds),
    }
    return {"state": state, "reason": reason, **figures}


def suite(name, peers, **more):
    measured = {
        "suite": name,
        "title": "A title",
        "workload": "rows",
        "into": "a table",
        "scale": 1,
        "rounds": 1,
        "date": "today",
        "machine": "a machine",
        "load_before": 1,
        "load_after": 1,
        "batches": 2,
        "batch_keys": 10,
        "peers": peers,
    }
    return {name: {**measured, **more}}


def goal_lines(results):
    return goal_table(results).splitlines()[2:]


def test_goals_that_nothing_was_measured_for_are_shown_as_such():
    lines = goal_lines({})
    assert len(lines) == len(GOALS)
    assert all("not measured" in line for line in lines)


@pytest.mark.parametrize(("seconds", "word"), [(0.1, "| met |"), (0.11, "| **missed** |")])
def test_a_goal_is_met_up_to_its_limit(seconds, word):
    peers = {"millpond": outcome([seconds] * 2), "delta-rs-overwrite": outcome([1.0] * 2)}
    assert goal_lines(suite("U2", peers))[0].endswith(word)


@pytest.mark.parametrize(
    ("scan_s", "batches", "found"),
    [(1.3, 2, "| 1.300 | met |"), (1.31, 2, "| 1.310 | **missed** |"), (1.0, 1, "not measured")],
)
def test_a_read_is_compared_with_a_fresh_tables_once_all_batches_are_in(scan_s, batches, found):
    own = {**outcome([0.1] * 20), "scan_s": scan_s, "fresh_scan_s": 1.0, "batches": batches}
    (line,) = [
        line
        for line in goal_lines(suite("U3", {"millpond": own}))
        if f"fresh table: {PEERS['millpond'].label} " in line
    ]
    assert found in line


def test_a_tool_that_is_wrong_is_no_measure_of_a_goal():
    peers = {
        "millpond": outcome([0.1] * 2),
        "delta-rs-overwrite": outcome([0.2] * 2, state="wrong"),
        "polars": outcome([2.0] * 2),
    }
    assert "| 0.050 | met |" in goal_lines(suite("U2", peers))[0]


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"load_before": 3.0}, "had other work to do** when U2 began"),
        ({"scale": 0.1}, "Not at full size**, which is scale 1, and what goals are set for: U2."),
    ],
)
def test_a_page_says_what_its_figures_are_not_good_for(tmp_path, conditions, words):
    for more in ({}, conditions):
        found = suite("U2", {"millpond": outcome([0.1] * 2)}, **{"load_before": 0.1, **more})
        (tmp_path / "U2.json").write_text(json.dumps(found["U2"]))
        write_page(tmp_path / "page.md", tmp_path, lambda _: Path(sys.executable))
        assert (words in (tmp_path / "page.md").read_text()) == bool(more)


def test_the_line_of_an_error_stays_within_its_cell():
    peers = {"duckrun": outcome([], state="failed", reason="no https://a.example/b | x")}
    (found,) = suite("U2", peers).values()
    assert "| **failed**: no (an address) \\| x | |" in markdown(found)


def test_a_tool_whose_time_was_up_is_marked():
    peers = {"millpond": outcome([0.1] * 2), "dbt": outcome([9.0])}
    (found,) = suite("U2", peers).values()
    assert "time was up after 1 of 2 batches" in markdown(found)


def test_the_matrix_is_one_table_of_a_page(tmp_path):
    for name, peers in (
        ("D-0.05-0.5-0.1", {"millpond": outcome([0.1]), "sail": outcome([0.2])}),
        ("D-1-1-0", {"millpond": outcome([0.3]), "sail": outcome([], state="failed")}),
    ):
        found = suite(name, peers, title=SUITES[name].title)[name]
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    write_page(tmp_path / "page.md", tmp_path, lambda _: Path(sys.executable))
    text = (tmp_path / "page.md").read_text()
    assert "| 5% of the files, 50% of their rows, 10.0% more rows | 0.100 | 0.200 |" in text
    assert "| 100% of the files, 100% of their rows, 0.0% more rows | 0.300 | **failed** |" in text


def test_a_page_keeps_what_stands_around_its_measured_part(tmp_path):
    page, results = tmp_path / "page.md", tmp_path / "results"
    results.mkdir()
    page.write_text("above\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nbelow\n")
    found = suite("U2", {"millpond": outcome([0.1] * 2)})["U2"]
    (results / "U2.json").write_text(json.dumps(found))
    write_page(page, results, lambda _: Path(sys.executable))
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith("\nbelow\n")
    assert "old" not in text
    assert "U2: A title" in text
