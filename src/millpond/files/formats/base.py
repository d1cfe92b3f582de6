"""What each format of files must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructType

    from millpond.files.options import FileOptions

T = TypeVar("T")

# A JSON object of what did not fit, by column, as text; NULL where all did.
RESCUED = "__millpond_rescued"
# Which of the files a row is of, by their order.
FILE_INDEX = "__millpond_file"


@dataclass(frozen=True)
class LocalFile:
    """The content of one version of a file, here and not compressed.

    Attributes:
        path: Where the content lies. It does not change while it is read.
        uri: The file itself, for messages.
        size_bytes: Its length, as listed.
        modified_ns: When it was changed, as listed.
    """

    path: Path
    uri: str
    size_bytes: int = 0
    modified_ns: int = 0


@dataclass(frozen=True)
class Selection:
    """The rows of files, for DuckDB to read.

    Attributes:
        sql: A SELECT of the asked columns by name and in order, each of its Spark type's DuckDB
            type, and last `RESCUED`. With several files, before it `FILE_INDEX`: the
            index of the row's file among those given, a BIGINT. It is run once.
        new_columns: The columns that the files hold and that were not asked for, with the types
            that inference gives them.
        otherwise: How to read if the SQL fails with one of `irregular()`, where that may be no
            fault of the files. A format may hope that they are regular, and look at them closely
            only if they are not.
    """

    sql: str
    new_columns: StructType
    otherwise: Callable[[], Selection] | None = None

    def taken(self, take: Callable[[Selection], T]) -> T:
        """What `take` makes of the rows, by whichever SQL does not fail."""
        try:
            return take(self)
        except irregular():
            if self.otherwise is None:
                raise
        return take(self.otherwise())


def irregular() -> tuple[type[Exception], ...]:
    """What DuckDB raises for files that its readers are not made for, such as long empty ones."""
    import duckdb

    return duckdb.InvalidInputException, duckdb.NotImplementedException


class Format(Protocol):
    """A kind of files. Functions raise `MillpondError` or `duckdb.Error` for an unreadable file."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> StructType:
        """The columns of some files together, without those of folders, rescued or hidden ones."""
        ...

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> Selection:
        """How to read some files with given columns.

        Args:
            columns: Those of `infer`, of the user, or either with more.
            folder: For files that have to be written on the way. It exists.
        """
        ...
