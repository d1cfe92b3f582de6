"""Runs cases on Apache Spark, over all of their input at once and as streams.

A module of `record_spark_answers.py`'s: it needs the environment that has Spark.
"""

# ruff: noqa: T201 - a trace is printed
from __future__ import annotations

import os
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.shapes.answers import Answer
from tests.shapes.case import CUTS, Case, StaticTable, StreamTable
from tests.shapes.inputs import tables_of
from tests.shapes.rows import as_json, in_order, plain, plain_rows

BOTH_FORMS = "few and large"


class Recorder:
    """Runs cases on one Spark session, each query in a folder of its own.

    Args:
        trace: Print what each batch gives.
    """

    def __init__(self, spark: Any, scratch: Path, *, trace: bool = False) -> None:
        self._spark = spark
        self._scratch = scratch
        self._trace = trace
        self._runs = 0

    def answers(self, case: Case) -> dict[str, Answer]:
        """The rows of a case: by cut, or under `whole` where the cut is no matter.

        Raises:
            AssertionError: They differ where they must not.
        """
        by_cut = {} if case.spark_errs else self._by_cut(case)
        if case.judged == "stream":
            return by_cut
        if case.expected is not None:
            columns = next(iter(by_cut.values()))["columns"]
            rows = in_order([plain(value) for value in row] for row in case.expected)
            whole = {"columns": columns, "rows": rows}
        else:
            whole = _agreed("whole", {form: self._whole(case, form) for form in case.forms})
        _agreed("in all cuts", {"whole": whole, **by_cut})
        return {"whole": whole}

    def _by_cut(self, case: Case) -> dict[str, Answer]:
        # Spark makes an aggregate of DISTINCT in SQL, which needs a watermark, and gives its rows
        # when that passes; distinct() in Python gives them at once.
        forms = [form for form in case.forms if form == "python" or "DISTINCT" not in case.sql]
        found = {}
        for cut in CUTS:
            # One cut shows that both forms mean the same; Spark takes half a second for a batch.
            tried = forms if cut == BOTH_FORMS else forms[-1:]
            streamed = {form: self._streamed(case, form, cut) for form in tried}
            found[cut] = _agreed(f"in the cut {cut!r}", streamed)
        return found

    def _whole(self, case: Case, form: str) -> Answer:
        """The query over all the input at once, nothing of it a stream."""
        folder = self._new_folder()
        for name, table in tables_of([case]).items():
            _write(table.rows(), folder / name, age=0)
            self._spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        text = case.text(form).replace("readStream", "read")
        text = re.sub(r"\bSTREAM\b\s*(?:\((\w+)\))?", lambda found: found[1] or "", text)
        return _answer(self._frame(case, form, text).toArrow())

    def _streamed(self, case: Case, form: str, cut: str) -> Answer:
        """The query over streams, in the batches and updates of a cut."""
        folder = self._new_folder()
        for name, table in tables_of([case]).items():
            (folder / name).mkdir()
            if isinstance(table, StaticTable):
                _write(table.rows(), folder / name, age=0)
        parts: list[pa.Table] = []
        age = 0
        for update in CUTS[cut]:
            for beats in update:
                age += 1
                for name, table in tables_of([case]).items():
                    if isinstance(table, StreamTable):
                        _write(table.rows(beats), folder / name, age=age)
            for name, table in tables_of([case]).items():
                self._name(name, table, folder / name)
            frame = self._frame(case, form, case.text(form))
            parts += self._update(frame, folder / "checkpoint")
        return _answer(pa.concat_tables(parts))

    def _update(self, frame: Any, checkpoint: Path) -> list[pa.Table]:
        """What each batch gives of an update."""
        found: dict[int, pa.Table] = {}
        query = (
            frame.writeStream.foreachBatch(
                lambda rows, batch: found.update({batch: rows.toArrow()})
            )
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .outputMode("append")
            .start()
        )
        query.awaitTermination()
        if self._trace:
            for progress in query.recentProgress:
                watermark = progress.eventTime.get("watermark", "no watermark")
                print(f"batch {progress.batchId}: {progress.numInputRows} rows, {watermark}")
                if progress.batchId in found:
                    rows = plain_rows(found[progress.batchId])
                    print(*(f"    {as_json(row)}" for row in rows), sep="\n")
            print("end of the update")
        return list(found.values())

    def _name(self, name: str, table: StreamTable | StaticTable, path: Path) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        if isinstance(table, StaticTable):
            self._spark.read.parquet(str(path)).createOrReplaceTempView(name)
            return
        reader = self._spark.readStream.schema(from_arrow_schema(table.schema))
        files = reader.option("maxFilesPerTrigger", 1).parquet(str(path))
        files.createOrReplaceTempView(name)

    def _frame(self, case: Case, form: str, text: str) -> Any:
        from pyspark.sql import functions as sf

        if form == "sql":
            return self._spark.sql(text)
        scope = {"spark": self._spark, "sf": sf, "__name__": "__main__"}
        exec(textwrap.dedent(case.setup), scope)  # noqa: S102 - the cases are ours
        return eval(text, scope)  # noqa: S307 - the cases are ours

    def _new_folder(self) -> Path:
        shutil.rmtree(self._scratch / str(self._runs), ignore_errors=True)
        self._runs += 1
        folder = self._scratch / str(self._runs)
        folder.mkdir()
        return folder


def _agreed(where: str, answers: dict[str, Answer]) -> Answer:
    first, *others = answers.values()
    if any(other != first for other in others):
        text = "\n".join(f"  {name}: {as_json(answer)}" for name, answer in answers.items())
        message = f"not the same {where}:\n{text}"
        raise AssertionError(message)
    return first


def _write(rows: pa.Table, folder: Path, *, age: int) -> None:
    """Write a file that Spark takes for newer than those of a lower age."""
    folder.mkdir(exist_ok=True)
    if rows.num_rows:
        path = folder / f"{age:04}.parquet"
        pq.write_table(rows, path)
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))


def _answer(rows: pa.Table) -> Answer:
    return {"columns": rows.column_names, "rows": plain_rows(rows)}
