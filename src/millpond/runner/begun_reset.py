"""Tells that a full refresh of a table began and has not ended.

On Spark it takes several commits: one that says so, those that keep old writers out, and the one
that clears the table, which drops the property. Where the property is still there, an update has
to begin the table anew: what its flows followed before is closed.
"""

from __future__ import annotations

from collections.abc import Mapping

BEING_RESET = {"millpond.beingReset": "true"}


def has_begun_reset(properties: Mapping[str, str]) -> bool:
    """Whether the table of these properties waits to be cleared."""
    return BEING_RESET.items() <= properties.items()
