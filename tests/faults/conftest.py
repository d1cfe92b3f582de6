"""Fixtures: `folder`, a pipeline folder; `draw`, chance that can be had again; `warm`, quick runs.

The tests here need Linux: its `/proc`, `/dev/full` and mounts.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator

import pytest

from tests.faults.warm_runs import WarmProgram
from tests.pipeline_folder import folder

__all__ = ["folder"]


@pytest.fixture
def draw() -> random.Random:
    """Of `MILLPOND_FAULT_SEED`, or of a seed that is printed where a test fails."""
    seed = int(os.environ.get("MILLPOND_FAULT_SEED", str(secrets.randbelow(2**32))))
    print(f"again: MILLPOND_FAULT_SEED={seed}")  # noqa: T201 - to try the same again
    return random.Random(seed)


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProgram]:
    """The program that forks runs of a pipeline."""
    with WarmProgram() as program:
        yield program
