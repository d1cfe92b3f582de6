"""Checkpoints of a table's log: reading all kinds of them, and having one written now and then.

Writing is left to delta-rs, and is never fatal: the log is complete without.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from millpond.delta.log import LOG_FOLDER, Checkpoint, parse_actions
from millpond.delta.snapshot import Snapshot
from millpond.errors.delta import CorruptLogError
from millpond.storage import Store

DEFAULT_INTERVAL = 10
_ACTIONS = ("protocol", "metaData", "txn", "add", "sidecar")
_MAPS = {"configuration", "options", "partitionValues", "tags"}
_log = logging.getLogger(__name__)


def read_checkpoint(
    folder: Path, checkpoint: Checkpoint, store: Store
) -> Iterator[Mapping[str, Any]]:
    """Give the actions of a checkpoint, shaped as those of a log entry.

    Raises:
        CorruptLogError: A file of it is missing or can't be read.
    """
    for name in checkpoint.names:
        path = folder / LOG_FOLDER / name
        for action in _read_file(path, store):
            sidecar = action.get("sidecar")
            if sidecar is None:
                yield action
                continue
            # Only the file's name counts: sidecars always lie in the log's own folder of them.
            sidecar_name = unquote(sidecar["path"]).rsplit("/", 1)[-1]
            yield from _read_file(folder / LOG_FOLDER / "_sidecars" / sidecar_name, store)


def _read_file(path: Path, store: Store) -> Iterator[Mapping[str, Any]]:
    try:
        data = store.read(path)
        if path.suffix == ".json":
            yield from parse_actions(data, path=path)
        else:
            yield from _parse_parquet(data)
    except (OSError, ValueError) as error:
        # pyarrow's errors about bad files are ValueError and OSError.
        raise CorruptLogError.in_checkpoint(path, reason=str(error)) from error


def _parse_parquet(data: bytes) -> Iterator[Mapping[str, Any]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data))
    columns = [name for name in _ACTIONS if name in file.schema_arrow.names]
    for batch in file.iter_batches(columns=columns):
        for row in batch.to_pylist():
            for kind, value in row.items():
                if value is not None:
                    yield {kind: _plain(kind, value)}


def _plain(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Turn an action read from Parquet into the shape of its JSON: maps as objects, no nulls."""
    plain = {key: item for key, item in value.items() if item is not None}
    for key in _MAPS & plain.keys():
        plain[key] = dict(plain[key])
    if kind == "add" and "stats" not in plain and "stats_parsed" in plain:
        plain["stats"] = json.dumps(_without_nulls(plain["stats_parsed"]), default=_stats_value)
    return plain


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


def _stats_value(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)  # a float would round, and a bound must hold
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)


def write_checkpoint(snapshot: Snapshot) -> bool:
    """Have delta-rs write a checkpoint of the table's newest version; say whether it did."""
    try:
        from deltalake import DeltaTable

        DeltaTable(snapshot.path.absolute().as_uri()).create_checkpoint()
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the commit itself stands
        _log.warning("no checkpoint of %s was written: %s", snapshot.path, error)
        return False
    return True


def is_due(snapshot: Snapshot) -> bool:
    """Whether the table's properties ask for a checkpoint at this version."""
    text = snapshot.metadata.configuration.get("delta.checkpointInterval", "")
    interval = int(text) if text.isdigit() and int(text) > 0 else DEFAULT_INTERVAL
    return snapshot.version > 0 and snapshot.version % interval == 0
