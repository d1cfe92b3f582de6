"""What went wrong with a file, in the words of the operating system, whoever met it.

Python, DuckDB and the engine each wrap those words in their own.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress

# As Rust's standard library ends what it says of an error of the system.
_IN_RUST = re.compile(r"\(os error (\d+)\)")
# DuckDB's own writers give JSON.
_IN_JSON = re.compile(r"\{.*\}\s*\Z", re.DOTALL)
_NUMBER_IN_JSON = re.compile(r'"errno":"(\d+)"')
_TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE})
# Those of the disk or of the process, for which no query, no value and no content is to blame.
_OF_THE_DISK = _TOO_MANY_FILES | {
    errno.EIO,
    errno.EFBIG,
    errno.ENOSPC,
    errno.EROFS,
    errno.EDQUOT,
    errno.ESTALE,
}
# Those of them that whoever writes can meet, and nobody who only reads one file.
_NO_ROOM = _TOO_MANY_FILES | {errno.EFBIG, errno.ENOSPC, errno.EROFS, errno.EDQUOT}


def _named(numbers: Iterable[int]) -> dict[str, int]:
    return {os.strerror(number): number for number in numbers}


# In the texts of DuckDB and Arrow, the words stand behind what could not be done.
_NUMBERS = _named(errno.errorcode)
_IN_WORDS = re.compile(rf": ({'|'.join(map(re.escape, _NUMBERS))})(?![\w'])")


def system_error(error: BaseException) -> int | None:
    """The number of the system's error that an error is about, or whose cause is; if any is.

    Of texts, only those count that can have it: others may tell of content, and that of anything.

    >>> import duckdb
    >>> system_error(duckdb.IOException('Could not write file "a": File too large')) == errno.EFBIG
    True
    >>> system_error(duckdb.IOException("Snappy decompression failure"))
    """
    import duckdb

    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _number_in(str(error)) if isinstance(error, OSError | duckdb.IOException) else None
    if found is None and error.__cause__ is not None:
        return system_error(error.__cause__)
    return found


def _number_in(text: str) -> int | None:
    for pattern in (_IN_RUST, _NUMBER_IN_JSON):
        found = pattern.search(text)
        if found is not None:
            return int(found[1])
    words = _IN_WORDS.search(text)
    return None if words is None else _NUMBERS[words[1]]


def is_of_the_disk(error: BaseException) -> bool:
    """Whether the disk, or the limits of the process, are why something failed."""
    return system_error(error) in _OF_THE_DISK


def is_out_of_room(error: BaseException) -> bool:
    """Whether nothing more can be written, or no file opened: with any file it would be so."""
    return system_error(error) in _NO_ROOM


def disk_reason(error: BaseException) -> str:
    """What an error of the operating system, or DuckDB's about one, says."""
    if isinstance(error, OSError) and error.strerror:
        # Of two names, the second is of what was to be made.
        name = error.filename if error.filename2 is None else error.filename2
        place = "" if name is None else f": {name}"
        return f"{error.strerror}{place}"
    text = str(error)
    wrapped = _IN_JSON.search(text)
    if wrapped is not None:
        with suppress(ValueError, LookupError):
            text = str(json.loads(wrapped.group())["exception_message"])
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def disk_remedy(error: BaseException) -> str:
    """What to see to before the program is run again."""
    number = system_error(error)
    if number in _TOO_MANY_FILES:
        return "raise the limit of open files (ulimit -n 1024)"
    if number == errno.EFBIG:
        return "raise the limit of the size of files (ulimit -f unlimited)"
    return (
        "check that the storage, and the folder for temporary files (TMPDIR), have space left and "
        "belong to you"
    )


def engine_disk_reason(text: str) -> str | None:
    """What went wrong with the disk, where that is why the engine failed.

    >>> engine_disk_reason("can't copy data to file: No space left on device (os error 28)")
    'No space left on device'
    >>> engine_disk_reason("division by zero")
    """
    found = _IN_RUST.search(text)
    if found is None or int(found[1]) not in _OF_THE_DISK:
        return None
    return os.strerror(int(found[1]))
