"""Tables that Polars writes, with types of its own, are read as Polars reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.foreign.test_spark_tables import QUERIES, multiset
from tests.pipeline_folder import PipelineFolder
from tests.readers import read_with_delta_rs

LOCAL = datetime(2026, 1, 2, 3, 4, 5, 678)  # noqa: DTZ001 - a time without zone is a type of its own


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_a_table_of_polars_is_read_as_polars_reads_it(
    folder: PipelineFolder, tmp_path: Path, partitioned: bool
) -> None:
    frame = pl.DataFrame(
        {
            "k": pl.Series([1, 2, None], dtype=pl.Int8),
            "unsigned": pl.Series([1, 2**31 - 1, None], dtype=pl.UInt32),
            "p": ["x y", None, "ü/="],
            "at": pl.Series([LOCAL] * 3, dtype=pl.Datetime("ns")),
            "zoned": pl.Series([datetime(2026, 1, 2, tzinfo=UTC)] * 3),
            "day": [date(2026, 1, 2), None, date(1, 1, 1)],
            "price": pl.Series([Decimal("1.50"), None, Decimal("-0.01")]),
            "list": [[{"x": 1.5}], [], None],
            "number": [float("nan"), float("inf"), -0.0],
        }
    )
    path = tmp_path / "theirs"
    options = {"partition_by": ["p"]} if partitioned else {}
    for part in (frame[:1], frame[1:]):
        part.write_delta(path, mode="append", delta_write_options=options)
    expected = multiset(pl.read_delta(str(path)).to_dicts())
    for kind, query in QUERIES.items():
        folder.write(f"{kind}.sql", query.format(name="polars", path=path))
    result = folder.run()
    assert not result.problems, result.problems
    assert [flow.error for flow in result.flows if flow.error is not None] == []
    for kind in QUERIES:
        assert multiset(read_with_delta_rs(folder.table(f"{kind}_polars"))) == expected
