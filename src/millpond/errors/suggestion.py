"""The likely meant name for one that was not found."""

import difflib
from collections.abc import Iterable

# How much of two names must agree, from 0 to 1, before one is taken for the other misspelt.
CUTOFF = 0.6
# A longer name is no misspelt one, and comparing takes the square of the length.
MAX_LENGTH = 300


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, letter case aside, or `None` where none is near.

    >>> did_you_mean("payment_id", ["paymentid", "amount"])
    'paymentid'
    """
    if len(name) > MAX_LENGTH:
        return None
    by_folded = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=CUTOFF)
    return by_folded[near[0]] if near else None


def did_you_mean_table(name: str, candidates: Iterable[str]) -> str | None:
    """The same for names of several parts: their last parts decide, the whole names between ties.

    A catalog and schema that all names share would make any two of them look alike.

    >>> did_you_mean_table("main.sales.ordres", ["main.sales.guests", "main.other.orders"])
    'main.other.orders'
    >>> did_you_mean_table("main.sales.x", ["main.sales.y"])
    """
    wanted = name.lower()
    ranked = {candidate: _likeness(wanted, candidate.lower()) for candidate in candidates}
    best = max(ranked, key=lambda candidate: ranked[candidate], default=None)
    return best if best is not None and ranked[best][0] >= CUTOFF else None


def _likeness(wanted: str, candidate: str) -> tuple[float, float]:
    last_parts = wanted.rpartition(".")[2], candidate.rpartition(".")[2]
    return _ratio(*last_parts), _ratio(wanted, candidate)


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def cut_short(text: str, *, limit: int = 100) -> str:
    """The text, its end left out where it is longer than `limit` signs.

    >>> cut_short("a" * 1000, limit=5)
    'aa...'
    """
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def shortened(names: Iterable[str], *, limit: int = 12) -> str:
    """The names as one line, cut after `limit` of them, each of them cut where it is long.

    >>> shortened(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    listed = [cut_short(name) for name in names]
    shown = ", ".join(listed[:limit])
    left_out = len(listed) - limit
    return f"{shown} and {left_out} more" if left_out > 0 else shown
