"""What a user's Python code finds around it while millpond runs it, and nobody afterwards.

Inside, `pyspark.pipelines` and `dlt` are millpond's module, the project's own modules can be
imported, the current folder is the project's, and the active session is the pipeline's. Outside,
everything is as it was before, so that two projects loaded in one process don't meet.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from millpond import pipelines
from millpond.engine.active_session import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_REPLACED = ("pyspark.pipelines", "dlt")
_ABSENT = object()

# Modules, the search path and the current folder belong to the process: one load at a time.
_LOCK = threading.RLock()


class SourceEnvironment:
    """The surroundings of one project's Python code, from one load on.

    Attributes:
        root: Project folder.
        files: The source files; they may lie elsewhere.
        outer_path: `sys.path` as it was before any user code ran.
        modules: Modules of the project that were imported so far, by name; gone from
            `sys.modules` while nobody is inside.
        search_path: `sys.path` as user code sees it, with what user code added.
    """

    def __init__(
        self,
        *,
        root: Path,
        files: Collection[Path],
        session: SparkSession,
        finder: MetaPathFinder,
    ) -> None:
        self.root = root
        self.files = files
        self.outer_path: tuple[str, ...] = tuple(sys.path)
        self.modules: dict[str, ModuleType] = {}
        self.search_path: list[str] = list(sys.path)
        self._session = session
        self._finder = finder
        self._depth = 0
        self._sent_whole: dict[str, ModuleType] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """While open, user code may run. Other threads wait; the same may enter again."""
        with _LOCK, ExitStack() as stack:
            if self._depth == 0:
                stack.enter_context(self._search_path())
                stack.enter_context(_replaced_modules())
                stack.enter_context(self._project_modules())
                stack.enter_context(_current_folder(self.root))
                stack.enter_context(active(self._session))
            self._depth += 1
            stack.callback(self._leave)
            yield

    def add_module(self, name: str, module: ModuleType) -> None:
        """Make a module of the project known under its name, until the environment is left."""
        sys.modules[name] = module
        self._send_whole(module)

    def owns(self, file: str | None) -> bool:
        """Whether a file is the project's own code, not an installed package."""
        if file is None:
            return False
        path = Path(file)
        if path in self.files:
            return True
        if _INSTALLED.intersection(path.parts) or path.is_relative_to(_STANDARD_LIBRARY):
            return False
        return any(path.is_relative_to(folder) for folder in (self.root, *self.added_folders()))

    def added_folders(self) -> list[Path]:
        """The folders that user code put into `sys.path`."""
        return [Path(self.root, entry) for entry in sys.path if entry not in self.outer_path]

    def _leave(self) -> None:
        self._depth -= 1

    @contextmanager
    def _search_path(self) -> Iterator[None]:
        path, outer = sys.path, list(sys.path)
        sys.path[:] = self.search_path
        sys.meta_path.insert(0, self._finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path[:] = [found for found in sys.meta_path if found is not self._finder]
            self.search_path = list(sys.path)
            path[:] = outer
            sys.path = path

    @contextmanager
    def _project_modules(self) -> Iterator[None]:
        before = dict(sys.modules)
        sys.modules.update(self.modules)
        for module in self.modules.values():
            self._send_whole(module)
        try:
            yield
        finally:
            self.modules = {
                name: module
                for name, module in sys.modules.items()
                if before.get(name) is not module and self._is_own_module(name, module, before)
            }
            for name in self.modules:
                _put_back(sys.modules, name, before.get(name, _ABSENT))
            self._send_nothing_whole()

    def _send_whole(self, module: ModuleType) -> None:
        """Functions of the project are pickled by value: an engine can't import the project."""
        from pyspark import cloudpickle

        if module.__name__ in sys.modules:
            cloudpickle.register_pickle_by_value(module)
            self._sent_whole[module.__name__] = module

    def _send_nothing_whole(self) -> None:
        from pyspark import cloudpickle

        for module in self._sent_whole.values():
            cloudpickle.unregister_pickle_by_value(module)
        self._sent_whole.clear()

    def _is_own_module(self, name: str, module: Any, before: dict[str, ModuleType]) -> bool:
        top = name.partition(".")[0]
        if top in before and top not in self.modules and name != top:
            return False  # a late part of a package that was there before, such as millpond itself
        file = getattr(module, "__file__", None)
        folders = [] if file else list(getattr(module, "__path__", []))
        return any(self.owns(place) for place in ([file] if file else folders))


@contextmanager
def _replaced_modules() -> Iterator[None]:
    """Put millpond's module in the place of Spark's and of the older one's name."""
    import pyspark

    kept = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if any(name == replaced or name.startswith(replaced + ".") for replaced in _REPLACED)
    }
    attribute = vars(pyspark).get("pipelines", _ABSENT)
    for name in _REPLACED:
        sys.modules[name] = pipelines
    pyspark.pipelines = pipelines
    try:
        yield
    finally:
        for name in list(sys.modules):
            if any(name == replaced or name.startswith(replaced + ".") for replaced in _REPLACED):
                del sys.modules[name]
        sys.modules.update(kept)
        _put_back(vars(pyspark), "pipelines", attribute)


@contextmanager
def _current_folder(folder: Path) -> Iterator[None]:
    """Relative paths in user code are relative to the project, as in Apache Spark."""
    descriptor = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(descriptor)
        os.close(descriptor)


def _put_back(target: Any, name: str, value: object) -> None:
    if value is _ABSENT:
        target.pop(name, None)
    else:
        target[name] = value
