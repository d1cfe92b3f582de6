"""What went wrong with a file, in the words of the operating system, whoever met it.

Python, DuckDB and the engine each wrap those words in their own.
"""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress

# As Rust's standard library ends what it says of an error of the system.
_IN_RUST = re.compile(r"\(os error (\d+)\)")
# DuckDB's own writers give JSON.
_IN_JSON = re.compile(r"\{.*\}\s*\Z", re.DOTALL)
# Those of the disk or of the process, for which no query and no value is to blame.
_OF_THE_DISK = frozenset(
    {
        errno.EIO,
        errno.ENFILE,
        errno.EMFILE,
        errno.EFBIG,
        errno.ENOSPC,
        errno.EROFS,
        errno.EDQUOT,
        errno.ESTALE,
    }
)


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
    if any(os.strerror(number) in str(error) for number in (errno.EMFILE, errno.ENFILE)):
        return "raise the limit of open files (ulimit -n 1024)"
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
