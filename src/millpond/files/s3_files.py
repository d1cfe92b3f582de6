"""Files in S3 and in what speaks like it, through botocore: listings tell the etags of objects."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from millpond.errors import MillpondError
from millpond.errors.files import FilesUnreachableError
from millpond.files.listed_file import SECOND_NS, ListedFile
from millpond.files.locations import Location, parse_uri, quote_path
from millpond.files.s3_client import s3_client
from millpond.files.stores import FETCH_TRIES, FolderEntry, is_wanted

_CHUNK_BYTES = 4 << 20
_NOT_FOUND = 404
# Some programs put an object for each folder.
_FOLDER_TYPE = "application/x-directory"


class S3Files:
    """The objects of one bucket. `/` in a key makes folders.

    Times are of whole seconds, which is all that stores give for a single object.
    """

    def __init__(self, client: Any, *, prefix: str, bucket: str) -> None:
        self._client = client
        self._prefix = prefix
        self._bucket = bucket

    @classmethod
    def at(cls, location: Location, options: Mapping[str, str]) -> S3Files:
        """The bucket that a location is in.

        Its address, credentials and region are in the options, or where every client looks.

        Raises:
            FilesUnreachableError: They contradict each other.
        """
        bucket = location.authority.partition("@")[0]
        with _failing(location.shown, "read"):
            client = s3_client(options)
        return cls(client, prefix=location.prefix, bucket=bucket)

    def is_folder(self, path: str) -> bool | None:
        inside = _inside(path)
        if inside and self._head(path.rstrip("/")) is not None:
            return False
        try:
            with self._failing(path, "read"):
                found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=inside, MaxKeys=1)
        except FileNotFoundError:
            return None
        # A bucket may be empty, and what stands for a folder is no file in it.
        return True if not inside or found.get("Contents") else None

    def entries(self, folder: str) -> list[FolderEntry]:
        start = len(_inside(folder))
        folders: dict[str, bool] = {}
        for page in self._pages(folder, Delimiter="/"):
            for found in page.get("Contents", ()):
                folders.setdefault(found["Key"][start:], False)
            for found in page.get("CommonPrefixes", ()):
                folders[found["Prefix"][start:-1]] = True
        folders.pop("", None)  # what no path can name
        return [FolderEntry(name, is_folder) for name, is_folder in sorted(folders.items())]

    def walk(self, folder: str, *, recursive: bool) -> Iterator[ListedFile]:
        # A thousand objects a request, where each folder would take at least one of its own.
        start = len(_inside(folder))
        for page in self._pages(folder):
            for found in page.get("Contents", ()):
                key = found["Key"]
                if not key.endswith("/") and is_wanted(key[start:], recursive=recursive):
                    uri = self._prefix + quote_path(f"/{key}")
                    yield _version(uri, found, size_bytes=found["Size"])

    def stat(self, uri: str) -> ListedFile | None:
        found = self._head(parse_uri(uri).path)
        return None if found is None else _version(uri, found, size_bytes=found["ContentLength"])

    def fetch(self, uri: str, target: Path) -> ListedFile:
        return self._copied(uri, target, tries=FETCH_TRIES)

    def remove(self, uri: str) -> None:
        path = parse_uri(uri).path
        with self._failing(path, "removed"), contextlib.suppress(FileNotFoundError):
            self._client.delete_object(Bucket=self._bucket, Key=_key(path))

    def move(self, uri: str, to: str) -> None:
        source, target = parse_uri(uri).path, parse_uri(to).path
        with contextlib.suppress(FileNotFoundError), self._failing(source, "moved"):
            self._client.copy_object(
                Bucket=self._bucket,
                Key=_key(target),
                CopySource={"Bucket": self._bucket, "Key": _key(source)},
            )
            self._client.delete_object(Bucket=self._bucket, Key=_key(source))

    def _pages(self, folder: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
        """The answers to a listing, none where there is no such bucket."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=_inside(folder), **arguments
        )
        with contextlib.suppress(FileNotFoundError), self._failing(folder, "listed"):
            yield from pages

    def _head(self, path: str) -> Mapping[str, Any] | None:
        """What there is to say of an object, or `None` if there is none."""
        try:
            with self._failing(path, "read"):
                found: Mapping[str, Any] = self._client.head_object(
                    Bucket=self._bucket, Key=_key(path)
                )
        except FileNotFoundError:
            return None
        return None if found.get("ContentType") == _FOLDER_TYPE else found

    def _copied(self, uri: str, target: Path, *, tries: int) -> ListedFile:
        """Copy what one request brings, which is one version; anew where it is cut off."""
        from botocore.exceptions import (
            IncompleteReadError,
            ReadTimeoutError,
            ResponseStreamingError,
        )

        path = parse_uri(uri).path
        with self._failing(path, "read"):
            found = self._client.get_object(Bucket=self._bucket, Key=_key(path))
            try:
                with contextlib.closing(found["Body"]) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out, _CHUNK_BYTES)
            except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
                if tries == 1:
                    raise
            else:
                return _version(uri, found, size_bytes=found["ContentLength"])
        return self._copied(uri, target, tries=tries - 1)

    def _failing(self, path: str, action: str) -> contextlib.AbstractContextManager[None]:
        return _failing(f"{self._prefix}{path}", action)


@contextlib.contextmanager
def _failing(location: str, action: str) -> Iterator[None]:
    """Say which place a store failed for.

    Raises:
        FileNotFoundError: There is no such object, or bucket.
        FilesUnreachableError: Anything else is wrong.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    # The last is for addresses and names that can be none.
    except (BotoCoreError, ClientError, ValueError) as error:
        if isinstance(error, MillpondError):
            raise
        if isinstance(error, ClientError) and _status(error.response) == _NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), location) from error
        raise FilesUnreachableError.from_error(
            location, action=action, reason=str(error)
        ) from error


def _status(answer: Mapping[str, Any]) -> int | None:
    status: int | None = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status


def _version(uri: str, found: Mapping[str, Any], *, size_bytes: int) -> ListedFile:
    modified: datetime = found["LastModified"]
    # A weak etag, as a proxy makes one, is another spelling of the same.
    etag = found.get("ETag", "").removeprefix("W/").strip('"')
    return ListedFile(uri, size_bytes, int(modified.timestamp()) * SECOND_NS, etag)


def _key(path: str) -> str:
    return path.removeprefix("/")


def _inside(folder: str) -> str:
    """How the keys of what lies in a folder begin."""
    key = _key(folder.rstrip("/"))
    return f"{key}/" if key else ""
