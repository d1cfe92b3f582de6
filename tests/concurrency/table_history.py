"""What each version of a table must hold: its log replayed by the oracle, foreign commits included.

The log orders all commits, whoever made them. Of each it is known by a mark in its commit info what
it does to the rows; nothing is taken from the table's files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.concurrency.shared_target import Change, Rows, multiset

# A comparison that is always true, by which the commit of a statement is known.
MARK = re.compile(r"'op-(\d+)' = 'op-(\d+)'")
# They only move rows, or say something of the table.
WITHOUT_ROWS = {"OPTIMIZE", "VACUUM START", "VACUUM END", "CREATE TABLE", "SET UP TABLE"}


@dataclass
class TableHistory:
    """The commits of one table.

    Attributes:
        states: By version, the rows as a multiset.
        batches: By version, the number of the batch that it applies.
        foreign: How many commits of others there are, by operation.
    """

    states: list[Counter[Any]] = field(default_factory=list)
    batches: dict[int, int] = field(default_factory=dict)
    foreign: Counter[str] = field(default_factory=Counter)

    @classmethod
    def replayed(
        cls, table: Path, *, applied: Callable[[int], Change], foreign: Mapping[int, Change]
    ) -> TableHistory:
        """Replay a log.

        Args:
            table: The table's folder.
            applied: What the batch of a number does.
            foreign: What others' commits do, by mark.
        """
        history = cls()
        rows: Rows = []
        for path in sorted((table / "_delta_log").glob("?" * 20 + ".json")):
            version = len(history.states)
            assert path.name == f"{version:020}.json", f"version {version} is missing"
            info = _commit_info(path)
            operation, parameters = info["operation"], info.get("operationParameters", {})
            is_own = info["engineInfo"].startswith("millpond/")
            if not is_own:
                history.foreign[f"{info['engineInfo'].split(':')[0]} {operation}"] += 1
            if operation not in WITHOUT_ROWS:
                if is_own:
                    number = int(parameters["batchId"])
                    history.batches[version] = number
                    rows = applied(number)(rows)
                else:
                    rows = foreign[_mark(info)](rows)
            history.states.append(multiset(rows))
        return history

    def check_batches(self, count: int) -> None:
        """Every batch is in exactly once, in order."""
        assert list(self.batches.values()) == list(range(count))


def _commit_info(path: Path) -> dict[str, Any]:
    for line in path.read_text().splitlines():
        action = json.loads(line)
        if "commitInfo" in action:
            info: dict[str, Any] = action["commitInfo"]
            return info
    raise AssertionError(f"{path} has no commit info")


def _mark(info: Mapping[str, Any]) -> int:
    for key in ("mark", "userMetadata"):
        if key in info:
            return int(info[key])
    found = MARK.search(json.dumps(info["operationParameters"]))
    assert found, info
    return int(found[1])
