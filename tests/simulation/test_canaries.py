"""The simulation notices each rule of the commit path that is broken, within a few seeds."""

from __future__ import annotations

import pytest

from tests.simulation.canaries import CANARIES
from tests.simulation.history import Counts, History, SimulationError

SEEDS = 40


def is_noticed(stage, seed):
    try:
        History(stage, seed, Counts()).run()
    except SimulationError:
        return True
    return False


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.__name__)
def test_what_is_broken_is_noticed(stage, canary):
    first = CANARIES[canary]
    with canary():
        assert any(is_noticed(stage, seed) for seed in [first, *range(SEEDS)]), canary.__doc__
