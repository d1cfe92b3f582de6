"""The model of a disk loses what was not synced, that only, and not always all of it."""

from __future__ import annotations

import random

import pytest

from tests.simulation.durability import Durability

LOSSES = range(20)


def outcomes(tmp_path, change):
    """What is found of a file `f` after each of several losses of power."""
    found = set()
    for seed in LOSSES:
        folder = tmp_path / str(seed)
        for name in ("root", "vault"):
            (folder / name).mkdir(parents=True)
        durability = Durability(folder / "root", folder / "vault")
        change(folder / "root", durability)
        durability.lose_power(random.Random(seed))
        path = folder / "root" / "f"
        found.add(path.read_bytes() if path.exists() else None)
    return found


def test_what_is_synced_stays(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"data")
        durability.synced(root / "f")
        durability.synced(root)

    assert outcomes(tmp_path, change) == {b"data"}


def test_a_name_that_is_not_synced_may_go(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"data")
        durability.synced(root / "f")

    assert outcomes(tmp_path, change) == {b"data", None}


def test_content_that_is_not_synced_may_go_in_part_or_become_zeros(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"data")
        durability.synced(root)

    found = outcomes(tmp_path, change)
    assert {b"", b"data", bytes(4)} <= found
    assert None not in found


def test_a_replaced_file_is_the_old_or_the_new_one(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"old")
        durability.settle(root)
        (root / "g").write_bytes(b"new")
        durability.synced(root / "g")
        (root / "g").replace(root / "f")

    assert outcomes(tmp_path, change) == {b"old", b"new"}


def test_a_removal_that_is_not_synced_may_be_undone(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"data")
        durability.settle(root)
        (root / "f").unlink()

    assert outcomes(tmp_path, change) == {b"data", None}


def test_what_was_added_to_a_file_since_it_was_synced_is_at_risk(tmp_path):
    def change(root, durability):
        (root / "f").write_bytes(b"data")
        durability.settle(root)
        with (root / "f").open("ab") as file:
            file.write(b" more")

    found = outcomes(tmp_path, change)
    assert {b"data", b"data more"} <= found
    assert all(content.startswith(b"data") for content in found)


@pytest.mark.parametrize("seed", LOSSES)
def test_a_folder_goes_whole(tmp_path, seed):
    for name in ("root", "vault"):
        (tmp_path / name).mkdir()
    durability = Durability(tmp_path / "root", tmp_path / "vault")
    folder = tmp_path / "root" / "a"
    folder.mkdir()
    (folder / "f").write_bytes(b"data")
    durability.settle(folder)
    durability.lose_power(random.Random(seed))
    assert not folder.exists() or (folder / "f").read_bytes() == b"data"
