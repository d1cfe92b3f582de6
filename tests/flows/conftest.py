"""A REPLACE USING target by sales region, as a table with deletion vectors and as one without."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType

from millpond.flows import BatchResult
from tests.flows.target import Rule, Target, columns

SALES = columns(region=StringType(), customer=StringType(), amount=LongType(), seq=LongType())
SaleTuple = tuple[str | None, str, int, int | None]


class SalesTarget(Target):
    """Rows are given and compared as tuples of (region, customer, amount, seq)."""

    def send(self, *rows: SaleTuple, batch_id: int | None = None) -> BatchResult:
        return self.apply([as_row(row) for row in rows], batch_id=batch_id)

    def insert(self, *rows: SaleTuple) -> None:
        self.insert_by_hand([as_row(row) for row in rows])

    def holds(self, *rows: SaleTuple, reader: str = "delta-rs") -> bool:
        found = [tuple(row.values()) for row in self.rows(reader=reader)]
        assert sorted(found, key=repr) == sorted(rows, key=repr)
        return True


def as_row(row: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(("region", "customer", "amount", "seq"), row, strict=True))


@pytest.fixture(params=[True, False], ids=["deletion-vectors", "copy-on-write"])
def vectors(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def make_sales(tmp_path: Path, vectors: bool) -> Callable[..., SalesTarget]:
    def make(*, keys: tuple[str, ...] = ("region",), rules: tuple[Rule, ...] = (), **more: Any):
        settings = {"schema": SALES, "sequence": "seq", "vectors": vectors, **more}
        return SalesTarget(folder=tmp_path, keys=keys, rules=rules, **settings)

    return make


@pytest.fixture
def sales(make_sales: Callable[..., SalesTarget]) -> SalesTarget:
    return make_sales()
