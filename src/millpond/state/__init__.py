"""What operators keep between micro-batches: versioned by batch, rows by key in Parquet files."""

from millpond.state.flow_state import BatchState, FlowState
from millpond.state.keyed_rows import KeyedRows

__all__ = ["BatchState", "FlowState", "KeyedRows"]
