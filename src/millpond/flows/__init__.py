"""One module for each kind of flow: how the rows of a batch change the flow's target.

A flow function takes a staged batch and a context, and commits once or not at all.
"""

from millpond.flows.append import append
from millpond.flows.batch import (
    POSITION_COLUMN,
    BatchContext,
    BatchResult,
    ExpectationCount,
)
from millpond.flows.overwrite import overwrite
from millpond.flows.replace_using import NO_SNAPSHOTS, Snapshots, replace_using

__all__ = [
    "NO_SNAPSHOTS",
    "POSITION_COLUMN",
    "BatchContext",
    "BatchResult",
    "ExpectationCount",
    "Snapshots",
    "append",
    "overwrite",
    "replace_using",
]
