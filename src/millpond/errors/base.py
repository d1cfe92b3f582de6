"""The base of every error that millpond raises on purpose: what happened, where, what to do."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, order=True)
class SourceLocation:
    """A place in a user's source file.

    Attributes:
        file: Path as the user would write it, relative to the project folder where it is inside.
        line: Line, counted from 1, or `None` where only the file is known.
        column: Column, counted from 1, or `None`.
    """

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)


class MillpondError(Exception):
    """Base of millpond's errors.

    A subclass stands for one cause. It sets `error_class`, a stable name that users may match on,
    and builds its wording in classmethod constructors.

    Attributes:
        what: What happened, one sentence or two, naming the flow or table concerned.
        where: The source location, if one is known.
        hint: What the user can do about it.
        detail: Lines shown under the message as they are, such as a statement with a caret.
    """

    error_class: ClassVar[str] = ""
    sqlstate: ClassVar[str | None] = None

    def __init__(
        self,
        what: str,
        *,
        hint: str | None = None,
        where: SourceLocation | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.where = where
        self.detail = detail

    def __str__(self) -> str:
        state = f" (SQLSTATE {self.sqlstate})" if self.sqlstate else ""
        lines = [f"[{self.error_class}] {self.what}{state}"]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        if self.detail:
            lines.extend(f"  {line}" for line in self.detail.splitlines())
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def all_error_classes() -> list[type[MillpondError]]:
    """Every concrete error class of this package, by `error_class`. Imports all its modules."""
    package = importlib.import_module("millpond.errors")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"millpond.errors.{module.name}")
    found: list[type[MillpondError]] = []
    pending = list(MillpondError.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if cls.error_class and cls.__module__.startswith(f"{package.__name__}."):
            found.append(cls)
    return sorted(set(found), key=lambda cls: cls.error_class)
