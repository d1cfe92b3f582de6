"""State on disk: older copies of tables, damage, and how much there is."""

from __future__ import annotations

import json
import shutil

import pytest
from deltalake import DeltaTable

from millpond.errors.state import StateIncompatibleError, StateMissingError, StateUnreadableError
from millpond.errors.streaming import CheckpointAheadOfTableError
from tests.runner.kept_state import (
    DISTINCT,
    ONE_FILE_A_BATCH,
    completed,
    error_of,
    pairs,
    row_files,
    state_of,
    versions,
    written,
)


@pytest.mark.parametrize("batches_back", [1, 3])
def test_a_table_restored_from_an_older_copy_catches_up_with_the_state_of_then(
    folder, tmp_path, batches_back
):
    folder.write("seen.sql", DISTINCT)
    for number in range(6):
        if number == 6 - batches_back:
            shutil.copytree(folder.table("seen"), tmp_path / "copy")
        folder.feed("landing", pairs(number, number, number - 1))
        completed(folder.run())
    shutil.rmtree(folder.table("seen"))
    shutil.copytree(tmp_path / "copy", folder.table("seen"))
    folder.feed("landing", pairs(1, 5, 7))
    completed(folder.run())
    assert folder.rows("seen") == [(k, f"v{k}") for k in [-1, 0, 1, 2, 3, 4, 5, 7]]


def test_a_copy_older_than_the_versions_that_are_kept_is_refused_with_what_to_do(folder, tmp_path):
    folder.write("seen.sql", DISTINCT)
    folder.feed("landing", pairs(0))
    completed(folder.run())
    shutil.copytree(folder.table("seen"), tmp_path / "copy")
    folder.configure(ONE_FILE_A_BATCH)
    for number in range(1, 13):
        folder.feed("landing", pairs(number))
    completed(folder.run())
    shutil.rmtree(folder.table("seen"))
    shutil.copytree(tmp_path / "copy", folder.table("seen"))
    before = written(folder)
    error = error_of(folder.run(), "seen")
    assert isinstance(error, (StateMissingError, CheckpointAheadOfTableError))
    assert "--full-refresh" in error.hint
    assert written(folder) == before
    completed(folder.run(full_refresh=["seen"]))
    assert folder.rows("seen") == sorted(((k, f"v{k}") for k in range(13)), key=repr)


def newest_version(folder):
    return state_of(folder, "seen") / "versions" / str(versions(folder, "seen")[-1])


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def tear_footer(path):
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -8 - length] + bytes(length) + data[-8:])


def of_format(path, number):
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))


DAMAGES = {
    "no version": (lambda f: newest_version(f).unlink(), StateMissingError, "is missing"),
    "a torn version": (lambda f: cut(newest_version(f)), StateUnreadableError, "not whole JSON"),
    "an empty version": (
        lambda f: newest_version(f).write_bytes(b""),
        StateUnreadableError,
        "it is empty",
    ),
    "a newer format": (
        lambda f: of_format(newest_version(f), 99),
        StateUnreadableError,
        "format 99",
    ),
    "no file of rows": (
        lambda f: row_files(f, "seen")[0].unlink(),
        StateMissingError,
        "which .* names",
    ),
    "a file of rows cut short": (
        lambda f: cut(row_files(f, "seen")[0]),
        StateUnreadableError,
        "bytes, not the",
    ),
    "a file of rows that is no Parquet": (
        lambda f: [path.write_bytes(b"x" * path.stat().st_size) for path in row_files(f, "seen")],
        StateUnreadableError,
        "What DISTINCT keeps",
    ),
    "a file of rows with a torn footer": (
        lambda f: [tear_footer(path) for path in row_files(f, "seen")],
        StateUnreadableError,
        "What DISTINCT keeps",
    ),
    "all of the state": (
        # It looks as if the operator had just come in.
        lambda f: shutil.rmtree(state_of(f, "seen")),
        StateIncompatibleError,
        "saw none of the rows read so far",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state_stops_the_flow_and_nothing_is_committed(folder, damage):
    harm, error_class, message = DAMAGES[damage]
    folder.write("seen.sql", DISTINCT)
    for key in (1, 2):
        folder.feed("landing", pairs(key))
        completed(folder.run())
    harm(folder)
    folder.feed("landing", pairs(2, 3))
    version = DeltaTable(folder.table("seen")).version()
    for _ in range(2):
        error = error_of(folder.run(), "seen")
        assert isinstance(error, error_class), error
        with pytest.raises(error_class, match=message):
            raise error
        assert DeltaTable(folder.table("seen")).version() == version
    completed(folder.run(full_refresh=["seen"]))
    assert folder.rows("seen") == [(k, f"v{k}") for k in (1, 2, 3)]


def test_versions_and_files_stay_few_however_many_batches_there_are(folder):
    folder.write("seen.sql", DISTINCT)
    folder.configure(ONE_FILE_A_BATCH)
    for number in range(40):
        folder.feed("landing", pairs(number, number + 1))
    completed(folder.run())
    assert versions(folder, "seen") == list(range(30, 40))
    named = json.loads(newest_version(folder).read_text())["rows"]["0-deduplicate"]["rows"]["runs"]
    assert sum(map(len, named)) <= 12
    assert len(row_files(folder, "seen")) <= 40
    assert folder.rows("seen") == sorted(((k, f"v{k}") for k in range(41)), key=repr)
