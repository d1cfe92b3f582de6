"""The fixture `stage`: what all seeds of a process share."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.files.shared_engine import started_engine
from tests.simulation.history import Stage

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folders below it are made with a name of their own


@pytest.fixture(scope="session")
def stage():
    """In memory where that can be had: a real disk is not needed to lose what was not synced."""
    root = Path(tempfile.mkdtemp(prefix="simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        with started_engine() as engine:
            yield Stage(engine, root)
    finally:
        shutil.rmtree(root)
