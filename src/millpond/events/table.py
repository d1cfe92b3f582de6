"""The Delta table of past events: its columns, and how events become rows and rows events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta import (
    AddFile,
    Metadata,
    Snapshot,
    Table,
    connect,
    live_rows_sql,
    quote,
    write_data_files,
)
from millpond.errors.delta import CommitConflictError, DeltaTableExistsError
from millpond.events.event import Event
from millpond.storage import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# The application that the table's commits carry; its version is the number of the last file moved.
APP_ID = "millpond.events"
MAX_TRIES = 10
# Every update adds a small file. So many of them are put together into one.
SMALL_FILES = 50
SMALL_FILE_BYTES = 1024 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FRAME = {
    "declaring_class": "VARCHAR",
    "method_name": "VARCHAR",
    "file_name": "VARCHAR",
    "line_number": "INTEGER",
}
_EXCEPTION = {
    "class_name": "VARCHAR",
    "error_class": "VARCHAR",
    "message": "VARCHAR",
    "stack": [_FRAME],
}
_ORIGIN = {
    "pipeline_id": "VARCHAR",
    "pipeline_name": "VARCHAR",
    "update_id": "VARCHAR",
    "dataset_name": "VARCHAR",
    "flow_id": "VARCHAR",
    "flow_name": "VARCHAR",
    "batch_id": "BIGINT",
}
# The columns, with DuckDB's types, in the form in which DuckDB takes a structure of JSON.
COLUMNS: dict[str, Any] = {
    "id": "VARCHAR",
    "sequence": {"data_plane_id": {"instance": "VARCHAR", "seq_no": "BIGINT"}},
    "origin": _ORIGIN,
    "timestamp": "TIMESTAMPTZ",
    "message": "VARCHAR",
    "level": "VARCHAR",
    "maturity_level": "VARCHAR",
    "error": {"fatal": "BOOLEAN", "exceptions": [_EXCEPTION]},
    "details": "VARCHAR",
    "event_type": "VARCHAR",
}


class EventTable:
    """The table in a folder, which need not exist yet."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._table = Table(folder, store)

    def last_moved(self) -> int:
        """The number of the last file of events that is in the table, 0 if there is none."""
        if not self._table.exists():
            return 0
        return self._table.snapshot().app_versions.get(APP_ID, 0)

    def add(self, events: Sequence[Event], *, moved: int) -> None:
        """Add events in one commit, with the number of the last file that they come from."""
        if not self._table.exists():
            self._create()
        snapshot = self._table.snapshot()
        files = _write(events, snapshot, self._table.store)
        for attempt in range(MAX_TRIES):
            transaction = self._table.begin()
            for file in files:
                transaction.add(file)
            transaction.set_app_version(APP_ID, moved)
            try:
                transaction.commit("WRITE", parameters={"mode": "Append"})
            except CommitConflictError:
                # A user may compact the table at any time.
                if attempt == MAX_TRIES - 1:
                    raise
            else:
                break
        self._put_small_files_together()

    def _put_small_files_together(self) -> None:
        """Keep the log quick to read however many updates there were."""
        transaction = self._table.begin()
        snapshot = transaction.snapshot
        small = [file for file in snapshot.files.values() if file.size_bytes < SMALL_FILE_BYTES]
        if len(small) < SMALL_FILES:
            return
        with connect() as connection:
            rows = live_rows_sql(connection, snapshot, small)
            for file in write_data_files(
                connection, rows, snapshot=snapshot, store=self._table.store, data_change=False
            ):
                transaction.add(file)
        for file in small:
            transaction.remove(file, data_change=False)
        # Another writer was faster: the next update sees to it.
        with suppress(CommitConflictError):
            transaction.commit("OPTIMIZE")

    def read(self) -> list[Event]:
        """All events of the table, in no order."""
        if not self._table.exists():
            return []
        snapshot = self._table.snapshot()
        picked = ", ".join(
            # As a number: Python's DuckDB needs one more package to give times with a zone.
            f"epoch_us({quote(name)})" if kind == "TIMESTAMPTZ" else quote(name)
            for name, kind in COLUMNS.items()
        )
        with connect() as connection:
            rows = live_rows_sql(
                connection, snapshot, snapshot.files.values(), columns=list(COLUMNS)
            )
            found = connection.execute(f"SELECT {picked} FROM ({rows})").fetchall()
        return [_event(dict(zip(COLUMNS, row, strict=True))) for row in found]

    def _create(self) -> None:
        metadata = Metadata(
            id=str(uuid.uuid4()),
            schema=spark_schema(),
            name="event_log",
            description="Events of this pipeline's updates.",
            # Nothing is ever deleted here, so that every reader of Delta tables can read it.
            configuration={"delta.enableDeletionVectors": "false"},
        )
        try:
            self._table.create(metadata)
        except DeltaTableExistsError:
            return  # Another process was faster.


def spark_schema() -> StructType:
    """The table's columns as Spark types."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(_spark_type(COLUMNS))


def _spark_type(kind: Any) -> Any:
    if isinstance(kind, dict):
        fields = [
            {"name": name, "type": _spark_type(part), "nullable": True, "metadata": {}}
            for name, part in kind.items()
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(kind, list):
        return {"type": "array", "elementType": _spark_type(kind[0]), "containsNull": True}
    names = {
        "VARCHAR": "string",
        "BIGINT": "long",
        "INTEGER": "integer",
        "BOOLEAN": "boolean",
        "TIMESTAMPTZ": "timestamp",
    }
    return names[kind]


def _write(events: Sequence[Event], snapshot: Snapshot, store: Store) -> list[AddFile]:
    structure = json.dumps({**COLUMNS, "timestamp": "VARCHAR"})
    columns = ", ".join(
        f"CAST(event.{quote(name)} AS TIMESTAMPTZ) AS {quote(name)}"
        if kind == "TIMESTAMPTZ"
        else f"event.{quote(name)} AS {quote(name)}"
        for name, kind in COLUMNS.items()
    )
    lines = [json.dumps(event.to_record(), ensure_ascii=False) for event in events]
    with connect() as connection:
        connection.execute(
            "CREATE TEMP TABLE new_events AS "
            "SELECT json_transform_strict(line, CAST($1 AS JSON)) AS event "
            "FROM (SELECT unnest(CAST($2 AS VARCHAR[])) AS line)",
            [structure, lines],
        )
        return write_data_files(
            connection,
            f"SELECT {columns} FROM new_events",
            snapshot=snapshot,
            store=store,
        )


def _event(row: dict[str, Any]) -> Event:
    row["timestamp"] = EPOCH + timedelta(microseconds=row["timestamp"])
    return Event.from_record(row)
