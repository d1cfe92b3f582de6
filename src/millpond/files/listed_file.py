"""A file as a listing shows it: one version of it."""

from __future__ import annotations

from typing import NamedTuple


class ListedFile(NamedTuple):
    """One version of a file; there may be a hundred thousand of them.

    Attributes:
        uri: The absolute location as Spark writes it in `_metadata.file_path`, such as
            `file:/data/a%20b.csv` or `s3://bucket/key.csv`. It names the file everywhere.
        size_bytes: Its length.
        modified_ns: When it was last changed, in nanoseconds since 1970.
        etag: What an object store calls this version, where it was asked for that: listings, and
            what is remembered of them, have none. Empty for local files.
    """

    uri: str
    size_bytes: int
    modified_ns: int
    etag: str = ""

    @property
    def is_local(self) -> bool:
        return self.uri.startswith("file:")

    @property
    def name(self) -> str:
        """The last part of the location, quoted as that is: `_metadata.file_name` in Spark."""
        return self.uri.rsplit("/", 1)[-1]
