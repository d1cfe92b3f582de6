"""The pages on queries and on state: their examples run, and give the rows that the pages state."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from millpond.errors import all_error_classes
from millpond.runner import dry_run
from tests.pipeline_folder import SPEC, PipelineFolder
from tests.readers import read_with_delta_rs
from tests.shapes.documented import (
    DOCS,
    QUERIES,
    SOURCES,
    STATE,
    Example,
    Row,
    delivery,
    examples,
    section,
    shown,
    tables,
    typed,
)
from tests.shapes.documented_changes import CHANGES
from tests.shapes.documented_refusals import REFUSALS

DELIVERIES = (1, 2, 3, 4)
WINDOW, *_ = examples(section(QUERIES, "Windows and sessions"), name="windows")
INCOMPATIBLE = "`STATE_INCOMPATIBLE`"


@pytest.fixture
def shop(tmp_path: Path) -> PipelineFolder:
    """A pipeline folder with the table of the examples, and no delivery so far."""
    (tmp_path / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    folder = PipelineFolder(tmp_path)
    folder.feed("customers", typed("customers", SOURCES["customers"].rows))
    return folder


def feed(folder: PipelineFolder, number: int) -> None:
    for name in ("orders", "payments"):
        folder.feed(name, delivery(name, number))


def update(folder: PipelineFolder) -> None:
    result = folder.run()
    assert not result.problems
    assert {flow.name: flow.error for flow in result.flows if flow.error} == {}


def rows_of(folder: PipelineFolder, name: str) -> list[dict[str, Any]]:
    path = folder.table(name)
    return read_with_delta_rs(path) if path.exists() else []


def test_the_examples_give_the_rows_that_the_page_states_when_it_states_them(shop):
    found = list(examples(QUERIES))
    assert len(found) == 20
    for example in found:
        shop.write(example.file, example.source)
    seen = {example.name: Counter[Row]() for example in found}
    actual: dict[str, list[Row]] = {example.name: [] for example in found}
    for number in DELIVERIES:
        feed(shop, number)
        update(shop)
        for example in found:
            columns = [name for name in example.result.header if name != "update"]
            rows = Counter(
                tuple(shown(row[column]) for column in columns)
                for row in rows_of(shop, example.name)
            )
            if "update" in example.result.header:
                new = (rows - seen[example.name]).elements()
                actual[example.name] += [(str(number), *row) for row in new]
                assert not seen[example.name] - rows
                seen[example.name] = rows
            else:
                actual[example.name] = [*rows.elements()]
    for example in found:
        assert sorted(actual[example.name]) == sorted(example.result.rows), example.code


@pytest.mark.parametrize("cut", ["a delivery an update", "a delivery a batch"])
def test_watermarks_and_windows_are_where_the_page_states_batch_by_batch(cut, shop):
    by_update, by_batch = tables(section(STATE, "An example, batch by batch"))
    expected = by_update if cut == "a delivery an update" else by_batch
    shop.configure({"millpond.maxFilesPerTrigger": "1"})
    shop.write(WINDOW.file, WINDOW.source)
    last_batches = []
    for number in DELIVERIES:
        feed(shop, number)
        if cut == "a delivery an update" or number == DELIVERIES[-1]:
            update(shop)
            last_batches.append(max(watermarks(shop, WINDOW.name)))
    watermark = watermarks(shop, WINDOW.name)
    out = rows_by_batch(shop, WINDOW.name)
    orders = orders_by_batch(shop, WINDOW.name)
    actual = [
        (
            str(1 + sum(last < batch for last in last_batches)),
            str(batch),
            ", ".join(map(str, orders.get(batch, []))),
            shown(watermark[batch]),
            shown(watermark.get(batch - 1, watermark[0])),
            ", ".join(came_out(row) for row in out.get(batch, [])),
        )
        for batch in sorted(watermark)
    ]
    assert actual == expected.rows


def came_out(row: Mapping[str, Any]) -> str:
    plural = "s" * (row["orders"] > 1)
    return f"{row['orders']} order{plural} from {shown(row['begins'])}"


def checkpoint(folder: PipelineFolder, flow: str) -> Path:
    (found,) = (folder.root / "storage" / "checkpoints").glob(f"*{flow}/*")
    return found


def watermarks(folder: PipelineFolder, flow: str) -> dict[int, datetime]:
    """The watermark that each batch ran with."""
    kept = checkpoint(folder, flow) / "state" / "versions"
    contents = {int(path.name): json.loads(path.read_text()) for path in kept.iterdir()}
    return {
        batch: datetime.fromtimestamp(content["watermark_us"] / 1_000_000, UTC)
        for batch, content in contents.items()
    }


def rows_by_batch(folder: PipelineFolder, name: str) -> dict[int, list[dict[str, Any]]]:
    """The rows that each batch added to a table."""
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted((folder.table(name) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        batches = [action["txn"]["version"] for action in actions if "txn" in action]
        files = [action["add"]["path"] for action in actions if "add" in action]
        for batch in batches:
            tables = [pq.read_table(folder.table(name) / file) for file in files]
            found[batch] = [row for table in tables for row in table.to_pylist()]
    return found


def orders_by_batch(folder: PipelineFolder, flow: str) -> dict[int, list[int]]:
    """The orders that each batch read. One delivery is one file."""
    ids = [delivery("orders", number).column("id").to_pylist() for number in DELIVERIES]
    offsets = checkpoint(folder, flow) / "offsets"
    ranges = {
        int(path.name): next(iter(json.loads(path.read_text())["sources"].values()))
        for path in offsets.iterdir()
    }
    read = [batch for batch in sorted(ranges) if ranges[batch]["start"] != ranges[batch]["end"]]
    return dict(zip(read, ids, strict=True))


def test_two_spellings_of_a_query_without_stated_rows_give_the_same(shop):
    sql_all, python_all, sql_join, python_join = examples(STATE, name="spelling")
    for example in (sql_all, python_all, sql_join, python_join):
        shop.write(example.file, example.source)
    for number in DELIVERIES:
        feed(shop, number)
    update(shop)
    for one, other, rows in ((sql_all, python_all, 7), (sql_join, python_join, 5)):
        assert shop.rows(one.name) == shop.rows(other.name)
        assert len(shop.rows(one.name)) == rows


def test_what_the_page_calls_refused_is_refused(shop):
    (page,) = tables(section(QUERIES, "What is refused"))
    assert [row[0] for row in page.rows] == list(REFUSALS)
    feed(shop, 1)
    expected = {}
    for row, (operation, queries) in enumerate(REFUSALS.items()):
        for number, query in enumerate(queries):
            example = Example(f"refused_{row}_{number}", query.language, query.code)
            shop.write(example.file, example.source)
            expected[example.file] = operation
    found = {Path(p.where.file).name: p.error_class for p in dry_run(shop.project())}
    assert found == dict.fromkeys(expected, "UNSUPPORTED_STREAMING_OPERATION")


def test_the_shown_refusal_is_what_is_printed(shop):
    shown_text = re.search(r"^```\n(\[UNSUPPORTED.*?)\n```", QUERIES, re.MULTILINE | re.DOTALL)[1]
    feed(shop, 1)
    query = "SELECT customer, count(*) AS orders FROM STREAM orders GROUP BY customer"
    shop.write("totals.sql", f"CREATE OR REFRESH STREAMING TABLE totals AS\n{query};")
    (problem,) = dry_run(shop.project())
    assert str(problem) == shown_text


def test_changes_of_a_query_are_taken_or_refused_as_the_page_states(shop):
    (page,) = tables(section(STATE, "When the query changes"))
    assert [row[0] for row in page.rows] == list(CHANGES)
    refused = {row[0]: row[1] == INCOMPATIBLE for row in page.rows}
    pairs = {
        f"change_{row}_{number}": (change, before, after)
        for row, (change, queries) in enumerate(CHANGES.items())
        for number, (before, after) in enumerate(queries)
    }
    for name, (_, before, _) in pairs.items():
        shop.write(f"{name}.sql", Example(name, "sql", before).source)
    feed(shop, 1)
    update(shop)
    for name, (_, _, after) in pairs.items():
        shop.write(f"{name}.sql", Example(name, "sql", after).source)
    with_note = delivery("orders", 2).append_column("note", pa.array(["new", "new"]))
    write_deltalake(shop.table("orders"), with_note, mode="append", schema_mode="merge")
    rows = {name: len(shop.rows(name)) for name in pairs}
    errors = {flow.name.split(".")[-1]: flow.error for flow in shop.run().flows}
    for name, (change, _, after) in pairs.items():
        error = errors[name]
        found = None if error is None else error.error_class
        assert found == ("STATE_INCOMPATIBLE" if refused[change] else None), (after, error)
        if error:
            assert len(shop.rows(name)) == rows[name]


def test_every_class_that_the_pages_name_exists():
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", QUERIES + STATE)) - {"TIMESTAMP_NTZ"}
    assert named
    assert named <= {cls.error_class for cls in all_error_classes()}


def test_a_flow_without_a_stream_is_refused_as_the_page_states(shop):
    query = "SELECT customer, city FROM customers"
    replaces = "FLOW REPLACE USING (customer) SEQUENCE BY city BY NAME"
    shop.write("appends.sql", f"CREATE STREAMING TABLE appends AS {query};")
    shop.write("replaces.sql", f"CREATE STREAMING TABLE replaces {replaces} {query};")
    found = {problem.error_class for problem in dry_run(shop.project())}
    assert found == {"FLOW_NOT_STREAMING", "REPLACE_USING_NOT_STREAMING"}
    assert all(f"`{name}`" in QUERIES for name in found)


@pytest.mark.parametrize("page", [QUERIES, STATE], ids=["queries", "state"])
def test_links_lead_to_a_heading(page):
    links = re.findall(r"\]\(([\w-]*(?:\.md)?)(?:#([\w-]+))?\)", page)
    assert links
    for file, anchor in links:
        text = (DOCS / file).read_text(encoding="utf-8") if file else page
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        known = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}
        assert not anchor or anchor in known, (file, anchor)


def test_state_lies_where_the_page_states(shop):
    paths = re.findall(r"^<storage>/checkpoints/<flow>/<checkpoint id>/(\S+)", STATE, re.MULTILINE)
    shop.write(
        "once.sql", "CREATE STREAMING TABLE once_each AS SELECT DISTINCT id FROM STREAM orders;"
    )
    feed(shop, 1)
    update(shop)
    kept = checkpoint(shop, "once_each")
    for path in paths:
        assert list(kept.glob(re.sub(r"<\w+>", "*", path))), path


def later_orders() -> Iterator[Row]:
    yield ("8", "ann", "", "10:40")
    yield ("9", "ann", "", "10:50")


def test_open_windows_come_out_with_the_orders_that_the_page_states(shop):
    assert "They come out when orders of 10:40 and of 10:50 come." in QUERIES
    shop.write(WINDOW.file, WINDOW.source)
    for number in DELIVERIES:
        feed(shop, number)
    update(shop)
    for order, begins in zip(later_orders(), ("10:20", "10:30"), strict=True):
        shop.feed("orders", typed("orders", [order]))
        update(shop)
        newest = max(rows_of(shop, WINDOW.name), key=lambda row: row["begins"])
        assert (shown(newest["begins"]), newest["orders"]) == (begins, 1)
