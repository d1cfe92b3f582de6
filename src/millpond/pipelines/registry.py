"""Collects what source files define while they run. Knows nothing of files, modules or engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.definitions import Dataset, Flow, Pipeline
from millpond.errors import SourceLocation
from millpond.errors.pipelines import DefinitionInsideQueryError, DefinitionOutsideRunError
from millpond.names import DEFAULT_CATALOG, DEFAULT_SCHEMA, TableName, resolve_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OWN_PACKAGE = __name__.rpartition(".")[0]


@dataclass
class Registry:
    """The definitions of one source file, in the order in which they were made.

    Attributes:
        root: Project folder; files inside are named relative to it.
        session: What `dp.read` and `dp.read_stream` read with.
    """

    root: Path
    catalog: str = DEFAULT_CATALOG
    schema: str = DEFAULT_SCHEMA
    session: SparkSession | None = None
    datasets: list[Dataset] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)

    def resolve(self, name: str, *, where: SourceLocation) -> TableName:
        return resolve_name(name, catalog=self.catalog, schema=self.schema, where=where)

    def pipeline(self) -> Pipeline:
        return Pipeline(datasets=tuple(self.datasets), flows=tuple(self.flows))


@dataclass(frozen=True)
class _Activation:
    registry: Registry
    open: bool


_ACTIVE: ContextVar[_Activation | None] = ContextVar("millpond_registry", default=None)


@contextmanager
def registering(registry: Registry) -> Iterator[Registry]:
    """While open, definitions go to `registry`."""
    token = _ACTIVE.set(_Activation(registry, open=True))
    try:
        yield registry
    finally:
        _ACTIVE.reset(token)


@contextmanager
def evaluating(registry: Registry) -> Iterator[None]:
    """While open, query functions may read as in `registry`'s file, but define nothing."""
    token = _ACTIVE.set(_Activation(registry, open=False))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def active_registry(api: str) -> Registry:
    """The registry that takes definitions now.

    Raises:
        DefinitionOutsideRunError: No pipeline is being loaded.
        DefinitionInsideQueryError: A query function is being evaluated.
    """
    active = _ACTIVE.get()
    if active is None:
        raise DefinitionOutsideRunError.from_call(api, where=caller_location())
    if not active.open:
        raise DefinitionInsideQueryError.from_call(api, where=caller_location())
    return active.registry


def active_session(api: str) -> SparkSession:
    """The session of the pipeline that is being loaded or evaluated.

    Raises:
        DefinitionOutsideRunError: There is none.
    """
    active = _ACTIVE.get()
    if active is None or active.registry.session is None:
        raise DefinitionOutsideRunError.from_read(api, where=caller_location())
    return active.registry.session


def caller_location() -> SourceLocation:
    """The line of user code that called into this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads every source file on the stack
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return file_location(frame.f_code.co_filename, frame.f_lineno)


def file_location(file: str, line: int | None) -> SourceLocation:
    """A place in a file, named relative to the active project where it lies inside."""
    active = _ACTIVE.get()
    path = Path(file)
    if active is not None and path.is_relative_to(active.registry.root):
        file = str(path.relative_to(active.registry.root))
    return SourceLocation(file=file, line=line)


def _is_own(module: str) -> bool:
    return module == _OWN_PACKAGE or module.startswith(_OWN_PACKAGE + ".")
