"""Errors of reads of files: their options, where the files are, and how they are found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import did_you_mean, shortened

# By how the scheme of an object store begins, where its clients look for credentials.
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "ab": "AZURE_STORAGE_ACCOUNT_KEY, or what the client of Azure takes instead",
}


class UnknownFileOptionError(MillpondError, ValueError):
    """A read of files has an option that neither the reader nor the format has."""

    error_class = "FILES_OPTION_UNKNOWN"
    sqlstate = "42616"

    @classmethod
    def from_options(
        cls,
        options: Sequence[str],
        *,
        reader: str,
        known: Collection[str],
        where: SourceLocation | None = None,
    ) -> Self:
        near = {option: did_you_mean(option, known) for option in options}
        meant = [
            f"did you mean {name}?" if len(options) == 1 else f"did you mean {name} by {option}?"
            for option, name in near.items()
            if name
        ]
        named = ", ".join(map(repr, options))
        noun = "option" if len(options) == 1 else "options"
        hint = " ".join(meant) or "correct its name, or leave it out"
        return cls(f"A read of {reader} has no {noun} {named}.", hint=hint, where=where)


class UnsupportedFileOptionError(MillpondError, NotImplementedError):
    """A read of files has an option of Spark's or Auto Loader's that millpond does not offer."""

    error_class = "FILES_OPTION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_option(cls, option: str, *, instead: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The option {option} is not supported for a read of files.", hint=instead, where=where
        )


class InvalidFileOptionError(MillpondError, ValueError):
    """An option of a read of files has a value that it can't have, or lacks one beside it."""

    error_class = "FILES_OPTION_INVALID"
    sqlstate = "42616"

    @classmethod
    def from_value(
        cls, option: str, value: str, *, must_be: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"{value!r} is not a value for the option {option}.",
            hint=f"it must be {must_be}",
            where=where,
        )

    @classmethod
    def from_missing(
        cls, option: str, *, needed_by: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"The option {needed_by} needs {option}, which is not given.",
            hint=f"add {option}",
            where=where,
        )

    @classmethod
    def from_hint(cls, name: str, *, inside: str) -> Self:
        """Of a name in `schemaHints` that reaches into an array or a map as into a struct."""
        parts = {"array": "element", "map": "key and value"}[inside]
        return cls(
            f"schemaHints names {name!r} inside {'an' if inside == 'array' else 'a'} {inside}.",
            hint=f"what is inside is called {parts}",
        )

    @classmethod
    def from_evolution_with_schema(
        cls, option: str, *, hints: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"{option} can't be addNewColumns where the columns are given by a schema.",
            hint=f"leave {option} out, or give the types of some columns in {hints} "
            "instead of a schema",
            where=where,
        )

    @classmethod
    def from_setting(
        cls, option: str, *, setting: str, value: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"{setting} = {value} needs the option {option}: without it, each file is read once, "
            "and one that is emptied later is not looked at again.",
            hint=f"set {option} to true where the files are read, or leave the setting out",
            where=where,
        )

    @classmethod
    def from_cleaning(
        cls, option: str, *, setting: str, value: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"The option {option} takes files away once they were read, and {setting} = {value} "
            "would take their rows for removed as well.",
            hint=f"leave {option} out, or set {setting} to replace",
            where=where,
        )

    @classmethod
    def from_dropping(
        cls, option: str, *, setting: str, value: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"With the {option} DROPMALFORMED a damaged file may have no rows left, and "
            f"{setting} = {value} would take away those of its former version.",
            hint=f"set {option} to FAILFAST, with which the former rows stay where a row is "
            f"broken, or leave {setting} out",
            where=where,
        )

    @classmethod
    def from_destination_inside(
        cls, option: str, value: str, *, source: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"The option {option} names {value}, which lies in the folder that is read, {source}: "
            "files that are moved there would be read again.",
            hint="name a folder outside of it",
            where=where,
        )


class FileFormatUnknownError(MillpondError, ValueError):
    """A read of files names no format, or one that can't be read."""

    error_class = "FILES_FORMAT_UNKNOWN"
    sqlstate = "42616"

    @classmethod
    def from_format(
        cls, name: str, *, option: str, known: Iterable[str], where: SourceLocation | None = None
    ) -> Self:
        known = sorted(known)
        meant = did_you_mean(name, known)
        formats = f"the formats are {', '.join(known)}"
        return cls(
            f"Files of the format {name!r} can't be read.",
            hint=f"did you mean {meant}?" if meant else f"set {option} to another; {formats}",
            where=where,
        )

    @classmethod
    def from_missing(
        cls, *, option: str, known: Iterable[str], where: SourceLocation | None = None
    ) -> Self:
        return cls(
            "The format of the files is not given, and the path does not tell it.",
            hint=f"set {option} to one of {', '.join(sorted(known))}",
            where=where,
        )


class FilesSchemaMissingError(MillpondError, ValueError):
    """A stream of Spark's own file source is read without a schema."""

    error_class = "FILES_SCHEMA_MISSING"
    sqlstate = "42K03"

    @classmethod
    def from_format(cls, name: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"A stream of {name} files needs a schema: Spark's file source does not infer it.",
            hint=f'add .schema("..."), or read with format("cloudFiles") and the option '
            f"cloudFiles.format = {name}, which infers and keeps it; "
            "spark.sql.streaming.schemaInference = true lets Spark's own source infer it",
            where=where,
        )


class FilesPathMissingError(MillpondError, ValueError):
    """A read of files says not where they are."""

    error_class = "FILES_PATH_MISSING"
    sqlstate = "42601"

    @classmethod
    def from_reader(cls, reader: str, *, where: SourceLocation | None = None) -> Self:
        return cls(
            f"A read of {reader} names no path.",
            hint="name the folder or files, such as load('/data/suppliers')",
            where=where,
        )


class FilesNotFoundError(MillpondError, FileNotFoundError):
    """What a read of files names does not exist."""

    error_class = "FILES_NOT_FOUND"
    sqlstate = "42K03"

    @classmethod
    def from_path(cls, path: str, *, resolved: str, where: SourceLocation | None = None) -> Self:
        looked = "" if resolved == path else f" (looked for {resolved})"
        return cls(
            f"There is no file or folder {path!r}{looked}.",
            where=where,
            hint="correct the path, or make the folder before the update; a path that does not "
            "begin with / is taken from the project's folder",
        )

    @classmethod
    def from_glob(cls, path: str, *, resolved: str, where: SourceLocation | None = None) -> Self:
        looked = "" if resolved == path else f" (looked for {resolved})"
        return cls(
            f"Nothing matches {path!r}{looked}.",
            where=where,
            hint="correct the pattern; in a name that has one of *?[]{} itself, write a "
            "backslash before it",
        )


class FileLocationUnsupportedError(MillpondError, NotImplementedError):
    """Files lie in a kind of place that millpond can't reach."""

    error_class = "FILES_LOCATION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_scheme(
        cls, path: str, *, scheme: str, known: Iterable[str], where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"Files at {path} can't be reached: {scheme}: is no place that millpond reads.",
            where=where,
            hint=f"name a local path, or one that begins with {shortened(known)}",
        )

    @classmethod
    def from_parts(cls, path: str, *, form: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"{path} does not name a place that files lie in.",
            hint=f"write it as {form}",
            where=where,
        )

    @classmethod
    def from_move(cls, uri: str, *, to: str) -> Self:
        return cls(
            f"{uri} can't be moved to {to}, which lies elsewhere.",
            hint="name a folder in the same bucket or container, or on this machine for its files",
        )


class FilesUnreachableError(MillpondError, OSError):
    """A folder or an object store can't be listed, read or changed."""

    error_class = "FILES_UNREACHABLE"
    sqlstate = "58030"

    @classmethod
    def from_error(cls, location: str, *, action: str, reason: str) -> Self:
        credentials = _CREDENTIALS.get(location.partition("://")[0][:2])
        hint = "see that the user who runs the update may do that"
        if credentials is not None:
            hint = f"see that the store can be reached and that the environment has {credentials}"
        return cls(f"{location} can't be {action}: {reason}", hint=hint)


class FileChangedError(MillpondError, RuntimeError):
    """A file was changed each time that it was read."""

    error_class = "FILES_CHANGED_WHILE_READ"

    @classmethod
    def from_uri(cls, uri: str, *, times: int) -> Self:
        return cls(
            f"The file {uri} changed while it was read, {times} times in a row.",
            hint="write files under another name and rename them when they are whole; "
            "the next update reads it again",
        )


class PartitionColumnTwiceError(MillpondError, ValueError):
    """A path has two `key=value` folders of one name."""

    error_class = "FILES_PARTITION_COLUMN_TWICE"
    sqlstate = "42711"

    @classmethod
    def from_uri(cls, uri: str, *, column: str) -> Self:
        return cls(
            f"The path of {uri} gives the column {column} twice.",
            hint="rename one of the folders, or name the columns to take in partitionColumns",
        )
