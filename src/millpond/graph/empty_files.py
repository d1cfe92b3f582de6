"""The setting `millpond.replaceUsing.emptyFiles`: what files without rows mean to a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from millpond.definitions import Dataset, Flow, FlowKind
from millpond.engine.protocol import Engine, QueryPlan
from millpond.errors import MillpondError
from millpond.errors.files import InvalidFileOptionError
from millpond.errors.options import InvalidOptionError
from millpond.errors.replace_using import ReplaceUsingNotKeyedByFileError
from millpond.files import METADATA_NAME
from millpond.files.options import CleanSource, ParseMode
from millpond.graph.resolved import FileKey, ResolvedFlow, StreamRead

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
        InvalidFileOptionError: Files are taken away by the read itself, and removals count; or
            versions of files count, and none but the first is read, or rows are dropped for damage.
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
    _check_read(streams[0], setting)
    return FileKey(key, follows_removals=follows_removals)


def check_used(dataset: Dataset, flows: Sequence[ResolvedFlow]) -> list[MillpondError]:
    """Where a table has the setting, and no flow that it could mean anything to."""
    replaces = any(flow.kind is FlowKind.REPLACE_USING for flow in flows)
    if replaces or _value(dataset.table_properties) is None:
        return []
    return [
        ReplaceUsingNotKeyedByFileError.from_table(
            str(dataset.name), setting=SETTING, where=dataset.location
        )
    ]


def _check_read(stream: StreamRead, setting: EmptyFiles) -> None:
    from millpond.graph.files import FileRead

    read = stream.external
    if not isinstance(read, FileRead):
        return
    if setting is EmptyFiles.REPLACE and not read.options.allow_overwrites:
        raise InvalidFileOptionError.from_setting(
            "allowOverwrites", setting=SETTING, value=setting.value, where=read.options.location
        )
    if read.options.mode is ParseMode.DROP_MALFORMED:
        raise InvalidFileOptionError.from_dropping(
            "mode", setting=SETTING, value=setting.value, where=read.options.location
        )
    cleans = read.options.clean_source is not CleanSource.OFF
    if setting is EmptyFiles.REPLACE_AND_REMOVE and cleans:
        raise InvalidFileOptionError.from_cleaning(
            "cleanSource", setting=SETTING, value=setting.value, where=read.options.location
        )


def _is_files(streams: Sequence[StreamRead]) -> bool:
    """Whether it is one stream, of files whose data have no column called `_metadata`."""
    external = streams[0].external if len(streams) == 1 else None
    return external is not None and METADATA_NAME not in map(str.lower, external.schema.names)


def _setting(flow: Flow, dataset: Dataset) -> EmptyFiles:
    of_flow = _value(flow.spark_conf)
    text = of_flow or _value(dataset.table_properties)
    if text is None:
        return EmptyFiles.KEEP
    for value in EmptyFiles:
        if value.value.lower() == text.strip().lower():
            return value
    raise InvalidOptionError.from_property(
        SETTING,
        text,
        expected="keep, replace or replaceAndRemove",
        where=flow.location if of_flow else dataset.location,
    )


def _value(settings: Mapping[str, str]) -> str | None:
    return next((v for k, v in settings.items() if k.lower() == SETTING.lower()), None)
