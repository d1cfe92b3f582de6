"""The log of files that were read: what is in it is what a summary of it says."""

from __future__ import annotations

import random

import pytest

from millpond.errors.streaming import CheckpointUnreadableError
from millpond.files import ListedFile
from millpond.storage import LocalStore
from millpond.streaming import file_log
from millpond.streaming.file_log import Entry, FileLog, SeenFiles, Unread


def version(name, time, size=1):
    return ListedFile(f"file:/d/{name}", size, time, f"tag {time}")


@pytest.fixture
def log(tmp_path):
    return FileLog(tmp_path / "log", LocalStore())


def again(log):
    return FileLog(log.folder, LocalStore())


def test_an_entry_is_read_as_it_was_written(log):
    entry = Entry((version("a", 1), version("é'\n", 2)), (version("b", 3, 0),), written_ms=5)
    log.write(1, entry)
    assert log.read(1) == entry


def test_files_that_were_left_are_not_seen_and_those_passed_over_are_no_versions(log):
    log.write(1, Entry((version("a", 1), version("b", 2), version("c", 3)), written_ms=5))
    left = Unread(frozenset({"file:/d/b"}), frozenset({"file:/d/c"}))
    log.leave(1, left)
    assert log.unread(1) == left
    seen = log.seen(until=1)
    assert seen.files.keys() == {"file:/d/a", "file:/d/c"}
    assert seen.newest.keys() == {"file:/d/a"}


def test_an_entry_that_no_batch_was_planned_for_is_replaced_with_what_was_left_of_it(log):
    log.write(1, Entry((version("a", 1),)))
    log.leave(1, Unread(frozenset({"file:/d/a"})))
    log.write(1, Entry((version("b", 1),)))
    assert log.seen(until=1).files.keys() == {"file:/d/b"}


def test_a_later_version_that_is_older_leaves_the_newest_where_it_is(log):
    log.write(1, Entry((version("a", 5),)))
    log.write(2, Entry((version("a", 3),)))
    seen = log.seen(until=2)
    assert seen.files["file:/d/a"] == version("a", 3)
    assert seen.newest["file:/d/a"] == version("a", 5)


def test_a_summary_says_the_same_as_the_entries(log, monkeypatch):
    choices = random.Random(7)
    expected = SeenFiles()
    for number in range(1, 300):
        files = tuple(
            version(choices.randrange(40), choices.randrange(1000), choices.randrange(3))
            for _ in range(3)
        )
        removed = tuple(
            ListedFile(uri, 0, 2000 + number)
            for uri in choices.sample(sorted(expected.files), min(len(expected.files), 1))
            if choices.random() < 0.3
        )
        unread = Unread(
            frozenset(file.uri for file in files[:1] if choices.random() < 0.3),
            frozenset(file.uri for file in files[1:2] if choices.random() < 0.3),
        )
        entry = Entry(files, removed, written_ms=number)
        log.write(number, entry)
        log.leave(number, unread)
        expected.apply(entry, unread)
        if choices.random() < 0.3:
            log = again(log)
        log.sum_up(until=number)
        assert log.seen(until=number) == expected
        if number % 60 == 0:
            assert again(log).seen(until=number) == expected
    names = {path.name for path in log.folder.iterdir()}
    assert sum(name.startswith("until-") for name in names) < 6
    assert sum(name.endswith(".json") for name in names) < 500


def test_what_was_seen_before_any_batch_that_may_run_again_can_be_told(log):
    expected = []
    for number in range(1, 300):
        log.write(number, Entry((version(number, 1),)))
        log.sum_up(until=number)
        expected.append(version(number, 1))
    for number in range(299 - file_log.ENTRIES_KEPT, 300):
        assert [*again(log).seen(until=number).files.values()] == expected[:number]


def test_a_second_attempt_that_leaves_more_counts_over_a_summary(log, monkeypatch):
    monkeypatch.setattr(file_log, "_FILES_APART", 1)
    for number in (1, 2):
        log.write(number, Entry((version(number, 1),)))
        log.sum_up(until=number)
    again(log).leave(2, Unread(frozenset({"file:/d/2"})))
    assert again(log).seen(until=2).files.keys() == {"file:/d/1"}


def test_versions_that_were_read_are_known_again_and_those_that_were_not_are_not(log, monkeypatch):
    monkeypatch.setattr(file_log, "_FILES_APART", 1)
    log.write(1, Entry((version("a", 1), version("b", 1)), is_skipped=True))
    for number, time in enumerate([3, 2, 5], start=2):
        log.write(number, Entry((version("a", time), version("b", time))))
    log.leave(3, Unread(passed_over=frozenset({"file:/d/b"})))
    log.sum_up(until=4)
    seen = again(log).seen(until=4)
    assert [time for time in range(1, 7) if seen.was_read(version("a", time))] == [2, 3, 5]
    assert [time for time in range(1, 7) if seen.was_read(version("b", time))] == [3, 5]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": [[1]]}'])
def test_a_torn_entry_is_told_of(log, text):
    log.write(1, Entry())
    (log.folder / "1.json").write_text(text)
    with pytest.raises(CheckpointUnreadableError, match=r"1\.json"):
        log.read(1)


def test_times_that_no_64_bits_hold_are_summed_up(log, monkeypatch):
    monkeypatch.setattr(file_log, "_FILES_APART", 1)
    log.write(1, Entry((version("a", 13_569_465_600 * 10**9), version("b", -(10**20)))))
    log.sum_up(until=1)
    assert again(log).seen(until=1) == log.seen(until=1)


def test_many_files_are_summed_up_at_once(log, monkeypatch):
    monkeypatch.setattr(file_log, "_FILES_APART", 10)
    log.write(1, Entry(tuple(version(number, 1) for number in range(10))))
    log.sum_up(until=1)
    assert (log.folder / "until-1.parquet").exists()
    assert len(again(log).seen(until=1).files) == 10
