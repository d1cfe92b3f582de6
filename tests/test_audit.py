"""What `make audit` says, and that it never takes silence for safety."""

import json
import runpy
import stat
import sys
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "audit.py"))
SAFE = {"name": "click", "version": "8.5.1", "vulns": []}
HOLE = {
    "name": "urllib3",
    "version": "2.0.0",
    "vulns": [{"id": "PYSEC-2023-192", "fix_versions": ["2.0.6"]}],
}
UNMENDED = {"name": "py", "version": "1.11.0", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}
UNKNOWN = {"name": "ruff", "skip_reason": "Dependency not found"}


@pytest.fixture
def audit(tmp_path, capsys):
    """Runs the script with a program that answers as given."""

    def run(*packages, out=None, err=""):
        answer = json.dumps({"dependencies": packages, "fixes": []}) if out is None else out
        program = tmp_path / "pip-audit"
        program.write_text(
            f"#!{sys.executable}\nimport sys\nprint({answer!r})\nsys.exit({err!r} or 0)\n",
            encoding="utf-8",
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        code = SCRIPT["main"](str(program), "lock.txt")
        return code, capsys.readouterr().out

    return run


def test_no_hole_is_success(audit):
    assert audit(SAFE) == (0, "lock.txt: no hole is known in 1 packages\n")


def test_holes_are_told_with_the_version_that_mends_them(audit):
    code, out = audit(SAFE, HOLE, UNMENDED, UNKNOWN)
    assert code == 1
    assert "lock.txt: urllib3 2.0.0: PYSEC-2023-192, mended in 2.0.6\n" in out
    assert "lock.txt: py 1.11.0: PYSEC-1, mended in no version yet\n" in out
    assert "1 of 4 packages were not checked" in out


def test_packages_that_could_not_be_looked_up_are_no_success(audit):
    code, out = audit(UNKNOWN, SAFE)
    assert code == 2
    assert "1 of 2 packages were not checked, the database can't be reached" in out


def test_a_database_that_can_not_be_reached_is_no_success(audit):
    code, out = audit(out="", err="Failed to resolve")
    assert code == 2
    assert out == (
        "lock.txt: nothing was checked, the database can't be reached: Failed to resolve\n"
    )
