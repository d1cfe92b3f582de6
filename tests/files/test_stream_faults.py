"""Files that change, go or are broken while a stream reads them, and updates that die on the way."""

from __future__ import annotations

import gzip
import os
import shutil
import threading
import time

import pytest

from millpond.errors.file_reads import FilesNotReadError, NewColumnsError
from millpond.errors.replace_using import ReplaceUsingNullSequenceError
from millpond.errors.streaming import CheckpointUnreadableError
from millpond.files.formats import format_of
from millpond.streaming.file_log import FileLog
from millpond.streaming.file_source import SETTLING_S
from tests.files.shared_engine import Died, DyingStore

READ = (
    "SELECT v FROM STREAM read_files('SENT', format => 'csv', header => true, schema => 'v INT', "
    "allowOverwrites => true"
)
MAX_WRITES = 100


def csv(*values: int) -> str:
    return "".join(f"{line}\n" for line in ["v", *values])


def values(suppliers):
    return [row[0] for row in suppliers.rows()]


@pytest.fixture
def after_select(monkeypatch):
    """Lets a test do something once a file was looked at and before its rows are read."""

    def install(action):
        format_class = type(format_of("csv"))
        select = format_class.select

        def selecting(self, *arguments, **keywords):
            selection = select(self, *arguments, **keywords)
            action()
            return selection

        monkeypatch.setattr(format_class, "select", selecting)

    return install


@pytest.fixture
def after_planning(monkeypatch):
    """Lets a test do something once files were listed and planned, and before they are read."""

    def install(action):
        write = FileLog.write

        def writing(self, *arguments):
            write(self, *arguments)
            action()

        monkeypatch.setattr(FileLog, "write", writing)

    return install


def test_a_file_that_changes_while_it_is_read_is_read_again_whole(suppliers, after_select):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", csv(1, 2, 3))
    suppliers.send("b.csv", csv(10))
    after_select(lambda: suppliers.send("a.csv", csv(4, 5), at_s=1))
    for _ in range(2):
        suppliers.updated()
        assert values(suppliers) == [10, 4, 5]


def test_a_file_that_changes_each_time_is_left_for_the_next_update(
    suppliers, after_select, monkeypatch
):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(10))
    times = iter(range(1, 100))
    after_select(lambda: suppliers.send("a.csv", csv(2), at_s=next(times)))
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert suppliers.uri("a.csv") in str(error)
    assert "changing" in str(error)
    assert values(suppliers) == [10]
    monkeypatch.undo()
    suppliers.updated()
    assert values(suppliers) == [10, 2]


def test_a_file_that_grew_since_it_was_listed_is_read_whole(suppliers, after_planning):
    suppliers.query(f"{READ})")
    path = suppliers.send("a.csv", csv(1))
    growths = iter(["2\n"])

    def grow():
        with path.open("a") as file:
            file.write(next(growths, ""))

    after_planning(grow)
    suppliers.updated()
    assert values(suppliers) == [1, 2]


def test_a_file_that_is_being_written_waits_for_the_next_update(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", csv(1))
    path = suppliers.sent / "growing.csv"
    path.write_text("v\n")
    stop = threading.Event()

    def write():
        with path.open("a") as file:
            while not stop.is_set():
                file.write("2\n")
                file.flush()
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        suppliers.updated()
    finally:
        stop.set()
        writer.join()
    assert values(suppliers) == [1]
    suppliers.updated()
    assert len(values(suppliers)) == 1 + path.read_text().count("2")


def test_a_file_that_someone_begins_to_write_while_it_is_read_waits_too(suppliers, after_select):
    suppliers.query(f"{READ})")
    path = suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(10))
    stop = threading.Event()

    def write():
        with path.open("w") as file:
            file.write("v\n")
            while not stop.wait(0.02):
                file.write("2\n")
                file.flush()

    writer = threading.Thread(target=write)

    def begin():
        if writer.ident is None:
            writer.start()
            time.sleep(0.05)

    after_select(begin)
    try:
        suppliers.updated()
    finally:
        stop.set()
        writer.join()
    assert values(suppliers) == [10]
    time.sleep(SETTLING_S)
    suppliers.updated()
    assert len(values(suppliers)) == 1 + path.read_text().count("2")


def test_a_file_that_goes_before_it_is_read_is_told_of_once(suppliers, after_planning):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    after_planning(lambda: (suppliers.sent / "a.csv").unlink(missing_ok=True))
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert suppliers.uri("a.csv") in str(error)
    suppliers.updated()
    assert values(suppliers) == [2]


def test_a_file_that_goes_before_it_is_read_can_be_ignored(suppliers, after_planning, monkeypatch):
    suppliers.query(f"{READ}, ignoreMissingFiles => true)")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    after_planning(lambda: (suppliers.sent / "a.csv").unlink(missing_ok=True))
    suppliers.updated()
    assert values(suppliers) == [2]
    # It comes back as it was: its rows were never read.
    monkeypatch.undo()
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    assert values(suppliers) == [1, 2]


def test_a_broken_file_is_tried_again_in_each_update_until_it_is_mended(suppliers):
    suppliers.query(f"{READ})")
    whole = gzip.compress(csv(*range(1000)).encode())
    suppliers.send("a.csv.gz", whole[: len(whole) // 2])
    suppliers.send("b.csv", csv(1))
    for _ in range(2):
        error = suppliers.error()
        assert isinstance(error, FilesNotReadError)
        assert suppliers.uri("a.csv.gz") in str(error)
        assert values(suppliers) == [1]
    suppliers.send("a.csv.gz", whole)
    suppliers.updated()
    assert len(values(suppliers)) == 1001


def test_a_broken_file_can_be_passed_over_until_it_is_sent_again(suppliers):
    suppliers.query(f"{READ}, ignoreCorruptFiles => true)")
    suppliers.send("a.csv.gz", b"no gzip")
    suppliers.send("b.csv", csv(1))
    suppliers.updated()
    suppliers.updated()
    assert values(suppliers) == [1]
    suppliers.send("a.csv.gz", gzip.compress(csv(2).encode()), at_s=1)
    suppliers.updated()
    assert values(suppliers) == [1, 2]


def dies(suppliers, *, writes: int) -> bool:
    """An update in which the process dies at a write; whether it did."""
    try:
        suppliers.update(store=DyingStore(writes))
    except Died:
        return True
    return False


def test_a_planned_batch_whose_file_changed_before_it_runs_again_reads_the_new_version(suppliers):
    """At whatever write the first update died: neither version is lost by half, or told of."""
    suppliers.query(f"{READ})")
    suppliers.updated()
    expected: list[int] = []
    for writes in range(MAX_WRITES):
        name = f"{writes}.csv"
        suppliers.send(name, csv(1000 + writes, 2000 + writes))
        died = dies(suppliers, writes=writes)
        old = [value for value in values(suppliers) if value == 1000 + writes]
        suppliers.send(name, csv(writes), at_s=1)
        expected += ([1000 + writes, 2000 + writes] if old else []) + [writes]
        suppliers.updated()
        assert sorted(values(suppliers)) == sorted(expected), f"died at write {writes}"
        if not died:
            assert writes > 10
            return
    pytest.fail(f"the update did not end within {MAX_WRITES} writes")


def test_a_planned_batch_whose_file_is_gone_before_it_runs_again_reads_the_others(suppliers):
    suppliers.query(f"{READ}, ignoreMissingFiles => true)")
    suppliers.updated()
    # The log of files, the plan of the batch, and nothing of the table.
    for writes in range(4):
        path = suppliers.send(f"{writes}.csv", csv(-1))
        suppliers.send(f"kept-{writes}.csv", csv(writes))
        assert dies(suppliers, writes=writes)
        path.unlink()
        suppliers.updated()
    assert sorted(values(suppliers)) == [0, 1, 2, 3]


def test_an_older_copy_of_the_table_gets_the_files_that_it_lacks_again(suppliers):
    """As many batches as are on record, though the log of files was summed up since."""
    suppliers.query(f"{READ}, maxFilesPerTrigger => 1)")
    table = suppliers.pipeline.table("t")
    for first, last in [(0, 60), (60, 80), (80, 155)]:
        for value in range(first, last):
            suppliers.send(f"{value:03}.csv", csv(value), at_s=value)
        suppliers.updated()
        if last == 80:
            shutil.copytree(table, suppliers.sent.parent / "copy")
    shutil.rmtree(table)
    shutil.copytree(suppliers.sent.parent / "copy", table)
    suppliers.updated()
    assert sorted(values(suppliers)) == [*range(155)]


def test_killed_at_every_write_and_run_again(suppliers):
    """With files that are re-sent, and batches of one file each."""
    suppliers.write(
        """
        CREATE OR REFRESH STREAMING TABLE t
        TBLPROPERTIES ('millpond.replaceUsing.emptyFiles' = 'replaceAndRemove')
        FLOW REPLACE USING (f) SEQUENCE BY at BY NAME
        SELECT v, _metadata.file_path AS f, _metadata.file_modification_time AS at
        FROM STREAM read_files('SENT', format => 'csv', header => true, schema => 'v INT',
          allowOverwrites => true, maxFilesPerTrigger => 1);
        """
    )
    for writes in range(MAX_WRITES):
        suppliers.send("a.csv", csv(writes), at_s=2 * writes)
        suppliers.send("b.csv", csv(*([] if writes % 2 else [writes])), at_s=2 * writes + 1)
        died = dies(suppliers, writes=writes)
        suppliers.updated()
        expected = [writes] if writes % 2 else [writes, writes]
        assert values(suppliers) == expected, f"died at write {writes}"
        if not died:
            assert writes > 15
            return
    pytest.fail(f"the update did not end within {MAX_WRITES} writes")


def test_killed_at_every_write_while_a_table_takes_files_of_rows_for_its_own(suppliers):
    suppliers.query(f"{READ.replace('SELECT v', 'SELECT *')})")
    for writes in range(MAX_WRITES):
        suppliers.send(f"{writes:02}.csv", csv(writes), at_s=writes)
        died = dies(suppliers, writes=writes)
        suppliers.updated()
        assert sorted(values(suppliers)) == [*range(writes + 1)], f"died at write {writes}"
        if not died:
            assert writes > 10
            return
    pytest.fail(f"the update did not end within {MAX_WRITES} writes")


def test_a_log_of_files_that_is_torn_stops_the_flow(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    (entry,) = suppliers.pipeline.layout.checkpoints.rglob("sources/*/1.json")
    entry.write_text("{")
    suppliers.send("b.csv", csv(2))
    error = suppliers.error()
    assert isinstance(error, CheckpointUnreadableError)
    assert str(entry) in str(error)
    assert values(suppliers) == [1]


def test_a_file_that_was_sent_again_while_its_batch_waited_is_judged_as_it_is_now(suppliers):
    read = "STREAM read_files('SENT', format => 'csv', header => true, allowOverwrites => true)"
    suppliers.write(
        "CREATE OR REFRESH STREAMING TABLE t FLOW REPLACE USING (s) SEQUENCE BY v "
        f"BY NAME SELECT * FROM {read};"
    )
    suppliers.send("a.csv", "s,v\na,1\n")
    suppliers.updated()
    suppliers.send("d.csv", "s,v\nd,\n")
    assert isinstance(suppliers.error(), ReplaceUsingNullSequenceError)
    suppliers.send("d.csv", "s,v,w\nd,3,1\n", at_s=1)
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "d.csv: 'w' int" in str(error)
    assert "keeps changing" not in str(error)
    suppliers.updated()
    assert sorted(row[:2] for row in suppliers.rows()) == [("a", 1), ("d", 3)]


def make_deep(folder):
    """Folders in each other until no path can name the innermost, which has a file."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 240, dir_fd=here)
        below = os.open("d" * 240, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("a.csv", os.O_CREAT, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize("passes_over", [False, True])
def test_a_folder_that_can_not_be_listed_costs_none_of_the_others(suppliers, passes_over):
    more = ", ignoreCorruptFiles => true" if passes_over else ""
    suppliers.query(f"{READ}{more})".replace("schema => 'v INT', ", ""))
    suppliers.send("a.csv", csv(1))
    make_deep(suppliers.sent)
    if passes_over:
        suppliers.updated()
    else:
        error = suppliers.error()
        assert isinstance(error, FilesNotReadError)
        assert "/: the folder can't be listed: File name too long" in str(error)
    assert values(suppliers) == [1]
    suppliers.send("b.csv", csv(2))
    suppliers.update()
    assert values(suppliers) == [1, 2]
