"""Errors of updates: the lock, selections, resets and the state that earlier updates left."""

from collections.abc import Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.disk_reason import disk_reason, disk_remedy


class UpdateInProgressError(MillpondError, RuntimeError):
    """Another update of the same pipeline storage is running."""

    error_class = "UPDATE_IN_PROGRESS"
    sqlstate = "55006"

    @classmethod
    def from_lock(cls, path: str, holder: str) -> Self:
        return cls(
            f"Another update of this pipeline is running{holder}; it holds {path}.",
            hint="wait for it to end, or stop it; the lock goes away with its process",
        )


class ConflictingSelectionError(MillpondError, ValueError):
    """The refresh options of one update contradict each other."""

    error_class = "CONFLICTING_REFRESH_OPTIONS"

    @classmethod
    def from_all(cls, option: str) -> Self:
        return cls(
            f"--full-refresh-all can't be combined with {option}.",
            hint="give one of the two",
        )

    @classmethod
    def from_dataset(cls, name: str) -> Self:
        return cls(
            f"{name} is named by both --refresh and --full-refresh.",
            hint="a full refresh includes a refresh: name it in --full-refresh alone",
        )


class ResetNotAllowedError(MillpondError, PermissionError):
    """A full refresh was asked of a table that forbids it."""

    error_class = "RESET_NOT_ALLOWED"

    @classmethod
    def from_dataset(cls, name: str) -> Self:
        return cls(
            f"{name} can't be fully refreshed: its property pipelines.reset.allowed is false.",
            hint="refresh it without --full-refresh, or set the property to true first",
        )


class StorageNotWritableError(MillpondError, OSError):
    """The storage folder can't be written."""

    error_class = "STORAGE_NOT_WRITABLE"

    @classmethod
    def from_error(cls, path: str, error: OSError) -> Self:
        return cls(
            f"The storage folder {path} can't be written: {error.strerror or error}.",
            hint="check that the folder exists, belongs to you and has space left",
        )

    @classmethod
    def from_update(cls, error: OSError) -> Self:
        return cls(
            f"The update could not read or write a file: {disk_reason(error)}. What it committed "
            "before is in the tables.",
            hint=f"{disk_remedy(error)}, then run again: each flow goes on where its table stands",
        )

    @classmethod
    def from_command(cls, error: OSError) -> Self:
        return cls(
            f"A file could not be read or written: {disk_reason(error)}.",
            hint=f"{disk_remedy(error)}, then run the command again",
        )

    @classmethod
    def from_upkeep(cls, table: str, error: BaseException) -> Self:
        return cls(
            f"Files of table {table} could not be read or written: {disk_reason(error)}. Its rows "
            "are as they were.",
            hint=f"{disk_remedy(error)}, then run millpond maintain again",
        )

    @classmethod
    def from_engine(cls, reason: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"The engine could not read or write a file: {reason}.",
            where=where,
            hint="check that the storage, and the folder for temporary files, have space left and "
            "belong to you, and how many files may be open (ulimit -n); then run again",
        )

    @classmethod
    def from_flow(cls, flow: str, error: BaseException, *, where: SourceLocation) -> Self:
        return cls(
            f"Flow {flow} could not read or write a file: {disk_reason(error)}. The batch that "
            "it was at is in its table whole or not at all.",
            where=where,
            hint=f"{disk_remedy(error)}, then run again: the flow goes on where its table stands",
        )

    @classmethod
    def from_spill(
        cls, flow: str, error: BaseException, *, folder: str, where: SourceLocation
    ) -> Self:
        return cls(
            f"Flow {flow} needs more memory than it may have, and the folder for temporary files, "
            f"{folder}, could not take the rest: {disk_reason(error)}. The batch that it was at is "
            "in its table whole or not at all.",
            where=where,
            hint="make space in that folder, or let TMPDIR name one that has more, then run again; "
            "smaller batches need less of both (maxFilesPerTrigger, maxBytesPerTrigger)",
        )


class FlowOutOfMemoryError(MillpondError, MemoryError):
    """A batch needs more memory than the process may have, and not all of it can go to disk."""

    error_class = "FLOW_OUT_OF_MEMORY"
    sqlstate = "53200"

    @classmethod
    def from_flow(
        cls, flow: str, error: BaseException, *, limit: str, folder: str, where: SourceLocation
    ) -> Self:
        return cls(
            f"Flow {flow} needs more memory than the {limit} that its batches have: "
            f"{disk_reason(error)}. The batch that it was at is in its table whole or not at all.",
            where=where,
            hint="make batches smaller: maxFilesPerTrigger or maxBytesPerTrigger of the stream, or "
            "millpond.maxFilesPerTrigger and millpond.maxBytesPerTrigger in the configuration of "
            f"the spec; leave out, or split, values that are very long; and see that {folder}, "
            "where what does not fit is kept for the time, has space left (TMPDIR)",
        )


class TableSchemaChangedError(MillpondError, ValueError):
    """A table's new columns or partitioning do not fit the rows that it holds."""

    error_class = "TABLE_SCHEMA_CHANGED"
    sqlstate = "42KDF"

    @classmethod
    def from_change(cls, name: str, *, reason: str, where: SourceLocation) -> Self:
        return cls(
            f"{name} holds rows that don't fit its new columns. {reason}",
            where=where,
            hint="CAST the column in the query to the type that the table has, or start the table "
            f"anew with --full-refresh {name}",
        )

    @classmethod
    def from_partitioning(
        cls, name: str, *, before: Sequence[str], now: Sequence[str], where: SourceLocation
    ) -> Self:
        return cls(
            f"{name} is partitioned by {', '.join(before) or 'no column'}, and is now defined as "
            f"partitioned by {', '.join(now) or 'no column'}.",
            where=where,
            hint=f"take the change back, or start the table anew with --full-refresh {name}",
        )


class TableNotFromPipelineError(MillpondError, RuntimeError):
    """A dataset has the name of a table that another program, or another pipeline, made."""

    error_class = "TABLE_NOT_FROM_PIPELINE"
    sqlstate = "42P07"

    @classmethod
    def from_table(cls, name: str, *, where: SourceLocation) -> Self:
        return cls(
            f"{name} is there already, and was not made by a pipeline: an update would change or "
            f"remove rows that are not its own.",
            where=where,
            hint="give the dataset another name; or drop the table, if its rows are not needed",
        )

    @classmethod
    def from_other_pipeline(
        cls, name: str, *, maker: str, property_name: str, where: SourceLocation
    ) -> Self:
        return cls(
            f"{name} is there already, and belongs to the pipeline {maker}.",
            where=where,
            hint="give the dataset another name or schema; if it is this pipeline that has another "
            f"name now, set the table's property {property_name} to it",
        )


class TableReplacedError(MillpondError, RuntimeError):
    """A table was of another kind, materialized view or streaming table, in earlier updates."""

    error_class = "TABLE_KIND_CHANGED"

    @classmethod
    def from_kind(cls, name: str, *, before: str, now: str, where: SourceLocation) -> Self:
        return cls(
            f"{name} was a {before.lower().replace('_', ' ')} in earlier updates and is now "
            f"defined as a {now.lower().replace('_', ' ')}.",
            where=where,
            hint=f"run with --full-refresh {name} to start it anew",
        )
