"""Which files a read takes, as they are now. Remembering which were read is left to the stream."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path

from millpond.errors.files import FilesNotFoundError, FilesUnreachableError
from millpond.files.globs import (
    alternatives,
    compiled,
    fixed_prefix,
    has_wildcard,
    is_glob,
    to_regex,
    unescaped,
)
from millpond.files.listed_file import ListedFile
from millpond.files.locations import Location, locate, parse_uri, unquote_path
from millpond.files.options import Dialect, FileOptions
from millpond.files.stores import (
    NONE_KNOWN,
    FileStore,
    FolderEntry,
    is_hidden,
    store_for,
    unlisted_reason,
)

_SECOND_NS = 10**9


def list_files(
    options: FileOptions,
    *,
    root: Path,
    first: bool = False,
    unlisted: dict[str, str] | None = None,
    known: Mapping[str, ListedFile] = NONE_KNOWN,
) -> list[ListedFile]:
    """The files there are now, in the order of modification time, then of location.

    Names that begin with `_` or `.` are left out, unless the path spells that beginning out.

    Args:
        root: What paths that do not begin with `/` start from.
        first: Whether nothing was read yet. Spark's `maxFileAge` leaves none out then.
        unlisted: Takes the URIs of folders below that can't be listed and are passed over, with
            why. Without it, one of them fails the listing.
        known: What to show of files of these URIs that are there, whatever they are by now, where
            that is faster.

    Raises:
        FilesNotFoundError: There is no such folder; in a batch, also where a glob matches nothing.
        FilesUnreachableError: A folder or store can't be listed.
    """
    found: list[ListedFile] = []
    for path in options.paths:
        location = locate(path, root=root)
        store = store_for(location, options.store_options, unlisted=unlisted, known=known)
        files = list(_files_at(location, store, options, unlisted))
        if not files and is_glob(location.path) and store.is_folder(location.path) is not None:
            # Nothing matches, but something is called just so.
            files = list(_below(location, location.path, store, options))
        if not files and is_glob(location.path) and not options.streaming:
            raise FilesNotFoundError.from_glob(
                path, resolved=location.shown, where=options.location
            )
        found += files
    if len(options.paths) > 1 or is_glob(options.paths[0]):
        # Two paths, or two alternatives of one, may lead to one file.
        found = list({file.uri: file for file in found}.values())
    return _in_order(_filtered(found, options, first=first))


def _files_at(
    location: Location, store: FileStore, options: FileOptions, unlisted: dict[str, str] | None
) -> Iterator[ListedFile]:
    if not is_glob(location.path):
        return _below(location, location.path, store, options)
    if options.discovery.strict_globber:
        return _matching(location, store, options, unlisted)
    return _matching_loosely(location, store)


def _below(
    location: Location, path: str, store: FileStore, options: FileOptions
) -> Iterator[ListedFile]:
    """The files of a folder, or the one file."""
    is_folder = store.is_folder(path)
    if is_folder:
        yield from store.walk(path, recursive=options.discovery.recursive)
    elif is_folder is False and not path.endswith("/"):
        file = store.stat(location.uri(path))
        if file is not None:
            yield file
    elif not is_glob(location.path):
        raise FilesNotFoundError.from_path(
            location.text, resolved=location.shown, where=options.location
        )


def _matching(
    location: Location, store: FileStore, options: FileOptions, unlisted: dict[str, str] | None
) -> Iterator[ListedFile]:
    """As Spark does: a part of the pattern stands for a folder, the last one for files as well."""
    for pattern in alternatives(location.path):
        parts = [part for part in pattern.split("/") if part]
        for path in _expanded("", parts, location, store, unlisted):
            wanted = f"{path}/" if pattern.endswith("/") else path
            with _passed_over(location.uri(f"{path}/"), unlisted):
                yield from _below(location, wanted, store, options)


def _expanded(
    folder: str,
    parts: list[str],
    location: Location,
    store: FileStore,
    unlisted: dict[str, str] | None,
    *,
    is_match: bool = False,
) -> Iterator[str]:
    """The paths that a pattern matches.

    Args:
        is_match: Whether the folder was found by a pattern, so that it is one of many.
    """
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if not has_wildcard(part):
        below = f"{folder}/{unescaped(part)}"
        yield from _expanded(below, rest, location, store, unlisted, is_match=is_match)
        return
    regex = re.compile(rf"{to_regex(part)}\Z", re.DOTALL)
    entries: list[FolderEntry] = []
    with _passed_over(location.uri(f"{folder}/"), unlisted if is_match else None):
        entries = store.entries(folder or "/")
    for entry in entries:
        fits = (entry.is_folder or not rest) and regex.match(entry.name) is not None
        if fits and _is_meant(entry.name, part):
            below = f"{folder}/{entry.name}"
            yield from _expanded(below, rest, location, store, unlisted, is_match=True)


@contextmanager
def _passed_over(uri: str, unlisted: dict[str, str] | None) -> Iterator[None]:
    """Take note of a folder that can't be listed, where notes are taken."""
    try:
        yield
    except FilesUnreachableError as error:
        # Objects are listed in one go: if that fails, nothing is known of any of them.
        if unlisted is None or not uri.startswith("file:"):
            raise
        unlisted[uri] = unlisted_reason(error.__cause__)


def _is_meant(name: str, part: str) -> bool:
    return part[0] in "_." or not is_hidden(name)


def _matching_loosely(location: Location, store: FileStore) -> Iterator[ListedFile]:
    """As Auto Loader does: `*` stands for `/` too, and what goes on after the pattern matches."""
    pattern = location.path.rstrip("/")
    folder = fixed_prefix(pattern)
    if store.is_folder(folder) is None:
        return
    choices = "|".join(to_regex(one, crosses_folders=True) for one in alternatives(pattern))
    regex = re.compile(choices, re.DOTALL)
    for file in store.walk(folder, recursive=True):
        if regex.match(parse_uri(file.uri).path):
            yield file


def _filtered(
    files: Iterable[ListedFile], options: FileOptions, *, first: bool
) -> Iterable[ListedFile]:
    discovery = options.discovery
    if options.clean_source_move_to is not None:
        files = _outside(files, locate(options.clean_source_move_to, root=Path("/")))
    if discovery.path_glob is not None:
        regex = compiled(discovery.path_glob)
        files = [file for file in files if regex.match(unquote_path(file.name))]
    if discovery.modified_after_ns is not None:
        after = discovery.modified_after_ns
        files = [file for file in files if file.modified_ns > after]
    if discovery.modified_before_ns is not None:
        before = discovery.modified_before_ns
        files = [file for file in files if file.modified_ns < before]
    if discovery.max_file_age_s is not None:
        files = _young(list(files), options, age_s=discovery.max_file_age_s, first=first)
    return files


def _outside(files: Iterable[ListedFile], archive: Location) -> Iterator[ListedFile]:
    """The files that do not lie where those go that were read, or these would be read for ever."""
    folders: dict[str, bool] = {}
    for file in files:
        folder = file.uri.rpartition("/")[0] + "/"
        if folder not in folders:
            folders[folder] = parse_uri(folder).is_in(archive)
        if not folders[folder]:
            yield file


def _young(
    files: list[ListedFile], options: FileOptions, *, age_s: float, first: bool
) -> list[ListedFile]:
    if options.dialect is not Dialect.SPARK:
        now_ns = time.time_ns()
    elif first or not options.streaming or not files:
        return files
    else:
        # Spark counts from the newest file, so that a stream may stand still for long.
        now_ns = max(file.modified_ns for file in files)
    oldest_ns = now_ns - int(age_s * _SECOND_NS)
    return [file for file in files if file.modified_ns >= oldest_ns]


def _in_order(files: Iterable[ListedFile]) -> list[ListedFile]:
    # Sorted by location, then by time, each step of which keeps the order of the one before:
    # faster than by pairs.
    return sorted(sorted(files, key=attrgetter("uri")), key=attrgetter("modified_ns"))
