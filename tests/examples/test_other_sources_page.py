"""The page docs/other-sources.md: its examples run, on a broker of Kafka that the test starts."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.pipeline_folder import PipelineFolder, folder
from tests.readers import read_with_delta_rs
from tests.shapes.documented import PageTable, section, tables
from tests.streaming.kafka_broker import Broker

__all__ = ["folder"]
PAGE = (Path(__file__).parents[2] / "docs" / "other-sources.md").read_text(encoding="utf-8")


@pytest.fixture
def broker(tmp_path_factory):
    broker = Broker.start(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


def code(text: str, language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]


def update(pipeline: PipelineFolder) -> None:
    result = pipeline.run()
    assert not result.problems
    assert [flow.error for flow in result.flows if flow.error] == []


def shown(value: Any) -> str:
    is_time = isinstance(value, datetime)
    return value.astimezone(UTC).strftime("%H:%M") if is_time else str(value)


def assert_holds(pipeline: PipelineFolder, name: str, expected: PageTable) -> None:
    rows = read_with_delta_rs(pipeline.table(name))
    actual = [tuple(shown(row[column]) for column in expected.header) for row in rows]
    assert Counter(actual) == Counter(expected.rows)


def test_newest_messages_of_a_topic(broker: Broker, folder: PipelineFolder) -> None:
    text = section(PAGE, "Kafka")
    messages, expected, *_ = tables(text)
    producer = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
    for key, value in messages.rows:
        producer.produce("orders", key=key, value=value, partition=0)
    assert producer.flush(30) == 0
    sql, python = (
        code(text, language).replace("localhost:9092", broker.servers)
        for language in ("sql", "python")
    )
    folder.write("orders.sql", sql)
    folder.write("orders.py", python.replace("def newest_orders", "def newest_orders_py"))
    update(folder)
    assert_holds(folder, "newest_orders", expected)
    assert_holds(folder, "newest_orders_py", expected)


def test_a_batch_of_made_up_rows_in_each_update(folder: PipelineFolder) -> None:
    text = section(PAGE, "Made-up rows")
    query = code(text, "python")
    folder.write(
        "rows.py",
        f"from pyspark import pipelines as dp\n\n@dp.table\ndef rows():\n    return ({query})\n",
    )
    update(folder)
    update(folder)
    (expected,) = tables(text)
    assert_holds(folder, "rows", expected)
