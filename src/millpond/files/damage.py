"""Tells files that are damaged from those that can't be read for another reason.

Only the former may be passed over for good: the others can be read once that reason is gone.
"""

from __future__ import annotations

import errno
import os

from millpond.errors import MillpondError
from millpond.errors.file_formats import (
    CsvQuoteError,
    FileColumnTypeError,
    FileUnreadableError,
    MalformedRecordError,
    RowTooLongError,
)

_OF_CONTENT = (FileUnreadableError, CsvQuoteError, RowTooLongError)
_OF_THE_SYSTEM = tuple(
    os.strerror(number)
    for number in (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE)
)
# What SQL raises for values that do not fit what was asked for.
_OF_VALUES = tuple(f"[{cls.error_class}]" for cls in (FileColumnTypeError, MalformedRecordError))


def is_damage(error: BaseException) -> bool:
    """Whether a file that can't be read is to blame itself, not what was asked of it.

    Whoever has no right to it, no memory or no disk for it, or asks for other columns than it has
    may do better the next time.
    """
    import duckdb

    if isinstance(error, MillpondError):
        cause = error.__cause__
        return isinstance(error, _OF_CONTENT) and (
            not isinstance(cause, duckdb.Error) or is_damage(cause)
        )
    if isinstance(error, duckdb.InvalidInputException):
        return not any(name in str(error) for name in _OF_VALUES)
    if isinstance(error, duckdb.IOException):
        return not any(reason in str(error) for reason in _OF_THE_SYSTEM)
    if isinstance(error, duckdb.Error):
        # Torn Parquet files bring forth errors of no kind.
        return type(error) is duckdb.Error or isinstance(error, duckdb.SerializationException)
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, RuntimeError | UnicodeError)
