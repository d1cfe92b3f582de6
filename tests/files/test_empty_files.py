"""`millpond.replaceUsing.emptyFiles`: a file that has no rows, or is gone, empties its key."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from millpond.errors.files import InvalidFileOptionError
from millpond.errors.graph import ReservedTablePropertyError
from millpond.errors.options import InvalidOptionError
from millpond.errors.replace_using import ReplaceUsingNotKeyedByFileError
from millpond.streaming import file_source
from millpond.streaming.file_log import FileLog
from tests.files.shared_engine import BEGINNING_S

SETTING = "millpond.replaceUsing.emptyFiles"
READ = (
    "STREAM read_files('SENT', format => 'csv', header => true, schema => 'v INT, k STRING, "
    "s TIMESTAMP', allowOverwrites => true)"
)
KEYED = "SELECT v, _metadata.file_name AS f, _metadata.file_modification_time AS at FROM " + READ


def table(suppliers, query=KEYED, *, setting="replace", keys="f", more=""):
    suppliers.write(
        f"""
        CREATE OR REFRESH STREAMING TABLE t {more}
        TBLPROPERTIES ('{SETTING}' = '{setting}')
        FLOW REPLACE USING ({keys}) SEQUENCE BY at BY NAME {query};
        """
    )


def csv(*values: int) -> str:
    return "".join(f"{line}\n" for line in ["v,k,s", *(f"{v},x,2020-01-01" for v in values)])


def found(suppliers):
    return sorted((row[1], row[0]) for row in suppliers.rows())


def at(time_s: float):
    """What an update takes for the time at which it found that a file is gone."""
    return mock.patch.object(file_source, "now_ns", return_value=int((BEGINNING_S + time_s) * 1e9))


def test_by_default_a_file_without_rows_means_nothing(suppliers):
    suppliers.write(
        f"CREATE OR REFRESH STREAMING TABLE t FLOW REPLACE USING (f) SEQUENCE BY at BY NAME {KEYED};"
    )
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("a.csv", csv(), at_s=10)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]
    suppliers.send("a.csv", csv(1))  # the version before comes back, whose rows are there
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]


def test_a_file_without_rows_empties_its_key_until_a_newer_version_fills_it(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(1, 2))
    suppliers.send("b.csv", csv(3))
    suppliers.updated()
    suppliers.send("a.csv", csv(), at_s=10)
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 3)]
    # An older version comes late, in an update of its own.
    suppliers.send("a.csv", csv(4), at_s=5)
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 3)]
    suppliers.send("a.csv", csv(5), at_s=11)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 5), ("b.csv", 3)]


def test_a_file_of_no_bytes_empties_its_key_too(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.send("a.csv", "", at_s=10)
    suppliers.updated()
    assert found(suppliers) == []


def test_an_older_version_without_rows_empties_nothing(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(1), at_s=10)
    suppliers.updated()
    suppliers.send("a.csv", csv(), at_s=5)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]


def test_a_file_that_was_empty_at_first_keeps_older_rows_out(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(), at_s=10)
    suppliers.updated()
    suppliers.send("a.csv", csv(1), at_s=5)
    suppliers.updated()
    assert found(suppliers) == []


def test_a_version_whose_rows_are_all_dropped_or_filtered_has_no_rows(suppliers):
    table(
        suppliers,
        KEYED + " WHERE v <> 7",
        more="(CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW)",
    )
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    suppliers.send("a.csv", csv(-1, -2), at_s=10)
    suppliers.send("b.csv", csv(7), at_s=10)
    suppliers.updated()
    assert found(suppliers) == []
    suppliers.send("a.csv", csv(3), at_s=9)
    suppliers.updated()
    assert found(suppliers) == []


def test_a_version_that_cannot_be_read_is_no_snapshot(suppliers):
    table(suppliers)
    suppliers.send("a.csv.gz", b"no gzip")
    suppliers.send("b.csv", csv(1))
    suppliers.error()
    assert found(suppliers) == [("b.csv", 1)]


def test_a_file_that_is_gone_keeps_its_rows_unless_removals_count(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(1)).unlink()
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    (suppliers.sent / "a.csv").unlink()
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]
    # What is gone is gone at the next update, whenever the setting came.
    table(suppliers, setting="replaceAndRemove")
    suppliers.updated()
    assert found(suppliers) == []


def test_a_version_that_comes_back_after_removal_stays_out_and_a_newer_one_comes_in(suppliers):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    (suppliers.sent / "a.csv").unlink()
    with at(100):
        suppliers.updated()
    assert found(suppliers) == [("b.csv", 2)]
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 2)]
    suppliers.send("a.csv", csv(3), at_s=99)
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 2)]
    suppliers.send("a.csv", csv(4), at_s=101)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 4), ("b.csv", 2)]


def test_a_file_from_the_future_that_is_gone_empties_its_key(suppliers):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1), at_s=1000)
    suppliers.updated()
    (suppliers.sent / "a.csv").unlink()
    with at(500):
        suppliers.updated()
    assert found(suppliers) == []


def test_a_renamed_file_takes_its_rows_with_it(suppliers):
    table(suppliers, setting="replaceAndRemove")
    path = suppliers.send("a.csv", csv(1))
    suppliers.updated()
    path.rename(suppliers.sent / "b.csv")
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 1)]


def test_rows_of_a_removed_file_go_though_nothing_new_is_read(suppliers):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1)).stat()
    suppliers.updated()
    (suppliers.sent / "a.csv").unlink()
    suppliers.updated()
    assert found(suppliers) == []
    suppliers.updated()
    assert found(suppliers) == []


def test_the_setting_can_be_given_to_a_flow_in_python(suppliers):
    suppliers.write_python(
        f"""
from pyspark.sql import functions as sf

dp.create_streaming_table("t")

@dp.replace_flow(target="t", replace_using=["f"], sequence_by="at",
                 spark_conf={{"{SETTING}": "replace"}})
def flow():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
            .option("cloudFiles.allowOverwrites", True).option("header", True)
            .schema("v INT, k STRING, s TIMESTAMP").load("SENT")
            .select("v", sf.col("_metadata.file_path").alias("f"),
                    sf.col("_metadata.file_modification_time").alias("at")))
"""
    )
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    assert found(suppliers) == [(suppliers.uri("a.csv"), 1)]
    suppliers.send("a.csv", csv(), at_s=10)
    suppliers.updated()
    suppliers.send("a.csv", csv(2), at_s=5)
    suppliers.updated()
    assert found(suppliers) == []


def test_a_full_refresh_forgets_what_was_empty(suppliers):
    table(suppliers)
    suppliers.send("a.csv", csv(), at_s=10)
    suppliers.updated()
    suppliers.send("a.csv", csv(1), at_s=5)
    suppliers.updated(full_refresh=["t"])
    assert found(suppliers) == [("a.csv", 1)]


def test_of_two_versions_of_one_time_the_one_that_is_read_later_stands(suppliers):
    table(suppliers, KEYED.replace("file_name", "file_path"))
    suppliers.send("a.csv", csv(1), at_s=1)
    suppliers.send("b.csv", csv(5), at_s=1)
    suppliers.updated()
    suppliers.send("a.csv", csv(22, 33), at_s=1)
    suppliers.updated()
    assert sorted(v for v, *_ in suppliers.rows()) == [5, 22, 33]
    suppliers.send("a.csv", csv(), at_s=1)
    suppliers.updated()
    assert [v for v, *_ in suppliers.rows()] == [5]


def test_versions_of_a_name_in_two_folders_share_a_key(suppliers):
    """`file_name` is the user's choice of a key: the newest of all files of that name counts."""
    table(suppliers)
    suppliers.send("x/a.csv", csv(1), at_s=1)
    suppliers.send("y/a.csv", csv(2), at_s=2)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    suppliers.send("x/a.csv", csv(), at_s=1.5)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    suppliers.send("x/a.csv", csv(), at_s=3)
    suppliers.updated()
    assert found(suppliers) == []


def test_a_file_of_a_name_that_another_one_has_takes_only_its_own_rows_with_it(suppliers):
    table(suppliers, setting="replaceAndRemove")
    gone = suppliers.send("x/a.csv", csv(1), at_s=1)
    suppliers.send("y/a.csv", csv(2), at_s=1)
    suppliers.updated()
    gone.unlink()
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    # The one that is gone keeps nothing out: neither an old version of the other, nor itself.
    suppliers.send("y/a.csv", csv(3), at_s=2)
    suppliers.send("x/a.csv", csv(1), at_s=2)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1), ("a.csv", 3)]


def test_an_older_file_of_a_name_comes_forth_when_the_newer_one_is_gone(suppliers):
    table(suppliers, setting="replaceAndRemove")
    gone = suppliers.send("x/a.csv", csv(1), at_s=10)
    suppliers.send("y/a.csv", csv(2), at_s=1)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]
    gone.unlink()
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]


def test_a_file_that_left_the_window_is_not_read_again_when_one_of_its_name_is_gone(suppliers):
    window = f"modifiedBefore => '{datetime.fromtimestamp(BEGINNING_S + 50, UTC):%F %T}'"
    query = KEYED.replace("allowOverwrites => true", window)
    table(suppliers, query, setting="replaceAndRemove")
    suppliers.send("x/a.csv", csv(1), at_s=1)
    gone = suppliers.send("y/a.csv", csv(2), at_s=2)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    suppliers.send("x/a.csv", csv(3), at_s=100)
    gone.unlink()
    suppliers.updated()
    assert found(suppliers) == []


@pytest.mark.parametrize("more", ["", ", maxFilesPerTrigger => 1"])
def test_a_file_that_was_moved_to_another_folder_ends_as_a_full_refresh_would(suppliers, more):
    query = KEYED.replace(", allowOverwrites", f"{more}, allowOverwrites")
    table(suppliers, query, setting="replaceAndRemove")
    path = suppliers.send("x/a.csv", csv(1, 2))
    other = suppliers.send("x/b.csv", csv(3), at_s=1)
    suppliers.updated()
    (suppliers.sent / "y").mkdir()
    path.rename(suppliers.sent / "y" / "a.csv")
    other.rename(suppliers.sent / "y" / "b.csv")
    suppliers.send("z/a.csv", csv(5), at_s=-1)
    expected = [("a.csv", 1), ("a.csv", 2), ("b.csv", 3)]
    for _ in range(2):
        suppliers.updated()
        assert found(suppliers) == expected
    suppliers.updated(full_refresh=["t"])
    assert found(suppliers) == expected


AT = "_metadata.file_modification_time AS at"
NAME = "_metadata.file_name AS f"
STRUCT = "struct(k AS file_name) AS k, _metadata.file_name"
LATER = "_metadata.file_modification_time + INTERVAL 1 DAY"
REFUSED = {
    "two keys": (f"SELECT v, k, _metadata.file_path AS f, {AT} FROM {READ}", "f, k"),
    "key from the data": (f"SELECT v, k AS f, {AT} FROM {READ}", "f"),
    "sequence from the data": (f"SELECT v, _metadata.file_path AS f, s AS at FROM {READ}", "f"),
    "key that is computed": (f"SELECT v, upper(_metadata.file_path) AS f, {AT} FROM {READ}", "f"),
    "key of another field": (f"SELECT v, _metadata.file_size AS f, {AT} FROM {READ}", "f"),
    "sequence that is computed": (
        f"SELECT v, _metadata.file_path AS f, {LATER} AS at FROM {READ}",
        "f",
    ),
    "key of a struct in the data": (
        f"SELECT v, k.file_name AS f, at FROM (SELECT v, {STRUCT}, {AT} FROM {READ})",
        "f",
    ),
    "other names for the columns of a subquery": (
        f"SELECT * FROM (SELECT {NAME}, k, {AT} FROM {READ}) AS q (k, f, at)",
        "f",
    ),
    "other names for the columns of a CTE": (
        f"WITH q (k, f, at) AS (SELECT {NAME}, k, {AT} FROM {READ}) SELECT * FROM q",
        "f",
    ),
}


@pytest.mark.parametrize(("query", "keys"), REFUSED.values(), ids=REFUSED)
def test_a_flow_that_is_not_keyed_by_file_is_refused(suppliers, query, keys):
    table(suppliers, query, keys=keys)
    error = suppliers.error()
    assert isinstance(error, ReplaceUsingNotKeyedByFileError)
    assert SETTING in str(error)


def test_a_key_may_come_through_named_queries(suppliers):
    table(
        suppliers,
        f"WITH q AS (SELECT v, _metadata.file_name AS f, {AT} FROM {READ}) "
        "SELECT v, q2.f, q2.at FROM (SELECT q.f, q.at, v FROM q) AS q2",
    )
    suppliers.updated()


def test_a_join_with_a_table_is_refused(suppliers):
    suppliers.pipeline.feed("names", [{"k": "x"}])
    columns = f"a.v, a._metadata.file_path AS f, a.{AT}"
    table(suppliers, f"SELECT {columns} FROM {READ} AS a JOIN names ON a.k = names.k")
    assert isinstance(suppliers.error(), ReplaceUsingNotKeyedByFileError)


def test_a_column_of_the_data_that_is_called_like_the_metadata_is_refused(suppliers):
    metadata = "_metadata STRUCT<file_path: STRING, file_modification_time: TIMESTAMP>"
    read = f"STREAM read_files('SENT', format => 'json', schema => 'v INT, {metadata}')"
    table(suppliers, f"SELECT v, _metadata.file_path AS f, {AT} FROM {read}")
    assert isinstance(suppliers.error(), ReplaceUsingNotKeyedByFileError)


def test_two_streams_in_one_flow_are_refused(suppliers):
    """Neither a union nor a join says of one stream of files what has no rows."""
    other = READ.replace("SENT", str(suppliers.sent.parent / "other"))
    (suppliers.sent.parent / "other").mkdir()
    columns = f"v, _metadata.file_path AS f, {AT}"
    table(suppliers, f"SELECT {columns} FROM {READ} UNION ALL SELECT {columns} FROM {other}")
    assert isinstance(suppliers.error(), ReplaceUsingNotKeyedByFileError)


def test_removals_do_not_count_where_the_read_takes_files_away_itself(suppliers):
    cleaned = KEYED.replace("allowOverwrites", "cleanSource => 'DELETE', allowOverwrites")
    table(suppliers, cleaned, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1))
    assert isinstance(suppliers.error(), InvalidFileOptionError)
    table(suppliers, cleaned)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1)]


@pytest.mark.parametrize("setting", ["replace", "replaceAndRemove"])
def test_a_file_whose_rows_are_dropped_for_damage_is_not_taken_for_an_empty_one(suppliers, setting):
    dropping = KEYED.replace("allowOverwrites", "mode => 'DROPMALFORMED', allowOverwrites")
    table(suppliers, dropping, setting=setting)
    suppliers.send("a.csv", csv(1))
    error = suppliers.error()
    assert isinstance(error, InvalidFileOptionError)
    assert "FAILFAST" in error.hint


def test_a_setting_that_is_none_is_refused(suppliers):
    table(suppliers, setting="yes")
    error = suppliers.error()
    assert isinstance(error, InvalidOptionError)
    assert "replaceAndRemove" in str(error)
    assert "in the table's properties" in error.hint


def test_a_misspelt_setting_is_told_of_with_the_one_that_is_meant(suppliers):
    suppliers.write(
        "CREATE OR REFRESH STREAMING TABLE t "
        "TBLPROPERTIES ('millpond.replaceUsing.emptyFile' = 'replace') "
        f"FLOW REPLACE USING (f) SEQUENCE BY at BY NAME {KEYED};"
    )
    error = suppliers.error()
    assert isinstance(error, ReservedTablePropertyError)
    assert error.hint == f"did you mean {SETTING}?"


def test_the_setting_is_refused_where_nothing_is_replaced(suppliers):
    suppliers.write(
        f"CREATE OR REFRESH STREAMING TABLE t TBLPROPERTIES ('{SETTING}' = 'replace') AS {KEYED};"
    )
    error = suppliers.error()
    assert isinstance(error, ReplaceUsingNotKeyedByFileError)
    assert "no REPLACE USING flow" in str(error)


def test_files_that_are_read_once_cannot_be_emptied(suppliers):
    table(suppliers, KEYED.replace(", allowOverwrites => true", ""))
    error = suppliers.error()
    assert isinstance(error, InvalidFileOptionError)
    assert "needs the option allowOverwrites" in str(error)


def test_an_unreadable_folder_empties_nothing(suppliers):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1))
    suppliers.updated()
    suppliers.sent.rename(suppliers.sent.parent / "away")
    suppliers.error()
    assert found(suppliers) == [("a.csv", 1)]


def test_a_file_in_a_folder_that_can_not_be_listed_is_not_gone(suppliers, monkeypatch):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("sub/a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    shut = str(suppliers.sent / "sub")
    scandir, status = os.scandir, Path.stat

    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    # Root, who may run this, can list every folder.
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda p: refused(p) if str(p) == shut else scandir(p))
        patched.setattr(
            Path,
            "stat",
            lambda p, **k: refused(p) if str(p).startswith(f"{shut}/") else status(p, **k),
        )
        assert "sub/: the folder can't be listed: Permission denied" in str(suppliers.error())
    assert found(suppliers) == [("a.csv", 1), ("b.csv", 2)]
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1), ("b.csv", 2)]


def test_a_file_that_goes_before_it_is_read_is_no_error_and_removed_next_time(
    suppliers, monkeypatch
):
    table(suppliers, setting="replaceAndRemove")
    suppliers.send("a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    suppliers.send("a.csv", csv(3), at_s=10)
    write = FileLog.write

    def planned(log, number, entry):
        write(log, number, entry)
        (suppliers.sent / "a.csv").unlink(missing_ok=True)

    monkeypatch.setattr(FileLog, "write", planned)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1), ("b.csv", 2)]
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 2)]
