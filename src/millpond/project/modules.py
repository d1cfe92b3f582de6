"""Imports and runs the Python code of one project.

A source file runs once, whether millpond comes to it or another file imports it. Every other
module of the project is imported as Python does it, from the folder of the file that is running,
from the project folder, or from folders that user code put into `sys.path`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from millpond.definitions import Flow, Pipeline, PythonQuery
from millpond.errors import MillpondError
from millpond.pipelines.registry import Registry, evaluating, registering
from millpond.project.environment import SourceEnvironment
from millpond.project.failures import explain
from millpond.project.source_files import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SourceImportError(ImportError):
    """A source file imports another one that failed; the other one's error says why."""


class _State(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()


@dataclass
class _Source:
    """One Python source file and what became of it."""

    file: SourceFile
    registry: Registry
    state: _State = _State.WAITING
    module: ModuleType | None = None
    problem: MillpondError | None = None


class ProjectModules:
    """The Python code of a project that is being loaded, or was."""

    def __init__(
        self,
        files: Sequence[SourceFile],
        *,
        root: Path,
        catalog: str,
        schema: str,
        session: SparkSession,
    ) -> None:
        self._sources = {
            file.path: _Source(file, Registry(root, catalog, schema, session))
            for file in files
            if file.is_python
        }
        self._session = session
        self._folders: list[Path] = []
        self._environment = SourceEnvironment(
            root=root, files=frozenset(self._sources), session=session, finder=_Finder(self)
        )

    def load(self, file: SourceFile) -> tuple[Pipeline, list[MillpondError]]:
        """Run a source file, unless an import ran it before; return what it defines."""
        source = self._sources[file.path]
        if source.state is _State.WAITING:
            with self._entered(file.path.parent):
                self.run(source)
        pipeline = source.registry.pipeline()
        flows = tuple(self._bound(flow, source) for flow in pipeline.flows)
        return replace(pipeline, flows=flows), [source.problem] if source.problem else []

    def find(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """How to import a module of the project; nothing where it is none of the project's."""
        environment = self._environment
        if path is None:
            if name in sys.stdlib_module_names:
                return None
            folders = [*reversed(self._folders), environment.root, *environment.added_folders()]
            path = [str(folder) for folder in folders]
        elif not any(environment.owns(folder) for folder in path):
            return None  # a part of an installed package
        spec = PathFinder.find_spec(name, path)
        if spec is None or (spec.has_location and not environment.owns(spec.origin)):
            return None
        source = self._sources.get(Path(spec.origin)) if spec.origin else None
        if (source is not None or not spec.has_location) and self._is_installed(name):
            # A source file, or a folder, may be called like a package and shall not hide it.
            return None
        if source is not None:
            spec.loader = _SourceLoader(self, source)
        elif isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ModuleLoader(environment, spec.loader)
        return spec

    def run(self, source: _Source) -> ModuleType:
        """Run a source file from its text; its problem, if any, is kept with it."""
        source.state = _State.RUNNING
        path = str(source.file.path)
        name = self._module_name(source.file)
        module = module_from_spec(ModuleSpec(name, SourceFileLoader(name, path), origin=path))
        module.__file__ = path
        vars(module)["spark"] = self._session
        source.module = module
        try:
            code = compile(source.file.read(), path, "exec", dont_inherit=True)
            self._environment.add_module(name, module)
            with self._searching(source.file.path.parent), registering(source.registry):
                exec(code, vars(module))  # noqa: S102 - running the user's file is the purpose
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever user code raises
            sys.modules.pop(name, None)
            source.state = _State.FAILED
            if not _comes_from_other_source(error):
                source.problem = explain(
                    error,
                    file=source.file,
                    owns=self._environment.owns,
                    root=self._environment.root,
                )
        else:
            source.state = _State.DONE
        return module

    def imported(self, source: _Source) -> ModuleType:
        """The module of a source file that another file imports.

        Raises:
            SourceImportError: It failed.
        """
        if source.state is _State.WAITING:
            self.run(source)
        if source.state is _State.FAILED or source.module is None:
            raise SourceImportError(f"the source file {source.file.name} failed")
        return source.module

    def _bound(self, flow: Flow, source: _Source) -> Flow:
        """Have a query function find, whenever it is called, what its file found around it."""
        query = flow.query
        if not isinstance(query, PythonQuery):
            return flow
        function = self._in_environment(query.function, source)
        return replace(flow, query=replace(query, function=function))

    def _in_environment(self, function: Callable[[], Any], source: _Source) -> Callable[[], Any]:
        @functools.wraps(function)
        def call() -> Any:
            with self._entered(source.file.path.parent), evaluating(source.registry):
                return function()

        return call

    @contextmanager
    def _entered(self, folder: Path) -> Iterator[None]:
        with self._environment.entered(), self._searching(folder):
            yield

    @contextmanager
    def _searching(self, folder: Path) -> Iterator[None]:
        self._folders.append(folder)
        try:
            yield
        finally:
            self._folders.pop()

    def _module_name(self, file: SourceFile) -> str:
        """The file's own name, where that hides no other module; else one nobody can import."""
        stem = file.path.stem
        taken = stem in sys.modules or stem in sys.stdlib_module_names or self._is_installed(stem)
        return f"{stem}@{file.name.removesuffix('.py')}" if taken else stem

    def _is_installed(self, name: str) -> bool:
        if "." in name:
            return False
        spec = PathFinder.find_spec(name, self._environment.outer_path)
        return spec is not None and not self._environment.owns(spec.origin)


class _Finder(MetaPathFinder):
    def __init__(self, modules: ProjectModules) -> None:
        self._modules = modules

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - importlib's interface
    ) -> ModuleSpec | None:
        return self._modules.find(fullname, path)


class _SourceLoader(Loader):
    """Gives the module of a source file, which runs at most once."""

    def __init__(self, modules: ProjectModules, source: _Source) -> None:
        self._modules = modules
        self._source = source

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - importlib's interface
        return self._modules.imported(self._source)

    def exec_module(self, module: ModuleType) -> None:
        """The module ran when it was created."""
        _set_plain_loader(module, str(self._source.file.path))


class _ModuleLoader(SourceFileLoader):
    """Imports another module of the project, from its text.

    Python's compiled files are left aside: they are told from stale ones by a time in whole
    seconds, too coarse for a file that is edited and loaded again in one process.
    """

    def __init__(self, environment: SourceEnvironment, loader: SourceFileLoader) -> None:
        super().__init__(loader.name, loader.path)
        self._environment = environment

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's interface
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        self._environment.add_module(module.__name__, module)
        _set_plain_loader(module, self.path)
        super().exec_module(module)


def _set_plain_loader(module: ModuleType, path: str) -> None:
    """Cut the way from a module to this load: functions take their modules along when pickled."""
    loader = SourceFileLoader(module.__name__, path)
    module.__loader__ = loader
    if module.__spec__ is not None:
        module.__spec__.loader = loader


def _comes_from_other_source(error: BaseException) -> bool:
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, SourceImportError):
            return True
        found = found.__cause__ or found.__context__
    return False
