"""Where files are: what users write, what lists them, and the URIs that name them.

A URI is written as Spark 4 writes it in `_metadata.file_path`: `file:/data/a%20b.csv`, with what
Java's `java.net.URI` quotes quoted, and letters of every script as they are.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from millpond.errors import SourceLocation
from millpond.errors.files import FileLocationUnsupportedError
from millpond.files.globs import fixed_prefix

LOCAL = "file"
OBJECT_SCHEMES = ("s3", "s3a", "s3n", "gs", "abfss", "abfs")
# Schemes that name the same store as another.
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_QUOTED = re.compile(r"%[0-9A-Fa-f]{2}")
# All but ASCII that may stand in a path, and letters outside of ASCII that are no control
# characters or spaces. Names that are not UTF-8 come as lone surrogates.
_UNSAFE = re.compile(
    "[^A-Za-z0-9_\\-!.~'()*,;:$&+=/@\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e"
    "\u2030-\u205e\u2060-\u2fff\u3001-\ud7ff\ue000-\U0010ffff]"
)


@dataclass(frozen=True)
class Location:
    """A folder, a file or a pattern of them.

    Attributes:
        scheme: `file`, or that of an object store.
        authority: The bucket, or container and account; empty for local files.
        path: Absolute and as names are, without quoting. In an object store, the key after a `/`.
        text: As the user wrote it.
    """

    scheme: str
    authority: str
    path: str
    text: str

    @property
    def is_local(self) -> bool:
        return self.scheme == LOCAL

    @property
    def shown(self) -> str:
        """For messages: as it would be written."""
        return self.path if self.is_local else f"{self.prefix}{self.path}"

    @property
    def prefix(self) -> str:
        """What stands before the path in URIs."""
        return "file:" if self.is_local else f"{self.scheme}://{self.authority}"

    @property
    def store(self) -> tuple[str, str]:
        """What tells its store from others, however its scheme is written."""
        return _SAME_STORE.get(self.scheme, self.scheme), self.authority

    def uri(self, path: str) -> str:
        return self.prefix + quote_path(path)

    def is_in(self, folder: Location) -> bool:
        """Whether it is a folder or lies somewhere below it, wherever links lead."""
        if self.store != folder.store:
            return False
        path, base = (
            os.path.realpath(each.path) if each.is_local else each.path.rstrip("/")
            for each in (self, folder)
        )
        return f"{path}/".startswith(f"{base.rstrip('/')}/")


def locate(text: str, *, root: Path, where: SourceLocation | None = None) -> Location:
    """Read a path as the user wrote it.

    Raises:
        FileLocationUnsupportedError: It lies where millpond can't read.
    """
    match = _SCHEME.match(text)
    if match is None:
        # `normpath` would drop a slash at the end, which tells that a folder is meant.
        path = text if text.startswith("/") else f"{root.absolute()}/{text}"
        return Location(LOCAL, "", _tidy(path), text)
    scheme = match[1].lower()
    rest = text[match.end() :]
    if scheme == LOCAL:
        return Location(LOCAL, "", _local_part(text, rest, where), text)
    if scheme not in OBJECT_SCHEMES:
        known = ("file:/", *(f"{name}://" for name in OBJECT_SCHEMES))
        raise FileLocationUnsupportedError.from_scheme(
            text, scheme=match[1], known=known, where=where
        )
    authority, _, key = rest.removeprefix("//").partition("/")
    if not authority or not rest.startswith("//"):
        form = f"{scheme}://bucket/folder"
        raise FileLocationUnsupportedError.from_parts(text, form=form, where=where)
    return Location(scheme, authority, f"/{key.lstrip('/')}", text)


def parse_uri(uri: str) -> Location:
    """The location of one file, from the URI that a listing gave it."""
    scheme, _, rest = uri.partition(":")
    if scheme == LOCAL:
        return Location(LOCAL, "", unquote_path(rest.removeprefix("//")), uri)
    authority, _, key = rest.removeprefix("//").partition("/")
    return Location(scheme, authority, f"/{unquote_path(key)}", uri)


@dataclass(frozen=True)
class FileIdentity:
    """What is equal for all URIs of one file: through links, or by another scheme of its store."""

    store: tuple[str, str]
    path: str

    @classmethod
    def of(cls, uri: str) -> FileIdentity:
        location = parse_uri(uri)
        path = os.path.realpath(location.path) if location.is_local else location.path
        return cls(location.store, path)


def quote_path(path: str) -> str:
    if _UNSAFE.search(path) is None:
        return path
    return _UNSAFE.sub(_quote_char, path)


def unquote_path(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text)) if "%" in text else text


def _quote_char(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def _local_part(text: str, rest: str, where: SourceLocation | None) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in {"", "localhost"} or not slash:
            raise FileLocationUnsupportedError.from_parts(
                text, form="file:///folder/name", where=where
            )
        rest = f"/{path}"
    # Spark takes a path in a URI as it stands; most other programs quote it. What is there tells.
    if _QUOTED.search(rest) and not os.path.lexists(fixed_prefix(rest)):
        unquoted = unquote_path(rest)
        if os.path.lexists(fixed_prefix(unquoted)):
            rest = unquoted
    return _tidy(rest)


def _tidy(path: str) -> str:
    """Without empty parts, `.` and `..`; what a link points to is not looked at."""
    tidy = os.path.normpath(path)
    # Two slashes at the start are kept by `normpath`.
    tidy = f"/{tidy.lstrip('/')}"
    return f"{tidy}/" if path.endswith("/") and tidy != "/" else tidy
