"""The fixtures `folder`, a pipeline folder, and `draw`, chance that can be had again."""

from __future__ import annotations

import os
import random
import secrets

import pytest

from tests.pipeline_folder import folder

__all__ = ["folder"]


@pytest.fixture
def draw() -> random.Random:
    """Of `MILLPOND_FAULT_SEED`, or of a seed that is printed where a test fails."""
    seed = int(os.environ.get("MILLPOND_FAULT_SEED", str(secrets.randbelow(2**32))))
    print(f"again: MILLPOND_FAULT_SEED={seed}")  # noqa: T201
    return random.Random(seed)
