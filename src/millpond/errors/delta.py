"""Errors about Delta tables: their log, their features, their schema and their files."""

from pathlib import Path
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation

DECIMAL_HINT = "a DECIMAL has 1 to 38 digits, and not more behind the point than there are"


class DeltaTableNotFoundError(MillpondError, FileNotFoundError):
    """There is no Delta table in a folder."""

    error_class = "DELTA_TABLE_NOT_FOUND"
    sqlstate = "42P01"

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(
            f"There is no Delta table at {str(path)!r}.",
            hint="check the path; a Delta table's folder holds a folder _delta_log with entries",
        )


class DeltaTableExistsError(MillpondError, FileExistsError):
    """A table was to be created where there is one."""

    error_class = "DELTA_TABLE_EXISTS"
    sqlstate = "42P07"

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(
            f"There already is a Delta table at {str(path)!r}.",
            hint="another writer may have created it at the same moment; run again to use it",
        )


class CommitConflictError(MillpondError, RuntimeError):
    """Another writer committed first; nothing of this transaction was applied."""

    error_class = "DELTA_COMMIT_CONFLICT"
    sqlstate = "2D521"

    @classmethod
    def lost_race(cls, path: Path, *, version: int) -> Self:
        return cls(
            f"Another writer committed version {version} of the table at {str(path)!r} first.",
            hint="nothing was changed; run again, and keep other writers off the table meanwhile",
        )

    @classmethod
    def table_replaced(cls, path: Path, *, version: int) -> Self:
        return cls(
            f"The table at {str(path)!r} was removed or replaced after its version {version} "
            "was read.",
            hint="nothing was changed; run again to work on the table that is there now",
        )

    @classmethod
    def another_table(cls, path: Path) -> Self:
        return cls(
            f"Another table was put in the place of the one at {str(path)!r} during the update.",
            hint="run again to work on the table that is there now",
        )


class UnsupportedTableFeatureError(MillpondError, NotImplementedError):
    """A table uses a feature of the Delta protocol that millpond can't honour."""

    error_class = "UNSUPPORTED_TABLE_FEATURE"
    sqlstate = "56038"

    @classmethod
    def for_reading(cls, path: Path, features: list[str]) -> Self:
        return cls(
            f"The table at {str(path)!r} can't be read: it uses {_listed(features)}.",
            hint="drop the feature from the table with the tool that turned it on",
        )

    @classmethod
    def for_writing(cls, path: Path, features: list[str]) -> Self:
        return cls(
            f"The table at {str(path)!r} can't be written to: it uses {_listed(features)}.",
            hint="drop the feature from the table with the tool that turned it on, or write to "
            "another table",
        )

    @classmethod
    def for_making(cls, path: Path, features: list[str]) -> Self:
        return cls(
            f"The definition of the table at {str(path)!r} asks for {', '.join(features)}, which "
            "millpond can't do.",
            hint="leave the property out, or whatever else turns it on",
        )


class CorruptLogError(MillpondError, ValueError):
    """A file of a table's log can't be read, so the table's state is not known."""

    error_class = "DELTA_LOG_CORRUPT"
    sqlstate = "XX000"

    @classmethod
    def in_entry(cls, path: Path, *, line: int | None = None, reason: str) -> Self:
        place = "" if line is None else f"line {line}: "
        return cls(
            f"The log entry {str(path)!r} can't be read: {place}{reason}.",
            hint="another writer may have died while writing it. If it is the newest entry and no "
            "writer is at work, move it out of _delta_log and run again; otherwise restore it "
            "from a backup",
        )

    @classmethod
    def in_checkpoint(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The checkpoint {str(path)!r} can't be read: {reason}.",
            hint="if all log entries since version 0 or an older checkpoint are there, move the "
            "file and _last_checkpoint out of _delta_log and run again; otherwise restore it from "
            "a backup",
        )

    @classmethod
    def incomplete(cls, folder: Path, *, reason: str) -> Self:
        return cls(
            f"The log in {str(folder)!r} is not complete: {reason}.",
            hint="restore the missing files from a backup; or, where a pipeline can compute the "
            "table anew from its sources, remove the table's folder and run again",
        )


class CommitsExpiredError(MillpondError, LookupError):
    """Old log entries were cleaned up while something still had to read them."""

    error_class = "DELTA_COMMITS_EXPIRED"
    sqlstate = "42815"

    @classmethod
    def missing(cls, path: Path, *, version: int, earliest: int) -> Self:
        return cls(
            f"Version {version} of the table at {str(path)!r} is no longer in its log, whose "
            f"oldest entry is {earliest}.",
            hint="a reader fell behind the table's log retention: do a full refresh of what reads "
            "the table, and raise delta.logRetentionDuration on it",
        )


class AppendOnlyTableError(MillpondError, PermissionError):
    """Rows were to be removed from a table that only takes more."""

    error_class = "DELTA_APPEND_ONLY_TABLE"
    sqlstate = "42809"

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(
            f"The table at {str(path)!r} is append-only, so no row of it may be removed.",
            hint="take the table property delta.appendOnly off, or use an append flow",
        )


class UnsupportedDeltaTypeError(MillpondError, TypeError):
    """A column has a type that a Delta table can't store."""

    error_class = "DELTA_UNSUPPORTED_TYPE"
    sqlstate = "0AKDC"

    @classmethod
    def of_column(cls, column: str, type_name: str) -> Self:
        return cls(
            f"Column {column!r} has the type {type_name}, which millpond can't store in a table.",
            hint="cast the column to another type in the query",
        )

    @classmethod
    def of_decimal(cls, column: str, type_name: str) -> Self:
        return cls(
            f"Column {column!r} has the type {type_name}, which millpond can't store in a table.",
            hint=DECIMAL_HINT,
        )


class InvalidTableSchemaError(MillpondError, ValueError):
    """A schema that no Delta table may have."""

    error_class = "DELTA_INVALID_SCHEMA"
    sqlstate = "42000"

    @classmethod
    def repeated_column(cls, column: str) -> Self:
        return cls(
            f"The column {column!r} occurs twice; names that differ only in case are the same.",
            hint="rename or drop one of the two in the query",
        )

    @classmethod
    def nameless_column(cls, inside: str) -> Self:
        what = f"A field inside the column {inside!r}" if inside else "A column"
        return cls(f"{what} has an empty name.", hint="give it a name in the query: AS name")

    @classmethod
    def reserved_name(cls, column: str) -> Self:
        return cls(
            f"No column of a table may be named {column!r}: millpond needs the name itself.",
            hint="rename the column in the query",
        )

    @classmethod
    def no_column(cls) -> Self:
        return cls(
            "A table needs at least one column that is no partition column.",
            hint="add a column to the query, or partition by fewer columns",
        )

    @classmethod
    def missing_partition_column(cls, column: str) -> Self:
        return cls(
            f"The partition column {column!r} is not among the table's columns.",
            hint="add the column to the query, or partition by another one",
        )

    @classmethod
    def partition_column_type(cls, column: str, type_name: str) -> Self:
        return cls(
            f"The table can't be partitioned by {column!r}: it has the type {type_name}.",
            hint="partition by a column of a plain type, such as a date or a string",
        )


class SchemaChangeNotAllowedError(MillpondError, TypeError):
    """New rows have columns that the table can't take as it is."""

    error_class = "DELTA_SCHEMA_CHANGE_NOT_ALLOWED"
    sqlstate = "42KDF"

    @classmethod
    def type_change(cls, column: str, *, current: str, new: str) -> Self:
        return cls(
            f"Column {column!r} is {current} in the table and {new} in the query, and the one "
            "can't be widened to the other.",
            hint="cast the column in the query, or do a full refresh of the table",
        )

    @classmethod
    def partitioning(cls, *, current: tuple[str, ...], new: tuple[str, ...]) -> Self:
        before, now = (", ".join(columns) or "nothing" for columns in (current, new))
        return cls(
            f"The table is partitioned by {before}, and would be partitioned by {now}.",
            hint="do a full refresh of the table to change its partitioning",
        )


class NotNullViolatedError(MillpondError, ValueError):
    """Rows hold nulls in a column that the table declares as not null."""

    error_class = "DELTA_NOT_NULL_VIOLATED"
    sqlstate = "23502"

    @classmethod
    def in_column(cls, column: str, *, rows: int | None = None) -> Self:
        """The error for so many rows; `None` where it is not known how many."""
        counted = "Rows" if rows is None else f"{rows} row{'s' if rows != 1 else ''}"
        return cls(
            f"{counted} to be written hold a null in column {column!r}, which is declared as not "
            "null.",
            hint="drop such rows in the query or by an expectation, or declare the column nullable",
        )


class CorruptDeletionVectorError(MillpondError, ValueError):
    """A deletion vector can't be read, so it is not known which rows are deleted."""

    error_class = "DELTA_DELETION_VECTOR_CORRUPT"
    sqlstate = "XX000"

    @classmethod
    def of_file(cls, path: str, *, reason: str) -> Self:
        return cls(
            f"The deletion vector of the data file {path!r} can't be read: {reason}.",
            hint="restore the table's folder from a backup, or go back to an older version of it",
        )


class DataFileMissingError(MillpondError, FileNotFoundError):
    """A file that a table's log names is not there."""

    error_class = "DELTA_DATA_FILE_MISSING"
    sqlstate = "42K03"

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(
            f"The file {str(path)!r} belongs to a Delta table but is not there.",
            hint="a vacuum with too short a retention, or a person, may have removed it: restore "
            "it from a backup, or do a full refresh of the table",
        )


_RESTORE_FILE = (
    "restore the file from a backup; or, where a pipeline can compute the table anew, do a full "
    "refresh of it"
)


class DataFileUnreadableError(MillpondError, ValueError):
    """A data file that a table's log names is there, and is damaged."""

    error_class = "DELTA_DATA_FILE_UNREADABLE"
    sqlstate = "22000"

    @classmethod
    def of(cls, table: Path, *, reason: str) -> Self:
        return cls(
            f"A data file of the table at {str(table)!r} can't be read: {reason.rstrip('.')}.",
            hint=_RESTORE_FILE,
        )

    @classmethod
    def from_engine(cls, reason: str, *, where: SourceLocation | None) -> Self:
        return cls(
            "A data file of a table that the query reads can't be read: "
            f"{reason.partition(chr(10))[0].rstrip('.')}.",
            where=where,
            hint=_RESTORE_FILE,
        )


def _listed(features: list[str]) -> str:
    noun = "the table feature" if len(features) == 1 else "the table features"
    return f"{noun} {', '.join(features)}"
