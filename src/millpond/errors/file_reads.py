"""Errors of reads of files: columns that can't be told, and files that can't be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation

# A message names so many files at most.
FILES_SHOWN = 10
# Of one file, so many columns.
NAMES_SHOWN = 20


def listed(reasons: Mapping[str, str]) -> str:
    """Files with why they can't be read, a line each; of many, the first."""
    shown = [f"  {uri}: {reason}" for uri, reason in sorted(reasons.items())[:FILES_SHOWN]]
    more = len(reasons) - len(shown)
    return "\n".join([*shown, f"  and {more} more"] if more > 0 else shown)


def counted(files: Mapping[str, object]) -> str:
    """How many files there are."""
    return f"{len(files)} file{'s' if len(files) > 1 else ''}"


class ColumnsNotInferredError(MillpondError, ValueError):
    """There are no files from which columns could be inferred."""

    error_class = "FILE_COLUMNS_NOT_INFERRED"
    sqlstate = "42KD9"

    @classmethod
    def from_read(cls, paths: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"There are no files at {paths} yet, so their columns can't be told.",
            where=where,
            hint="give the columns: the option schema of read_files, or schema() in Python; or run "
            "again when there is a file",
        )


class TooManyColumnsError(MillpondError, ValueError):
    """Files have more columns than are inferred, or more are asked for than can be read."""

    error_class = "FILE_COLUMNS_TOO_MANY"
    sqlstate = "54011"

    @classmethod
    def from_count(cls, count: int, *, limit: int) -> Self:
        return cls(
            f"Its columns, with those of the other files, are {count}; more than {limit} are not "
            "inferred.",
            hint="give the columns that are wanted: the option schema of read_files, or schema() "
            "in Python; the others can be rescued",
        )

    @classmethod
    def from_files(cls, uris: Sequence[str], count: int, *, limit: int) -> Self:
        files = uris[0] if len(uris) == 1 else f"{uris[0]} and {len(uris) - 1} more files"
        error = cls.from_count(count, limit=limit)
        error.what = f"The columns of {files} are {count}; more than {limit} are not inferred."
        return error

    @classmethod
    def from_asked(cls, count: int, *, limit: int) -> Self:
        return cls(
            f"A read of CSV files asks for {count} columns; it can give {limit} at most.",
            hint="ask for fewer, and let the others be rescued with rescuedDataColumn; or read "
            "the same files by several flows, with some of the columns each",
        )


class KeptColumnsUnreadableError(MillpondError, OSError):
    """What an earlier update found out about the columns of files can't be read."""

    error_class = "FILE_COLUMNS_UNREADABLE"
    sqlstate = "58030"

    @classmethod
    def from_file(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The columns of files that are kept in {path} can't be read: {reason}.",
            hint="remove the file: the columns are inferred again",
        )


class FilesUnreadableError(MillpondError, OSError):
    """Some files of a batch read can't be read."""

    error_class = "FILES_UNREADABLE"
    sqlstate = "58030"

    @classmethod
    def from_files(
        cls,
        source: str,
        *,
        reasons: Mapping[str, str],
        where: SourceLocation | None,
        is_passable: bool = True,
    ) -> Self:
        """Build the error.

        Args:
            is_passable: Whether the option `ignoreCorruptFiles` would pass any of them over.
        """
        way_out = ", or set the option ignoreCorruptFiles to pass damaged ones over"
        return cls(
            f"{counted(reasons)} of {source} can't be read.\n{listed(reasons)}",
            where=where,
            hint=f"see to the causes{way_out if is_passable else ''}",
        )


class FilesNotReadError(MillpondError, OSError):
    """Some files of a stream can't be read; all others were."""

    error_class = "FILES_NOT_READ"
    sqlstate = "58030"

    @classmethod
    def from_files(
        cls, source: str, *, flow: str, reasons: Mapping[str, str], is_passable: bool
    ) -> Self:
        """Build the error.

        Args:
            is_passable: Whether the option `ignoreCorruptFiles` would pass any of them over.
        """
        way_out = "; or set the option ignoreCorruptFiles to pass damaged ones over for good"
        return cls(
            f"Flow {flow} could not read {counted(reasons)} of {source}; all others were read.\n"
            f"{listed(reasons)}",
            hint="see to the causes and run again: they are tried anew in each update"
            f"{way_out if is_passable else ''}",
        )


class NewColumnsError(MillpondError, ValueError):
    """Files of a stream have columns that the stream does not have."""

    error_class = "FILES_HAVE_NEW_COLUMNS"
    sqlstate = "KD003"

    @classmethod
    def from_source(
        cls,
        source: str,
        *,
        flow: str,
        columns: Mapping[str, Sequence[str]],
        added: bool,
        given: bool,
        unreadable: Mapping[str, str],
    ) -> Self:
        """Build the error.

        Args:
            columns: The new ones of each file, by its URI, with their types.
            added: Whether the next update has the columns.
            given: Whether the user gave the stream's columns.
            unreadable: Other files that were not read, with why.
        """
        files = listed({uri: _few(names) for uri, names in columns.items()})
        others = ""
        if unreadable:
            others = f"\n{counted(unreadable)} could not be read:\n{listed(unreadable)}"
        if added:
            return cls(
                f"Flow {flow} met {counted(columns)} of {source} with new columns; all others were "
                f"read. The next update adds the columns and reads the rest.\n{files}{others}",
                hint="run again; or mend the files. To keep such values in one column instead, set "
                "schemaEvolutionMode to rescue",
            )
        hint = (
            "add the columns to the schema, mend the files, or set schemaEvolutionMode to rescue, "
            "which keeps such values in one column"
            if given
            else "add the columns to schemaHints, mend the files, or set schemaEvolutionMode to "
            "addNewColumns or rescue"
        )
        return cls(
            f"Flow {flow} met {counted(columns)} of {source} with columns that it does not have; "
            f"all others were read.\n{files}{others}",
            hint=hint,
        )


def other_header(*, has_schema: bool) -> str:
    """Why a file whose header names none of the stream's columns is not read."""
    return (
        "it has none of the stream's columns: it may lack its header, or have another separator or "
        "format. Mend it; or, if it is right, "
        f"{'add its columns to the schema' if has_schema else 'name its columns in schemaHints'}"
    )


def refused_column(column: str, *, reason: str) -> str:
    """Why a file can't be read that has a column which the queries can't take."""
    return (
        f"its new column {column} can't be added ({reason.rstrip('.')}): rename the one in the "
        "query, declare it in the table if that declares columns, take the column out of the "
        "file, give its type in schemaHints, or set "
        "schemaEvolutionMode to rescue"
    )


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
