"""The Wanderbricks example, run as its users run it; expected rows are worked out by DuckDB."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.readers import READERS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
STORAGE = Path("pipeline-storage")
SOURCES = STORAGE / "samples" / "wanderbricks" / "bookings-2000"

NEWEST_BOOKINGS = """
    SELECT * EXCLUDE (created_at) FROM booking_updates WHERE total_amount >= 75
    QUALIFY booking_update_id = max(booking_update_id) OVER (PARTITION BY booking_id)
"""
NEWEST_PAYMENTS = """
    SELECT * FROM payments QUALIFY payment_date = max(payment_date) OVER (PARTITION BY {key})
"""
EXPECTED = {
    "current_bookings": NEWEST_BOOKINGS,
    "current_bookings_flow": NEWEST_BOOKINGS,
    "current_bookings_py": NEWEST_BOOKINGS,
    "current_bookings_flow_py": NEWEST_BOOKINGS,
    "payments_by_id": NEWEST_PAYMENTS.format(key="payment_id"),
    "payments_by_id_py": NEWEST_PAYMENTS.format(key="payment_id"),
    "payments_by_booking": NEWEST_PAYMENTS.format(key="booking_id"),
    "payments_by_booking_py": NEWEST_PAYMENTS.format(key="booking_id"),
}


class Example:
    """A copy of the example in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs: list[str] = []

    def millpond(self, *arguments: str) -> str:
        done = subprocess.run(
            [BIN / "millpond", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def table(self, name: str) -> Path:
        return self.folder / STORAGE / "tables" / "main" / "travel" / name

    def expected(self, query: str) -> list[dict[str, Any]]:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for source in ("booking_updates", "payments"):
            folder = self.folder / SOURCES / source
            connection.register(source, DeltaTable(folder).to_pyarrow_table())
        return connection.sql(query).to_arrow_table().to_pylist()


def ordered(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in sorted(row)) for row in rows), key=str)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The demo, run twice, in a copy of what it needs."""
    checkout = tmp_path_factory.mktemp("checkout")
    for part in ("examples/wanderbricks", "scripts"):
        ignored = shutil.ignore_patterns(str(STORAGE))
        shutil.copytree(ROOT / part, checkout / part, ignore=ignored)
    example = Example(checkout / "examples" / "wanderbricks")
    for _ in range(2):
        done = subprocess.run(
            ["sh", checkout / "scripts" / "demo.sh"],
            env=os.environ | {"MILLPOND_BIN": str(BIN)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        example.outputs.append(done.stdout)
    return example


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("table", EXPECTED)
def test_each_table_has_the_newest_rows_of_each_key(
    example: Example, table: str, reader: str
) -> None:
    actual = READERS[reader](example.table(table))
    assert ordered(actual) == ordered(example.expected(EXPECTED[table]))


def test_the_summary_counts_each_booking_once(example: Example) -> None:
    rows = json.loads(
        example.millpond("query", "--format", "json", "SELECT * FROM booking_summary")
    )
    bookings = example.expected(NEWEST_BOOKINGS)
    assert sum(row["bookings"] for row in rows) == len(bookings)
    assert {row["status"] for row in rows} == {"pending", "confirmed", "cancelled", "completed"} & {
        booking["status"] for booking in bookings
    }


def test_the_key_payment_id_loses_payments(example: Example) -> None:
    [row] = json.loads(example.millpond("query", "--format", "json", "SELECT * FROM payments_lost"))
    assert row["payments"] == len(example.expected("FROM payments"))
    assert row["kept"] == len(example.expected(EXPECTED["payments_by_id"]))
    assert row["lost"] == row["payments"] - row["kept"] > 0


def test_the_demo_prints_what_the_readme_shows(example: Example) -> None:
    """But for times, the number of the update, and which of the flows is the sooner."""
    _, second = example.outputs
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^\$ make demo\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    printed = set(map(without_chance, second.splitlines()))
    missing = [li for li in shown.splitlines() if without_chance(li) not in printed | {"..."}]
    assert missing == []


def without_chance(line: str) -> str:
    return re.sub(r"\d+\.\d s|^Update \w{8}", "", line)


def test_the_demo_shows_that_only_touched_keys_changed(example: Example) -> None:
    first, second = example.outputs
    assert "Run it again" in first
    assert "Keys without a newer event are the same, row for row." in second
    counts = {
        line[:38].strip(): [int(word.replace(",", "")) for word in line[38:].split()]
        for line in second.split("delta-rs and DuckDB")[1].splitlines()
        if line.startswith("  ") and line[38:].split() and line[38:].split()[0][0].isdigit()
    }
    untouched_keys, _, untouched_changed = counts["not in the new events"]
    assert untouched_keys > 1000
    assert untouched_changed == 0
    replaced_keys, _, replaced_changed = counts["newer events: replaced"]
    assert replaced_keys == replaced_changed > 0
    assert counts["new: inserted"][0] > 0
    assert counts["only late events: ignored"][0] > 0
