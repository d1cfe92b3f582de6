"""A program that forks itself into `millpond run`, with all that has to be imported in memory.

Half of a short run is spent on imports, in which nothing can be lost; so many more kills fall into
the other half. Reads the pipeline's folder from each line of its input. For each it writes the id
of the process, and the code with which that ended once it has. What a run says is in `out` and
`err` of the folder.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
from pathlib import Path

import deltalake
import duckdb
import pyspark.sql.connect.session

import millpond
from millpond.cli.main import main

# Those that are imported only where they are needed. None of them starts a thread, which a fork
# would lose.
LAZY = (deltalake, duckdb, pyspark.sql.connect.session)
for found in pkgutil.walk_packages(millpond.__path__, "millpond."):
    importlib.import_module(found.name)


def run(root: Path) -> None:
    """Become a run in a session of its own."""
    os.setsid()
    # Whoever runs the tests may ignore some, and so would all that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for number, name in enumerate(("out", "err"), start=1):
        os.dup2(os.open(root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    code = 1
    try:
        main(["run", "--spec", str(root / "spark-pipeline.yml")])
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        run(Path(line.rstrip("\n")))
    print(pid, flush=True)  # noqa: T201 - the answer
    status = os.waitpid(pid, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer
