"""A program for the tests of hostile files: one update, and how much memory it took at most.

Usage: hostile_update.py SPEC

Prints an object of JSON: `errors`, the texts of all errors, and `peak_bytes`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from millpond.runner import Project, run_update


def main() -> None:
    result = run_update(Project.open(Path(sys.argv[1])))
    errors = [*result.problems, *(flow.error for flow in result.flows if flow.error)]
    json.dump({"errors": [str(error) for error in errors], "peak_bytes": peak_bytes()}, sys.stdout)


def peak_bytes() -> int:
    """The most that was in memory at once; what `getrusage` says counts the parent's as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main()
