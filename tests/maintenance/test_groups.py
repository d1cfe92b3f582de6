"""Which files are written anew together: enough small ones, and those of which much is deleted."""

import json

import pytest
from pyspark.sql.types import LongType

from millpond.delta import AddFile, DeletionVector, Metadata, Protocol, Snapshot
from millpond.maintenance.groups import AUTOMATIC, BY_HAND, groups_due
from tests.delta.tables import columns

TARGET = 100 * 1000 * 1000
MB = 1000 * 1000


def file(name, size_bytes, *, deleted=0, low=0, partition=None, rows=1000):
    stats = {"numRecords": rows, "minValues": {"k": low}, "maxValues": {"k": low + 10}}
    vector = DeletionVector("u", "x" * 20, 1, 10, deleted) if deleted else None
    return AddFile(
        name,
        size_bytes,
        0,
        {} if partition is None else {"p": partition},
        json.dumps(stats),
        vector,
    )


def due(files, how=AUTOMATIC, *, sorted_by=("k",), target=TARGET):
    snapshot = Snapshot(
        None,
        1,
        0,
        Protocol(1, 2),
        Metadata("id", columns(k=LongType())),
        {each.path: each for each in files},
    )
    groups = groups_due(snapshot, how, target_bytes=target, sorted_by=sorted_by)
    return [[each.path for each in group.files] for group in groups]


def names(prefix, count):
    return [f"{prefix}{number}" for number in range(count)]


def test_too_few_small_files_are_left_alone():
    assert not due(file(name, 1000) for name in names("s", AUTOMATIC.min_files - 1))


def test_enough_small_files_are_merged():
    small = names("s", AUTOMATIC.min_files)
    assert due(file(name, 1000) for name in small) == [small]


def test_a_large_file_is_not_written_again_for_some_small_ones():
    small = names("s", AUTOMATIC.min_files)
    files = [file("large", 40 * MB), *(file(name, 1000) for name in small)]
    assert due(files) == [small]


def test_a_file_takes_part_once_the_smaller_ones_add_up_to_its_size():
    small = names("s", AUTOMATIC.min_files)
    files = [file("merged", 8000), *(file(name, 1000) for name in small)]
    assert [sorted(group) for group in due(files)] == [sorted([*small, "merged"])]


@pytest.mark.parametrize("how", [AUTOMATIC, BY_HAND])
def test_files_of_half_the_size_aimed_at_and_more_are_left_alone(how):
    aim = round(TARGET * how.share_of_target)
    assert not due((file(name, aim // 2) for name in names("s", 20)), how)
    assert due((file(name, aim // 2 - 1) for name in names("s", 20)), how)


def test_what_is_left_of_a_file_counts():
    worn = [file(name, TARGET // 8, deleted=900) for name in names("w", 8)]
    assert due(worn) == [names("w", 8)]


def test_a_row_is_written_again_only_as_often_as_its_file_doubles():
    """5,000 commits of one size: what is written stays within a logarithm, and so do the files."""
    files, written, most = {}, 0, 0
    for number in range(5000):
        files[f"s{number}"] = 10_000
        for group in due(file(name, size) for name, size in files.items()):
            size = sum(files.pop(name) for name in group)
            files[f"m{number}"] = size
            written += size
        most = max(most, len(files))
    assert most <= 24
    assert written <= 12 * 5000 * 10_000


def test_partitions_are_merged_by_themselves():
    files = [file(f"{p}{n}", 1000, partition=p) for p in ("a", "b", None) for n in range(8)]
    assert due(files) == [[f"{p}{n}" for n in range(8)] for p in ("a", "b", None)]


def test_files_that_lie_side_by_side_are_merged_together():
    lows = [70, 10, 50, 30, 80, 20, 60, 40]
    files = [file(f"f{low}", 30 * MB, low=low) for low in lows]
    assert due(files, BY_HAND) == [
        ["f10", "f20", "f30"],
        ["f40", "f50", "f60"],
        ["f70", "f80"],
    ]


def test_a_file_of_which_much_is_deleted_is_written_anew():
    files = [file("worn", 60 * MB, deleted=250), file("fine", 60 * MB, deleted=150)]
    assert due(files) == [["worn"]]
    assert due(files, BY_HAND) == [["worn"], ["fine"]]


def test_by_hand_two_small_files_are_enough_and_one_is_not():
    assert due([file("a", 1000), file("b", 20 * MB)], BY_HAND) == [["a", "b"]]
    assert not due([file("a", 1000)], BY_HAND)
    assert not due([file("a", 1000, deleted=10)], BY_HAND)
