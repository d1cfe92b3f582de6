"""A stream of files reads each file once, or each version once, in order and in bounded batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from millpond.cli.plain_progress import PlainProgress
from millpond.errors.files import UnknownFileOptionError
from millpond.errors.streaming import CheckpointSourceChangedError
from millpond.events import Level
from millpond.runner import read_events
from tests.files.shared_engine import BEGINNING_S

READ = "read_files('SENT', format => 'csv', header => true, schema => 'v INT'"


def csv(*values: int) -> str:
    return "".join(f"{line}\n" for line in ["v", *values])


def values(suppliers, name="t"):
    return [row[0] for row in suppliers.rows(name)]


def batches(suppliers):
    """The values that each commit of the table brought."""
    path = suppliers.pipeline.table("t")
    before: Counter[int] = Counter()
    found = []
    for version in range(DeltaTable(path).version() + 1):
        builder = QueryBuilder().register("t", DeltaTable(path, version=version))
        rows = Counter(pa.table(builder.execute("SELECT v FROM t"))["v"].to_pylist())
        if rows != before:
            found.append(sorted((rows - before).elements()))
        before = rows
    return found


def test_a_path_is_read_once_though_it_is_sent_again(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("a.csv", csv(2, 3), at_s=10)
    suppliers.send("b.csv", csv(4), at_s=10)
    suppliers.updated()
    assert values(suppliers) == [1, 4]


def test_with_overwrites_a_file_is_read_again_when_its_size_or_time_changed(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, allowOverwrites => true)")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    suppliers.send("a.csv", csv(30))  # another size, at the same time
    suppliers.send("b.csv", csv(4), at_s=0.000_001)  # another time, of the same size
    suppliers.updated()
    assert values(suppliers) == [1, 2, 30, 4]
    suppliers.updated()
    suppliers.send("b.csv", csv(4), at_s=-5)  # an older version is another version
    suppliers.updated()
    assert values(suppliers) == [1, 2, 30, 4, 4]


def test_batches_are_bounded_by_files_and_take_them_by_time_then_path(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, maxFilesPerTrigger => 2)")
    for name, value, at_s in [("z", 1, 0), ("c", 3, 5), ("b", 2, 5), ("a", 5, 9), ("d", 4, 7)]:
        suppliers.send(f"{name}.csv", csv(value), at_s=at_s)
    suppliers.updated()
    assert batches(suppliers) == [[1, 2], [3, 4], [5]]


def test_batches_are_bounded_by_bytes_but_take_one_file_at_least(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, maxBytesPerTrigger => '10b')")
    suppliers.send("big.csv", csv(11, 12, 13, 14), at_s=0)
    for name, value in [("a", 1), ("b", 2), ("c", 3)]:
        suppliers.send(f"{name}.csv", csv(value), at_s=value)
    suppliers.updated()
    assert batches(suppliers) == [[11, 12, 13, 14], [1, 2], [3]]


def test_the_configuration_bounds_batches_that_have_no_bound_of_their_own(suppliers):
    suppliers.pipeline.configure({"millpond.maxFilesPerTrigger": "1"})
    suppliers.query(f"SELECT * FROM STREAM {READ})")
    for value in (1, 2):
        suppliers.send(f"{value}.csv", csv(value))
    suppliers.updated()
    assert batches(suppliers) == [[1], [2]]


def test_existing_files_can_be_passed_over_for_good(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, includeExistingFiles => false)")
    suppliers.send("old.csv", csv(1))
    suppliers.updated()
    assert suppliers.rows() == []
    suppliers.send("new.csv", csv(2))
    suppliers.updated()
    assert values(suppliers) == [2]


def test_existing_files_that_are_passed_over_are_read_when_they_are_sent_again(suppliers):
    suppliers.query(
        f"SELECT * FROM STREAM {READ}, includeExistingFiles => false, allowOverwrites => true)"
    )
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("a.csv", csv(2), at_s=1)
    suppliers.updated()
    assert values(suppliers) == [2]


def test_files_are_chosen_by_time_and_name(suppliers):
    after = datetime.fromtimestamp(BEGINNING_S + 1, UTC).isoformat()
    before = datetime.fromtimestamp(BEGINNING_S + 4, UTC).isoformat()
    suppliers.query(
        f"SELECT * FROM STREAM {READ}, modifiedAfter => '{after}', "
        f"modifiedBefore => '{before}', pathGlobFilter => '*.csv')"
    )
    for at_s in range(6):
        suppliers.send(f"{at_s}.csv", csv(at_s), at_s=at_s)
    suppliers.send("3.txt", csv(33), at_s=3)
    suppliers.updated()
    assert values(suppliers) == [2, 3]


def test_in_a_plain_format_old_files_are_left_out_once_the_stream_has_begun(suppliers):
    suppliers.write_python(
        """
@dp.table
def t():
    reader = spark.readStream.format("csv").schema("v INT").option("header", "true")
    return reader.option("maxFileAge", "1d").load("SENT")
"""
    )
    suppliers.send("old.csv", csv(1), at_s=-1_000_000)
    suppliers.send("new.csv", csv(2))
    suppliers.updated()
    suppliers.send("late.csv", csv(3), at_s=-1_000_000)
    suppliers.send("newer.csv", csv(4), at_s=1)
    suppliers.updated()
    assert values(suppliers) == [1, 2, 4]


def test_hidden_files_are_no_files(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ})")
    suppliers.send("_a.csv", csv(1))
    suppliers.send(".b.csv", csv(2))
    suppliers.send("below/_c/d.csv", csv(3))
    suppliers.send("below/c/d.csv", csv(4))
    suppliers.updated()
    assert values(suppliers) == [4]


@pytest.mark.parametrize("how", ["DELETE", "MOVE"])
def test_files_that_were_read_are_cleaned_away_once_their_time_is_over(suppliers, tmp_path, how):
    archive = tmp_path / "archive"
    suppliers.query(
        f"SELECT * FROM STREAM {READ}, cleanSource => '{how}', "
        f"`cleanSource.retentionDuration` => '0 seconds', "
        f"`cleanSource.moveDestination` => '{archive}')"
    )
    path = suppliers.send("below/a.csv", csv(1))
    suppliers.send("broken.csv.gz", b"this is no gzip")
    suppliers.error()
    assert not path.exists()
    assert (suppliers.sent / "broken.csv.gz").exists()
    moved = [found.read_text() for found in archive.rglob("a.csv")]
    assert moved == ([csv(1)] if how == "MOVE" else [])
    assert values(suppliers) == [1]


CLEANED = f"STREAM {READ}, cleanSource => 'DELETE', `cleanSource.retentionDuration` => '0 seconds')"


def test_files_are_not_cleaned_away_before_all_flows_have_read_them(suppliers, tmp_path):
    link = tmp_path / "another way"
    link.symlink_to(suppliers.sent)
    suppliers.write(
        f"""
        CREATE TEMPORARY VIEW sent AS SELECT v FROM {CLEANED};
        CREATE STREAMING TABLE t AS SELECT v FROM STREAM(sent);
        CREATE STREAMING TABLE late AS SELECT sent.v FROM STREAM(sent) JOIN t ON sent.v = t.v;
        CREATE STREAMING TABLE apart (CONSTRAINT c EXPECT (v < 9) ON VIOLATION FAIL UPDATE)
        AS SELECT v FROM STREAM {READ.replace("SENT", str(link))}, pathGlobFilter => '*.csv');
        """
    )

    def rows():
        return [sorted(v for v, *_ in suppliers.rows(name)) for name in ("t", "late", "apart")]

    one = suppliers.send("a.csv", csv(1))
    suppliers.updated()
    assert (rows(), one.exists()) == ([[1], [1], [1]], False)
    # A flow of the folder fails.
    bad = suppliers.send("b.csv", csv(9))
    suppliers.update()
    assert (rows(), bad.exists()) == ([[1, 9], [1, 9], [1]], True)
    bad.write_text(csv(2))
    suppliers.updated()
    assert (rows(), bad.exists()) == ([[1, 9], [1, 9], [1, 2]], True)  # no longer what was read
    # One has no part in the update.
    three = suppliers.send("c.csv", csv(3), at_s=9)
    suppliers.updated(refresh=["t", "late"])
    assert (rows(), three.exists()) == ([[1, 3, 9], [1, 3, 9], [1, 2]], True)
    suppliers.updated()
    assert (rows(), three.exists()) == ([[1, 3, 9], [1, 3, 9], [1, 2, 3]], False)


def test_files_are_not_cleaned_away_that_a_flow_will_take_when_it_begins(suppliers):
    suppliers.write(
        f"CREATE STREAMING TABLE t AS SELECT v FROM {CLEANED}; CREATE STREAMING TABLE later;"
    )
    suppliers.write_python(
        """
@dp.append_flow(target="later")
def flow():
    plain = spark.readStream.format("csv").schema("v INT").option("header", True)
    return plain.option("maxFileAge", "1 day").load("SENT")
"""
    )
    old = suppliers.send("old.csv", csv(1))
    suppliers.send("new.csv", csv(2), at_s=10 * 24 * 3600)
    suppliers.updated(refresh=["t"])
    assert old.exists()
    suppliers.updated()
    assert sorted(v for v, *_ in suppliers.rows("later")) == [1, 2]


def test_files_are_not_cleaned_away_whose_rows_would_go_with_them(suppliers):
    suppliers.write(
        f"""
        CREATE STREAMING TABLE t AS SELECT v FROM {CLEANED};
        CREATE STREAMING TABLE held
        TBLPROPERTIES ('millpond.replaceUsing.emptyFiles' = 'replaceAndRemove')
        FLOW REPLACE USING (f) SEQUENCE BY at BY NAME
        SELECT v, _metadata.file_path AS f, _metadata.file_modification_time AS at
        FROM STREAM {READ}, allowOverwrites => true);
        """
    )
    suppliers.send("a.csv", csv(1))
    for _ in range(3):
        suppliers.updated()
    assert values(suppliers) == [1]
    assert [row[0] for row in suppliers.rows("held")] == [1]


def test_files_that_can_not_be_cleaned_away_are_a_warning_and_all_rows_are_there(suppliers):
    archive = suppliers.sent.parent / "archive"
    archive.write_text("no folder")
    suppliers.query(
        f"SELECT * FROM STREAM {READ}, cleanSource => 'MOVE', "
        f"`cleanSource.retentionDuration` => '0 seconds', "
        f"`cleanSource.moveDestination` => '{archive}')"
    )
    path = suppliers.send("a.csv", csv(1))
    lines: list[str] = []
    suppliers.updated(listeners=[PlainProgress(write=lines.append).listen])
    assert (values(suppliers), path.exists()) == ([1], True)
    assert len([line for line in lines if ": completed in" in line]) == 1
    events = read_events(suppliers.pipeline.project())
    (warning,) = [event.message for event in events if event.level is Level.WARN]
    assert "could not remove or move all files that it has read" in warning
    assert "archive" in warning


@pytest.mark.parametrize("way", ["SENT/*", "through a link"])
def test_files_that_were_moved_to_where_the_read_reaches_are_not_read_again(suppliers, way):
    archive = suppliers.sent / "archive"
    read = READ.replace("SENT", way if way == "SENT/*" else "SENT")
    if way != "SENT/*":
        archive = suppliers.sent.parent / "archive"
        archive.mkdir()
        (suppliers.sent / "link").symlink_to(archive)
    suppliers.query(
        f"SELECT * FROM STREAM {read}, cleanSource => 'MOVE', "
        f"`cleanSource.retentionDuration` => '0 seconds', "
        f"`cleanSource.moveDestination` => '{archive}')"
    )
    suppliers.send("below/a.csv", csv(1))
    suppliers.updated()
    assert len([*archive.rglob("a.csv")]) == 1
    suppliers.updated()
    assert values(suppliers) == [1]


def test_files_are_not_cleaned_away_before_their_time_is_over(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, cleanSource => 'DELETE')")
    path = suppliers.send("a.csv", csv(1))
    suppliers.updated()
    assert path.exists()


def test_a_folder_goes_on_however_its_path_is_spelled(suppliers):
    suppliers.send("a.csv", csv(1))
    for spelled in ("SENT", "SENT/", "file:SENT", "SENT/../suppliers", "suppliers"):
        suppliers.query(f"SELECT * FROM STREAM {READ.replace('SENT', spelled)})")
        suppliers.updated()
    assert values(suppliers) == [1]


def test_a_project_that_was_moved_with_its_files_does_not_read_them_again(suppliers):
    """Their names are others now, so there is no telling which were read."""
    suppliers.query(f"SELECT * FROM STREAM {READ.replace('SENT', 'suppliers')})")
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    root = suppliers.pipeline.root
    moved = root.rename(root.with_name("moved"))
    pipeline = replace(suppliers.pipeline, root=moved)
    suppliers = replace(suppliers, pipeline=pipeline, sent=moved / "suppliers")
    assert isinstance(suppliers.error(), CheckpointSourceChangedError)
    assert values(suppliers) == [1]


def test_one_folder_can_be_read_in_several_ways_in_whatever_order(suppliers):
    lines = READ.replace("csv", "json")
    reads = [
        f"SELECT v, 1 AS k FROM STREAM {READ}, pathGlobFilter => 'a*')",
        f"SELECT v, 2 AS k FROM STREAM {READ}, fileNamePattern => 'b*')",
        f"SELECT v, 3 AS k FROM STREAM {lines}, pathGlobFilter => '*.json')",
    ]
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.send("c.json", '{"v": 3}\n')
    suppliers.query(" UNION ALL ".join(reads[:0:-1]))
    suppliers.updated()
    suppliers.query(" UNION ALL ".join(reversed(reads)))
    suppliers.updated()
    suppliers.query(" UNION ALL ".join(reads))
    suppliers.updated()
    assert suppliers.rows() == [(1, 1), (2, 2), (3, 3)]


def test_a_filter_of_one_of_two_reads_of_a_folder_can_change(suppliers):
    def reads(*patterns):
        suppliers.query(
            " UNION ALL ".join(
                f"SELECT v, '{number}' AS k FROM STREAM {READ}, pathGlobFilter => '{pattern}')"
                for number, pattern in enumerate(patterns)
            )
        )

    suppliers.send("o1.csv", csv(1))
    suppliers.send("r1.csv", csv(2))
    reads("o*", "r*")
    suppliers.updated()
    reads("o*", "r*.csv")
    suppliers.updated()
    # What changed is known from then on, though there was nothing to read.
    reads("{o,p}*", "r*.csv")
    suppliers.updated()
    for name, value in (("o2", 3), ("p1", 4), ("r2", 5)):
        suppliers.send(f"{name}.csv", csv(value), at_s=value)
    suppliers.updated()
    assert suppliers.rows() == [(1, "0"), (2, "1"), (3, "0"), (4, "0"), (5, "1")]


def test_reads_of_a_folder_whose_filters_all_changed_stop_the_flow(suppliers):
    union = "SELECT v FROM STREAM {}, pathGlobFilter => 'A') UNION ALL SELECT v FROM STREAM {}, "
    union = union.format(READ, READ) + "pathGlobFilter => 'B')"
    suppliers.send("o1.csv", csv(1))
    suppliers.send("r1.csv", csv(2))
    suppliers.query(union.replace("'A'", "'o*'").replace("'B'", "'r*'"))
    suppliers.updated()
    suppliers.query(union.replace("'A'", "'r*.csv'").replace("'B'", "'{o,p}*'"))
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    for pattern in ("r*.csv", "{o,p}*"):
        assert f"{suppliers.sent} (pathglobfilter => '{pattern}')" in str(error)
    assert "one at a time" in error.hint
    for changed in (("'o*'", "'r*.csv'"), ("'{o,p}*'", "'r*.csv'")):
        suppliers.query(union.replace("'A'", changed[0]).replace("'B'", changed[1]))
        suppliers.updated()
    assert values(suppliers) == [1, 2]


def test_a_further_read_of_a_folder_begins_at_its_beginning(suppliers):
    before = f"SELECT v, 1 AS k FROM STREAM {READ})"
    added = f"SELECT v, 2 AS k FROM STREAM {READ}, allowOverwrites => true)"
    suppliers.send("a.csv", csv(1))
    suppliers.query(before)
    suppliers.updated()
    suppliers.query(f"{before} UNION ALL {added}")
    suppliers.updated()
    assert suppliers.rows() == [(1, 1), (1, 2)]
    suppliers.send("a.csv", csv(3), at_s=3)
    suppliers.query(f"{added} UNION ALL {before}")
    suppliers.updated()
    assert suppliers.rows() == [(1, 1), (1, 2), (3, 2)]


def test_a_read_in_front_of_those_that_there_were_stops_the_flow(suppliers):
    """It can't be told from a read whose options changed, and a further one with its old ones."""
    first = f"SELECT v, 1 AS k FROM STREAM {READ}, comment => '#')"
    suppliers.send("a.csv", csv(1))
    suppliers.query(first)
    suppliers.updated()
    changed = first.replace("#", "%")
    suppliers.query(f"{changed} UNION ALL {first.replace('1 AS k', '2 AS k')}")
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    assert f"{suppliers.sent} (comment => '%'), {suppliers.sent} (comment => '#')" in str(error)
    assert "put a new one after them" in error.hint
    suppliers.query(changed)
    suppliers.updated()
    suppliers.query(f"{changed} UNION ALL {first.replace('1 AS k', '2 AS k')}")
    suppliers.updated()
    assert suppliers.rows() == [(1, 1), (1, 2)]


def test_a_further_read_of_a_table_begins_at_its_beginning(suppliers):
    source = f"CREATE STREAMING TABLE s AS SELECT v FROM STREAM {READ});"
    before = "SELECT v, 1 AS k FROM STREAM s"
    added = "SELECT v, 2 AS k FROM STREAM s WITH (maxFilesPerTrigger = 1)"
    suppliers.send("a.csv", csv(1))
    suppliers.write(f"{source} CREATE STREAMING TABLE t AS {before};")
    suppliers.updated()
    suppliers.write(f"{source} CREATE STREAMING TABLE t AS {before} UNION ALL {added};")
    suppliers.updated()
    suppliers.send("b.csv", csv(3), at_s=3)
    suppliers.write(f"{source} CREATE STREAMING TABLE t AS {added} UNION ALL {before};")
    suppliers.updated()
    assert suppliers.rows() == [(1, 1), (1, 2), (3, 1), (3, 2)]


def test_a_filter_that_comes_with_a_further_read_is_no_other_source(suppliers):
    reads = [f"SELECT v FROM STREAM {READ}, pathGlobFilter => '{p}*')" for p in "or"]
    suppliers.send("o.csv", csv(1))
    suppliers.send("r.csv", csv(2))
    suppliers.query(reads[0])
    suppliers.updated()
    suppliers.query(" UNION ALL ".join(reads))
    suppliers.updated()
    assert values(suppliers) == [1, 2]


def test_options_that_change_with_every_update_leave_reads_of_several_patterns_apart(suppliers):
    suppliers.send("o.csv", csv(1))
    suppliers.send("r.csv", csv(2))
    for day in range(1, 4):
        since = f"modifiedAfter => '2020-01-0{day}'"
        reads = [f"SELECT v FROM STREAM {READ}, {since}, fileNamePattern => '{p}*')" for p in "or"]
        suppliers.query(" UNION ALL ".join(reads[::-1] if day == 3 else reads))
        if day == 3:
            assert isinstance(suppliers.error(), CheckpointSourceChangedError)
        else:
            suppliers.updated()
    assert values(suppliers) == [1, 2]


def test_a_read_of_a_folder_that_is_gone_beside_another_stops_the_flow(suppliers):
    reads = [f"SELECT v FROM STREAM {READ}, pathGlobFilter => '{p}*')" for p in "or"]
    suppliers.send("o.csv", csv(1))
    suppliers.query(" UNION ALL ".join(reads))
    suppliers.updated()
    suppliers.query(reads[1])
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    assert f"no longer reads {suppliers.sent} in one of the ways" in str(error)
    assert f"({suppliers.sent} o*)" in str(error)


@pytest.mark.parametrize("before", [["o"], ["o", "r"]], ids=["one added", "both changed"])
def test_a_changed_read_whose_files_another_takes_now_stops_the_flow(suppliers, before):
    def reads(*filters):
        suppliers.query(
            " UNION ALL ".join(
                f"SELECT v, {number} AS k FROM STREAM {READ}, pathGlobFilter => {filter_})"
                for number, filter_ in enumerate(filters)
            )
        )

    suppliers.send("o1.csv", csv(1))
    reads(*(f"'{letter}*'" for letter in before))
    suppliers.updated()
    reads("'{o,p}*'", "'o*', allowOverwrites => true")
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    assert "can't be told which" in str(error)
    assert suppliers.rows() == [(1, 0)]


def test_equal_reads_of_a_folder_are_one_stream_and_do_not_part(suppliers):
    def reads(*options):
        suppliers.query(
            " UNION ALL ".join(
                f"SELECT v, {number} AS k FROM STREAM {READ}{option})"
                for number, option in enumerate(options)
            )
        )

    suppliers.send("a.csv", csv(1))
    reads("")
    suppliers.updated()
    suppliers.send("b.csv", csv(2), at_s=2)
    reads("", "")
    suppliers.updated()
    # What was read before the second one was there is not read for it.
    assert suppliers.rows() == [(1, 0), (2, 0), (2, 1)]
    suppliers.send("c.csv", csv(3), at_s=3)
    reads("", ", maxFilesPerTrigger => 5")
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    assert "as one stream" in str(error)
    reads("", "")
    suppliers.updated()
    assert suppliers.rows() == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_equal_reads_of_a_table_do_not_part_either(suppliers):
    source = f"CREATE STREAMING TABLE s AS SELECT v FROM STREAM {READ});"
    read = "SELECT v FROM STREAM s"
    suppliers.send("a.csv", csv(1))
    suppliers.write(f"{source} CREATE STREAMING TABLE t AS {read} UNION ALL {read};")
    suppliers.updated()
    suppliers.write(
        f"{source} CREATE STREAMING TABLE t AS {read} UNION ALL {read} "
        "WITH (maxFilesPerTrigger = 1);"
    )
    assert "as one stream" in str(suppliers.error())
    assert values(suppliers) == [1, 1]


def test_a_checkpoint_whose_note_of_its_streams_is_torn_is_told(suppliers):
    suppliers.send("a.csv", csv(1))
    suppliers.query(f"SELECT v FROM STREAM {READ})")
    suppliers.updated()
    [note] = suppliers.pipeline.root.rglob("streams.json")
    note.write_text("{")
    error = suppliers.error()
    assert "streams.json can't be read" in str(error)
    assert "with one set of options only, remove it" in error.hint
    note.unlink()
    suppliers.updated()
    assert values(suppliers) == [1]
    assert note.exists()


def test_a_path_that_is_another_now_is_told_beside_the_former_one(suppliers):
    suppliers.send("a.csv", csv(1))
    suppliers.query(f"SELECT v FROM STREAM {READ})")
    suppliers.updated()
    suppliers.query(f"SELECT v FROM STREAM {READ.replace('SENT', 'SENT/*')})")
    error = suppliers.error()
    assert isinstance(error, CheckpointSourceChangedError)
    assert f"no longer reads {suppliers.sent} as a stream" in str(error)
    assert f"what it reads now is {suppliers.sent}/*." in str(error)


def test_another_format_is_another_stream(suppliers):
    suppliers.send("a.csv", csv(1))
    suppliers.query(f"SELECT v FROM STREAM {READ})")
    suppliers.updated()
    suppliers.query(f"SELECT v FROM STREAM {READ.replace('csv', 'json')})")
    assert isinstance(suppliers.error(), CheckpointSourceChangedError)
    assert values(suppliers) == [1]


@pytest.mark.parametrize(
    "read",
    [
        f"{READ}, latestFirst => true)",
        f"{READ}) WITH (latestFirst = true)",
        "samples.wanderbricks.bookings WITH ('latestFirst' = true)",
    ],
)
def test_options_are_told_as_they_are_written_in_sql(suppliers, read):
    suppliers.query(f"SELECT * FROM STREAM {read}")
    suppliers.send("a.csv", csv(1))
    [error] = suppliers.dry_run()
    assert "latestFirst" in str(error)


@pytest.mark.parametrize(
    "read",
    [
        'format("cloudFiles").option("cloudFiles.format", "csv").options(latestFirst=1).load("SENT")',
        'format("rate").option("latestFirst", True).load()',
        'option("latestFirst", True).table("samples.wanderbricks.bookings")',
    ],
)
def test_options_are_told_as_they_are_written_in_python(suppliers, read):
    suppliers.write_python(f"@dp.table\ndef t():\n    return spark.readStream.{read}")
    suppliers.send("a.csv", csv(1))
    [error] = suppliers.dry_run()
    assert "latestFirst" in str(error)


def test_files_that_could_not_be_read_are_not_counted_as_read(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv.gz", "this is no gzip")
    suppliers.error()
    [metrics] = [
        event.details["flow_progress"]["metrics"]
        for event in read_events(suppliers.project(), "latest")
        if "metrics" in event.details.get("flow_progress", {})
    ]
    assert metrics["files_read"] == 1


def test_an_update_tells_how_many_files_it_read_that_have_no_rows(suppliers):
    suppliers.query(f"SELECT v FROM STREAM {READ}, allowOverwrites => true)")

    def told():
        lines = []
        progress = PlainProgress(write=lines.append)
        suppliers.update(listeners=[progress.listen])
        return lines[-1].partition("s: ")[2]

    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    assert told() == "2 rows in, 2 inserted"
    assert told() == "nothing new"
    suppliers.send("a.csv", csv(), at_s=1)
    assert told() == "1 file read, no rows"
    assert told() == "nothing new"


def test_files_that_nobody_read_are_not_cleaned_away(suppliers):
    suppliers.query(
        f"SELECT * FROM STREAM {READ}, includeExistingFiles => false, ignoreCorruptFiles => true, "
        "cleanSource => 'DELETE', `cleanSource.retentionDuration` => '0 seconds')"
    )
    before = suppliers.send("before.csv", csv(1))
    suppliers.updated()
    broken = suppliers.send("broken.csv.gz", b"this is no gzip")
    after = suppliers.send("after.csv", csv(2))
    suppliers.updated()
    suppliers.updated()
    assert [before.exists(), broken.exists(), after.exists()] == [True, True, False]
    assert values(suppliers) == [2]


def test_a_file_goes_once_through_each_of_two_flows(suppliers):
    suppliers.write(
        f"""
        CREATE OR REFRESH STREAMING TABLE t;
        CREATE FLOW one AS INSERT INTO t BY NAME SELECT v FROM STREAM {READ});
        CREATE FLOW two AS INSERT INTO t BY NAME SELECT v * 10 AS v FROM STREAM {READ});
        """
    )
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    assert values(suppliers) == [1, 10, 2, 20]


def test_an_option_that_is_none_is_refused_where_it_stands(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, allowOverwrite => true)")
    suppliers.send("a.csv", csv(1))
    error = suppliers.error()
    assert isinstance(error, UnknownFileOptionError)
    assert "allowOverwrites" in str(error)
    assert "pipeline.sql:1" in str(error)


def test_a_dry_run_writes_nothing(suppliers):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'csv', header => true)")
    suppliers.send("a.csv", csv(1))
    before = sorted(suppliers.pipeline.root.rglob("*"))
    assert suppliers.dry_run() == ()
    assert sorted(suppliers.pipeline.root.rglob("*")) == before


def test_a_full_refresh_reads_all_files_that_there_are(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ})")
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("a.csv", csv(2))
    suppliers.send("b.csv", csv(3))
    suppliers.updated(full_refresh=["t"])
    assert values(suppliers) == [2, 3]


def test_progress_counts_files_and_bytes_that_are_left(suppliers):
    suppliers.query(f"SELECT * FROM STREAM {READ}, maxFilesPerTrigger => 1)")
    for value in (1, 2, 3):
        suppliers.send(f"{value}.csv", csv(value))
    suppliers.updated()
    metrics = [
        event.details["flow_progress"]["metrics"]
        for event in read_events(suppliers.project(), "latest")
        if "metrics" in event.details.get("flow_progress", {})
    ]
    assert [found["files_read"] for found in metrics] == [1, 1, 1]
    assert [found["backlog_files"] for found in metrics] == [2, 1, 0]
    assert [found["backlog_bytes"] for found in metrics] == [8, 4, 0]
