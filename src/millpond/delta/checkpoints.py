"""Checkpoints of a table's log: reading all kinds of them, and having one written now and then.

Writing is left to delta-rs, and is never fatal: the log is complete without.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from millpond.delta.actions import RemoveFile
from millpond.delta.log import (
    LOG_FOLDER,
    NOT_AS_MUST_BE,
    Checkpoint,
    action_reason,
    entry_path,
    list_log,
    parse_actions,
)
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import FileStats
from millpond.errors.delta import CorruptLogError
from millpond.errors.disk_reason import disk_reason, engine_disk_reason
from millpond.storage import Store, scratch_folder

DEFAULT_INTERVAL = 10
# What makes a table's state. Files that ended are left out: there may be many.
_STATE = frozenset({"protocol", "metaData", "txn", "add"})
_SIDECARS = "_sidecars"
_LAST_CHECKPOINT = "_last_checkpoint"
_MAPS = {"configuration", "options", "partitionValues", "tags"}
_log = logging.getLogger(__name__)


def read_checkpoint(
    folder: Path, checkpoint: Checkpoint, store: Store, *, kinds: Collection[str] = _STATE
) -> Iterator[Mapping[str, Any]]:
    """Give the actions of a checkpoint, shaped as those of a log entry.

    Args:
        folder: The table's.
        checkpoint: One of its log.
        store: Reads it.
        kinds: Which actions to give.

    Raises:
        CorruptLogError: A file of it is missing or can't be read.
    """
    for name in checkpoint.names:
        path = folder / LOG_FOLDER / name
        for action in _read_file(path, store, {*kinds, "sidecar"}):
            sidecar = action.get("sidecar")
            if sidecar is None:
                yield action
                continue
            # Only the file's name counts: sidecars always lie in the log's own folder of them.
            sidecar_name = unquote(sidecar["path"]).rsplit("/", 1)[-1]
            yield from _read_file(folder / LOG_FOLDER / _SIDECARS / sidecar_name, store, kinds)


def read_tombstones(folder: Path, checkpoint: Checkpoint, store: Store) -> Iterator[RemoveFile]:
    """Give the files that ended and that a checkpoint still knows.

    Raises:
        CorruptLogError: A file of it is missing or can't be read.
    """
    for action in read_checkpoint(folder, checkpoint, store, kinds={"remove"}):
        if "remove" in action:
            with told_of_checkpoint(folder, checkpoint):
                removed = RemoveFile.from_json(action["remove"])
            yield removed


@contextmanager
def told_of_checkpoint(folder: Path, checkpoint: Checkpoint) -> Iterator[None]:
    """Raise `CorruptLogError` for what reading its actions raises."""
    try:
        yield
    except CorruptLogError:
        raise
    except NOT_AS_MUST_BE as error:
        path = folder / LOG_FOLDER / checkpoint.names[0]
        raise CorruptLogError.in_checkpoint(path, reason=action_reason(error)) from error


def _read_file(path: Path, store: Store, kinds: Collection[str]) -> Iterator[Mapping[str, Any]]:
    try:
        data = store.read(path)
        if path.suffix == ".json":
            yield from parse_actions(data, path=path)
        else:
            yield from _parse_parquet(data, kinds)
    except (OSError, ValueError) as error:
        # pyarrow's errors about bad files are ValueError and OSError.
        raise CorruptLogError.in_checkpoint(path, reason=str(error)) from error


def _parse_parquet(data: bytes, kinds: Collection[str]) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data))
    columns = [name for name in file.schema_arrow.names if name in kinds]
    for batch in file.iter_batches(columns=columns):
        for kind, column in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_struct(column.type):
                raise ValueError(f"the column {kind} is of type {column.type}")
            # By columns: of whole structs, it takes several times as long.
            actions = column.drop_null()
            fields = [field.name for field in actions.type]
            for values in zip(*(each.to_pylist() for each in actions.flatten()), strict=True):
                yield {kind: _plain(kind, dict(zip(fields, values, strict=True)))}


def _plain(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Turn an action read from Parquet into the shape of its JSON: maps as objects, no nulls."""
    plain = {key: item for key, item in value.items() if item is not None}
    for key in _MAPS & plain.keys():
        plain[key] = dict(plain[key])
    if kind == "add" and "stats" not in plain and "stats_parsed" in plain:
        plain["stats"] = _stats_text(plain["stats_parsed"])
    return plain


def _stats_text(parsed: Mapping[str, Any]) -> str:
    """The JSON of statistics that a checkpoint holds as columns."""
    return FileStats(
        num_records=parsed.get("numRecords"),
        min_values=_stats_json(parsed.get("minValues") or {}),
        max_values=_stats_json(parsed.get("maxValues") or {}),
        null_count=_stats_json(parsed.get("nullCount") or {}),
        tight_bounds=parsed.get("tightBounds") is not False,
    ).to_text()


def _stats_json(value: Any) -> Any:
    """Turn values read from Parquet into those of JSON; decimals stay, for a bound must hold."""
    match value:
        case dict():
            return {key: _stats_json(item) for key, item in value.items() if item is not None}
        case date():
            return value.isoformat()
        case bool() | int() | float() | Decimal():
            return value
    return str(value)


def write_checkpoint(snapshot: Snapshot, store: Store) -> bool:
    """Have delta-rs write a checkpoint of a version; say whether there is one now.

    It works beside the table, over links to the log. What it writes is not durable, and a loss of
    power would leave half a checkpoint under its full name, at which other readers fail.
    """
    log = snapshot.path.absolute() / LOG_FOLDER
    try:
        from deltalake import DeltaTable

        with scratch_folder("checkpoint") as folder:
            beside = folder / LOG_FOLDER
            _link_log(snapshot, log, beside, store)
            DeltaTable(folder.as_uri()).create_checkpoint()
            _take_over(beside, log, store)
    except (KeyboardInterrupt, SystemExit):
        raise
    # Whatever goes wrong, the commit itself stands. A panic of delta-rs is no `Exception`.
    except BaseException as error:  # noqa: BLE001 - see above
        _log.warning(
            "warning: the log of %s got no checkpoint, and takes longer to read until the next: %s",
            snapshot.path,
            engine_disk_reason(str(error)) or disk_reason(error),
        )
        return False
    return True


def _link_log(snapshot: Snapshot, log: Path, beside: Path, store: Store) -> None:
    """Link what makes the version: the newest checkpoint before it, and the entries since."""
    listing = list_log(snapshot.path, store)
    bases = [c for c in listing.checkpoints if c.version < snapshot.version]
    names: list[str] = []
    first = 0
    if bases:
        names += bases[-1].names
        names += [f"{_SIDECARS}/{name}" for name in store.list(log / _SIDECARS)]
        first = bases[-1].version + 1
    names += [
        entry_path(snapshot.path, version).name for version in range(first, snapshot.version + 1)
    ]
    (beside / _SIDECARS).mkdir(parents=True)
    (beside.parent / "log").symlink_to(log)
    for name in names:
        # Short texts lie in the link itself: on ext4, others take 40 times as long to remove.
        (beside / name).symlink_to(f"{'../' * (name.count('/') + 1)}log/{name}")


def _take_over(beside: Path, log: Path, store: Store) -> None:
    """Put what was written into the log; what says that it is there comes last."""
    written = [path for path in beside.rglob("*") if path.is_file() and not path.is_symlink()]
    for path in sorted(written, key=lambda path: path.name == _LAST_CHECKPOINT):
        place = log / path.relative_to(beside)
        if path.name == _LAST_CHECKPOINT:
            store.put(place, path.read_bytes())
        else:
            with suppress(FileExistsError):
                store.put_if_absent(place, path.read_bytes())


def is_due(snapshot: Snapshot) -> bool:
    """Whether the table's properties ask for a checkpoint at this version."""
    return snapshot.version > 0 and snapshot.version % _interval(snapshot) == 0


def is_behind(snapshot: Snapshot, checkpoints: Sequence[Checkpoint]) -> bool:
    """Whether more entries follow the newest checkpoint than the table's properties ask for."""
    newest = checkpoints[-1].version if checkpoints else 0
    return snapshot.version - newest >= _interval(snapshot)


def _interval(snapshot: Snapshot) -> int:
    text = snapshot.metadata.configuration.get("delta.checkpointInterval", "")
    return int(text) if text.isdigit() and int(text) > 0 else DEFAULT_INTERVAL
