"""Streaming reads in bounded micro-batches, each applied exactly once."""

from millpond.streaming.checkpoint import Checkpoint
from millpond.streaming.delta_rows import rows_input
from millpond.streaming.delta_source import DeltaSource
from millpond.streaming.micro_batches import MicroBatch, run_batches, run_once
from millpond.streaming.options import DeltaReadOptions
from millpond.streaming.source import DataSize, Offset, StreamSource
from millpond.streaming.stream_names import StreamTraits, names_in_checkpoint

__all__ = [
    "Checkpoint",
    "DataSize",
    "DeltaReadOptions",
    "DeltaSource",
    "MicroBatch",
    "Offset",
    "StreamSource",
    "StreamTraits",
    "names_in_checkpoint",
    "rows_input",
    "run_batches",
    "run_once",
]
