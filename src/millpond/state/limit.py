"""`LIMIT`: so many rows over the whole life of a stream, the first that come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millpond.delta import escape_glob, literal
from millpond.state.batch_rows import (
    Files,
    column_types,
    columns_sql,
    files_sql,
    working_in,
    write_file,
)
from millpond.state.flow_state import BatchState

_GIVEN = "given"


def limit(
    state: BatchState, operator: str, rows: Sequence[Path], *, count: int, folder: Path
) -> Files:
    """The rows of a batch that a limit leaves, in the order of the files and of the rows in them.

    Args:
        state: The batch's.
        operator: Whose limit it is.
        rows: Parquet files.
        count: How many rows come out in all.
        folder: For files that live as long as the batch.
    """
    numbers = state.numbers(operator)
    left = count - numbers.get(_GIVEN, 0)
    if left <= 0 or not rows:
        return ()
    chosen: Files = ()
    with working_in(folder, rows) as connection:
        for file in rows:
            # Only the footer is read. No more files are looked at than have the rows.
            footer = (
                f"SELECT num_rows FROM parquet_file_metadata({literal(escape_glob(str(file)))})"
            )
            (held,) = connection.execute(footer).fetchall()[0]
            if held > left:
                first = f"SELECT * FROM {files_sql([file])}"
                columns = columns_sql([*column_types(connection, first)])
                part = f"SELECT {columns} FROM {files_sql([file])} WHERE file_row_number < {left}"
                chosen += write_file(connection, part, folder / "limited.parquet")
            elif held:
                chosen += (file,)
            left -= min(held, left)
            if left == 0:
                break
    numbers[_GIVEN] = count - left
    return chosen
