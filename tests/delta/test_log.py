"""Reading the log: what it says is replayed exactly, and what can't be read is never guessed."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable

from millpond.delta import Table
from millpond.errors.delta import CommitsExpiredError, CorruptLogError, UnsupportedTableFeatureError
from millpond.storage import LocalStore
from tests.delta.tables import append, create, delete, delete_where, entry, rows, sorted_rows, write
from tests.readers import READERS


@pytest.fixture
def table(tmp_path):
    table = create(tmp_path / "t")
    for number in range(3):
        append(table, f"SELECT {number} AS k, 'a' AS v")
    return table


def rewrite(path, change):
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(action) + "\n" for action in change(actions)))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:0], "the file is empty"),
        (lambda data: data[: len(data) // 2], "line 1"),
        (lambda data: b"\x00" * len(data), "line 1"),
        (lambda data: data + b"garbage", "line 3"),
        (lambda data: data + b"[1]\n", "no JSON object"),
        (lambda data: data + b'{"add":{"path":"x"}}\n', "'size'"),
        (lambda data: b"\xff\xfe" + data, "line 1"),
    ],
    ids=["empty", "torn", "zeroed", "garbage", "not-an-object", "incomplete-action", "not-utf8"],
)
def test_a_damaged_newest_entry_is_an_error_that_names_it(table, damage, reason):
    last = entry(table, 3)
    whole = last.read_bytes()
    last.write_bytes(damage(whole))
    with pytest.raises(CorruptLogError) as caught:
        Table(table.path).snapshot()
    assert str(last) in str(caught.value)
    assert reason in str(caught.value)
    assert "move it out of _delta_log" in str(caught.value)
    last.rename(table.path / "moved-away")
    assert len(rows(Table(table.path).snapshot())) == 2


def test_an_entry_that_is_a_folder_is_an_error_that_names_it(table):
    last = entry(table, 3)
    last.unlink()
    last.mkdir()
    with pytest.raises(CorruptLogError, match=f"{last.name}.*it is a folder"):
        Table(table.path).snapshot()


def test_a_table_object_reads_on_once_a_damaged_entry_is_mended(table):
    reader = Table(table.path)
    reader.snapshot()
    append(table, "SELECT 9 AS k, 'b' AS v")
    whole = entry(table, 4).read_bytes()
    entry(table, 4).write_bytes(whole[:40])
    with pytest.raises(CorruptLogError):
        reader.snapshot()
    entry(table, 4).write_bytes(whole)
    assert reader.snapshot().version == 4


def test_a_gap_in_the_log_is_an_error(table):
    entry(table, 1).unlink()
    with pytest.raises(CorruptLogError, match="not complete"):
        Table(table.path).snapshot()


def test_a_partition_column_that_the_schema_lacks_is_an_error(table):
    first = entry(table, 0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    next(a["metaData"] for a in actions if "metaData" in a)["partitionColumns"] = ["gone"]
    first.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(CorruptLogError, match="no partition column 'gone'"):
        Table(table.path).snapshot()


def test_an_entry_that_came_up_while_the_log_was_listed_is_not_missed(table):
    """A listing may have a later name and lack an earlier one, as directories may be searched."""

    class Overtaken(LocalStore):
        def list(self, folder):
            return [name for name in super().list(folder) if name != f"{2:020}.json"]

    assert Table(table.path, Overtaken()).snapshot().version == table.snapshot().version


def test_a_log_without_metadata_is_an_error(table):
    rewrite(entry(table, 0), lambda actions: [a for a in actions if "metaData" not in a])
    with pytest.raises(CorruptLogError, match="no metaData action"):
        Table(table.path).snapshot()


def test_other_files_in_the_log_folder_are_ignored(table):
    folder = table.path / "_delta_log"
    for name in ("00000000000000000004.json.tmp", ".00000000000000000004.json.x.tmp", "notes.txt"):
        (folder / name).write_text("garbage")
    (folder / "00000000000000000001.00000000000000000002.compacted.json").write_text("garbage")
    (folder / "00000000000000000003.crc").write_text("garbage")
    (folder / "_last_checkpoint").write_text("garbage")
    assert Table(table.path).snapshot().version == 3


def test_unknown_actions_and_fields_are_ignored(table):
    def change(actions):
        for action in actions:
            if "add" in action:
                action["add"]["fromTheFuture"] = {"x": 1}
        return [*actions, {"somethingNew": {"y": 2}}]

    rewrite(entry(table, 2), change)
    assert len(rows(Table(table.path).snapshot())) == 3


def test_a_file_is_known_by_its_path_and_deletion_vector(table):
    """A remove names the file with the vector it had; one for another vector ends nothing."""
    path = next(iter(table.snapshot().files))
    append(table, "SELECT range AS k, 'b' AS v FROM range(5)")
    path = list(table.snapshot().files)[-1]
    delete(table, {path: [0]})
    snapshot = delete(table, {path: [1]})
    assert snapshot.files[path].deletion_vector.cardinality == 2
    assert Table(table.path).snapshot() == snapshot

    def add_first(actions):
        return sorted(actions, key=lambda action: "remove" in action)

    for version in (5, 6):
        rewrite(entry(table, version), add_first)
    replayed = Table(table.path).snapshot()
    assert replayed.files == snapshot.files

    def without_vector(actions):
        for action in actions:
            action.get("remove", {}).pop("deletionVector", None)
            if "add" in action:
                action["add"]["path"] = "other.parquet"
        return actions

    rewrite(entry(table, 6), without_vector)
    assert path in Table(table.path).snapshot().files


def test_older_versions_can_be_read(table):
    delete_where(table, "k = 0")
    assert [len(rows(table.snapshot_at(version))) for version in range(5)] == [0, 1, 2, 3, 2]
    with pytest.raises(CommitsExpiredError):
        table.snapshot_at(5)


def test_commits_come_in_order_with_what_they_changed(table):
    snapshot = delete_where(table, "k = 0")
    transaction = table.begin()
    transaction.remove(next(iter(snapshot.files.values())))
    transaction.commit("DELETE")
    shape = [(c.version, len(c.adds), len(c.removes)) for c in table.commits(0, 5)]
    assert shape == [(1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 1), (5, 0, 1)]


def test_commits_that_were_cleaned_up_are_an_error_that_says_so(table):
    DeltaTable(table.path).create_checkpoint()
    entry(table, 0).unlink()
    entry(table, 1).unlink()
    assert Table(table.path).snapshot().version == 3
    assert table.earliest_version() == 2
    with pytest.raises(CommitsExpiredError, match="oldest entry is 2"):
        list(table.commits(0, 3))


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "reader version 4"),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors", "catalogManaged", "fromTheFuture"],
                "writerFeatures": ["deletionVectors", "catalogManaged", "fromTheFuture"],
            },
            "catalogManaged, fromTheFuture",
        ),
    ],
)
def test_a_table_that_needs_a_better_reader_is_refused_by_name(table, protocol, named):
    def change(actions):
        return [{"protocol": protocol} if "protocol" in action else action for action in actions]

    rewrite(entry(table, 0), change)
    with pytest.raises(UnsupportedTableFeatureError, match=named):
        Table(table.path).snapshot()


@pytest.mark.parametrize(
    ("feature", "properties", "refused"),
    [
        ("rowTracking", {}, True),
        ("icebergCompatV2", {}, True),
        ("fromTheFuture", {}, True),
        ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}, True),
        ("changeDataFeed", {}, False),
        ("checkConstraints", {"delta.constraints.c": "k > 0"}, True),
        ("checkConstraints", {}, False),
        ("columnMapping", {}, False),
        ("domainMetadata", {}, False),
    ],
)
def test_a_table_that_needs_a_better_writer_can_be_read_only(table, feature, properties, refused):
    def change(actions):
        for action in actions:
            action.get("protocol", {}).get("writerFeatures", []).append(feature)
            action.get("metaData", {}).get("configuration", {}).update(properties)
        return actions

    rewrite(entry(table, 0), change)
    other = Table(table.path)
    assert len(rows(other.snapshot())) == 3
    if refused:
        with pytest.raises(UnsupportedTableFeatureError, match=feature):
            other.begin()
    else:
        other.begin()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"enableChangeDataFeed": "true"}, "changeDataFeed"),
        ({"columnMapping.mode": "name"}, "columnMapping"),
        ({"constraints.positive": "k > 0"}, "checkConstraints"),
        ({"enableRowTracking": "true"}, "delta.enableRowTracking"),
        ({"setTransactionRetentionDuration": "interval 1 day"}, "setTransactionRetention"),
    ],
)
def test_no_table_is_made_with_a_property_that_can_not_be_honoured(tmp_path, properties, named):
    with pytest.raises(UnsupportedTableFeatureError, match=named):
        create(tmp_path / "new", **properties)
    assert not (tmp_path / "new").exists()


def test_a_table_that_forgets_which_batches_it_holds_gets_no_further_ones(table):
    """delta-rs leaves batches older than the property says out of checkpoints."""

    def change(actions):
        for action in actions:
            properties = {"delta.setTransactionRetentionDuration": "interval 1 second"}
            action.get("metaData", {}).get("configuration", {}).update(properties)
        return actions

    rewrite(entry(table, 0), change)
    with pytest.raises(UnsupportedTableFeatureError, match="setTransactionRetentionDuration"):
        Table(table.path).begin()


def test_a_table_may_ask_for_checkpoints_of_the_second_kind(tmp_path):
    table = create(tmp_path / "new", checkpointPolicy="v2", checkpointInterval="1")
    assert "v2Checkpoint" in append(table, "SELECT 1 AS k, 'a' AS v").protocol.reader_features
    assert len(READERS["delta-rs"](table.path)) == 1


def test_mapped_columns_are_refused_by_name(table):
    def change(actions):
        for action in actions:
            if "protocol" in action:
                action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
            if "metaData" in action:
                action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
        return actions

    rewrite(entry(table, 0), change)
    with pytest.raises(UnsupportedTableFeatureError, match="columnMapping"):
        Table(table.path).snapshot()


def test_rows_survive_a_writer_that_dies_before_its_commit(table):
    write(table, "SELECT 77 AS k, 'lost' AS v")  # files without a commit
    assert sorted_rows(rows(Table(table.path).snapshot())) == [(0, "a"), (1, "a"), (2, "a")]
