"""Folders of a pipeline's storage: one for each name, and none that a file system refuses."""

from __future__ import annotations

from pathlib import Path

from millpond.names import MAX_PART_BYTES
from millpond.storage import Layout


def test_a_flow_of_the_longest_name_has_a_checkpoint_of_its_own(tmp_path: Path):
    layout = Layout(tmp_path)
    long = ".".join("x" * MAX_PART_BYTES for _ in range(3))
    folders = [layout.checkpoint(name, "id") for name in (long, long + "y", long[:-1])]
    for folder in folders:
        folder.mkdir(parents=True)
    assert layout.checkpoint(long.upper(), "id") == folders[0]


def test_a_flow_of_a_usual_name_is_found_by_it(tmp_path: Path):
    folder = Layout(tmp_path).checkpoint("main.sales.Daily totals", "id")
    assert folder == tmp_path / "checkpoints" / "main-2esales-2edaily-20totals" / "id"
