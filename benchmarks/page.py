"""The measured part of a page: plots, tables, what was wrong, and the goals, from kept results."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.environments import UnavailableError, first_line
from benchmarks.goals import goal_table
from benchmarks.peers import PEERS
from benchmarks.report import markdown, matrix, seconds_of
from benchmarks.suites import MATRIX, SUITES

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# With more to do before a run, a machine's times are not the tools' own.
QUIET_LOAD = 0.7
DRAWING = Path(__file__).parent / "plot.py"


def write_page(page: Path, results: Path, python_of: Callable[[str], Path]) -> None:
    """Put what was measured between the two marks of a page; without the page, make one of it."""
    found = read_results(results)
    images = page.parent / "images"
    parts = [_conditions(found), "## Goals", goal_table(found), "## Suites"]
    cells = [found[name] for name in MATRIX if name in found]
    for name, one in found.items():
        if name in MATRIX:
            continue
        parts += [markdown(one), verdict(one)]
        plot = draw(one, images / f"bench-{name.lower()}.svg", python_of)
        parts.append(plot)
    if cells:
        parts += ["### D: One batch, by how much of the table it touches", matrix(cells)]
    parts += ["## How each tool replaces rows", _ways(found)]
    measured = f"{BEGIN}\n" + "\n\n".join(part for part in parts if part) + f"\n{END}"
    if page.exists() and BEGIN in (text := page.read_text()):
        before, _, rest = text.partition(BEGIN)
        measured = before + measured + rest.partition(END)[2]
    else:
        measured = f"# What replacing rows costs\n\n{measured}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(measured)


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """By suite, in the order of the suites."""
    return {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in SUITES
        if (folder / f"{name}.json").exists()
    }


def _conditions(found: dict[str, dict[str, Any]]) -> str:
    machines = sorted({one["machine"] for one in found.values()})
    loads = [load for one in found.values() for load in (one["load_before"], one["load_after"])]
    if not loads:
        return "Nothing was measured yet."
    measured = (
        f"Measured on {'; '.join(machines)}. The load of the machine, before the run and after "
        f"each suite, was between {min(loads)} and {max(loads)}; the benchmark itself adds 1 to 2."
    )
    sentences = [measured]
    if busy := _names(found, lambda one: one["load_before"] > QUIET_LOAD):
        sentences.append(
            f"**The machine had other work to do** when {busy} began. Read from that who is right, "
            "what is written and what is left, but take no time for final, nor a goal on time for "
            "met or missed."
        )
    if small := _names(found, lambda one: one["scale"] < 1):
        sentences.append(
            f"**Not at full size**, which is scale 1, and what goals are set for: {small}."
        )
    return "\n".join(sentences)


def _names(found: dict[str, dict[str, Any]], is_meant: Callable[[dict[str, Any]], bool]) -> str:
    """Which suites are of a kind."""
    return ", ".join(name for name, one in found.items() if is_meant(one))


def verdict(one: dict[str, Any]) -> str:
    """Who gave the rows of the rule and who did not; nothing where all did."""
    by_state: dict[str, list[str]] = {}
    for peer, outcome in one["peers"].items():
        by_state.setdefault(outcome["state"], []).append(PEERS[peer].label)
    if set(by_state) <= {"ok"}:
        return ""
    words = {"ok": "Right", "wrong": "Wrong", "failed": "Failed"}
    return " ".join(
        f"**{words[state]}**: {'; '.join(by_state[state])}." for state in words if state in by_state
    )


def _ways(found: dict[str, dict[str, Any]]) -> str:
    measured = {peer for one in found.values() for peer in one["peers"]}
    return "\n".join(
        f"- **{kind.label}**: {kind.how}" for peer, kind in PEERS.items() if peer in measured
    )


def draw(one: dict[str, Any], target: Path, python_of: Callable[[str], Path]) -> str:
    """Draw a suite's times, and return the link; a line of words where that can't be done."""
    bars = [
        {"label": PEERS[peer].label, "state": outcome["state"], "seconds": seconds_of(outcome)}
        for peer, outcome in one["peers"].items()
    ]
    title = f"{one['suite']}: {one['title']}, scale {one['scale']:g}"
    try:
        python = python_of("plot")
    except UnavailableError as error:
        return f"(No plot: matplotlib {error}.)"
    target.parent.mkdir(parents=True, exist_ok=True)
    order = json.dumps({"title": title, "bars": bars})
    command = [str(python), str(DRAWING), str(target)]
    done = subprocess.run(command, input=order, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"(No plot: {first_line(done.stderr)}.)"
    return f"![Seconds a batch of {one['suite']}](images/{target.name})"
