"""What lists files and brings them here, wherever they lie: one class a kind of place."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat as stat_modes
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from millpond.errors.files import (
    FileChangedError,
    FileLocationUnsupportedError,
    FilesUnreachableError,
)
from millpond.files.listed_file import ListedFile, time_in_range
from millpond.files.locations import Location, locate, parse_uri, quote_path

FETCH_TRIES = 3
_NO_OPTIONS: Mapping[str, str] = {}  # `store_options` of a read that has none
NONE_KNOWN: Mapping[str, ListedFile] = {}
_Identity = tuple[int, int]  # of a folder: device and inode


@dataclass(frozen=True)
class FolderEntry:
    """What a folder has directly in it."""

    name: str
    is_folder: bool


class FileStore(Protocol):
    """A kind of place in which files lie. Paths are absolute and not quoted."""

    def is_folder(self, path: str) -> bool | None:
        """Whether there is a folder; `None` where there is nothing at all."""
        ...

    def entries(self, folder: str) -> list[FolderEntry]:
        """What a folder has in it, hidden names too, in the order of names.

        What is neither a file nor a folder, or a link that leads nowhere, is left out.
        """
        ...

    def walk(self, folder: str, *, recursive: bool) -> Iterator[ListedFile]:
        """The files in a folder that are not hidden, in no order.

        Args:
            recursive: Whether those in folders below are among them; those in `key=value` always.
        """
        ...

    def stat(self, uri: str) -> ListedFile | None:
        """The version of a file that there is now, or `None` if there is none."""
        ...

    def fetch(self, uri: str, target: Path) -> ListedFile:
        """Write a file to a local one, in little memory, and say which version it is, whole.

        Raises:
            FileNotFoundError: It is gone.
            FileChangedError: It does not stand still.
        """
        ...

    def remove(self, uri: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def move(self, uri: str, to: str) -> None:
        """Give a file another URI in the same store; one that is not there is no error."""
        ...


def store_for(
    location: Location,
    options: Mapping[str, str],
    *,
    unlisted: dict[str, str] | None = None,
    known: Mapping[str, ListedFile] = NONE_KNOWN,
) -> FileStore:
    """What reads a location.

    Args:
        options: `store_options` of the read.
        unlisted: Takes the URIs of folders that a walk passes over since they can't be listed, with
            why. Without it, such a folder fails the walk.
        known: What a walk may show of the files of these URIs, whatever they are by now, where it
            would have to look at each by itself.

    Raises:
        MillpondError: The location is incomplete.
    """
    if location.is_local:
        return LocalFiles(unlisted, known)
    if location.scheme.startswith("s3"):
        from millpond.files.s3_files import S3Files

        return S3Files.at(location, options)
    from millpond.files.object_store import ObjectStoreFiles

    return ObjectStoreFiles.at(location)


def stat(uri: str, options: Mapping[str, str] = _NO_OPTIONS) -> ListedFile | None:
    """The version of a file that there is now, as a listing would show it, or `None`."""
    return store_for(parse_uri(uri), options).stat(uri)


def leads_nowhere(uri: str) -> bool:
    """Whether a file lies behind a link to what is not there, as a disk that is not mounted."""
    location = parse_uri(uri)
    if not location.is_local:
        return False
    path = Path(location.path)
    return any(each.is_symlink() and not each.exists() for each in (path, *path.parents))


def local_copy(file: ListedFile, folder: Path, options: Mapping[str, str] = _NO_OPTIONS) -> Path:
    """Where a file can be read on this machine: itself, or a copy below `folder`.

    A copy is of one version, which may be newer than `file`.

    Raises:
        FileNotFoundError: It is gone.
        FileChangedError: It does not stand still for long enough to be copied.
    """
    location = parse_uri(file.uri)
    if location.is_local:
        return Path(location.path)
    target = folder / uuid.uuid4().hex
    store_for(location, options).fetch(file.uri, target)
    return target


def remove(uri: str, options: Mapping[str, str] = _NO_OPTIONS) -> None:
    """Remove a file; one that is not there is no error."""
    store_for(parse_uri(uri), options).remove(uri)


def move(uri: str, folder: str, options: Mapping[str, str] = _NO_OPTIONS) -> str:
    """Move a file into a folder, below which it keeps its whole path, so that no two meet there.

    Where an earlier version of it is there, or anything else, it gets a number behind its name.

    Args:
        folder: Absolute, in the same store, as the user wrote it.

    Returns:
        Its new URI.

    Raises:
        FileLocationUnsupportedError: The folder is in another store.
    """
    location, target = parse_uri(uri), locate(folder, root=Path("/"))
    if location.store != target.store:
        raise FileLocationUnsupportedError.from_move(uri, to=folder)
    store = store_for(location, options)
    wanted = path = target.path.rstrip("/") + location.path
    number = 1
    while store.is_folder(path) is not None:
        number += 1
        path = f"{wanted}.{number}"
    to = location.uri(path)
    store.move(uri, to)
    return to


def is_hidden(name: str) -> bool:
    """Whether Spark passes a file or folder of that name over."""
    # A part of an object's key may be empty.
    begins = name[:1]
    return (begins == "_" and "=" not in name) or begins == "." or name.endswith("._COPYING_")


def is_partition(name: str) -> bool:
    return name.find("=") > 0


def is_wanted(path: str, *, recursive: bool) -> bool:
    """Whether a walk through a folder shows a file, by its path from there."""
    *folders, name = path.split("/")
    return (recursive or all(map(is_partition, folders))) and not any(
        map(is_hidden, (*folders, name))
    )


def one_version(
    uri: str, version: Callable[[], ListedFile | None], copy: Callable[[], None]
) -> ListedFile:
    """Copy a file again until it was the same before and after, and say which version that is.

    Raises:
        FileNotFoundError: It is gone.
        FileChangedError: It was not, as often as was tried.
    """
    before = version()
    for _ in range(FETCH_TRIES):
        if before is None:
            break
        copy()
        after = version()
        if after == before:
            return before
        before = after
    if before is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
    raise FileChangedError.from_uri(uri, times=FETCH_TRIES)


@dataclass(frozen=True)
class LocalFiles:
    """Files on this machine. Links are followed, out of the folder too, as Spark does.

    Attributes:
        unlisted: As `store_for` is given it.
        known: Likewise.
    """

    unlisted: dict[str, str] | None = None
    known: Mapping[str, ListedFile] = field(default_factory=dict)

    def is_folder(self, path: str) -> bool | None:
        try:
            mode = Path(path).stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError:  # a NUL in the name
            return None
        except OSError as error:
            raise _unreachable(path, "read", error) from error
        return stat_modes.S_ISDIR(mode)

    def entries(self, folder: str) -> list[FolderEntry]:
        found: list[FolderEntry] = []
        try:
            with os.scandir(folder) as scan:
                for entry in scan:
                    with contextlib.suppress(OSError):  # links that lead to each other
                        is_folder = entry.is_dir()
                        if is_folder or entry.is_file():
                            found.append(FolderEntry(entry.name, is_folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreachable(folder, "listed", error) from error
        return sorted(found, key=lambda entry: entry.name)

    def walk(self, folder: str, *, recursive: bool) -> Iterator[ListedFile]:
        return _walk(
            folder.rstrip("/"), recursive=recursive, unlisted=self.unlisted, known=self.known
        )

    def stat(self, uri: str) -> ListedFile | None:
        try:
            found = Path(parse_uri(uri).path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreachable(parse_uri(uri).path, "read", error) from error
        if not stat_modes.S_ISREG(found.st_mode):
            return None
        return ListedFile(uri, found.st_size, time_in_range(found.st_mtime_ns))

    def fetch(self, uri: str, target: Path) -> ListedFile:
        def copy() -> None:
            try:
                shutil.copyfile(parse_uri(uri).path, target)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise _unreachable(uri, "read", error) from error

        return one_version(uri, lambda: self.stat(uri), copy)

    def remove(self, uri: str) -> None:
        path = Path(parse_uri(uri).path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unreachable(str(path), "removed", error) from error

    def move(self, uri: str, to: str) -> None:
        source, target = Path(parse_uri(uri).path), Path(parse_uri(to).path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(source, target)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreachable(str(source), f"moved to {target}", error) from error


def _move(source: Path, target: Path) -> None:
    """Give a file another name, on another device too; who dies at it leaves no part of it there.

    Raises:
        OSError: It can't be done.
    """
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            shutil.copy2(source, part, follow_symlinks=False)
            part.rename(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        source.unlink(missing_ok=True)


def _walk(
    folder: str,
    *,
    recursive: bool,
    unlisted: dict[str, str] | None,
    known: Mapping[str, ListedFile],
) -> Iterator[ListedFile]:
    waiting = [_Folder(folder)]
    while waiting:
        here = waiting.pop()
        below: list[tuple[str, bool]] = []
        try:
            identity = _identity(here.path or "/")
            if here.was_met(identity):
                continue
            yield from _files_in(here.path, below, recursive=recursive, known=known)
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone since it was listed
        except OSError as error:
            if unlisted is None or here.path == folder:
                raise _unreachable(here.path, "listed", error) from error
            unlisted[f"file:{quote_path(here.path)}/"] = unlisted_reason(error)
        # In the order of names, so that it is the same of several links each time that counts.
        waiting.extend(
            here.below(name, identity, is_link=is_link)
            for name, is_link in sorted(below, reverse=True)
        )


@dataclass(frozen=True)
class _Folder:
    """A folder on the way of a walk.

    Attributes:
        above: Those that it lies in. A link to one of them would lead round in circles.
        linked: Where the way has a link, all folders that were met behind that. One that several
            links lead to is walked through once there: folders that link to each other can be
            reached in more ways than anybody could walk.
    """

    path: str
    above: frozenset[_Identity] = frozenset()
    linked: set[_Identity] | None = None

    def was_met(self, identity: _Identity) -> bool:
        if identity in self.above or identity in (self.linked or ()):
            return True
        if self.linked is not None:
            self.linked.add(identity)
        return False

    def below(self, name: str, identity: _Identity, *, is_link: bool) -> _Folder:
        linked = set[_Identity]() if is_link and self.linked is None else self.linked
        return _Folder(f"{self.path}/{name}", self.above | {identity}, linked)


def _files_in(
    folder: str,
    below: list[tuple[str, bool]],
    *,
    recursive: bool,
    known: Mapping[str, ListedFile],
) -> Iterator[ListedFile]:
    """The files of a folder; takes note of the names of folders, and of which are links."""
    prefix = f"file:{quote_path(folder)}/"
    with os.scandir(folder or "/") as scan:
        for entry in scan:
            name = entry.name
            # Asked first for speed: few names begin or end so.
            if (name[0] in "._" or name[-1] == "_") and is_hidden(name):
                continue
            try:
                if entry.is_dir():
                    if recursive or is_partition(name):
                        below.append((name, entry.is_symlink()))
                elif entry.is_file():
                    uri = prefix + quote_path(name)
                    if uri in known:
                        yield known[uri]
                        continue
                    # For a file that is no link, the one call of the operating system.
                    found = entry.stat()
                    yield ListedFile(uri, found.st_size, time_in_range(found.st_mtime_ns))
            except OSError as error:
                # Gone since it was listed, or links that lead to each other.
                if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                    raise


def _identity(folder: str) -> _Identity:
    found = Path(folder).stat()
    return found.st_dev, found.st_ino


def _unreachable(path: str, action: str, error: OSError) -> FilesUnreachableError:
    return FilesUnreachableError.from_error(
        path, action=action, reason=error.strerror or str(error)
    )


def unlisted_reason(error: BaseException | None) -> str:
    """Why a folder is passed over."""
    reason = error.strerror if isinstance(error, OSError) else None
    return f"the folder can't be listed: {reason or error}"
