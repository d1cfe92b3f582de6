"""Finds the source files that a spec's libraries name, by Apache Spark's rules for them.

A library is one file, or a folder with `/**`, which stands for all files below it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.project import (
    LibraryPatternError,
    NoSourceFilesError,
    SourceFileTypeError,
    SourceFileUnreadableError,
)
from millpond.project.spec import Library, Spec

_BELOW = "/**"
_IGNORED_FOLDERS = frozenset({"__pycache__"})


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to load.

    Attributes:
        name: The path as messages show it: relative to the project where it lies inside.
    """

    name: str
    path: Path

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    def read(self) -> str:
        """The file's text.

        Raises:
            SourceFileUnreadableError: It can't be opened, is no regular file, or is not UTF-8.
        """
        try:
            # Reading from a pipe or a device may never end.
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise SourceFileUnreadableError.from_special(where=SourceLocation(self.name))
            data = self.path.read_bytes()
        except OSError as error:
            where = SourceLocation(self.name)
            raise SourceFileUnreadableError.from_os_error(error, where=where) from error
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise SourceFileUnreadableError.from_encoding(
                data[error.start], where=SourceLocation(self.name, line)
            ) from error


def find_source_files(spec: Spec) -> tuple[list[SourceFile], list[MillpondError]]:
    """Every source file once, in the order of their names, and every problem in finding them."""
    files: dict[Path, SourceFile] = {}
    problems: list[MillpondError] = []
    for library in spec.libraries:
        try:
            paths = _matching(library, root=spec.root)
        except LibraryPatternError as error:
            problems.append(error)
            continue
        except OSError as error:  # a name longer than any file's, or a folder nobody may look into
            problems.append(
                LibraryPatternError.from_os_error(library.pattern, error, where=library.location)
            )
            continue
        for path in paths:
            if path not in files:
                files[path] = SourceFile(display_name(path, root=spec.root), path)
    sources: list[SourceFile] = []
    for file in sorted(files.values(), key=lambda file: Path(file.name).parts):
        problem = _type_problem(file)
        if problem is None:
            sources.append(file)
        else:
            problems.append(problem)
    if not sources and not problems:
        problems.append(
            NoSourceFilesError.from_spec(
                [library.pattern for library in spec.libraries],
                where=SourceLocation(spec.path.name),
            )
        )
    return sources, problems


def display_name(path: Path, *, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _matching(library: Library, *, root: Path) -> list[Path]:
    pattern = library.pattern
    below = pattern.endswith(_BELOW)
    text = pattern.removesuffix(_BELOW) if below else pattern
    if has_magic(text):
        raise LibraryPatternError.from_glob(pattern, where=library.location)
    named = Path(os.path.normpath(root / (text or "/")))
    # Whoever writes an absolute path means it; a relative one stays in the project.
    bounds = root if not Path(text).is_absolute() and text else Path(os.path.realpath(named))
    _check_inside(named, bounds, library=library)
    if below:
        if not named.is_dir():
            raise LibraryPatternError.from_missing(pattern, kind="folder", where=library.location)
        found = list(_files_below(named))
    else:
        if named.is_dir():
            raise LibraryPatternError.from_folder(pattern, where=library.location)
        if not named.exists():
            raise LibraryPatternError.from_missing(pattern, kind="file", where=library.location)
        found = [named]
    for path in found:
        _check_inside(path, bounds, library=library)
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    """All files, without those that tools leave behind: hidden ones, and Python's caches."""
    for current, folders, files in os.walk(folder):
        folders[:] = [
            name for name in folders if not name.startswith(".") and name not in _IGNORED_FOLDERS
        ]
        for name in files:
            if not name.startswith("."):
                yield Path(current, name)


def _check_inside(path: Path, bounds: Path, *, library: Library) -> None:
    """Follow symbolic links: the file that is read must lie inside, not only its name."""
    real = Path(os.path.realpath(path))  # unlike Path.resolve, it survives a circle of links
    if not real.is_relative_to(bounds):
        raise LibraryPatternError.from_outside(library.pattern, path=real, where=library.location)


def _type_problem(file: SourceFile) -> MillpondError | None:
    where = SourceLocation(file.name)
    if file.path.suffix in {".py", ".sql"}:
        return None
    if file.path.suffix == ".ipynb":
        return SourceFileTypeError.from_notebook(where=where)
    return SourceFileTypeError.from_file(where=where)
