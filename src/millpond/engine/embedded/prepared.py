"""Resolves the query of a flow once for all batches of an update: no text is parsed twice.

Sail keeps some 100 KB for good of each SQL text that it parses, and 20 KB of each expression, which
an update of many batches would feel. So a query becomes a temporary view over folders in the place
of its streams: a batch puts links to its files into them and reads the view.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto

from millpond.engine.embedded.staging import Staging
from millpond.engine.protocol import Binder, DeltaInput, EmptyInput, Input, ParquetInput, TableRead
from millpond.storage import new_scratch_folder

# A query whose tables change with each batch is not worth a view of its own each time.
MAX_VIEWS = 3

Relation = Any
# Puts inputs into a query.
Bind = Callable[[Binder], Relation]


class Analyse(Protocol):
    """Asks for the columns of a bound query, and adds those of a batch."""

    def __call__(
        self, root: Relation, /, keep: Callable[[Relation], Relation] = ...
    ) -> Staging: ...


@dataclass
class _Query:
    """A query of which batches are run.

    Attributes:
        held: What tells it from others; its parts are held, so that their identity stays theirs.
        inputs: What each of its reads was bound to when it was made a view.
        staging: A read of the view, once there is one.
        views: How often one was made.
        lock: Held while a batch runs: its folders are for one at a time.
    """

    held: tuple[Any, ...]
    number: int
    inputs: dict[TableRead, Input] = field(default_factory=dict)
    staging: Staging | None = None
    views: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class PreparedQueries:
    """The queries of one engine. Safe to use from several threads."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._queries: dict[tuple[int, ...], _Query] = {}
        self._numbers = count()
        self._lock = threading.Lock()

    @contextmanager
    def staging(
        self,
        query_parts: tuple[Any, ...],
        binder: Binder,
        *,
        bind: Bind,
        analyse: Analyse,
        client: Any,
    ) -> Iterator[Staging]:
        """Open what a batch has to run: the query over its inputs, or over links to them.

        Args:
            query_parts: The very objects that make the query, all but its inputs.
            binder: Gives the inputs of the batch.
            bind: Puts inputs into the query.
            analyse: Asks for its columns.
            client: Of the session in which it runs.

        Raises:
            MillpondError: The query can't be analysed.
        """
        with self._lock:
            key = tuple(map(id, query_parts))
            query = self._queries.setdefault(key, _Query(query_parts, len(self._queries)))
        if not query.lock.acquire(blocking=False):
            yield analyse(bind(binder))
            return
        try:
            yield (
                self._linked(query, binder)
                or self._prepared(query, binder, bind, analyse, client)
                or analyse(bind(binder))
            )
        finally:
            query.lock.release()

    def close(self) -> None:
        self._queries.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _linked(self, query: _Query, binder: Binder) -> Staging | None:
        """A read of the view over this batch's inputs, where there is one that fits them."""
        if query.staging is None:
            return None
        inputs = {read: binder(read) for read in query.inputs}
        if not all(_is_like(query.inputs[read], now) for read, now in inputs.items()):
            return None
        for number, now in enumerate(inputs.values()):
            self._link(query, number, now)
        return query.staging

    def _prepared(
        self, query: _Query, binder: Binder, bind: Bind, analyse: Analyse, client: Any
    ) -> Staging | None:
        """A view of the query over this batch's inputs; none where it does not pay or can't be."""
        if query.views >= MAX_VIEWS:
            return None
        query.views += 1
        inputs: dict[TableRead, Input] = {}

        def linked(read: TableRead) -> Input:
            found = inputs[read] = binder(read)
            return self._link(query, len(inputs) - 1, found)

        def view(relation: Relation) -> Relation:
            return self._view(relation, client)

        root = bind(linked)
        if any(map(_may_change, inputs.values())):
            query.views = MAX_VIEWS
            return None
        try:
            found = analyse(view(root), keep=view)
        except PySparkException:
            # What is wrong with the query itself is found again without a view, and explained.
            query.views = MAX_VIEWS
            return None
        query.inputs, query.staging = inputs, found
        return found

    def _view(self, relation: Relation, client: Any) -> Relation:
        """A read of a new view of a relation."""
        name = f"millpond_query_{next(self._numbers)}"
        command = proto.Command()
        command.create_dataframe_view.input.CopyFrom(relation)
        command.create_dataframe_view.name = name
        command.create_dataframe_view.replace = True
        client.execute_command(command)
        view = proto.Relation()
        view.read.named_table.unparsed_identifier = name
        return view

    def _link(self, query: _Query, number: int, found: Input) -> Input:
        """The same rows in a folder that is the query's own, where they are files."""
        files = _files(found)
        if files is None:
            return found
        with self._lock:
            if self._folder is None:
                self._folder = new_scratch_folder("views")
        folder = self._folder / f"{query.number}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in files:
            # A name of its own, for the engine remembers footers by names.
            link = folder / f"{next(self._numbers)}.parquet"
            link.symlink_to(Path(file).absolute())
        assert isinstance(found, EmptyInput | ParquetInput)
        return ParquetInput((str(folder),), found.schema)


def _files(found: Input) -> tuple[str, ...] | None:
    """The files that an input is, `None` where it is none."""
    if isinstance(found, ParquetInput):
        return found.files
    return () if isinstance(found, EmptyInput) else None


def _is_like(before: Input, now: Input) -> bool:
    """Whether an input can take the place of another in a view."""
    if isinstance(before, EmptyInput | ParquetInput) and isinstance(now, EmptyInput | ParquetInput):
        return before.schema == now.schema
    return before == now


def _may_change(found: Input) -> bool:
    """Whether an input that is no file may give other rows the next time."""
    return isinstance(found, DeltaInput) and found.version is None
