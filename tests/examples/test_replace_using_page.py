"""The page docs/replace-using.md: its worked example is run, step by step, from its own tables."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.readers import read_with_delta_rs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replace-using.md").read_text(encoding="utf-8")
SPEC = """\
name: page
storage: storage
catalog: main
schema: shop
libraries:
  - glob:
      include: transformations/**
"""
Row = tuple[str, str, int, int]


def tables(section: str) -> list[list[Row]]:
    """The tables of a section that have the stock's columns, as rows."""
    found: list[list[Row]] = []
    for block in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        header, _, *lines = block.strip().splitlines()
        names = [cell.strip() for cell in header.strip("|").split("|")]
        if names[:4] == ["region", "product", "pieces", "version"]:
            cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            found.append([(c[0], c[1], int(c[2]), int(c[3])) for c in cells])
    return found


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def code(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(block for block in blocks if containing in block)


SPELLINGS = {
    "flow.sql": code("sql", "FLOW REPLACE USING (region) SEQUENCE BY version BY NAME\nSELECT *"),
    "create_flow.sql": code("sql", "CREATE FLOW"),
    "table.py": code("python", '@dp.table(replace_using=["region"], sequence_by="version")'),
    "replace_flow.py": code("python", "@dp.replace_flow"),
    "copy_on_write.sql": code("sql", "enableDeletionVectors"),
}


class Shop:
    """A pipeline with a table for each spelling, named after it, over the same deliveries."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "transformations").mkdir(parents=True)
        (root / "spark-pipeline.yml").write_text(SPEC)
        for file, text in SPELLINGS.items():
            name = file.partition(".")[0]
            renamed = re.sub(r"\bstock\b", name, re.sub(r"\bdeliveries\b", f"feed_{name}", text))
            (root / "transformations" / file).write_text(renamed)

    def table(self, name: str) -> Path:
        return self.root / "storage" / "tables" / "main" / "shop" / name

    def deliver(self, rows: list[Row]) -> None:
        names = ("region", "product", "pieces", "version")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        folder = self.table("stock_deliveries")
        folder.mkdir(parents=True, exist_ok=True)
        write_deltalake(folder, pa.table(columns), mode="append")

    def run(self) -> None:
        command = [Path(sys.executable).with_name("millpond"), "run"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def assert_holds(self, expected: list[Row]) -> None:
        for file in SPELLINGS:
            rows = read_with_delta_rs(self.table(file.partition(".")[0]))
            actual = [(r["region"], r["product"], r["pieces"], r["version"]) for r in rows]
            assert sorted(actual) == sorted(expected), file


def test_the_worked_example_comes_out_as_the_page_says(tmp_path: Path) -> None:
    first, second, after_second, third, fourth, end = tables(section("One example, step by step"))
    shop = Shop(tmp_path / "shop")
    for delivery, expected in [
        (first, first),
        (second, after_second),
        (third, None),
        (fourth, end),
    ]:
        shop.deliver(delivery)
        shop.run()
        if expected is not None:
            shop.assert_holds(expected)


@pytest.mark.parametrize("runs", ["one by one", "all at once"])
def test_order_and_batching_make_no_difference(runs: str, tmp_path: Path) -> None:
    first, second, _, third, fourth, end = tables(section("One example, step by step"))
    shop = Shop(tmp_path / "shop")
    for delivery in (fourth, third, second, first):
        shop.deliver(delivery)
        if runs == "one by one":
            shop.run()
    shop.run()
    shop.assert_holds(end)
