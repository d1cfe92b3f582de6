"""Files in SQL: their paths as DuckDB takes them, and which of several files a row is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from millpond.delta.live_rows import escape_glob
from millpond.delta.schema import literal


def paths_sql(paths: Iterable[Path]) -> str:
    """A list of paths for a function of DuckDB that reads files: these, whatever is in their names.

    >>> paths_sql([Path("a[1]*.json")])
    "['a[[]1][*].json']"
    """
    return f"[{', '.join(literal(escape_glob(str(path))) for path in paths)}]"


def file_index_sql(indexes: Sequence[int]) -> str:
    """The index among all files, a BIGINT, by DuckDB's own among those that it reads."""
    if list(indexes) == list(range(indexes[0], indexes[0] + len(indexes))):
        return f"CAST(file_index AS BIGINT) + {indexes[0]}"
    return f"CAST([{', '.join(map(str, indexes))}][CAST(file_index AS BIGINT) + 1] AS BIGINT)"


def uri_sql(uris: Sequence[str], index: str) -> str:
    """The URI of a row's file.

    Args:
        index: The index of the file, a BIGINT.
    """
    return f"[{', '.join(map(literal, uris))}][{index} + 1]"
