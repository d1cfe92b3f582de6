"""Random values that are a function of a name and a row number, and of nothing else.

No generator of a library is used, since their streams may change from one version to the next. Any
value of any row can be drawn without drawing those before it, so tables that share ids agree with
each other although each is generated alone. The mixing step is SplitMix64's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def bits(name: str, rows: Ints) -> NDArray[np.uint64]:
    """64 random bits a row."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    mixed = rows.astype(np.uint64) * _STEP + np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


def below(name: str, rows: Ints, bound: int) -> Ints:
    """A whole number from 0 to `bound` - 1 a row."""
    return (bits(name, rows) % np.uint64(bound)).astype(np.int64)


def between(name: str, rows: Ints, low: int, high: int) -> Ints:
    """A whole number from `low` to `high`, both possible."""
    return low + below(name, rows, high - low + 1)


def chance(name: str, rows: Ints, *, percent: int) -> Booleans:
    return below(name, rows, 100) < percent


def pick(name: str, rows: Ints, choices: Sequence[str]) -> list[str]:
    """One of `choices` a row, each as likely as the others."""
    return [choices[index] for index in below(name, rows, len(choices)).tolist()]


def pick_weighted(name: str, rows: Ints, weights: Mapping[str, int]) -> list[str]:
    """One of the keys a row, as often as its weight says."""
    return pick(name, rows, [value for value, weight in weights.items() for _ in range(weight)])


def order(name: str, count: int) -> Ints:
    """The numbers from 0 to `count` - 1, shuffled."""
    return np.argsort(bits(name, np.arange(count, dtype=np.int64)), kind="stable").astype(np.int64)
