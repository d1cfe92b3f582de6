"""The columns that a read of files has: those inside the files, and those beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.files.metadata import metadata_field

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class FileColumns:
    """The columns of a read of files.

    Attributes:
        schema: All that a star gives, in order.
        of_folders: Names of those whose values stand in the names of folders.
        rescued: The name of the one that keeps values that did not fit, or `None`.
        has_metadata: Whether an engine gets `_metadata` beside them.
    """

    schema: StructType
    of_folders: frozenset[str] = field(default_factory=frozenset)
    rescued: str | None = None
    has_metadata: bool = True

    @cached_property
    def inside(self) -> StructType:
        """The columns that are looked for inside the files."""
        return self.without_those_beside(self.schema)

    def without_those_beside(self, columns: StructType) -> StructType:
        """Columns of files, less those that are called like one of folders, or the rescued one."""
        from pyspark.sql.types import StructType

        beside = {name.lower() for name in (*self.of_folders, self.rescued or "")}
        return StructType([f for f in columns.fields if f.name.lower() not in beside])

    @cached_property
    def input_schema(self) -> StructType:
        """The columns as an engine gets them."""
        from pyspark.sql.types import StructType

        hidden = [metadata_field()] if self.has_metadata else []
        return StructType([*self.schema.fields, *hidden])
