"""What can be wrong with a project folder: its spec, its source files, how these load."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short, did_you_mean

# The spec.


class SpecNotFoundError(MillpondError, FileNotFoundError):
    """There is no pipeline spec where one was looked for."""

    error_class = "SPEC_NOT_FOUND"

    @classmethod
    def from_search(cls, start: Path, names: Sequence[str]) -> Self:
        return cls(
            f"There is no {' or '.join(names)} in {start} or in a folder above it.",
            hint="go to a project folder, name the file with --spec, or start a project: "
            "millpond init NAME",
        )

    @classmethod
    def from_path(cls, path: Path) -> Self:
        return cls(f"The spec {path} does not exist, or is no file.", hint="check the path")


class SeveralSpecsError(MillpondError, ValueError):
    """A folder holds more than one pipeline spec."""

    error_class = "SEVERAL_SPECS"

    @classmethod
    def from_folder(cls, folder: Path, names: Sequence[str]) -> Self:
        return cls(
            f"{folder} holds both {' and '.join(names)}.",
            hint="remove one of them, or name the one to use with --spec",
        )


class SpecUnreadableError(MillpondError, ValueError):
    """The spec is not YAML that can be read."""

    error_class = "SPEC_UNREADABLE"

    @classmethod
    def from_yaml(cls, reason: str, *, where: SourceLocation, detail: str | None) -> Self:
        return cls(
            f"The spec is not valid YAML: {reason}.",
            where=where,
            detail=detail,
            hint="check indentation, colons and quotes near that place",
        )

    @classmethod
    def from_size(cls, *, limit: str, where: SourceLocation) -> Self:
        return cls(
            f"The spec is too large to be one: it holds more than {limit}.",
            where=where,
            hint="check that this is a pipeline spec; an alias (*name) counts as what it repeats",
        )

    @classmethod
    def from_os_error(cls, error: OSError, *, where: SourceLocation) -> Self:
        return cls(f"The spec can't be read: {error.strerror}.", where=where)


class SpecFieldError(MillpondError, ValueError):
    """A field of the spec is unknown, missing, repeated, or of the wrong type."""

    error_class = "SPEC_FIELD"

    @classmethod
    def from_unknown(
        cls, field: str, *, known: Iterable[str], place: str, where: SourceLocation
    ) -> Self:
        fields = list(known)
        near = did_you_mean(field, fields)
        return cls(
            f"{place} has no field {cut_short(field)!r}.",
            where=where,
            hint=f"did you mean {near}?" if near else "the fields are " + ", ".join(fields),
        )

    @classmethod
    def from_missing(cls, field: str, *, example: str, where: SourceLocation) -> Self:
        return cls(
            f"The spec lacks the field {field!r}.",
            where=where,
            hint=f"add a line such as {field}: {example}",
        )

    @classmethod
    def from_repeated(cls, field: str, *, first: int, where: SourceLocation) -> Self:
        return cls(
            f"The key {cut_short(field)!r} stands twice in one block of the spec, first in line "
            f"{first}.",
            where=where,
            hint="keep one of them",
        )

    @classmethod
    def from_type(
        cls, field: str, *, expected: str, actual: str, where: SourceLocation, hint: str | None
    ) -> Self:
        return cls(f"{field} in the spec must be {expected}, not {actual}.", where=where, hint=hint)

    @classmethod
    def from_value(
        cls, field: str, *, reason: str, where: SourceLocation, hint: str | None = None
    ) -> Self:
        return cls(f"{field} in the spec {reason}.", where=where, hint=hint)


class StorageNotSupportedError(MillpondError, NotImplementedError):
    """The spec's storage is not on a local file system."""

    error_class = "STORAGE_NOT_SUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_uri(cls, storage: str, *, scheme: str, where: SourceLocation) -> Self:
        return cls(
            f"The storage {cut_short(storage)!r} is on {cut_short(scheme)}://, and only local "
            "folders are supported so far.",
            where=where,
            hint="use a path relative to the spec's folder, such as pipeline-storage, or "
            "file:///an/absolute/path",
        )


# Source files.


class LibraryPatternError(MillpondError, ValueError):
    """An entry of the spec's `libraries` is not one that names source files."""

    error_class = "LIBRARY_PATTERN"

    @classmethod
    def from_glob(cls, pattern: str, *, where: SourceLocation) -> Self:
        return cls(
            f"The library {cut_short(pattern)!r} is no pattern that a spec may use.",
            where=where,
            hint="name one file, or all files below a folder: transformations/**",
        )

    @classmethod
    def from_folder(cls, pattern: str, *, where: SourceLocation) -> Self:
        return cls(
            f"The library {cut_short(pattern)!r} is a folder, which stands for no file.",
            where=where,
            hint=f"for all files below it write {pattern.rstrip('/')}/**",
        )

    @classmethod
    def from_missing(cls, pattern: str, *, kind: str, where: SourceLocation) -> Self:
        return cls(
            f"The library {cut_short(pattern)!r} names a {kind} that does not exist.",
            where=where,
            hint="paths are relative to the folder of the spec",
        )

    @classmethod
    def from_os_error(cls, pattern: str, error: OSError, *, where: SourceLocation) -> Self:
        return cls(
            f"The library {cut_short(pattern)!r} can't be read: {error.strerror or error}.",
            where=where,
            hint="check the path, and that you may read it",
        )

    @classmethod
    def from_outside(cls, pattern: str, *, path: Path, where: SourceLocation) -> Self:
        return cls(
            f"The library {cut_short(pattern)!r} leads out of the project folder, to {path}.",
            where=where,
            hint="move the file into the project, or name it by its absolute path",
        )


class NoSourceFilesError(MillpondError, ValueError):
    """The spec's libraries name no source file at all."""

    error_class = "NO_SOURCE_FILES"

    @classmethod
    def from_spec(cls, patterns: Sequence[str], *, where: SourceLocation) -> Self:
        named = "holds no source file" if patterns else "names no source files"
        shown = ", ".join(patterns)
        return cls(
            f"The pipeline has no definitions: libraries {f'({shown}) ' if shown else ''}{named}.",
            where=where,
            hint="put .sql and .py files under transformations, and add to the spec: "
            "libraries: [{glob: {include: transformations/**}}]",
        )


class SourceFileTypeError(MillpondError, ValueError):
    """A file among the sources is neither Python nor SQL."""

    error_class = "SOURCE_FILE_TYPE"

    @classmethod
    def from_file(cls, *, where: SourceLocation) -> Self:
        return cls(
            f"{where.file} is among the source files, but is neither a .py nor a .sql file.",
            where=where,
            hint="move it out of the folder that libraries names",
        )

    @classmethod
    def from_notebook(cls, *, where: SourceLocation) -> Self:
        return cls(
            f"{where.file} is a notebook, and notebooks are not read as source files.",
            where=where,
            hint="export it as a .py file, or move it out of the folder that libraries names",
        )


class SourceFileUnreadableError(MillpondError, ValueError):
    """A source file can't be opened, or is not UTF-8 text."""

    error_class = "SOURCE_FILE_UNREADABLE"

    @classmethod
    def from_os_error(cls, error: OSError, *, where: SourceLocation) -> Self:
        return cls(
            f"{where.file} can't be read: {error.strerror or error}.",
            where=where,
            hint="check that the file is there and that you may read it",
        )

    @classmethod
    def from_special(cls, *, where: SourceLocation) -> Self:
        return cls(
            f"{where.file} can't be read: it is a pipe, a device or a socket, not a file.",
            where=where,
            hint="save the text in a file",
        )

    @classmethod
    def from_encoding(cls, byte: int, *, where: SourceLocation) -> Self:
        return cls(
            f"{where.file} is not UTF-8 text: it holds the byte 0x{byte:02X}.",
            where=where,
            hint="save the file as UTF-8",
        )


class PythonSyntaxError(MillpondError, SyntaxError):
    """Python can't read a source file, or a module that one imports."""

    error_class = "PYTHON_SYNTAX_ERROR"
    sqlstate = "42601"

    @classmethod
    def from_reason(cls, reason: str, *, where: SourceLocation, detail: str | None) -> Self:
        return cls(f"{where.file} is not valid Python: {reason}.", where=where, detail=detail)


class SourceFileFailedError(MillpondError, RuntimeError):
    """A source file raised an exception while it was run."""

    error_class = "SOURCE_FILE_FAILED"

    @classmethod
    def from_exception(
        cls, error: BaseException, *, where: SourceLocation, detail: str | None
    ) -> Self:
        message = str(error).strip()
        shown = message if len(message) <= 1000 else message[:997] + "..."
        name = type(error).__name__
        return cls(
            f"{where.file} raised {name}{f': {shown}' if shown else ''}",
            where=where,
            detail=detail,
            hint=_import_hint(error) if isinstance(error, ModuleNotFoundError) else None,
        )

    @classmethod
    def from_exit(cls, *, where: SourceLocation, detail: str | None) -> Self:
        return cls(
            f"{where.file} ended the program (sys.exit) while it was run.",
            where=where,
            detail=detail,
            hint="a source file only defines datasets and flows; to leave some out, use an if",
        )


# What the files define together.


class DuplicateDatasetError(MillpondError, ValueError):
    """Two definitions have the same name."""

    error_class = "DUPLICATE_DATASET"
    sqlstate = "42710"

    @classmethod
    def from_name(cls, name: str, *, first: SourceLocation, where: SourceLocation) -> Self:
        return cls(
            f"{name} is defined twice, first at {first}.",
            where=where,
            hint="rename or remove one; letter case makes no difference. More queries into one "
            "table are flows: @dp.append_flow, CREATE FLOW",
        )


class DuplicateFlowError(MillpondError, ValueError):
    """Two flows have the same name."""

    error_class = "DUPLICATE_FLOW"
    sqlstate = "42710"

    @classmethod
    def from_name(cls, name: str, *, first: SourceLocation, where: SourceLocation) -> Self:
        return cls(
            f"There are two flows named {name}, the first at {first}.",
            where=where,
            hint="rename one; a table's own query is a flow of the table's name",
        )


# Starting a project.


class ProjectNameError(MillpondError, ValueError):
    """A project can't have that name."""

    error_class = "PROJECT_NAME"

    @classmethod
    def from_name(cls, name: str) -> Self:
        return cls(
            f"{name!r} can't be the name of a project.",
            hint="use letters, digits, - and _; the folder is made in the current one",
        )


class ProjectExistsError(MillpondError, FileExistsError):
    """There is something of the project's name already."""

    error_class = "PROJECT_EXISTS"

    @classmethod
    def from_path(cls, path: Path) -> Self:
        return cls(f"{path} exists already.", hint="choose another name, or remove it")


class ProjectNotCreatedError(MillpondError, OSError):
    """The project's folder can't be made or filled."""

    error_class = "PROJECT_NOT_CREATED"

    @classmethod
    def from_os_error(cls, path: Path, error: OSError) -> Self:
        return cls(
            f"{path} can't be created: {error.strerror or error}.",
            hint="check that the folder above it exists and that you may write there",
        )


def _import_hint(error: ModuleNotFoundError) -> str:
    top = (error.name or "").partition(".")[0]
    if top in {"dlt", "pyspark"}:
        return (
            "while a pipeline is loaded, dlt and pyspark.pipelines are millpond's own module, "
            "which has no parts of its own"
        )
    return (
        "install the package in the environment that runs millpond, or put the module next to "
        "the source file or the spec"
    )
