"""An environment of its own for each tool, below `.build/bench`, from its locked requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".build" / "bench"
INSTALL_S = 1800.0


class UnavailableError(Exception):
    """A tool can't be had here; the text says why, in a line."""


def python_of(name: str) -> Path:
    """Return the Python that has what `requirements/bench-NAME.txt` locks; install it if need be.

    Args:
        name: Empty for the environment that this runs in.

    Raises:
        UnavailableError: It can't be installed.
    """
    if not name:
        return Path(sys.executable)
    if name == "spark":
        return _spark()
    requirements = ROOT / "requirements" / f"bench-{name}.txt"
    folder = FOLDER / name
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not requirements.exists():
        raise UnavailableError(f"there is no {requirements.relative_to(ROOT)}")
    locked = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if ready.exists() and ready.read_text() == locked:
        return python
    print(f"Installing into {folder.relative_to(ROOT)} what {requirements.name} names", flush=True)
    _must([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _must([*pip, "--require-hashes", "-r", str(requirements)])
    ready.write_text(locked)
    return python


def _spark() -> Path:
    """Spark has a target of its own, since it needs Maven's jars as well."""
    folder = ROOT / ".build" / "spark"
    if not (folder / "venv" / ".ready").exists() or not (folder / "jars" / ".ready").exists():
        raise UnavailableError("is not there: run `make spark-ready`")
    return folder / "venv" / "bin" / "python"


def _must(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"could not be installed in {INSTALL_S:.0f} s") from None
    if done.returncode:
        raise UnavailableError(f"could not be installed: {first_line(done.stderr)}")


def versions_of(name: str, packages: tuple[str, ...]) -> dict[str, str]:
    """The locked versions of some packages."""
    if not name:
        return {}
    lines = (ROOT / "requirements" / f"bench-{name}.txt").read_text().splitlines()
    pinned = dict(line.split(" ")[0].split("==") for line in lines if "==" in line.split(" ")[0])
    return {package: pinned[package] for package in packages if package in pinned}


def first_line(errors: str) -> str:
    """The line in which a program says what went wrong: pip's first, the last of a traceback."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    by_pip = [line for line in lines if line.startswith("ERROR:")]
    if by_pip:
        return by_pip[0].removeprefix("ERROR: ")
    starts = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    if starts:
        raw = errors.splitlines()
        start = max(at for at, line in enumerate(raw) if line.startswith("Traceback (most recent"))
        # What follows the stack, whose lines are indented, is the exception.
        return next(
            (li for li in raw[start + 1 :] if li.strip() and not li.startswith(" ")), lines[-1]
        )
    return lines[-1] if lines else "it said nothing"
