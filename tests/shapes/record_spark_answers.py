"""Runs the table of cases on Apache Spark and writes down what it answers.

    make spark-answers

Spark comes from the package index into an environment of its own (440 MB), below the cache folder;
it needs Java 17 or newer. Nothing but this script needs either: the tests read the answers that it
wrote to `spark_answers.json`, beside it. Record anew after a change of cases or inputs, which takes
half an hour; for a case that is new, or changed and taken out of the file, `--missing` is enough:

    python3 tests/shapes/record_spark_answers.py --missing
    python3 tests/shapes/record_spark_answers.py --only "left outer" --trace --show

A beat's rows are one file of a file source that gives one file a batch, an update is a query with
`Trigger.AvailableNow` from the same checkpoint. A case in SQL and in Python must get the same rows
in both; a case judged `batch` must get those of the query over all input, in each cut.
"""

# ruff: noqa: T201 - a program that people run
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ("pyspark==4.2.1", "pyarrow==26.0.1", "pandas==2.3.3")
INSIDE = "MILLPOND_SPARK_ENVIRONMENT"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.streaming.metricsEnabled": "false",
    # Nothing here runs long enough for the second compiler to pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "millpond-tests"
    parser.add_argument("--cache", type=Path, default=default, help="where Spark is installed")
    parser.add_argument(
        "--only", default="", help="a regular expression: record only the cases it finds"
    )
    parser.add_argument("--missing", action="store_true", help="record only cases without answer")
    parser.add_argument("--show", action="store_true", help="print the answers, write nothing")
    parser.add_argument("--trace", action="store_true", help="print what each batch gives")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        run_with_spark(options.cache)
        return
    sys.path.insert(0, str(ROOT))
    record(options)


def run_with_spark(cache: Path) -> None:
    """Start this script again in an environment that has Spark, made on first use."""
    name = "spark-" + "-".join(re.findall(r"[\w.]+", REQUIREMENTS[0])[1:])
    folder = cache / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        print(f"Installing {', '.join(REQUIREMENTS)} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        ready.touch()
    # Spark's workers must find the same interpreter, and the modules of the cases.
    environment = {**os.environ, INSIDE: "1", "PYSPARK_PYTHON": str(python), "TZ": "UTC"}
    environment["PYTHONPATH"] = str(ROOT)
    command = [str(python), __file__, *sys.argv[1:]]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


def record(options: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    from tests.shapes.answers import read_answers, write_answers
    from tests.shapes.cases import CASES
    from tests.shapes.rows import as_json
    from tests.shapes.spark_recorder import Recorder

    builder = SparkSession.builder.master("local[2]").appName("shapes")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryDirectory() as scratch:
        # Where Spark would put a warehouse, whether or not it is used.
        spark = builder.config("spark.sql.warehouse.dir", f"{scratch}/warehouse").getOrCreate()
        recorder = Recorder(spark, Path(scratch), trace=options.trace)
        known = read_answers()
        wrong = []
        for case in CASES:
            if not re.search(options.only, case.name) or (options.missing and case.name in known):
                continue
            print(case.name, file=sys.stderr, flush=True)
            try:
                known[case.name] = recorder.answers(case)
            except Exception as error:  # noqa: BLE001 - all cases are tried, then what failed is told
                wrong.append(f"{case.name}: {error}")
                print(wrong[-1], file=sys.stderr, flush=True)
                continue
            if options.show:
                print(as_json(known[case.name]))
            else:
                names = [case.name for case in CASES if case.name in known]
                write_answers(spark.version, {name: known[name] for name in names})
        spark.stop()
    sys.exit(f"{len(wrong)} cases failed" if wrong else 0)


if __name__ == "__main__":
    main()
