"""What code that defines a pipeline may do: build queries and ask for schemas, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.call_sites import call_site
from millpond.engine.connect.functions import RegisteredFunctions
from millpond.engine.connect.plan import (
    ConnectPlan,
    plan_of_relation,
    sets_watermark,
)
from millpond.engine.protocol import Binder, TableRead
from millpond.engine.sqltext.analysis import CanRead
from millpond.errors import SourceLocation
from millpond.errors.engine import OperationNotAllowedError

_NOWHERE = SourceLocation("<python>")
# The relation of a plan over its inputs.
OverInputs = Callable[[ConnectPlan, Binder], Any]
# The form in which an engine can analyse a bound plan whose operators keep state.
WithoutState = Callable[[ConnectPlan, Any], Any]


@dataclass(frozen=True)
class _Defaults:
    catalog: str | None = None
    schema: str | None = None


class DefinitionGuard:
    """Stands between the user's session and the engine.

    While no binder is set, plans that read tables can't be analysed: nobody knows the tables yet.
    """

    def __init__(
        self,
        over_inputs: OverInputs,
        can_read: CanRead,
        functions: RegisteredFunctions,
        without_state: WithoutState,
        *,
        marks_state: bool,
    ) -> None:
        self._over_inputs = over_inputs
        self._without_state = without_state
        self._marks_state = marks_state
        self._can_read = can_read
        self._functions = functions
        self._binders: list[Binder] = []
        self._defaults = [_Defaults()]

    @contextmanager
    def open(self, binder: Binder) -> Iterator[None]:
        """Analyse the user's plans over the inputs that `binder` gives."""
        self._binders.append(binder)
        try:
            yield
        finally:
            self._binders.pop()

    @contextmanager
    def names_in(self, *, catalog: str, schema: str) -> Iterator[None]:
        """Read names that leave out their first parts as those of a catalog and schema."""
        self._defaults.append(_Defaults(catalog, schema))
        try:
            yield
        finally:
            self._defaults.pop()

    def bound(self, plan: Any) -> Any:
        """A plan that user code wants to analyse, over bound inputs.

        Raises:
            OperationNotAllowedError: It reads tables, and nobody can say which.
        """
        found = self._read(plan.root)
        binder = self._binders[-1] if self._binders else _no_binder
        root = self._over_inputs(found, binder)
        return proto.Plan(root=self._without_state(found, root))

    def is_streaming(self, plan: Any) -> bool:
        return self._read(plan.root).is_streaming

    def has_watermark(self, read: TableRead) -> bool:
        """Whether a stream is a view that sets a watermark, as far as anybody knows now."""
        return bool(self._binders) and sets_watermark(self._binders[-1], read)

    def _read(self, relation: Any) -> ConnectPlan:
        site = call_site()
        return plan_of_relation(
            relation,
            location=site.location if site else _NOWHERE,
            can_read=self._can_read,
            aggregates=self._functions.aggregates,
            has_watermark=self.has_watermark,
            marks_state=self._marks_state,
            catalog=self._defaults[-1].catalog,
            schema=self._defaults[-1].schema,
        )


def refused(operation: str | None = None) -> OperationNotAllowedError:
    """The error for something that user code must not do, named after what it called."""
    site = call_site()
    called = operation or (f"{site.function}()" if site and site.function else "Running a query")
    return OperationNotAllowedError.of(called, where=site.location if site else None)


def _no_binder(_read: TableRead) -> Any:
    raise refused("Asking for the columns of a table outside a query function")
