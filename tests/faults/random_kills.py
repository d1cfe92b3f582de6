"""A seed's history of kills: at moments that nothing but chance decides, of the whole process.

Where each fell is told by what the process left: its events, planned batches and commits.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.subject import Subject
from tests.faults.warm_runs import WarmProgram, kill
from tests.simulation.table_versions import TableVersions

# So many kills go into one history: the tables' logs would grow, and with them the comparing.
KILLS_OF_ONE = 10
FLOWS = 6


@dataclass
class Counts:
    """What histories came to.

    Attributes:
        kills: By where they fell.
        escaped: Runs that ended before their moment came.
        leftovers: Kills that left data files, or temporary ones, that no commit names.
        seconds: How long runs took that were not killed.
    """

    kills: Counter[str] = field(default_factory=Counter)
    escaped: int = 0
    completed: int = 0
    leftovers: int = 0
    versions: int = 0
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        places = ", ".join(f"{place} {n}" for place, n in self.kills.most_common())
        return (
            f"{self.kills.total()} kills ({places}); {self.leftovers} left files that no commit "
            f"names; {self.escaped} runs were quicker than the kill, {self.completed} undisturbed; "
            f"{self.versions} versions of tables compared"
        )


def live(root: Path, seed: int, kills: int, counts: Counts, program: WarmProgram) -> None:
    """Kill runs of one pipeline at random moments, and compare after each.

    Raises:
        AssertionError: Something that must be true is not.
    """
    choices = random.Random(seed)
    subject = Subject.made(root, seed, maxFilesPerTrigger=choices.choice(["1", "1", "3"]))
    killed = 0
    try:
        if not counts.seconds:
            subject.deliver(3)
            _complete(subject, counts, program)
        while killed < kills:
            subject.deliver(choices.randint(1, 6))
            # Kills fall anywhere in the time that a run takes here and now.
            after_s = choices.uniform(0, statistics.median(counts.seconds[-5:]))
            killed += _killed(subject, counts, program, after_s=after_s)
            if not choices.randrange(6):
                _complete(subject, counts, program)
        # At last the command itself, as people call it.
        subject.complete()
    finally:
        counts.versions += subject.versions


def _killed(subject: Subject, counts: Counts, program: WarmProgram, *, after_s: float) -> bool:
    """A run that is killed after a time, unless it ends before."""
    known, before = set(subject.events), leftovers(subject)
    began_s = time.monotonic()
    ended = program.disturbed(subject.folder.root, after_s=after_s, disturb=kill)
    took_s = time.monotonic() - began_s
    is_killed = ended.code == -signal.SIGKILL
    if is_killed:
        counts.kills[place(subject, known)] += 1
        counts.leftovers += bool(leftovers(subject) - before)
    else:
        assert (ended.code, ended.err) == (0, ""), f"{ended.code}: {ended.err}"
        counts.seconds.append(took_s)
        counts.escaped += 1
    subject.check()
    return is_killed


def _complete(subject: Subject, counts: Counts, program: WarmProgram) -> None:
    began_s = time.monotonic()
    ended = program.run(subject.folder.root)
    counts.seconds.append(time.monotonic() - began_s)
    counts.completed += 1
    subject.check_complete(ended)


def place(subject: Subject, known: set[str]) -> str:
    """Where in an update a kill fell, in the words of the page on reliability."""
    events = [event for event in subject.pending_events() if event["id"] not in known]
    newest = events[-1]["origin"]["update_id"] if events else None
    events = [event for event in events if event["origin"]["update_id"] == newest]
    states = [part["state"] for part in _details(events, "update_progress")]
    if not events:
        return "after the end" if _has_ended(subject, known) else "before its first event"
    if not states or states[-1] in {"WAITING_FOR_RESOURCES", "INITIALIZING"}:
        return "reading the pipeline"
    if states[-1] == "SETTING_UP_TABLES":
        return "setting up tables"
    if states[-1] != "RUNNING":
        return "moving its events"
    statuses = [part["status"] for part in _details(events, "flow_progress")]
    if statuses.count("COMPLETED") == FLOWS:
        return "in upkeep"
    return "in a batch" if is_in_batch(subject, events) else "between batches"


def _details(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [json.loads(event["details"]) for event in events if event["event_type"] == kind]
    return [details[kind] for details in found]


def _has_ended(subject: Subject, known: set[str]) -> bool:
    versions = list(TableVersions(subject.layout.events, ("id",)).read())
    return bool(versions) and bool({event_id for (event_id,) in versions[-1].rows} - known)


def is_in_batch(subject: Subject, events: list[dict[str, Any]]) -> bool:
    """Whether a batch is planned and not committed, or a view is being computed."""
    views = [
        part["status"]
        for event, part in zip(
            [event for event in events if event["event_type"] == "flow_progress"],
            _details(events, "flow_progress"),
            strict=True,
        )
        if event["origin"]["dataset_name"].endswith(".gold")
    ]
    if views and views[-1] == "STARTING":
        return True
    batches: dict[str, int] = {}
    for log in subject.layout.root.glob("tables/*/*/*/_delta_log"):
        for path in sorted(log.glob("?" * 20 + ".json")):
            for action in map(json.loads, path.read_text().splitlines()):
                if "txn" in action:
                    batches[action["txn"]["appId"].rpartition("/")[2]] = action["txn"]["version"]
    for offsets in subject.layout.checkpoints.glob("*/*/offsets"):
        planned = [int(path.name) for path in offsets.iterdir() if path.name.isdecimal()]
        if planned and max(planned) > batches.get(offsets.parent.name, -1):
            return True
    return False


def leftovers(subject: Subject) -> set[Path]:
    """Files of tables that no commit names, and temporary ones anywhere."""
    found = set(subject.layout.root.glob("**/.*.tmp"))
    for log in subject.layout.root.glob("tables/*/*/*/_delta_log"):
        entries = "".join(path.read_text() for path in log.glob("*.json"))
        found |= {path for path in log.parent.glob("*.parquet") if path.name not in entries}
    return found
