"""What operators keep between micro-batches: versioned by batch, rows by key in Parquet files.

An operator is a function of the batch's state and of the rows that the batch brings to it. It says
which rows come out, and changes the state.
"""

from millpond.state.changes import SHOWN
from millpond.state.deduplicate import deduplicate
from millpond.state.flow_state import BatchState, FlowState
from millpond.state.join_side import Due, Side
from millpond.state.keyed_rows import KeyedRows
from millpond.state.limit import limit
from millpond.state.row_files import ROW_ID_COLUMN
from millpond.state.sessions import due_sessions
from millpond.state.stream_join import SideName, StreamJoin
from millpond.state.watermark import observe
from millpond.state.windows import due_windows

__all__ = [
    "ROW_ID_COLUMN",
    "SHOWN",
    "BatchState",
    "Due",
    "FlowState",
    "KeyedRows",
    "Side",
    "SideName",
    "StreamJoin",
    "deduplicate",
    "due_sessions",
    "due_windows",
    "limit",
    "observe",
]
