"""Room for the files that the engine opens: without, gRPC would end the process amid an update."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack, suppress

from millpond.errors.engine_start import EngineStartError

# What an update of a few flows has open at once, threads and connections of the engine among it.
_NEEDED = 32
# What systems allow by default, most of them; above it, programs that use select() would break.
_WANTED = 1024


def make_room() -> None:
    """Raise the process's own limit where it is low and may be raised.

    Raises:
        EngineStartError: Too few files can be opened for the engine to start.
    """
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _WANTED if most == resource.RLIM_INFINITY else min(_WANTED, most)
    if limit != resource.RLIM_INFINITY and limit < allowed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    try:
        with ExitStack() as opened:
            for _ in range(_NEEDED):
                descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
                opened.callback(os.close, descriptor)
    except OSError as error:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise EngineStartError.from_open_files(limit, needed=_NEEDED) from error
