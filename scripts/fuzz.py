"""Feeds hostile text to the SQL front end or the spec reader, guided by the lines it reaches.

`scripts/fuzz.py sql --seconds 60` mutates the SQL of the examples and pages, `spec` their specs. An
input that reaches a new step from line to line is kept and mutated further. What fails is written
to a file that `scripts/fuzz.py sql --replay FILE` reads again. Exit code 1: something failed.

The rule that is checked: success, or errors of millpond's own that name a place, within 5 s of
processor time and 1 GB of memory, and no file opened outside the project's folder.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from millpond.errors import MillpondError
from millpond.project import load_spec
from millpond.project.source_files import find_source_files
from millpond.sql import parse_file
from millpond.storage.layout import Layout

ROOT = Path(__file__).parents[1]
BOUND_S = 5
# Above what the process takes at its start.
BOUND_MEMORY_BYTES = 1_000_000_000
LONGEST_MESSAGE = 3000
LONGEST_INPUT = 100_000
# Small inputs are tried at a hundred times the speed; a large one now and then looks for slowness.
LONGEST_SMALL_INPUT = 400
LARGE_ONE_IN = 200
WATCHED = tuple(
    str(ROOT / "src" / "millpond" / part)
    for part in ("sql", "project", "names.py", "redaction.py", "options.py", "errors")
)
CONFIGURATION = {"v": "1", "quote": "'", "open": "/*", "end": ";", "self": "${self}", "odd": "\0"}
PIECES = [
    *("'", '"', "`", "/*", "*/", "/*+", "--", "\\", ";", "(", ")", "<", ">", ",", ".", ":", "="),
    *("${v}", "${self}", "${quote}", "${open}", "${end}", ":v", ":odd", "SET v = ${v}${v};\n"),
    *("IDENTIFIER('../../x')", "`../../x`", "'\\ud800'", "'\\0'", "9" * 400, "x" * 300),
    *("&a ", "*a", "<<: *a\n", "!!python/object:os.system ", "!!str ", "? ", "- ", "[", "]", "{"),
    *("}", "|\n", '"\\ud800"', '"\\UFFFFFFFF"', "%YAML 9.9\n---\n", "../", "/**", "file:", "~"),
    *("\0", "\t", "\r", "\n", "\u2028", "\u202e", "\u200b", "\ufeff", "\U0010ffff", "\x85"),
]


class BrokenRuleError(Exception):
    """What came out is no error of millpond's own, or came too late."""


@dataclass
class Corpus:
    """Inputs that each reached something new, and the steps from line to line they reached."""

    inputs: list[bytes]
    steps: set[tuple[str, int, int]] = field(default_factory=set)
    lines: set[tuple[str, int]] = field(default_factory=set)


def seeds(part: str) -> list[bytes]:
    """Real texts to begin with."""
    fence, pattern = ("sql", "*.sql") if part == "sql" else ("yaml", "spark-pipeline.yml")
    texts = [path.read_text() for path in sorted(ROOT.glob(f"examples/**/{pattern}"))]
    for page in sorted(ROOT.glob("docs/*.md")):
        texts += re.findall(rf"```{fence}\n(.*?)```", page.read_text(), re.DOTALL)
    if part == "sql":
        texts += [f"{one.strip()};" for text in texts for one in text.split(";") if one.strip()]
    return list(dict.fromkeys(text.encode() for text in texts))


def check_sql(data: bytes) -> None:
    """Read the bytes as a source file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
    pipeline, problems = parse_file(
        text, file="a.sql", catalog="c", schema="s", configuration=CONFIGURATION
    )
    root = Path("/storage")
    layout = Layout(root)
    places = [layout.table(dataset.name) for dataset in pipeline.datasets]
    places += [layout.checkpoint(flow.name, "1") for flow in pipeline.flows]
    for place in places:
        if not Path(os.path.normpath(place)).is_relative_to(root) or ".." in place.parts:
            raise BrokenRuleError(f"{place} is outside the storage")
    check_problems(problems)


def check_spec(data: bytes) -> None:
    """Read the bytes as a spec in a folder of its own, and look for its source files."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "spark-pipeline.yml")
        path.write_bytes(data)
        with opened_only_below(folder):
            try:
                _, problems = find_source_files(load_spec(path))
            except MillpondError as error:
                problems = [error]
        check_problems(problems)


def check_problems(problems: list[MillpondError]) -> None:
    for problem in problems:
        if problem.where is None or not problem.error_class:
            raise BrokenRuleError(f"no place: {problem!r}")
        if len(str(problem)) > LONGEST_MESSAGE:
            raise BrokenRuleError(f"a message of {len(str(problem))} characters")


ALLOWED: list[str] = []


def on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to open a file elsewhere while `opened_only_below` holds."""
    if event == "open" and ALLOWED and isinstance(arguments[0], str | bytes):
        name = os.fsdecode(arguments[0])
        if not name.startswith((ALLOWED[0], sys.prefix, sys.base_prefix, str(ROOT / "src"))):
            raise BrokenRuleError(f"it opens {name}")


@contextmanager
def opened_only_below(folder: str) -> Iterator[None]:
    ALLOWED.append(os.path.realpath(folder))
    try:
        yield
    finally:
        ALLOWED.clear()


@cache
def is_watched(code: CodeType) -> bool:
    return code.co_filename.startswith(WATCHED)


def run(check: Callable[[bytes], None], data: bytes) -> tuple[set[Any], str | None]:
    """The steps from line to line that the input takes, and why it failed, if it did."""
    steps: set[tuple[str, int, int]] = set()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not is_watched(frame.f_code):
            return None
        if event == "line":
            steps.add((frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return trace

    started = time.process_time()
    failure = None
    sys.settrace(trace)
    try:
        check(data)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        failure = "".join(traceback.format_exception(error))
    finally:
        sys.settrace(None)
    if failure is None and time.process_time() - started > BOUND_S:
        # Tracing is slow: without it the time counts.
        started = time.process_time()
        check(data)
        seconds = time.process_time() - started
        failure = f"it took {seconds:.1f} s" if seconds > BOUND_S else None
    return steps, failure


def mutated(corpus: Corpus, chance: random.Random) -> bytes:
    """One of the inputs with some pieces cut out, moved, repeated, changed or put in."""
    large = chance.randrange(LARGE_ONE_IN) == 0
    data = bytearray(chance.choice(corpus.inputs))
    if not large:
        start = chance.randint(0, max(0, len(data) - LONGEST_SMALL_INPUT))
        del data[:start], data[LONGEST_SMALL_INPUT:]
    for _ in range(1 << chance.randrange(5)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.randint(0, 1 << chance.randrange(8)))
        other = chance.choice(corpus.inputs)
        other_start = chance.randint(0, len(other))
        put = (
            b"",
            chance.choice(PIECES).encode(),
            chance.choice(PIECES).encode() * (1 << chance.randrange(10 if large else 4)),
            bytes(data[start:end]) * chance.randint(2, 50 if large else 3),
            other[other_start : other_start + (1 << chance.randrange(8))],
            chance.randbytes(chance.randint(1, 4)),
        )
        data[start:end] = chance.choice(put)
    return bytes(data[: LONGEST_INPUT if large else 2 * LONGEST_SMALL_INPUT])


def kind_of(failure: str) -> str:
    """The last place in a traceback: failures that share it are one."""
    places = [line for line in failure.splitlines() if line.startswith("  File ")]
    return places[-1] if places else failure.partition(" of ")[0][:20]


def keep_failure(part: str, data: bytes, failure: str, *, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"failed: {path}\n{failure}", flush=True)


def fuzz(part: str, *, seconds: float, seed: int, folder: Path) -> int:
    """Try inputs for a time; the number of different failures."""
    check = check_sql if part == "sql" else check_spec
    corpus = Corpus(seeds(part))
    chance = random.Random(seed)  # noqa: S311 - mutations keep no secret
    queue = list(corpus.inputs)
    failures: set[str] = set()
    tried, started = 0, time.monotonic()
    print(f"{part}: {len(queue)} real inputs to begin with, --seed {seed}", flush=True)
    while time.monotonic() - started < seconds:
        data = queue.pop() if queue else mutated(corpus, chance)
        steps, failure = run(check, data)
        tried += 1
        if failure is not None and kind_of(failure) not in failures:
            failures.add(kind_of(failure))
            keep_failure(part, data, failure, folder=folder)
        if not steps <= corpus.steps:
            corpus.steps |= steps
            corpus.lines |= {(file, line) for file, _, line in steps}
            corpus.inputs.append(data)
    print(
        f"{part}: {tried:,} inputs tried in {time.monotonic() - started:.0f} s, "
        f"{len(corpus.lines):,} lines and {len(corpus.steps):,} steps between lines reached, "
        f"{len(corpus.inputs):,} inputs kept, {len(failures)} different failures"
    )
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("sql", "spec"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--failures", type=Path, default=ROOT / ".build" / "fuzz")
    parser.add_argument("--replay", type=Path, help="check one input instead, as it was kept")
    arguments = parser.parse_args()
    if sys.platform == "linux":  # elsewhere the limit has no effect
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + BOUND_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.addaudithook(on_audit)
    if arguments.replay:
        check = check_sql if arguments.part == "sql" else check_spec
        _, failure = run(check, arguments.replay.read_bytes())
        print(failure or "it does not fail")
        return int(failure is not None)
    found = fuzz(
        arguments.part,
        seconds=arguments.seconds,
        seed=arguments.seed,
        folder=arguments.failures,
    )
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
