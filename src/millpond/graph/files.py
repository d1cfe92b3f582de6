"""A read of files, as a stream or whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.engine.protocol import Input, ParquetInput, TableRead
from millpond.errors import MillpondError
from millpond.errors.file_reads import ColumnsNotInferredError, FilesUnreadableError
from millpond.files import FileOptions
from millpond.files.columns import FileColumns, NewColumn
from millpond.files.listing import list_files
from millpond.files.locations import locate
from millpond.files.option_parser import parse_options
from millpond.files.options import EvolutionMode
from millpond.files.reading import read_files
from millpond.files.schema import (
    FileSchemas,
    KeptColumns,
    check_readable,
    file_columns,
    infer,
    with_folders_of,
)
from millpond.graph.external import Follower
from millpond.streaming import StreamSource
from millpond.streaming.file_access import FileAccess
from millpond.streaming.file_source import FileSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class FileRead:
    """A read of files with the columns that it has in this update.

    Attributes:
        kept: What an earlier update found out about the files, `None` where that does not count.
        found: What is taken for granted about them now.
        schemas: Where the inferred columns of its reader are kept.
        schemas_of: Where those of another reader are, by its name.
        refused: Columns of files that the queries can't take, with why.
    """

    read: TableRead
    options: FileOptions
    kept: KeptColumns | None
    found: KeptColumns
    columns: FileColumns
    root: Path
    schemas: FileSchemas
    schemas_of: Callable[[str], FileSchemas]
    refused: Mapping[NewColumn, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        read: TableRead,
        *,
        limits: Mapping[str, str],
        root: Path,
        schemas: FileSchemas,
        schemas_of: Callable[[str], FileSchemas],
        parse_schema: Callable[[str], StructType],
        infers_streams: bool,
        anew: bool,
    ) -> FileRead:
        """Understand a read, and find its columns.

        Args:
            limits: Options to take where the read has none of its own.
            infers_streams: Whether streams of plain formats infer their columns.
            anew: Whether columns are inferred again though they were kept.

        Raises:
            MillpondError: An option is wrong, or the columns can't be told.
        """
        assert read.format is not None
        options = parse_options(
            format=read.format,
            paths=read.paths,
            options={**limits, **read.options},
            written=read.option_names,
            columns=read.columns,
            streaming=read.streaming,
            parse_schema=parse_schema,
            where=read.location,
            root=root,
            infers_streams=infers_streams,
        )
        kept = None if anew or not read.streaming else schemas.kept(options)
        try:
            found = kept or _inferred(options, read, root=root)
            columns = file_columns(options, found)
            check_readable(options, columns)
        except MillpondError as error:
            # What keeps a folder from being listed knows of no query.
            error.where = error.where or read.location
            raise
        return cls(read, options, kept, found, columns, root, schemas, schemas_of)

    @property
    def proposed(self) -> tuple[NewColumn, ...]:
        """Columns that files had in earlier updates beyond those of the read."""
        adds = self.options.evolution is EvolutionMode.ADD_NEW_COLUMNS
        return self.found.proposed if adds else ()

    def taking(self, new: Iterable[NewColumn], *, refused: Mapping[NewColumn, str]) -> FileRead:
        """The read with some of the columns that were proposed."""
        found = self.found.with_columns(new)
        return replace(
            self, found=found, columns=file_columns(self.options, found), refused=refused
        )

    def keep_columns(self) -> None:
        """Keep the columns as they are for later updates; they are the same from then on."""
        found = replace(self.found, proposed=())
        if self.read.streaming and found != self.kept:
            self.schemas.keep(self.options, found)

    @property
    def name(self) -> str:
        return " ".join(self._places)

    @property
    def _places(self) -> tuple[str, ...]:
        """Where the files lie: absolute, since the log of files that were read names them so."""
        places = (locate(path, root=self.root).shown for path in self.options.paths)
        return tuple(place.rstrip("/") or "/" for place in places)

    @property
    def schema(self) -> StructType:
        return self.columns.input_schema

    def uris(self) -> set[str]:
        """Those of the files that there are now, for a stream that has read none.

        Raises:
            MillpondError: They can't be listed.
        """
        files = list_files(self.options, root=self.root, first=True, unlisted={})
        return {file.uri for file in files}

    def stream(self, follower: Follower) -> StreamSource:
        """The files as the source of a stream."""
        columns = replace(self.columns, has_metadata=follower.has_metadata)
        access = FileAccess(
            options=self.options,
            places=self._places,
            columns=columns,
            columns_of=lambda files: with_folders_of(files, self.options, columns, root=self.root),
            list=partial(list_files, self.options, root=self.root),
            root=self.root,
            propose=partial(self._propose, follower),
            refused=self.refused,
            follows_removals=follower.follows_removals,
            names_are_keys=follower.names_are_keys,
            refuses_cut_files=follower.empties_keys,
        )
        return FileSource(
            access,
            folder=follower.folder,
            store=follower.store,
            name=follower.source,
            flow=follower.flow,
        )

    def _propose(self, follower: Follower, new: Sequence[NewColumn]) -> Mapping[NewColumn, str]:
        """Keep new columns for the next update, in which the views are asked for them as well.

        Returns:
            Those that it will refuse, with why.
        """
        for schemas in (self.schemas, *map(self.schemas_of, follower.views)):
            schemas.propose(self.options, new)
        return follower.refused(new)

    def rows(self, *, folder: Path, has_metadata: bool) -> Input:
        """The rows of all files that there are now.

        Raises:
            FilesUnreadableError: Some can't be read.
        """
        columns = replace(self.columns, has_metadata=has_metadata)
        mode = EvolutionMode.RESCUE if columns.rescued else EvolutionMode.NONE
        options = replace(self.options, evolution=mode)
        files = list_files(options, root=self.root)
        columns = with_folders_of(files, options, columns, root=self.root)
        read = read_files(files, options, columns, root=self.root, folder=folder)
        if read.changed:
            again = read_files(read.changed, options, columns, root=self.root, folder=folder)
            read.parquet += again.parquet
            read.missing += again.missing
            read.damaged |= again.damaged
            read.failed |= again.failed | {
                file.uri: "it changes while it is read" for file in again.changed
            }
        passed_over = read.damaged if self.options.ignore_corrupt else set()
        failed = {uri: why for uri, why in read.failed.items() if uri not in passed_over}
        if not self.options.ignore_missing:
            failed |= dict.fromkeys(read.missing, "it is gone")
        if failed:
            raise FilesUnreadableError.from_files(
                self.name,
                reasons=failed,
                where=self.read.location,
                is_passable=not read.damaged.isdisjoint(failed),
            )
        return ParquetInput.of_written(read.parquet, columns.input_schema)


def _inferred(options: FileOptions, read: TableRead, *, root: Path) -> KeptColumns:
    # A stream tells of folders that can't be listed when it has read the others.
    files = list_files(options, root=root, unlisted={} if options.streaming else None)
    if not files and options.schema is None:
        raise ColumnsNotInferredError.from_read(" ".join(options.paths), where=read.location)
    return infer(files, options, root=root)
