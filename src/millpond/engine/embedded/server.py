"""Starts and stops Sail."""

from __future__ import annotations

import os

# Parquet's statistics leave NaN out, and Sail trusts them: it skips rows with NaN, and where all
# other values of a column are equal, it gives that value in the place of NaN. Pages and
# Bloom filters have settings of their own.
_WITHOUT_STATISTICS = {
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    "SAIL_PARQUET__BLOOM_FILTER_ON_READ": "false",
    "SAIL_PARQUET__ENABLE_PAGE_INDEX": "false",
    "SAIL_PARQUET__PRUNING": "false",
}
# Sail walks a query by recursion, and a thread without stack left kills the process: the default
# does not last for some hundred UNION ALLs, ORs or additions. What is not used takes no memory.
STACK_SIZE = {"SAIL_RUNTIME__STACK_SIZE": str(64 * 1024 * 1024)}
# By default Sail's allocator keeps what it freed, and Sail all footers of Parquet files read:
# a process that runs batch after batch would grow.
_BOUNDED_MEMORY = {
    "MIMALLOC_PURGE_DELAY": "0",
    "SAIL_PARQUET__FILE_METADATA_CACHE__SIZE_LIMIT": str(32 * 1024 * 1024),
}


class Server:
    """A Sail server on a port of its own, that only this machine can reach."""

    def __init__(self) -> None:
        # Sail logs to standard error unless told otherwise; what matters comes back as errors.
        os.environ.setdefault("RUST_LOG", "off")
        for name, value in {**STACK_SIZE, **_BOUNDED_MEMORY}.items():
            os.environ.setdefault(name, value)
        os.environ.update(_WITHOUT_STATISTICS)
        from pysail.spark import SparkConnectServer

        self._server = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)

    @property
    def url(self) -> str:
        host, port = self._server.listening_address
        return f"sc://{host}:{port}"

    def stop(self) -> None:
        self._server.stop()
