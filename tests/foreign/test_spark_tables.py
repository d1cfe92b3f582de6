"""Tables that Spark wrote are read as Spark reads them, by batch and as streams, or refused by name."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millpond.delta import Table
from tests.foreign.spark_tables import ANSWERS, TABLES, unpack
from tests.pipeline_folder import PipelineFolder
from tests.readers import read_with_delta_rs

READ = [table.name for table in TABLES if not table.refused]
REFUSED = {table.name: table.refused for table in TABLES if table.refused}
QUERIES = {
    "batch": "CREATE MATERIALIZED VIEW batch_{name} AS SELECT * FROM delta.`{path}`;\n",
    "stream": "CREATE STREAMING TABLE stream_{name} AS SELECT * FROM STREAM delta.`{path}`;\n",
}


@dataclass(frozen=True)
class Recorded:
    """The unpacked tables, and a pipeline that reads them all."""

    root: Path
    folder: PipelineFolder

    def answer(self, name: str) -> Counter[Any]:
        rows = pq.read_table(self.root / ANSWERS / f"{name}.parquet").to_pylist()
        return multiset(rows)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    root = tmp_path_factory.mktemp("spark")
    unpack(root)
    folder = PipelineFolder.made(tmp_path_factory.mktemp("pipeline") / "p")
    for query in QUERIES.values():
        for name in READ:
            folder.write(f"{name}{len(query)}.sql", query.format(name=name, path=root / name))
    result = folder.run()
    assert not result.problems, result.problems
    errors = [flow.error for flow in result.flows if flow.error is not None]
    assert not errors, errors
    return Recorded(root, folder)


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("name", READ)
def test_a_table_is_read_as_spark_reads_it(recorded: Recorded, name: str, kind: str) -> None:
    found = multiset(read_with_delta_rs(recorded.folder.table(f"{kind}_{name}")))
    assert found == recorded.answer(name)


@pytest.mark.parametrize("kind", QUERIES)
def test_a_table_that_can_not_be_read_is_refused_by_the_features_name(
    recorded: Recorded, folder: PipelineFolder, kind: str
) -> None:
    for name in REFUSED:
        text = QUERIES[kind].format(name=name, path=recorded.root / name)
        folder.write(f"{name}.sql", text)
    problems = {
        Path(problem.where.file).stem: str(problem)
        for problem in folder.run().problems
        if problem.where is not None
    }
    assert problems.keys() == REFUSED.keys()
    for name, feature in REFUSED.items():
        assert feature in problems[name]
    assert not any(folder.table(f"{kind}_{name}").exists() for name in REFUSED)


def multiset(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(tuple(map(comparable, row.values())) for row in rows)


def comparable(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case dict():
            return tuple((key, comparable(part)) for key, part in value.items())
        case list() | tuple():
            return tuple(map(comparable, value))
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
    return value


@pytest.mark.parametrize("kind", QUERIES)
def test_a_length_that_is_not_checked_is_not_handed_on(recorded: Recorded, kind: str) -> None:
    """Spark would check it at each write to the table."""
    name = "__CHAR_VARCHAR_TYPE_STRING"
    source = Table(recorded.root / "varchar").snapshot().metadata.schema
    assert name in source["v"].metadata
    made = Table(recorded.folder.table(f"{kind}_varchar")).snapshot().metadata.schema
    assert name not in made["v"].metadata
