"""Makes the processes of the tests fit for pyspark and Sail.

A worker of pytest-xdist has no main file, and pyspark's client takes such a process for a run of
its own doctests, looks for an installation of Spark, and exits. Sail takes the size of its threads'
stacks from the first server of a process, which may be one that a test reads tables with. And what
is started in the background of a script ignores Ctrl-C, as would what it starts itself.
"""

import os
import signal
import sys

import pytest

from millpond.engine.embedded.server import STACK_SIZE
from tests.spark.fixtures import lone_spark_server, shared_spark, spark_server

__all__ = ["lone_spark_server", "shared_spark", "spark_server"]

_main = sys.modules["__main__"]
if not hasattr(_main, "__file__"):
    _main.__file__ = __file__

os.environ.update(STACK_SIZE)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that ask the Spark server come first, so that one worker runs them and none waits.

    They take turns at the server, and stories share their updates.
    """
    items.sort(key=_is_embedded)


def _is_embedded(item: pytest.Item) -> bool:
    engine = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    return engine != "spark" and "shared_spark" not in item.fixturenames
