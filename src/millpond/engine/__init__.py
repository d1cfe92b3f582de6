"""Engines run Spark queries. `protocol` says what is asked of one.

`sqltext`, `connect` and `shapes` read queries before they run, for any engine that is spoken to
through Spark Connect. `embedded` is Sail, inside this process.
"""

from millpond.engine.protocol import (
    EXPECTATION_COLUMN,
    SEQUENCE_COLUMN,
    Binder,
    DeltaInput,
    EmptyInput,
    Engine,
    Input,
    ParquetInput,
    PlanInput,
    QueryPlan,
    StagedBatch,
    TableRead,
)

__all__ = [
    "EXPECTATION_COLUMN",
    "SEQUENCE_COLUMN",
    "Binder",
    "DeltaInput",
    "EmptyInput",
    "Engine",
    "Input",
    "ParquetInput",
    "PlanInput",
    "QueryPlan",
    "StagedBatch",
    "TableRead",
]
