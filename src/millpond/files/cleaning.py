"""Removes or moves files whose rows are in the table: the option `cleanSource`."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from millpond.errors import MillpondError
from millpond.files.listed_file import ListedFile
from millpond.files.locations import FileIdentity
from millpond.files.options import CleanSource, FileOptions
from millpond.files.stores import move, remove, stat


def clean(
    files: Iterable[ListedFile],
    read_ms: Mapping[str, int],
    options: FileOptions,
    *,
    needed: Collection[FileIdentity] = (),
) -> None:
    """See to files that were read long enough ago, as far as they are still what was read.

    Args:
        files: The versions that were read.
        read_ms: When, in milliseconds since 1970, by URI.
        options: Say what becomes of them, and when.
        needed: Files that stay.

    Raises:
        MillpondError: One of them can't be removed or moved. All others are.
    """
    first_error: MillpondError | None = None
    until_ms = time.time() * 1000 - options.clean_source_retention_s * 1000
    for file in files:
        if read_ms[file.uri] > until_ms or (needed and FileIdentity.of(file.uri) in needed):
            continue
        try:
            _clean_one(file, options)
        except MillpondError as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error


def _clean_one(file: ListedFile, options: FileOptions) -> None:
    now = stat(file.uri, options.store_options)
    if now is None or not file.is_same_version(now):
        return
    if options.clean_source is CleanSource.DELETE:
        remove(file.uri, options.store_options)
    elif options.clean_source_move_to is not None:
        move(file.uri, options.clean_source_move_to, options.store_options)
