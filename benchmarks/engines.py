"""The engines that are compared. Each is given a table and, one after another, batch files."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Apply = Callable[[int, Path], None]


@dataclass(frozen=True)
class Engine:
    """Opens a table and returns what applies a batch to it; only the latter is timed."""

    open: Callable[[Path], Apply]
    vectors: bool


def open_millpond(path: Path) -> Apply:
    from millpond.delta import Table
    from millpond.engine.protocol import StagedBatch
    from millpond.flows import BatchContext, replace_using
    from millpond.names import TableName
    from millpond.storage import LocalStore

    table, store = Table(path), LocalStore()
    metadata = table.snapshot().metadata

    def apply(number: int, batch: Path) -> None:
        context = BatchContext(
            table=table,
            table_id=metadata.id,
            store=store,
            flow="flow",
            target=TableName("main", "default", "target"),
            app_id="flow/0",
            batch_id=number,
        )
        replace_using(StagedBatch((batch,), metadata.schema), context, keys=("k",), sequence="seq")

    return apply


def open_delta_rs_merge(path: Path) -> Apply:
    """Delete the rows of the batch's keys by MERGE, then append: two commits."""
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable(path)

    def apply(number: int, batch: Path) -> None:  # noqa: ARG001 - other engines need the number
        rows = pq.read_table(batch)
        keys = rows.select(["k"]).group_by("k").aggregate([])
        table.merge(
            keys, predicate="t.k = s.k", source_alias="s", target_alias="t"
        ).when_matched_delete().execute()
        write_deltalake(table, rows, mode="append")

    return apply


def open_delta_rs_overwrite(path: Path) -> Apply:
    """Overwrite the rows that a list of the batch's keys selects: one commit."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable(path)

    def apply(number: int, batch: Path) -> None:  # noqa: ARG001 - other engines need the number
        rows = pq.read_table(batch)
        keys = ", ".join(str(key) for key in pc.unique(rows["k"]).to_pylist())
        write_deltalake(table, rows, mode="overwrite", predicate=f"k IN ({keys})")

    return apply


ENGINES = {
    "millpond": Engine(open_millpond, vectors=True),
    "millpond, copy-on-write": Engine(open_millpond, vectors=False),
    "delta-rs MERGE delete, then append": Engine(open_delta_rs_merge, vectors=False),
    "delta-rs overwrite by predicate": Engine(open_delta_rs_overwrite, vectors=False),
}


def run_batches(engine: str, table: Path, batches: list[Path]) -> Any:
    """What a worker process does: apply all batches, or read the table with delta-rs."""
    if engine == "digest":
        return read_digest(table)
    apply = ENGINES[engine].open(table)
    seconds = []
    for number, batch in enumerate(batches):
        start = time.perf_counter()
        apply(number, batch)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "peak_mb": peak_memory_mb()}


def peak_memory_mb() -> float:
    """The process's own peak: on Linux, `getrusage` would count that of its parent as well."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [li for li in status.read_text().splitlines() if li.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def read_digest(table: Path) -> list[Any]:
    import pyarrow as pa
    from benchmarks.workload import DIGEST
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("t", DeltaTable(table))
    found = pa.table(query.execute(DIGEST.format("t"))).to_pylist()
    return list(found[0].values())
