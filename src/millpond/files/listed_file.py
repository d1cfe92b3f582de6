"""A file as a listing shows it: one version of it."""

from __future__ import annotations

from typing import NamedTuple

SECOND_NS = 10**9
# 64 bits of nanoseconds end in April 2262; a version may have to count as later than another one.
_LAST_NS = 9_200_000_000 * SECOND_NS


class ListedFile(NamedTuple):
    """One version of a file; there may be a hundred thousand of them.

    Attributes:
        uri: The absolute location as Spark writes it in `_metadata.file_path`, such as
            `file:/data/a%20b.csv` or `s3://bucket/key.csv`. It names the file everywhere.
        size_bytes: Its length.
        modified_ns: When it was last changed, in nanoseconds since 1970; see `time_in_range`.
        etag: What S3 calls this version. Empty elsewhere, and where it was remembered by an
            earlier release.
    """

    uri: str
    size_bytes: int
    modified_ns: int
    etag: str = ""

    @property
    def is_local(self) -> bool:
        return self.uri.startswith("file:")

    def is_same_version(self, other: ListedFile) -> bool:
        """Whether two looks at a file showed one version of it.

        Etags tell where both have one, along with size and time. Those of objects are of whole
        seconds, within which a stream may count a version as later than the one before it.
        """
        unit_ns = 1 if self.is_local else SECOND_NS
        return (
            self.size_bytes == other.size_bytes
            and self.modified_ns // unit_ns == other.modified_ns // unit_ns
            and (self.etag == other.etag or not self.etag or not other.etag)
        )

    @property
    def name(self) -> str:
        """The last part of the location, quoted as that is: `_metadata.file_name` in Spark."""
        return name_of(self.uri)


def name_of(uri: str) -> str:
    """The last part of a location, quoted as that is."""
    return uri.rsplit("/", 1)[-1]


def time_in_range(modified_ns: int) -> int:
    """A time of a file, or July 2261 or 1678 for one beyond: a clock may have been anywhere."""
    return max(-_LAST_NS, min(modified_ns, _LAST_NS))
