"""The likely meant name for one that was not found."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, letter case aside, or `None` where none is near.

    >>> did_you_mean("payment_id", ["paymentid", "amount"])
    'paymentid'
    """
    by_folded = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def shortened(names: Iterable[str], *, limit: int = 12) -> str:
    """The names as one line, cut after `limit` of them.

    >>> shortened(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    listed = list(names)
    shown = ", ".join(listed[:limit])
    left_out = len(listed) - limit
    return f"{shown} and {left_out} more" if left_out > 0 else shown
