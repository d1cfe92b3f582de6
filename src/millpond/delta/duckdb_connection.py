"""DuckDB as millpond uses it: one private in-memory connection for a piece of work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millpond import interruptible

if TYPE_CHECKING:
    import duckdb

DEFAULT_MEMORY_LIMIT = "512MB"


def connect(
    *,
    temporary_folder: Path | None = None,
    memory_limit: str = DEFAULT_MEMORY_LIMIT,
    threads: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open a connection for reading and writing a table's data files. Close it afterwards.

    Args:
        temporary_folder: Where DuckDB puts what does not fit into memory; without one, work that
            needs more fails.
        memory_limit: As DuckDB writes it, such as `2GB`.
        threads: By default one for each processor.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "preserve_insertion_order": False,
        # Nothing is ever fetched from the network, whatever a query names.
        "autoinstall_known_extensions": False,
        # A name in a query never means a variable of the program.
        "python_enable_replacements": False,
        "temp_directory": str(temporary_folder) if temporary_folder is not None else "",
    }
    if threads is not None:
        config["threads"] = threads
    connection = duckdb.connect(":memory:", config=config)
    # Partition values, statistics and casts between the two kinds of timestamp depend on it.
    # Global, because a cursor has settings of its own.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # It looks for signals between tasks alone, and when one came, waits for the end of those that
    # its other threads have begun.
    interruptible.register(connection)
    return connection


def was_interrupted(error: BaseException) -> bool:
    """Whether a query ended because a signal came, which DuckDB tells by errors of its own.

    What the signal's handler raised is lost by that.
    """
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return True
    return type(error) is RuntimeError and str(error) == "Query interrupted"
