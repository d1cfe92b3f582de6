"""Runs the table of cases on Apache Spark and writes down what it answers.

    make spark-answers

Spark comes from the package index into an environment of its own (440 MB), below the cache folder;
it needs Java 17 or newer. Nothing but this script needs either: the tests read the answers that it
wrote to `spark_answers.json`, beside it. Record anew after a change of cases or inputs.

A beat's rows are one file of a file source that gives one file a batch, an update is a query with
`Trigger.AvailableNow` from the same checkpoint. A case in SQL and in Python must get the same rows
in both; a case judged `batch` must get those of the query over all input, in each cut.
"""

# ruff: noqa: T201 - a program that people run
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = Path(__file__).with_name("spark_answers.json")
REQUIREMENTS = ("pyspark==4.2.1", "pyarrow==26.0.1", "pandas==2.3.3")
BOTH_FORMS = "few and large"
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

Rows = list[list[Any]]


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

    from tests.shapes.cases import CASES

    builder = SparkSession.builder.master("local[2]").appName("shapes")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryDirectory() as scratch:
        # Where Spark would put a warehouse, whether or not it is used.
        spark = builder.config("spark.sql.warehouse.dir", f"{scratch}/warehouse").getOrCreate()
        recorder = Recorder(spark, Path(scratch), trace=options.trace)
        known = json.loads(ANSWERS.read_text())["answers"] if ANSWERS.exists() else {}
        wrong = []
        for case in CASES:
            if not re.search(options.only, case.name) or (options.missing and case.name in known):
                continue
            print(case.name, file=sys.stderr, flush=True)
            try:
                known[case.name] = recorder.answer(case)
            except Exception as error:  # noqa: BLE001 - all cases are tried, then what failed is told
                wrong.append(f"{case.name}: {str(error)[:2000]}")
                print(wrong[-1], file=sys.stderr, flush=True)
                continue
            if options.show:
                print(_json(known[case.name]))
            else:
                write(spark.version, {c.name: known[c.name] for c in CASES if c.name in known})
        spark.stop()
    sys.exit(f"{len(wrong)} cases failed" if wrong else 0)


def write(version: str, answers: dict[str, Any]) -> None:
    """One row a line, so that a change of the answers can be read."""
    lines = [f'{{"spark": {json.dumps(version)}, "answers": {{']
    for case_at, (case, cuts) in enumerate(answers.items()):
        lines.append(f"{',' * bool(case_at)}{_json(case)}: {{")
        for cut_at, (cut, answer) in enumerate(cuts.items()):
            lines.append(
                f' {"," * bool(cut_at)}{_json(cut)}: {{"columns": {_json(answer["columns"])}, "rows": ['
            )
            lines.extend(f"  {',' * bool(at)}{_json(row)}" for at, row in enumerate(answer["rows"]))
            lines.append(" ]}")
        lines.append("}")
    ANSWERS.write_text("\n".join([*lines, "}}", ""]), encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class Recorder:
    """Runs cases on one Spark session, each query in a folder of its own."""

    def __init__(self, spark: Any, scratch: Path, *, trace: bool = False) -> None:
        self.spark = spark
        self.trace = trace
        self.scratch = scratch
        self.runs = 0

    def answer(self, case: Any) -> dict[str, Any]:
        from tests.shapes.case import CUTS

        forms = [form for form in ("sql", "python") if getattr(case, form) is not None]
        # Spark makes an aggregate of DISTINCT in SQL, which needs a watermark, and gives its rows
        # when that passes; distinct() in Python gives them at once.
        streamable = [form for form in forms if form == "python" or "DISTINCT" not in case.sql]
        streamed = {}
        for cut in CUTS:
            # One cut shows that both forms mean the same; Spark takes half a second for a batch.
            tried = streamable if cut == BOTH_FORMS else streamable[-1:]
            answers = {form: self.streamed(case, form, cut) for form in tried}
            streamed[cut] = self._agreed(f"in {cut}", answers)
        if case.judged == "stream":
            return streamed
        if case.expected is not None:
            from tests.shapes.rows import in_order, plain

            columns = next(iter(streamed.values()))["columns"]
            rows = in_order([plain(value) for value in row] for row in case.expected)
            whole = {"columns": columns, "rows": rows}
        else:
            whole = self._agreed("whole", {form: self.whole(case, form) for form in forms})
        if case.spark_errs is None:
            self._agreed("the cuts and the whole", {"whole": whole, **streamed})
        return {"whole": whole}

    def _agreed(self, where: str, answers: dict[str, Any]) -> Any:
        first, *others = answers.values()
        if any(other != first for other in others):
            text = "\n".join(f"  {name}: {json.dumps(rows)}" for name, rows in answers.items())
            message = f"not the same {where}:\n{text}"
            raise AssertionError(message)
        return first

    def whole(self, case: Any, form: str) -> dict[str, Any]:
        """The query over all the input at once, nothing of it a stream."""
        from tests.shapes.rows import plain_rows

        folder = self._folder()
        for name, table in _used(case):
            self._write(
                table.rows() if hasattr(table, "beats") else _static(table), folder / name, 0
            )
            self.spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        text = getattr(case, form)
        text = _without_stream(text.replace("readStream", "read"))
        found = self._frame(case, form, text).toArrow()
        return {"columns": found.column_names, "rows": plain_rows(found)}

    def streamed(self, case: Any, form: str, cut: str) -> dict[str, Any]:
        """The query over a stream, in the batches and updates of a cut."""
        import pyarrow as pa

        from tests.shapes.case import CUTS
        from tests.shapes.rows import plain_rows

        folder = self._folder()
        parts: list[Any] = []
        tables = list(_used(case))
        age = 0
        for update in CUTS[cut]:
            for beats in update:
                age += 1
                for name, table in tables:
                    if hasattr(table, "beats"):
                        self._write(table.rows(beats), folder / name, age)
                    elif age == 1:
                        self._write(_static(table), folder / name, age)
            for name, table in tables:
                self._view(name, table, folder / name)
            self._update(self._frame(case, form, getattr(case, form)), folder, parts)
        found = pa.concat_tables(parts)
        return {"columns": found.column_names, "rows": plain_rows(found)}

    def _update(self, frame: Any, folder: Path, parts: list[Any]) -> None:
        first = len(parts)
        query = (
            frame.writeStream.foreachBatch(lambda batch, _number: parts.append(batch.toArrow()))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .outputMode("append")
            .start()
        )
        query.awaitTermination()
        if self.trace:
            from tests.shapes.rows import plain_rows

            for progress, rows in zip(query.recentProgress, parts[first:], strict=False):
                watermark = progress.eventTime.get("watermark")
                print(f"batch {progress.batchId}: {progress.numInputRows} rows, {watermark}")
                print(*(f"    {_json(row)}" for row in plain_rows(rows)), sep="\n")
            print("end of the update")

    def _view(self, name: str, table: Any, path: Path) -> None:
        if hasattr(table, "beats"):
            path.mkdir(exist_ok=True)
            from pyspark.sql.pandas.types import from_arrow_schema

            schema = from_arrow_schema(table.schema)
            reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            reader.parquet(str(path)).createOrReplaceTempView(name)
        else:
            self.spark.read.parquet(str(path)).createOrReplaceTempView(name)

    def _frame(self, case: Any, form: str, text: str) -> Any:
        if form == "sql":
            return self.spark.sql(text)
        from pyspark.sql import functions as sf

        scope = {"spark": self.spark, "sf": sf, "__name__": "__main__"}
        exec(textwrap.dedent(case.setup), scope)  # noqa: S102 - the cases are ours
        return eval(text, scope)  # noqa: S307 - the cases are ours

    def _write(self, rows: Any, folder: Path, age: int) -> None:
        """One file, which Spark takes for newer than those of a lower age."""
        import pyarrow.parquet as pq

        folder.mkdir(parents=True, exist_ok=True)
        if not rows.num_rows:
            return
        path = folder / f"{age:04}.parquet"
        pq.write_table(rows, path)
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))

    def _folder(self) -> Path:
        self.runs += 1
        folder = self.scratch / str(self.runs)
        if self.runs > 1:
            shutil.rmtree(self.scratch / str(self.runs - 1), ignore_errors=True)
        folder.mkdir()
        return folder


def _used(case: Any) -> Iterator[tuple[str, Any]]:
    """The tables that a case names."""
    from tests.shapes.inputs import STATICS, STREAMS

    text = f"{case.sql} {case.python}"
    for name, table in (STREAMS | STATICS).items():
        if re.search(rf"\b{name}\b", text):
            yield name, table


def _static(table: Any) -> Any:
    from tests.shapes.case import arrow

    return arrow(table.schema, table.rows)


def _without_stream(text: str) -> str:
    return re.sub(r"\bSTREAM\b\s*(?:\((\w+)\))?", lambda found: found[1] or "", text)


if __name__ == "__main__":
    main()
