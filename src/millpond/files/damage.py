"""Tells files that are damaged from those that can't be read for another reason.

Only the former may be passed over for good: the others can be read once that reason is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.errors import MillpondError
from millpond.errors.disk_reason import system_error
from millpond.errors.file_formats import (
    CsvQuoteError,
    FileColumnTypeError,
    FileUnreadableError,
    MalformedRecordError,
)

if TYPE_CHECKING:
    import duckdb

_OF_CONTENT = (FileUnreadableError, CsvQuoteError)
# What SQL raises for values that do not fit what was asked for.
_OF_VALUES = tuple(f"[{cls.error_class}]" for cls in (FileColumnTypeError, MalformedRecordError))
# Of files shorter than they say. Others are of files that DuckDB writes.
_TOO_SHORT = "Could not read"
# What DuckDB's client raises for names in a file that are no text; the same kind of error tells of
# threads that can't be started.
_NO_TEXT = "conversion error"


def is_damage(error: BaseException) -> bool:
    """Whether a file that can't be read is to blame itself, not what was asked of it.

    Whoever has no right to it, no memory or no disk for it, or asks for other columns than it has
    may do better the next time. So may whoever could not write what was read.
    """
    import duckdb

    if system_error(error) is not None:
        return False
    if isinstance(error, FileUnreadableError) and not error.is_damage:
        return False
    if isinstance(error, MillpondError):
        cause = error.__cause__
        return isinstance(error, _OF_CONTENT) and (
            not isinstance(cause, duckdb.Error) or is_damage(cause)
        )
    if isinstance(error, duckdb.Error):
        return _is_of_content(error)
    if isinstance(error, RuntimeError):
        return _NO_TEXT in str(error)
    return isinstance(error, OSError | UnicodeError)


def _is_of_content(error: duckdb.Error) -> bool:
    import duckdb

    match error:
        case duckdb.InvalidInputException():
            return not any(name in str(error) for name in _OF_VALUES)
        case duckdb.IOException():
            return _TOO_SHORT in str(error)
        case duckdb.SerializationException():
            return True
    # Torn Parquet files bring forth errors of no kind.
    return type(error) is duckdb.Error
