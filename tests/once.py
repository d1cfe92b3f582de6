"""Something that takes long and that several tests look at: made once for all processes of a run."""

from __future__ import annotations

import fcntl
import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a run of tests have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def once(place: Path, make: Callable[[Path], Any]) -> Any:
    """What `make` returns, or how it failed in words; asked for first, or by another process.

    Args:
        place: A folder for `make`, which makes it; files beside it keep the result.
        make: Called with that folder.
    """
    # No suffixes: what is kept may have a dot in its name.
    with Path(f"{place}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = Path(f"{place}.pickle")
        if not kept.exists():
            try:
                outcome: Any = make(place)
            except Exception:  # noqa: BLE001 - told by every test that asks, and not tried again
                outcome = traceback.format_exc()
            kept.write_bytes(pickle.dumps(outcome))
        return pickle.loads(kept.read_bytes())  # noqa: S301 - written by this very function
