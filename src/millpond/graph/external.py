"""Sources outside the tables: files, and what streams from elsewhere. What columns they have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from millpond.engine.protocol import Engine, Input, TableRead
from millpond.files.columns import NewColumn
from millpond.files.schema import FileSchemas
from millpond.options import stream_limits
from millpond.storage import Layout, Store
from millpond.streaming import StreamSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

KAFKA = "kafka"
RATES = frozenset({"rate", "rate-micro-batch"})
_INFERENCE = "spark.sql.streaming.schemaInference"


@dataclass(frozen=True)
class Follower:
    """A flow that follows a source as a stream.

    Attributes:
        flow: Its name.
        source: What the flow calls the source.
        folder: For what the source keeps beside the checkpoint's offsets.
        store: Through which it keeps it.
        views: Through which the flow reads.
        has_metadata: Whether the flow asks for `_metadata`.
        follows_removals: Whether it is told what is gone from the source.
        names_are_keys: Whether files of one name are one key to it.
        empties_keys: Whether a file without rows empties its key.
        refused: Which new columns of files its query, or what reads its table, can't take, with
            why.
    """

    flow: str
    source: str
    folder: Path
    store: Store
    refused: Callable[[Sequence[NewColumn]], Mapping[NewColumn, str]]
    views: tuple[str, ...] = ()
    has_metadata: bool = False
    follows_removals: bool = False
    names_are_keys: bool = False
    empties_keys: bool = False


class ExternalSource(Protocol):
    """One read of something that is no table.

    Attributes:
        name: What to call it in messages and checkpoints.
        schema: Its columns, as an engine gets them.
    """

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> StructType: ...


@runtime_checkable
class LocalSource(ExternalSource, Protocol):
    """One that this machine reads."""

    def stream(self, follower: Follower) -> StreamSource:
        """The source of a stream."""
        ...

    def rows(self, *, folder: Path, has_metadata: bool) -> Input:
        """All rows that there are now, in files below `folder`."""
        ...


@dataclass(frozen=True)
class ReadKey:
    """What makes two reads of something outside the same."""

    format: str | None
    paths: tuple[str, ...]
    columns: str | None
    options: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, read: TableRead) -> ReadKey:
        return cls(read.format, read.paths, read.columns, tuple(sorted(read.options.items())))


# The reader of a source, its read, and whether that is a stream.
SourceKey = tuple[str, ReadKey, bool]


class ExternalSources(Protocol):
    """Finds them, each once."""

    def find(self, read: TableRead, *, reader: str, anew: bool = False) -> ExternalSource:
        """What a read with a format reads.

        Args:
            reader: The flow that reads it, of whose own the inferred columns are.
            anew: Whether columns are inferred again though they were kept.

        Raises:
            MillpondError: An option is wrong, or the columns can't be told.
        """
        ...


@dataclass(frozen=True)
class Proposal:
    """A column that files had in an earlier update beyond those of their read.

    Attributes:
        source: Which of the sources it is of.
    """

    source: SourceKey
    column: NewColumn


class LocalSources:
    """Those that this machine reads."""

    def __init__(
        self,
        engine: Engine,
        *,
        layout: Layout,
        store: Store | None,
        root: Path,
        configuration: Mapping[str, str],
    ) -> None:
        """Set up.

        Args:
            store: Through which inferred columns are kept; `None` to keep nothing.
            root: What relative paths start from.
        """
        self._engine = engine
        self._root = root
        self._configuration = configuration
        self._layout = layout
        self._store = store
        self._found: dict[SourceKey, LocalSource] = {}
        self._shown: dict[SourceKey, LocalSource] = {}
        self._taken: Collection[Proposal] | None = None
        self._refused: Mapping[Proposal, str] = {}

    def find(self, read: TableRead, *, reader: str, anew: bool = False) -> LocalSource:
        """What a read with a format reads; see `ExternalSources`."""
        # Nothing is kept of what is read whole, whoever reads it.
        key = (reader if read.streaming else "", ReadKey.of(read), read.streaming)
        if key not in self._found:
            self._found[key] = self._source(read, reader=reader, anew=anew)
        if key not in self._shown:
            self._shown[key] = self._with_new_columns(key)
        return self._shown[key]

    def proposed(self) -> list[Proposal]:
        """New columns of the sources that were found so far."""
        from millpond.graph.files import FileRead

        return [
            Proposal(key, column)
            for key, source in self._found.items()
            if isinstance(source, FileRead)
            for column in source.proposed
        ]

    def take(self, proposals: Collection[Proposal], *, refused: Mapping[Proposal, str]) -> None:
        """Find sources with these of the proposed columns from now on; until then, with all.

        Args:
            refused: Others, with why the queries can't take them.
        """
        self._shown.clear()
        self._taken, self._refused = proposals, refused

    def keep_columns(self) -> None:
        """Keep the columns of all streams as they were found last."""
        from millpond.graph.files import FileRead

        for source in self._shown.values():
            if isinstance(source, FileRead):
                source.keep_columns()

    def _with_new_columns(self, key: SourceKey) -> LocalSource:
        from millpond.graph.files import FileRead

        source = self._found[key]
        if not isinstance(source, FileRead) or not source.proposed:
            return source
        own = [Proposal(key, column) for column in source.proposed]
        return source.taking(
            [each.column for each in own if self._taken is None or each in self._taken],
            refused={each.column: self._refused[each] for each in own if each in self._refused},
        )

    def _source(self, read: TableRead, *, reader: str, anew: bool) -> LocalSource:
        from millpond.graph.elsewhere import KafkaRead, RateRead
        from millpond.graph.files import FileRead

        if read.format == KAFKA:
            return KafkaRead.of(read)
        if read.format in RATES:
            return RateRead.of(read)
        return FileRead.of(
            read,
            limits=self._limits(read),
            root=self._root,
            schemas=self._schemas(reader),
            schemas_of=self._schemas,
            parse_schema=self._engine.parse_schema,
            infers_streams=self._configuration.get(_INFERENCE, "").lower() == "true",
            anew=anew,
        )

    def _schemas(self, reader: str) -> FileSchemas:
        return FileSchemas(self._layout.schemas(reader), self._store)

    def _limits(self, read: TableRead) -> dict[str, str]:
        """Limits that the configuration sets, where a stream has none of its own."""
        if not read.streaming:
            return {}
        limits = stream_limits(self._configuration).items()
        return {k: v for k, v in limits if not any(own.endswith(k) for own in read.options)}
