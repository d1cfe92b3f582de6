"""millpond: the flow alone, as its runner calls it, and whole updates of a pipeline."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.peer import DeltaPeer

SOURCE_FILE_BYTES = 128_000_000
SPEC = """\
name: bench
storage: storage
catalog: main
schema: bench
libraries:
  - glob:
      include: transformations/**
"""
STATEMENT = """\
CREATE STREAMING TABLE target {constraint}
FLOW REPLACE USING (k) SEQUENCE BY seq BY NAME
SELECT * FROM STREAM(source);
"""


class Flow(DeltaPeer):
    label = "millpond, flow"
    how = (
        "The function that a REPLACE USING flow calls for each batch, with the upkeep of its "
        "table; one commit, by deletion vectors. No query runs before it."
    )
    vacuum_environment = ""
    vectors = True
    knows_expectations = True

    def open(self) -> None:
        from millpond.delta import Table
        from millpond.maintenance import RowOrder, Upkeep
        from millpond.storage import LocalStore

        self._table, self._store = Table(self.table), LocalStore()
        self._metadata = self._table.snapshot().metadata
        self._upkeep = Upkeep(self._table, RowOrder(keys=("k",)), self.folder / "cleaned.json")

    def stage(self, number: int, batch: Path) -> Path:
        """Say of each row whether it meets the expectation, as the engine would have."""
        import duckdb

        if not self.expectation:
            return batch
        staged = self.folder / f"staged-{number}.parquet"
        if not staged.exists():
            with duckdb.connect() as connection:
                connection.execute(
                    f"COPY (SELECT *, {self.expectation} AS __millpond_expectation_0 "
                    f"FROM read_parquet('{batch}')) TO '{staged}' (FORMAT parquet)"
                )
        return staged

    def apply(self, number: int, batch: Path) -> None:
        from millpond.engine.protocol import StagedBatch
        from millpond.flows import BatchContext, replace_using
        from millpond.names import TableName

        context = BatchContext(
            table=self._table,
            table_id=self._metadata.id,
            store=self._store,
            flow="flow",
            target=TableName("main", "default", "target"),
            app_id="flow/0",
            batch_id=number,
        )
        staged = StagedBatch((batch,), self._metadata.schema, expectations=self._expectations())
        replace_using(staged, context, keys=("k",), sequence="seq")
        self._upkeep.after_batch()

    def _expectations(self):  # noqa: ANN202 - millpond is imported late, as all tools are
        from millpond.definitions import Expectation, ExpectationAction

        if not self.expectation:
            return ()
        return (Expectation("valid", self.expectation, ExpectationAction.DROP),)

    def vacuum(self) -> None:
        _vacuum(self.table)


class CopyOnWrite(Flow):
    label = "millpond, flow, copy-on-write"
    how = "The same with `delta.enableDeletionVectors = false`: files are written anew."
    vectors = False


class Pipeline(DeltaPeer):
    """Batches are commits of a source table; each is an update of its own."""

    label = "millpond, whole update"
    how = (
        "A pipeline whose flow streams a Delta table: one update for each commit of the source, "
        "with planning, Sail, the checkpoint, the event log and upkeep."
    )
    vacuum_environment = ""
    vectors = True
    knows_expectations = True

    @property
    def table(self) -> Path:
        return self.folder / "storage/tables/main/bench/target"

    @property
    def source(self) -> Path:
        return self.folder / "storage/tables/main/bench/source"

    def prepare(self, files: list[Path]) -> None:
        """Load the target by an update, from a table of the given files."""
        (self.folder / "transformations").mkdir(parents=True)
        (self.folder / "spark-pipeline.yml").write_text(SPEC)
        self._define("")
        self._append(files)
        if files:
            self.open()
            self.apply(0, self.source)
        if self.expectation:
            self._define(f"(CONSTRAINT valid EXPECT ({self.expectation}) ON VIOLATION DROP ROW)")

    def _define(self, constraint: str) -> None:
        text = STATEMENT.format(constraint=constraint)
        (self.folder / "transformations/target.sql").write_text(text)

    def open(self) -> None:
        from millpond.runner import Project, run_update

        self._project = Project.open(self.folder / "spark-pipeline.yml")
        if self.table.exists():
            self._check(run_update(self._project))

    def stage(self, number: int, batch: Path) -> Path:
        """Commit the batch to the source, once: a stream of a table can't send it again."""
        if self._is_new(number):
            self._append([batch])
        return self.source

    def _is_new(self, number: int) -> bool:
        marker = self.folder / f"sent-{number}"
        if marker.exists():
            return False
        marker.touch()
        return True

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - an update finds what is new
        from millpond.runner import run_update

        self._check(run_update(self._project))

    def _append(self, files: list[Path]) -> None:
        from benchmarks.workload import schema

        from millpond.delta import Metadata, Table, connect, write_data_files

        table = Table(self.source)
        if not table.exists():
            table.create(Metadata("11111111-0000-4000-8000-000000000000", schema()))
        transaction = table.begin()
        with connect(temporary_folder=self.folder / "spill") as connection:
            for file in files:
                for added in write_data_files(
                    connection,
                    f"SELECT * FROM read_parquet('{file}')",
                    snapshot=transaction.snapshot,
                    store=table.store,
                    max_file_bytes=SOURCE_FILE_BYTES,
                ):
                    transaction.add(added)
        transaction.commit("WRITE")

    def _check(self, result) -> None:  # noqa: ANN001 - see above
        if result.problems or any(flow.error for flow in result.flows):
            raise RuntimeError(str(result))

    def vacuum(self) -> None:
        _vacuum(self.table)


def _vacuum(path: Path) -> None:
    from millpond.delta import Table
    from millpond.maintenance.vacuum import vacuum

    table = Table(path)
    # As if long after: nothing is kept for readers of older versions.
    vacuum(table, table.snapshot(), retention_ms=0, now_ms=int((time.time() + 10**7) * 1000))
