"""Deletion vectors: rows once deleted stay so, for every reader, and other rows are not touched."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from millpond.delta import DeletionVector, Table, read_deletion_vectors
from millpond.delta.deletion_vectors import decode_z85, encode_z85
from millpond.errors.delta import CorruptDeletionVectorError, DataFileMissingError
from millpond.storage import LocalStore
from tests.delta.tables import append, create, delete, delete_where, rows
from tests.readers import READERS


@pytest.fixture
def table(tmp_path):
    """Two files of ten rows, k from 0 to 19."""
    table = create(tmp_path / "t")
    for start in (0, 10):
        append(table, f"SELECT range AS k, 'a' AS v FROM range({start}, {start + 10})")
    return table


def keys(found):
    return sorted(row["k"] for row in found)


def test_vectors_of_several_commits_unite_for_every_reader(table):
    delete_where(table, "k IN (0, 19)")
    delete_where(table, "k BETWEEN 3 AND 12")
    delete_where(table, "k = 1")
    left = [2, 13, 14, 15, 16, 17, 18]
    assert keys(rows(table.snapshot())) == left
    assert keys(rows(Table(table.path).snapshot())) == left
    for name, read in READERS.items():
        assert (name, keys(read(table.path))) == (name, left)


def test_a_commit_writes_one_file_for_all_its_vectors(table):
    delete_where(table, "k IN (0, 19)")
    assert len(list(table.path.rglob("deletion_vector_*.bin"))) == 1


def test_the_log_counts_rows_of_the_file_and_rows_deleted(table):
    snapshot = delete_where(table, "k < 4")
    first = next(f for f in snapshot.files.values() if f.deletion_vector)
    assert first.deletion_vector.cardinality == 4
    assert (first.stats.num_records, first.num_rows) == (10, 6)
    assert not first.stats.tight_bounds
    assert (first.stats.min_values["k"], first.stats.max_values["k"]) == (0, 9)


def test_a_file_with_no_row_left_says_so(table):
    snapshot = delete_where(table, "k < 10")
    assert sorted(f.num_rows for f in snapshot.files.values()) == [0, 10]
    assert keys(rows(snapshot)) == list(range(10, 20))


@pytest.mark.parametrize(
    "numbers", [[2, 5], np.array([2, 5], dtype=np.uint64), BitMap64([2, 5]), {2, 5}, (5, 2, 2)]
)
def test_positions_may_be_any_collection_of_numbers(table, numbers):
    path = next(iter(table.snapshot().files))
    assert delete(table, {path: numbers}).files[path].num_rows == 8


def test_a_row_that_is_not_there_is_no_row_to_delete(table):
    path = next(iter(table.snapshot().files))
    with pytest.raises(ValueError, match="has 10 rows, and none of number 10"):
        delete(table, {path: [10]})


def test_a_file_of_which_the_log_has_no_statistics_gets_its_row_count(tmp_path):
    table = create(tmp_path / "t")
    (file,) = append(table, "SELECT range AS k, 'a' AS v FROM range(5)").files.values()
    transaction = table.begin()
    transaction.remove(file)
    transaction.add(replace(file, stats_text=None))
    transaction.commit("FORGET")
    snapshot = delete(table, {file.path: [0]})
    assert snapshot.files[file.path].stats.num_records == 5
    assert keys(READERS["sail"](table.path)) == [1, 2, 3, 4]


def test_a_table_that_delta_rs_made_takes_vectors(tmp_path):
    write_deltalake(
        tmp_path / "t",
        pa.table({"k": list(range(6)), "v": ["a"] * 6}),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    table = Table(tmp_path / "t")
    delete_where(table, "k = 2")
    for read in READERS.values():
        assert keys(read(table.path)) == [0, 1, 3, 4, 5]


def test_inline_and_absolute_vectors_are_read(table):
    """The inline one is an example that Delta's own kernel is tested with."""
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    inline = DeletionVector("i", text, None, 44, 6)
    file = replace(next(iter(table.snapshot().files.values())), deletion_vector=inline)
    found = read_deletion_vectors(table.path, [file], LocalStore())
    assert list(found[file.path]) == [3, 4, 7, 11, 18, 29]

    snapshot = delete_where(table, "k = 5")
    file = next(f for f in snapshot.files.values() if f.deletion_vector)
    (path,) = table.path.rglob("deletion_vector_*.bin")
    moved = table.path / "folder with space" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    absolute = replace(file.deletion_vector, storage_type="p", path_or_inline=moved.as_uri())
    file = replace(file, deletion_vector=absolute)
    assert list(read_deletion_vectors(table.path, [file], LocalStore())[file.path]) == [5]


def damaged(content: bytes, start: int, data: bytes) -> bytes:
    return content[:start] + data + content[start + len(data) :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:0], "format version"),
        (lambda content: content[:-6], "unpack_from requires|checksum"),
        (lambda content: damaged(content, 0, b"\x02"), "format version"),
        (lambda content: damaged(content, len(content) - 5, b"\xff"), "checksum"),
        (
            lambda content: damaged(
                damaged(content, 5, b"\x00"),
                len(content) - 4,
                struct.pack(">I", zlib.crc32(b"\x00" + content[6:-4])),
            ),
            "magic number",
        ),
    ],
    ids=["empty", "torn", "version", "flipped", "magic"],
)
def test_a_damaged_vector_is_an_error_that_names_the_data_file(table, damage, reason):
    snapshot = delete_where(table, "k = 5")
    (path,) = table.path.rglob("deletion_vector_*.bin")
    path.write_bytes(damage(path.read_bytes()))
    deleted_from = next(f for f in snapshot.files.values() if f.deletion_vector)
    with pytest.raises(CorruptDeletionVectorError, match=reason) as caught:
        rows(snapshot)
    assert deleted_from.path in str(caught.value)


def test_a_vector_that_is_not_what_the_log_says_is_an_error(table):
    snapshot = delete_where(table, "k = 5")
    file = next(f for f in snapshot.files.values() if f.deletion_vector)
    vector = replace(file.deletion_vector, cardinality=2)
    with pytest.raises(CorruptDeletionVectorError, match="holds 1 rows, the log says 2"):
        read_deletion_vectors(table.path, [replace(file, deletion_vector=vector)], LocalStore())


def test_a_missing_vector_or_data_file_is_an_error_that_names_it(table):
    snapshot = delete_where(table, "k = 5")
    (path,) = table.path.rglob("deletion_vector_*.bin")
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(DataFileMissingError, match=path.name):
        rows(snapshot)
    path.write_bytes(content)
    data_file = snapshot.file_path(next(iter(snapshot.files.values())))
    data_file.unlink()
    with pytest.raises(DataFileMissingError, match=data_file.name):
        rows(snapshot)


@given(st.binary(max_size=64).map(lambda data: data[: len(data) // 4 * 4]))
def test_base_85_round_trips(data):
    assert decode_z85(encode_z85(data)) == data


@pytest.mark.parametrize("text", ["abcd", 'ab"cd', "#####"])
def test_text_that_is_no_base_85_is_an_error(text):
    with pytest.raises(ValueError, match=r"multiple|not of base|out of range"):
        decode_z85(text)


def test_many_rows_over_many_files_are_deleted_exactly(tmp_path):
    table = create(tmp_path / "t")
    for number in range(4):
        append(table, f"SELECT range * 4 + {number} AS k, 'a' AS v FROM range(200000)")
    chosen = np.random.default_rng(7).choice(200_000, 50_000, replace=False)
    snapshot = table.snapshot()
    delete(table, {path: np.sort(chosen).astype(np.uint64) for path in snapshot.files})
    left = np.setdiff1d(np.arange(200_000), chosen)
    expected = {int(4 * row + number) for row in left for number in range(4)}
    assert {row["k"] for row in rows(table.snapshot())} == expected
