"""Look up the locked packages in a database of known holes, and say what was found, in words.

    python scripts/audit.py PIP_AUDIT FILE...

Exit codes: 0 nothing is known, 1 there are holes, 2 the database could not be asked about all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SUCCESS, HOLES, NOT_ASKED = range(3)
SHOWN = 5


@dataclass(frozen=True)
class Findings:
    """What the database says of one file of locked packages.

    Attributes:
        holes: A line for each.
        unknown: Packages that it could not be asked about.
        asked: How many it was asked about.
    """

    holes: tuple[str, ...]
    unknown: tuple[str, ...]
    asked: int

    @classmethod
    def of_answer(cls, answer: dict[str, Any]) -> Findings:
        holes: list[str] = []
        unknown: list[str] = []
        for package in answer["dependencies"]:
            if "skip_reason" in package:
                unknown.append(package["name"])
            holes += [
                f"{package['name']} {package['version']}: {hole['id']}, mended in "
                f"{', '.join(hole['fix_versions']) or 'no version yet'}"
                for hole in package.get("vulns", ())
            ]
        return cls(tuple(holes), tuple(unknown), len(answer["dependencies"]))


def ask(command: Sequence[str], file: str) -> Findings | str:
    """The findings about a file, or why there are none."""
    arguments = [*command, "--requirement", file, "--disable-pip", "--format", "json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    try:
        return Findings.of_answer(json.loads(done.stdout))
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"{command[0]} ended with {done.returncode}"


def told(file: str, found: Findings | str) -> tuple[int, str]:
    """The exit code and the words for what was found about a file."""
    if isinstance(found, str):
        return NOT_ASKED, f"{file}: nothing was checked, the database can't be reached: {found}"
    lines = [f"{file}: {hole}" for hole in found.holes]
    code = HOLES if lines else SUCCESS
    if found.unknown:
        code = code or NOT_ASKED
        names = ", ".join(found.unknown[:SHOWN])
        more = ", ..." if len(found.unknown) > SHOWN else ""
        lines.append(
            f"{file}: {len(found.unknown)} of {found.asked} packages were not checked, the "
            f"database can't be reached or does not have them: {names}{more}"
        )
    return code, "\n".join(lines) or f"{file}: no hole is known in {found.asked} packages"


def main(program: str, *files: str) -> int:
    code = SUCCESS
    for file in files:
        found, text = told(file, ask([program], file))
        print(text)
        # A hole outweighs what could not be asked.
        code = found if code == SUCCESS or found == HOLES else code
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
