"""Files in Google Cloud Storage and Azure, through pyarrow's file systems."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.errors import MillpondError
from millpond.errors.file_formats import FileUnreadableError
from millpond.errors.files import FileLocationUnsupportedError, FilesUnreachableError
from millpond.files.listed_file import SECOND_NS, ListedFile
from millpond.files.locations import Location, parse_uri, quote_path
from millpond.files.stores import FolderEntry, is_wanted, one_version

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

_CHUNK_BYTES = 4 << 20
_VARIABLES = (
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
)


class ObjectStoreFiles:
    """The objects of one bucket or container. `/` in a key makes folders.

    Times are of whole seconds, which is all that stores give for a single object.
    """

    def __init__(self, file_system: FileSystem, *, prefix: str, bucket: str) -> None:
        self._file_system = file_system
        self._prefix = prefix
        self._bucket = bucket

    @classmethod
    def at(cls, location: Location) -> ObjectStoreFiles:
        """The store that a location is in. Its credentials are in the environment.

        Raises:
            MillpondError: The location is incomplete.
        """
        bucket, _, host = location.authority.partition("@")
        account = host.partition(".")[0]
        if location.scheme.startswith("abfs") and not account:
            form = f"{location.scheme}://container@account.dfs.core.windows.net/folder"
            raise FileLocationUnsupportedError.from_parts(location.text, form=form)
        settings = {name: value for name in _VARIABLES if (value := os.environ.get(name))}
        file_system = _file_system(location.scheme, account, frozenset(settings.items()))
        return cls(file_system, prefix=location.prefix, bucket=bucket)

    def is_folder(self, path: str) -> bool | None:
        from pyarrow.fs import FileType

        key = self._key(path.rstrip("/"))
        with self._failing(path, "read"):
            kind = self._file_system.get_file_info([key])[0].type
        if kind == FileType.NotFound:
            return None
        return bool(kind == FileType.Directory)

    def entries(self, folder: str) -> list[FolderEntry]:
        # Google's lists no folders, unless whole trees are asked for.
        is_whole = self._prefix.startswith("gs:")
        start = self._start(folder)
        folders: dict[str, bool] = {}
        for info in self._listed(folder, recursive=is_whole):
            name, inside, _ = info.path[start:].partition("/")
            folders[name] = folders.get(name, False) or bool(inside) or not info.is_file
        folders.pop("", None)  # what no path can name
        return [FolderEntry(name, is_folder) for name, is_folder in sorted(folders.items())]

    def walk(self, folder: str, *, recursive: bool) -> Iterator[ListedFile]:
        # A thousand objects a request, where each folder would take at least one of its own.
        start = self._start(folder)
        for info in self._listed(folder, recursive=True):
            if info.is_file and is_wanted(info.path[start:], recursive=recursive):
                yield self._file(info)

    def stat(self, uri: str) -> ListedFile | None:
        path = parse_uri(uri).path
        if "//" in path:
            # pyarrow lists such keys, but takes none.
            reason = "its key has an empty part, between two slashes"
            hint = "copy the object to a key without two slashes in a row"
            raise FileUnreadableError.beyond_reach(uri, reason=reason, hint=hint)
        with self._failing(path, "read"):
            info = self._file_system.get_file_info([self._key(path)])[0]
        return ListedFile(uri, info.size, _whole_seconds(info.mtime_ns)) if info.is_file else None

    def fetch(self, uri: str, target: Path) -> ListedFile:
        path = parse_uri(uri).path

        # What is read comes in several requests, which may see two versions. The tag tells even
        # those apart that have one size and one second.
        def version() -> ListedFile | None:
            found = self.stat(uri)
            if found is None:
                return None
            return ListedFile(uri, found.size_bytes, found.modified_ns, self._tag(path))

        def copy() -> None:
            with (
                self._failing(path, "read"),
                self._opened(path) as source,
                target.open("wb") as out,
            ):
                shutil.copyfileobj(source, out, _CHUNK_BYTES)

        return one_version(uri, version, copy)

    def remove(self, uri: str) -> None:
        path = parse_uri(uri).path
        with self._failing(path, "removed"):
            try:
                self._file_system.delete_file(self._key(path))
            except FileNotFoundError:
                return

    def move(self, uri: str, to: str) -> None:
        source, target = parse_uri(uri).path, parse_uri(to).path
        # Stores fail in ways of their own where there is nothing to move.
        if self.stat(uri) is not None:
            with self._failing(source, "moved"):
                # Azure's kind without true folders can't rename.
                self._file_system.copy_file(self._key(source), self._key(target))
                self._file_system.delete_file(self._key(source))

    def _listed(self, folder: str, *, recursive: bool) -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(
            self._key(folder.rstrip("/")), recursive=recursive, allow_not_found=True
        )
        with self._failing(folder, "listed"):
            found: list[FileInfo] = self._file_system.get_file_info(selector)
        return found

    def _start(self, folder: str) -> int:
        """Where in the path of an object what lies in a folder begins."""
        return len(self._key(folder.rstrip("/"))) + 1

    def _file(self, info: FileInfo) -> ListedFile:
        uri = self._prefix + quote_path(info.path[len(self._bucket) :])
        return ListedFile(uri, info.size, _whole_seconds(info.mtime_ns))

    def _tag(self, path: str) -> str:
        with self._failing(path, "read"), self._opened(path) as stream:
            metadata: Mapping[str, bytes] = stream.metadata() or {}
        tags = [value for name, value in metadata.items() if name.lower() == "etag"]
        return b"".join(tags).decode("utf-8", "replace").strip('"')

    def _opened(self, path: str) -> NativeFile:
        # It would unpack what ends in `.gz` without being asked.
        return self._file_system.open_input_stream(self._key(path), compression=None)

    def _key(self, path: str) -> str:
        return self._bucket + path

    def _failing(self, path: str, action: str) -> _Failing:
        return _Failing(f"{self._prefix}{path}", action)


class _Failing:
    """Says which place a store failed for; a file that is not there is the caller's."""

    def __init__(self, location: str, action: str) -> None:
        self._location = location
        self._action = action

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError) and error.errno in {None, errno.ENOENT}:
            return
        # pyarrow has these for what a store can't do, and for names that it can't have.
        kinds = (OSError, NotImplementedError, ValueError)
        if isinstance(error, kinds) and not isinstance(error, MillpondError):
            raise FilesUnreachableError.from_error(
                self._location, action=self._action, reason=str(error)
            ) from error


def _whole_seconds(time_ns: int | None) -> int:
    return (time_ns or 0) // SECOND_NS * SECOND_NS


@lru_cache(maxsize=32)
def _file_system(scheme: str, account: str, of_client: frozenset[tuple[str, str]]) -> FileSystem:
    """Connect to a kind of store; again only where the settings have changed."""
    from pyarrow import fs

    settings = dict(of_client)
    if scheme == "gs":
        # It would try for a quarter of an hour, and for as long to find credentials.
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=60))
    return fs.AzureFileSystem(
        account_name=account,
        account_key=_first(settings, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
        sas_token=_first(settings, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
    )


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    return next((settings[name] for name in names if settings.get(name)), None)
