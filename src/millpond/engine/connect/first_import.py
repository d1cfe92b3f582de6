"""The first import of PySpark's client, in whatever process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def import_client() -> None:
    """Import it.

    It takes a process without a main file, as `python -c` and pytest-xdist start them, for a run of
    its own doctests, and ends it. So there is one for as long as the import takes, and no longer:
    processes that this one starts would look for it.

    It imports pandas, a fifth of the time of a small update, for `createDataFrame` and `toPandas`
    alone. So pandas is imported when one of them first asks for it.
    """
    main = sys.modules["__main__"]
    has_file = hasattr(main, "__file__")
    if not has_file:
        main.__file__ = __file__
    try:
        with _pandas_later():
            import pyspark.sql.connect.session  # noqa: F401 - all that is wanted
    finally:
        if not has_file:
            del main.__file__


class _LaterModule(ModuleType):
    """A module that is imported once something of it is asked for that is not given here."""

    def __getattr__(self, name: str) -> Any:
        # The import system asks every module for these.
        if name.startswith("__"):
            raise AttributeError(name)
        _step_aside()
        return getattr(importlib.import_module(self.__name__), name)


def _step_aside() -> None:
    """Let the next import of any of them find the real one."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, _LaterModule):
            del sys.modules[name]


@contextmanager
def _pandas_later() -> Iterator[None]:
    """Let what is imported meanwhile have a pandas that is not imported yet."""
    try:
        installed = version("pandas")
    except PackageNotFoundError:
        installed = ""
    if "pandas" in sys.modules or not installed:
        yield
        return
    pandas, types = _LaterModule("pandas"), _LaterModule("pandas.api.types")
    # What is asked for while they are imported: a class in an annotation, and two functions.
    vars(pandas).update(__version__=installed, __spec__=find_spec("pandas"), DataFrame=object)
    for name in ("is_datetime64_dtype", "is_timedelta64_dtype"):
        vars(types)[name] = _later_function(types.__name__, name)
    sys.modules |= {module.__name__: module for module in (pandas, types)}
    try:
        yield
    finally:
        del vars(pandas)["DataFrame"]
        _step_aside()


def _later_function(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call
