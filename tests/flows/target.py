"""A target table and its batches, for the tests of flows: real Delta files, written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from millpond import flows
from millpond.definitions import Expectation, ExpectationAction
from millpond.delta import Metadata, Table
from millpond.engine.protocol import EXPECTATION_COLUMN, SEQUENCE_COLUMN, StagedBatch
from millpond.names import TableName
from millpond.storage import LocalStore
from tests.readers import READERS

Row = Mapping[str, Any]
_numbers = itertools.count()
TABLE_ID = "00000000-0000-0000-0000-000000000000"


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


@dataclass(frozen=True)
class Rule:
    """An expectation, and what it means as a Python function."""

    name: str
    meets: Callable[[Row], bool]
    action: ExpectationAction = ExpectationAction.WARN

    @property
    def expectation(self) -> Expectation:
        return Expectation(self.name, constraint=f"<{self.name}>", action=self.action)


def stage(
    folder: Path,
    rows: Iterable[Row],
    schema: StructType,
    *,
    rules: Sequence[Rule] = (),
    hidden_sequence: Callable[[Row], Any] | None = None,
    sequence_type: DataType | None = None,
    files: int = 1,
) -> StagedBatch:
    """Write rows as an engine would stage them."""
    rows = list(rows)
    fields = list(schema.fields)
    extra: list[dict[str, Any]] = [{} for _ in rows]
    for index, rule in enumerate(rules):
        name = EXPECTATION_COLUMN.format(index=index)
        fields.append(StructField(name, BooleanType(), nullable=False))
        for row, more in zip(rows, extra, strict=True):
            more[name] = rule.meets(row)
    if hidden_sequence is not None:
        fields.append(StructField(SEQUENCE_COLUMN, sequence_type))
        for row, more in zip(rows, extra, strict=True):
            more[SEQUENCE_COLUMN] = hidden_sequence(row)
    whole = [{**row, **more} for row, more in zip(rows, extra, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(rows) // files) or 1
    paths = [
        write_parquet(
            folder / f"staged-{next(_numbers)}.parquet",
            whole[start : start + size],
            StructType(fields),
        )
        for start in range(0, len(rows), size)
    ]
    return StagedBatch(
        files=tuple(paths),
        schema=schema,
        sequence_type=sequence_type if hidden_sequence is not None else None,
        expectations=tuple(rule.expectation for rule in rules),
    )


def write_parquet(path: Path, rows: Sequence[Row], schema: StructType) -> Path:
    pq.write_table(arrow_table(rows, schema), path)
    return path


def arrow_table(rows: Iterable[Row], schema: StructType) -> pa.Table:
    arrow = to_arrow_schema(schema, timezone="UTC")
    return pa.Table.from_pylist([dict(row) for row in rows], schema=arrow)


@dataclass
class Target:
    """A REPLACE USING target that batches are applied to, and whose rows other readers read."""

    folder: Path
    schema: StructType
    keys: tuple[str, ...]
    sequence: str | None
    sequence_type: DataType | None = None
    hidden_sequence: Callable[[Row], Any] | None = None
    vectors: bool = True
    partition_columns: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    next_batch: int = 0
    app_id: str = "flow/0"
    recompute: Callable[[Path], Path] | None = None
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        self.store = LocalStore()
        self.table = Table(self.folder / "table", self.store)
        self.table.create(
            Metadata(
                id=TABLE_ID,
                schema=self.schema,
                partition_columns=self.partition_columns,
                configuration={} if self.vectors else {"delta.enableDeletionVectors": "false"},
            )
        )

    @property
    def path(self) -> Path:
        return self.folder / "table"

    def restart(self) -> None:
        """Go on as another process would: nothing is remembered but what is on disk."""
        self.table = Table(self.path, self.store)

    def apply(
        self,
        rows: Iterable[Row],
        *,
        batch_id: int | None = None,
        schema: StructType | None = None,
        files: int = 1,
    ) -> flows.BatchResult:
        """Apply rows as the next batch, or again as one of a given number."""
        if batch_id is None:
            batch_id = self.next_batch
        batch = self.stage(rows, schema=schema, files=files)
        result = flows.replace_using(
            batch, self.context(batch_id), keys=self.keys, sequence=self.sequence
        )
        self.next_batch = max(self.next_batch, batch_id + 1)
        return result

    def stage(
        self, rows: Iterable[Row], *, schema: StructType | None = None, files: int = 1
    ) -> StagedBatch:
        return stage(
            self.folder / "staging",
            rows,
            schema or self.schema,
            rules=self.rules,
            hidden_sequence=self.hidden_sequence,
            sequence_type=self.sequence_type,
            files=files,
        )

    def context(self, batch_id: int) -> flows.BatchContext:
        return flows.BatchContext(
            table=self.table,
            table_id=TABLE_ID,
            store=self.store,
            flow="flow",
            target=TableName("main", "sales", "target"),
            app_id=self.app_id,
            batch_id=batch_id,
            recompute_sequence=self.recompute,
        )

    def insert_by_hand(self, rows: Iterable[Row]) -> None:
        """Append rows as a user would, with a program that is not millpond."""
        from deltalake import write_deltalake

        write_deltalake(self.path, arrow_table(rows, self.schema), mode="append")

    def optimize(self) -> None:
        """Compact the files with a program that is not millpond."""
        from deltalake import DeltaTable

        DeltaTable(self.path).optimize.compact()

    def full_refresh(self) -> None:
        """Clear the table and forget its batches, in one commit, as an update does."""
        transaction = self.table.begin()
        for file in transaction.snapshot.files.values():
            transaction.remove(file)
        transaction.commit("FULL REFRESH")
        number = int(self.app_id.rpartition("/")[2]) + 1
        self.app_id, self.next_batch = f"flow/{number}", 0

    def set_schema(self, schema: StructType) -> None:
        transaction = self.table.begin()
        transaction.set_metadata(replace(transaction.snapshot.metadata, schema=schema))
        transaction.commit("SET SCHEMA")
        self.schema = schema

    def rows(self, *, reader: str = "delta-rs") -> list[dict[str, Any]]:
        return [dict(row) for row in READERS[reader](self.path)]
