"""Errors about the upkeep of tables: their properties for it, and rewriting their files."""

from pathlib import Path
from typing import Self

from millpond.errors.base import MillpondError


class InvalidTablePropertyError(MillpondError, ValueError):
    """A table property that says how a table is looked after has a value that it can't have."""

    error_class = "INVALID_TABLE_PROPERTY"
    sqlstate = "22023"

    @classmethod
    def from_value(cls, key: str, value: str, *, expected: str) -> Self:
        return cls(
            f"The table property {key} must be {expected}, not {value!r}.",
            hint="correct the property where the table is defined, or leave it out",
        )


class CompactionRowsDifferError(MillpondError, RuntimeError):
    """Rewritten files hold another number of rows than the log says of the files before."""

    error_class = "COMPACTION_ROWS_DIFFER"
    sqlstate = "XX000"

    @classmethod
    def in_table(cls, path: Path, *, before: int, after: int) -> Self:
        return cls(
            f"Compacting files of the table at {str(path)!r} would turn {before:,} rows into "
            f"{after:,}. Nothing was changed.",
            hint="the statistics in the log don't fit the files; find out which program wrote them",
        )


class MaintenanceElsewhereError(MillpondError, NotImplementedError):
    """Tables of a pipeline that runs on a server are looked after by the server."""

    error_class = "MAINTENANCE_ELSEWHERE"
    sqlstate = "0A000"

    @classmethod
    def on_spark(cls) -> Self:
        return cls(
            "The pipeline runs on a Spark server, and its tables are the server's to look after.",
            hint="run OPTIMIZE and VACUUM there; or, where the tables lie in the pipeline's "
            "storage, give --engine embedded",
        )
