"""A program from its start to its exit: two tables of a small file, by a pipeline of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from benchmarks.peer import THREADS, Peer
from benchmarks.peers.spark import SCHEMA
from benchmarks.reading import DatabaseReader, DeltaReader, Reader

# Both programs read the same file.
DEFINITIONS = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.table
def landed():
    return spark.readStream.format("parquet").schema({schema!r}).load({landing!r})


@dp.materialized_view
def target():
    return spark.read.table("landed")
"""


class WholeRun(Peer):
    """Runs a pipeline of a streaming table and a materialized view over it, in an empty folder.

    Attributes:
        command: The words after the program's name.
    """

    suites = ("S",)
    command: ClassVar[tuple[str, ...]] = ("run",)

    @property
    def program(self) -> Path:
        """Where the program is, in the environment that this runs in."""
        raise NotImplementedError

    def spec(self, folder: Path) -> str:
        """The text of the pipeline's spec in a folder."""
        raise NotImplementedError

    def prepare(self, files: list[Path]) -> None:  # noqa: ARG002 - the table is empty at first
        """Run it once over no file, so that Python has compiled what it imports."""
        self._run(self.folder / "first")
        shutil.rmtree(self.folder / "first")

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - there is one
        self._run(self.folder / "pipeline", batch)

    def _run(self, folder: Path, *files: Path) -> None:
        (folder / "landing").mkdir(parents=True)
        for file in files:
            (folder / "landing" / file.name).symlink_to(file)
        (folder / "transformations").mkdir()
        text = DEFINITIONS.format(schema=SCHEMA, landing=str(folder / "landing"))
        (folder / "transformations" / "tables.py").write_text(text)
        (folder / "spark-pipeline.yml").write_text(self.spec(folder))
        # Its Python is that of the environment, and keeps what it compiles.
        places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": places}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(
            [str(self.program), *self.command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def vacuum(self) -> None:
        """Nothing is old."""


class Millpond(WholeRun):
    label = "`millpond run`"
    how = "The program, from the start of its process to the exit."

    @property
    def program(self) -> Path:
        return Path(sys.executable).with_name("millpond")

    def spec(self, folder: Path) -> str:  # noqa: ARG002 - it lies where the program looks
        return (
            "name: bench\nstorage: storage\ncatalog: main\nschema: bench\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )

    def reader(self) -> Reader:
        return DeltaReader(self.folder / "pipeline/storage/tables/main/bench/target")


class SparkPipelines(WholeRun):
    label = "`spark-pipelines run`"
    how = "Apache Spark's own program, with a Spark that it starts; its tables are Parquet files."
    environment = "spark"
    reading_environment = ""
    command = ("run", "--spec", "spark-pipeline.yml")

    @property
    def program(self) -> Path:
        import pyspark

        return Path(pyspark.__file__).parent / "bin" / "spark-pipelines"

    def spec(self, folder: Path) -> str:
        return (
            f"name: bench\nstorage: file://{folder}/storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
            f"configuration:\n  spark.sql.shuffle.partitions: '{THREADS}'\n"
        )

    def reader(self) -> Reader:
        files = self.folder / "pipeline/spark-warehouse/target/*.parquet"
        database = self.folder / "empty.duckdb"
        return DatabaseReader(database, f"read_parquet('{files}')", threads=THREADS)
