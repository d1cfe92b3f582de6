"""Ends clients of Spark Connect for good."""

from __future__ import annotations

import atexit
from typing import Any


def close_client(client: Any) -> None:
    """Close a client. PySpark would keep it, and all that it knows of, until the process ends."""
    client.close()
    atexit.unregister(client._on_exit)  # noqa: SLF001 - what PySpark registered, and has no more to do
