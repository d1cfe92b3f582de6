"""Removes or moves files whose rows are in the table: the option `cleanSource`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from millpond.files.listed_file import ListedFile
from millpond.files.options import CleanSource, FileOptions
from millpond.files.stores import move, remove, stat


def clean(
    files: Mapping[str, ListedFile], read_ms: Mapping[str, int], options: FileOptions
) -> None:
    """See to files that were read long enough ago, as far as they are still what was read.

    Args:
        files: The versions that were read, by URI.
        read_ms: When, in milliseconds since 1970, by URI.
        options: Say what becomes of them, and when.
    """
    until_ms = time.time() * 1000 - options.clean_source_retention_s * 1000
    for uri, file in files.items():
        if read_ms[uri] > until_ms:
            continue
        if stat(uri, options.store_options) != file:
            continue
        if options.clean_source is CleanSource.DELETE:
            remove(uri, options.store_options)
        elif options.clean_source_move_to is not None:
            move(uri, options.clean_source_move_to, options.store_options)
