"""The setting `millpond.replaceUsing.emptyFiles`: what files without rows mean to a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from millpond.definitions import Dataset, Flow
from millpond.engine.protocol import Engine, QueryPlan
from millpond.errors.files import InvalidFileOptionError
from millpond.errors.options import InvalidOptionError
from millpond.errors.replace_using import ReplaceUsingNotKeyedByFileError
from millpond.files import METADATA_NAME
from millpond.files.options import CleanSource
from millpond.graph.resolved import FileKey, StreamRead

SETTING = "millpond.replaceUsing.emptyFiles"
_KEYS = frozenset({"file_path", "file_name"})
_SEQUENCE = "file_modification_time"


class EmptyFiles(Enum):
    """What becomes of the key of a file that has no rows."""

    KEEP = "keep"  # Nothing: as the key of any other source.
    REPLACE = "replace"  # It is emptied.
    REPLACE_AND_REMOVE = "replaceAndRemove"  # It is emptied, and so is that of a file that is gone.


def file_key(
    flow: Flow,
    dataset: Dataset,
    plan: QueryPlan,
    engine: Engine,
    *,
    keys: Sequence[str],
    sequence_column: str | None,
    streams: Sequence[StreamRead],
) -> FileKey | None:
    """How a REPLACE USING flow is keyed by file, or `None` where files without rows mean nothing.

    Raises:
        InvalidOptionError: The setting is none that there is.
        InvalidFileOptionError: Files are taken away by the read itself, and removals count.
        ReplaceUsingNotKeyedByFileError: It is set for a flow that is not keyed by file.
    """
    setting = _setting(flow, dataset)
    if setting is EmptyFiles.KEEP:
        return None
    key = engine.metadata_origin(plan, keys[0]) if len(keys) == 1 else None
    is_time = (
        sequence_column is not None and engine.metadata_origin(plan, sequence_column) == _SEQUENCE
    )
    if key not in _KEYS or not is_time or not _is_files(streams):
        raise ReplaceUsingNotKeyedByFileError.from_flow(
            flow.name, setting=SETTING, where=flow.location
        )
    assert key is not None
    follows_removals = setting is EmptyFiles.REPLACE_AND_REMOVE
    if follows_removals:
        _check_not_cleaned(streams[0])
    return FileKey(key, follows_removals=follows_removals)


def _check_not_cleaned(stream: StreamRead) -> None:
    from millpond.graph.files import FileRead

    read = stream.external
    if isinstance(read, FileRead) and read.options.clean_source is not CleanSource.OFF:
        raise InvalidFileOptionError.from_cleaning(
            "cleanSource",
            setting=SETTING,
            value=EmptyFiles.REPLACE_AND_REMOVE.value,
            where=read.options.location,
        )


def _is_files(streams: Sequence[StreamRead]) -> bool:
    """Whether it is one stream, of files whose data have no column called `_metadata`."""
    external = streams[0].external if len(streams) == 1 else None
    return external is not None and METADATA_NAME not in map(str.lower, external.schema.names)


def _setting(flow: Flow, dataset: Dataset) -> EmptyFiles:
    text = _value(flow.spark_conf) or _value(dataset.table_properties)
    if text is None:
        return EmptyFiles.KEEP
    for value in EmptyFiles:
        if value.value.lower() == text.strip().lower():
            return value
    raise InvalidOptionError.from_value(
        SETTING, text, expected="keep, replace or replaceAndRemove", where=flow.location
    )


def _value(settings: Mapping[str, str]) -> str | None:
    return next((v for k, v in settings.items() if k.lower() == SETTING.lower()), None)
