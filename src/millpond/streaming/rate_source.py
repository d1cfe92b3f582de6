"""Made-up rows at a steady rate, for trials and tests: `rate` and `rate-micro-batch`, as in Spark.

A row depends on its number and on when the stream began, never on how the rows fall into batches.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from millpond.engine.protocol import EmptyInput, Input, ParquetInput, TableRead
from millpond.errors import SourceLocation
from millpond.errors.sources import InvalidSourceOptionError, SourceNeedsStreamingError
from millpond.streaming.source import DataSize, Offset, StreamSource
from millpond.streaming.source_options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

RATE = "rate"
RATE_MICRO_BATCH = "rate-micro-batch"

MAX_RATE = 1_000_000_000
MAX_RAMP_UP_S = 100 * 365 * 24 * 3600
ROWS_PER_BATCH = 1_000_000
ROWS_PER_CHUNK = 100_000

_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_UNITS_MS |= {"d": 86_400_000, "": 1000}


@dataclass(frozen=True)
class RateOptions:
    """How fast rows come.

    Attributes:
        rows_per_second: The rate.
        ramp_up_s: Seconds over which the rate grows from nothing to that.
    """

    rows_per_second: int = 1
    ramp_up_s: int = 0

    @classmethod
    def parse(cls, options: Mapping[str, str], *, where: SourceLocation | None = None) -> Self:
        """Read options as the user gave them; names count without their letter case.

        Raises:
            UnknownSourceOptionError: There is no such option.
            InvalidSourceOptionError: A value does not fit.
        """
        # How many threads make the rows is up to the engine, whatever numPartitions says.
        known = ("rowsPerSecond", "rampUpTime", "numPartitions")
        given = SourceOptions.of(options, source=RATE, known=known, refused={}, where=where)
        given.whole("numPartitions", least=1)
        return cls(
            rows_per_second=given.whole("rowsPerSecond", least=1, most=MAX_RATE)
            or cls.rows_per_second,
            ramp_up_s=_seconds(given, "rampUpTime"),
        )

    def rows_until(self, second: int) -> int:
        """How many rows there are once so many seconds have passed."""
        climbing = min(second, self.ramp_up_s)
        climbed = self.rows_per_second * climbing * (climbing + 1) // (2 * (self.ramp_up_s + 1))
        return climbed + self.rows_per_second * (second - climbing)


def _seconds(options: SourceOptions, option: str) -> int:
    value = options.text(option)
    if value is None:
        return 0
    found = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", value.lower(), re.ASCII)
    unit_ms = _UNITS_MS.get(found[2]) if found else None
    seconds = int(int(found[1]) * unit_ms // 1000) if found and unit_ms is not None else None
    if seconds is None or seconds > MAX_RAMP_UP_S:
        raise options.invalid(option, must_be="a time such as '5s', '2m' or '1h'")
    return seconds


class RateSource:
    """A `StreamSource` of `rowsPerSecond` rows for each second since its first update.

    An update reads the rows that are due by then, and the first one none: it records the start.
    Offsets are whole seconds, `started` and `reached`; where an update ends has only the latter.
    """

    starts_midway = True

    def __init__(self, options: RateOptions, *, now: Callable[[], float] = time.time) -> None:
        self._options = options
        self._now = now

    @property
    def identity(self) -> str:
        return f"{RATE} {self._options.rows_per_second} {self._options.ramp_up_s}"

    def columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = rate_schema().jsonValue()
        return columns

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        """The columns are always the same."""

    def latest_offset(self) -> Offset:
        return {"reached": int(self._now())}

    def first_offset(self, end: Offset) -> Offset:
        return {"started": end["reached"], "reached": end["reached"]}

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        """The end of the next batch: about a million rows, and at least a second."""
        started, reached, due = start["started"], start["reached"], end["reached"]
        if due <= reached:
            return None
        first = self._options.rows_until(reached - started)
        low, high = reached + 1, due
        while low < high:
            middle = (low + high + 1) // 2
            if self._options.rows_until(middle - started) - first <= ROWS_PER_BATCH:
                low = middle
            else:
                high = middle - 1
        return {"started": started, "reached": low}

    def size(self, start: Offset, end: Offset) -> DataSize:
        """Nothing: no file is read."""
        del start, end
        return DataSize()

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        started = start["started"]
        seconds = range(start["reached"] - started, end["reached"] - started)
        return _written(self._chunks(seconds, started_s=started), folder=folder)

    def finish(self) -> None:
        """Nothing is left to be done."""

    def _chunks(self, seconds: range, *, started_s: int) -> Iterator[pa.RecordBatch]:
        """The rows of some seconds after the start, spread evenly within each."""
        import numpy as np

        for part in self._parts(seconds):
            until = [
                self._options.rows_until(second) for second in range(part.start, part.stop + 1)
            ]
            firsts, counts = np.array(until[:-1]), np.diff(np.array(until))
            for low in range(until[0], until[-1], ROWS_PER_CHUNK):
                values = np.arange(low, min(low + ROWS_PER_CHUNK, until[-1]), dtype=np.int64)
                index = np.searchsorted(firsts + counts, values, side="right")
                within_ms = (values - firsts[index]) * 1000 // counts[index]
                times_ms = (started_s + part.start + index) * 1000 + within_ms
                yield _rows(times_ms, values)

    def _parts(self, seconds: range) -> Iterator[range]:
        """Few enough seconds at a time to count their rows in memory."""
        for first in range(seconds.start, seconds.stop, ROWS_PER_CHUNK):
            yield range(first, min(first + ROWS_PER_CHUNK, seconds.stop))


@dataclass(frozen=True)
class RateMicroBatchOptions:
    """What each batch holds.

    Attributes:
        rows: Rows of a batch.
        start_ms: The timestamp of the first batch's rows, in milliseconds since 1970.
        advance_ms: By how much the next batch's is later.
    """

    rows: int
    start_ms: int = 0
    advance_ms: int = 1000

    @classmethod
    def parse(cls, options: Mapping[str, str], *, where: SourceLocation | None = None) -> Self:
        """Read options as the user gave them; names count without their letter case.

        Raises:
            UnknownSourceOptionError: There is no such option.
            InvalidSourceOptionError: A value does not fit, or `rowsPerBatch` is missing.
        """
        known = ("rowsPerBatch", "startTimestamp", "advanceMillisPerBatch", "numPartitions")
        given = SourceOptions.of(
            options, source=RATE_MICRO_BATCH, known=known, refused={}, where=where
        )
        given.whole("numPartitions", least=1)
        rows = given.whole("rowsPerBatch", least=1, most=MAX_RATE)
        if rows is None:
            raise InvalidSourceOptionError.from_missing(
                RATE_MICRO_BATCH, ["rowsPerBatch"], example="100", where=where
            )
        # Beyond the year 9999 neither Spark nor Parquet's readers agree on what a time is.
        end_ms = 253_402_300_799_000
        start_ms = given.whole("startTimestamp", least=0, most=end_ms, default=cls.start_ms)
        advance_ms = given.whole(
            "advanceMillisPerBatch", least=0, most=end_ms, default=cls.advance_ms
        )
        return cls(rows, start_ms or 0, advance_ms or 0)


class RateMicroBatchSource:
    """A `StreamSource` of one batch of the same size in each update, as in Spark.

    Offsets say how many batches came before.
    """

    starts_midway = False

    def __init__(self, options: RateMicroBatchOptions) -> None:
        self._options = options
        self._until: int | None = None

    @property
    def identity(self) -> str:
        options = self._options
        return f"{RATE_MICRO_BATCH} {options.rows} {options.start_ms} {options.advance_ms}"

    def columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = rate_schema().jsonValue()
        return columns

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        """The columns are always the same."""

    def latest_offset(self) -> Offset:
        self._until = None
        return {"batches": "one more"}

    def first_offset(self, end: Offset) -> Offset:
        del end
        return {"batches": 0}

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        del end
        if self._until is None:
            self._until = start["batches"] + 1
        return {"batches": self._until} if start["batches"] < self._until else None

    def size(self, start: Offset, end: Offset) -> DataSize:
        """Nothing: no file is read."""
        del start, end
        return DataSize()

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        return _written(self._chunks(range(start["batches"], end["batches"])), folder=folder)

    def finish(self) -> None:
        """Nothing is left to be done."""

    def _chunks(self, batches: range) -> Iterator[pa.RecordBatch]:
        import numpy as np

        options = self._options
        for batch in batches:
            time_ms = options.start_ms + batch * options.advance_ms
            end = (batch + 1) * options.rows
            for low in range(batch * options.rows, end, ROWS_PER_CHUNK):
                values = np.arange(low, min(low + ROWS_PER_CHUNK, end), dtype=np.int64)
                yield _rows(np.full(len(values), time_ms, dtype=np.int64), values)


def rate_source(read: TableRead) -> StreamSource:
    """The source for a read of `rate` or `rate-micro-batch`.

    Raises:
        SourceNeedsStreamingError: It is read as a table.
        MillpondError: An option is unknown, or its value does not fit.
    """
    if not read.streaming:
        raise SourceNeedsStreamingError.from_format(read.format or RATE, where=read.location)
    if read.format == RATE_MICRO_BATCH:
        options = RateMicroBatchOptions.parse(read.written_options, where=read.location)
        return RateMicroBatchSource(options)
    return RateSource(RateOptions.parse(read.written_options, where=read.location))


def rate_schema() -> StructType:
    from pyspark.sql.types import LongType, StructType, TimestampType

    return StructType().add("timestamp", TimestampType()).add("value", LongType())


def _arrow_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("timestamp", pa.timestamp("us", tz="UTC")), ("value", pa.int64())])


def _rows(times_ms: Any, values: Any) -> pa.RecordBatch:
    import pyarrow as pa

    schema = _arrow_schema()
    times = pa.array(times_ms * 1000, pa.int64()).cast(schema.field("timestamp").type)
    return pa.record_batch([times, pa.array(values, pa.int64())], schema=schema)


def _written(chunks: Iterator[pa.RecordBatch], *, folder: Path) -> Input:
    import pyarrow.parquet as pq

    first = next(chunks, None)
    if first is None:
        return EmptyInput(rate_schema())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rows.parquet"
    with pq.ParquetWriter(path, _arrow_schema()) as writer:
        writer.write_batch(first)
        for chunk in chunks:
            writer.write_batch(chunk)
    return ParquetInput((str(path),), rate_schema())
