"""What a stream of files is told of them: where they are, how to list them, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from millpond.files import FileOptions, ListedFile
from millpond.files.columns import FileColumns, NewColumn


class Listing(Protocol):
    """Lists the files there are now, in the order in which they are to be read."""

    def __call__(
        self, *, first: bool, unlisted: dict[str, str], known: Mapping[str, ListedFile]
    ) -> Sequence[ListedFile]:
        """List them.

        Args:
            first: Whether nothing was read yet.
            unlisted: Takes the URIs of folders that can't be listed, with why.
            known: What may be shown of files of these URIs, whatever they are by now.
        """
        ...


@dataclass(frozen=True)
class FileAccess:
    """What a stream of files needs to know of them.

    Attributes:
        places: Where they lie, absolute and each spelled in one way.
        columns_of: The columns for reading some files, which the names of their folders tell of.
        list: Lists what there is now, in the order in which it is to be read.
        follows_removals: Whether a file that is gone is told of.
        names_are_keys: Whether files of one name are told of together.
        refuses_cut_files: Whether a file that may be cut off before its first row is not read.
        root: What relative paths start from.
        propose: Keeps columns that files have and the stream lacks, for the next update to take,
            and tells which of them it will refuse, with why.
        refused: Such columns that this update refused, with why.
    """

    options: FileOptions
    places: tuple[str, ...]
    columns: FileColumns
    columns_of: Callable[[Sequence[ListedFile]], FileColumns]
    list: Listing
    root: Path
    propose: Callable[[Sequence[NewColumn]], Mapping[NewColumn, str]]
    refused: Mapping[NewColumn, str] = field(default_factory=dict)
    follows_removals: bool = False
    names_are_keys: bool = False
    refuses_cut_files: bool = False
