"""The first import of PySpark's client, in whatever process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
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
    if "pyspark.sql.connect.session" in sys.modules:
        return
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
        found = _imported(self.__name__, name)
        vars(self)[name] = found
        return found


class _Later:
    """A class or a function of such a module, which is all that the real one is."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _imported(*self._place)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # `typing` asks for these.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_imported(*self._place), name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, _imported(*self._place))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_imported(*self._place),)


def _imported(module: str, name: str) -> Any:
    _step_aside()
    return getattr(importlib.import_module(module), name)


def _step_aside() -> None:
    """Let the next import of any of them find the real one."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, _LaterModule) and sys.modules.get(name) is module:
            del sys.modules[name]


@contextmanager
def _pandas_later() -> Iterator[None]:
    """Let what is imported meanwhile have a pandas that is not imported yet.

    It does for other threads, too, which may happen to import pandas just then.
    """
    try:
        installed = version("pandas")
    except PackageNotFoundError:
        installed = ""
    if "pandas" in sys.modules or not installed:
        yield
        return
    pandas, types = _LaterModule("pandas"), _LaterModule("pandas.api.types")
    # What is asked for while they are imported: a class in an annotation, and two functions.
    vars(pandas).update(__version__=installed, __spec__=find_spec("pandas"))
    vars(pandas)["DataFrame"] = _Later("pandas", "DataFrame")
    for name in ("is_datetime64_dtype", "is_timedelta64_dtype"):
        vars(types)[name] = _Later("pandas.api.types", name)
    sys.modules |= {module.__name__: module for module in (pandas, types)}
    try:
        yield
    finally:
        del vars(pandas)["DataFrame"]
        _step_aside()
