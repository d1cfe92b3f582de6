"""`LIMIT n`: n rows over the whole life of the stream."""

from __future__ import annotations

from typing import Any

from millpond import state
from millpond.engine.connect.cuts import Cut
from millpond.engine.embedded.stateful.execution import Execution


def limit(execution: Execution, cut: Cut, relation: Any) -> Any:
    node = relation.limit
    rows = execution.cut(cut, node.input)
    execution.describe(cut, operator="limit", count=node.limit)
    files = rows.files
    if execution.batch is not None:
        files = state.limit(
            execution.batch.state,
            cut.operator,
            rows.files,
            count=node.limit,
            folder=execution.folder(cut) / "output",
        )
    return execution.rows(rows, files)
