"""A stream keeps its name in the checkpoint while its options, and reads beside it, change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors.streaming import CheckpointSourceChangedError, CheckpointUnreadableError
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, StreamTraits, names_in_checkpoint
from millpond.streaming.checkpoint import PlannedBatch, SourceRange

PLACE = "/in"


def files(**options):
    return StreamTraits.of(PLACE, options={"format": "csv", **options}, is_files=True)


def table(**options):
    return StreamTraits.of("main.t", options=options, is_files=False)


def test_streams_of_the_same_options_are_the_same_in_any_order():
    a, b = files(maxfilespertrigger="1"), files(maxfilespertrigger="2")
    known = {"/in": a, "/in#2": b}
    assert names_in_checkpoint({"/in": b, "/in#2": a}, known) == {"/in": "/in#2", "/in#2": "/in"}


@pytest.mark.parametrize("change", [{"pathglobfilter": "p*"}, {"schema": "a INT"}])
def test_the_one_that_is_left_is_the_one_that_changed(change):
    known = {"/in": files(), "/in r*": files(pathglobfilter="r*")}
    now = {"/in": files(**change), "/in r*": files(pathglobfilter="r*")}
    assert names_in_checkpoint(now, known) == {"/in": "/in", "/in r*": "/in r*"}


def test_the_files_that_streams_take_tell_them_apart_where_other_options_changed():
    known = {name: files(pathglobfilter=name[-2:]) for name in ("/in o*", "/in r*")}
    now = {
        "/in r*": files(**{"cloudfiles.filenamepattern": "r*"}, maxfilespertrigger="3"),
        "/in o*": files(pathglobfilter="o*", maxfilespertrigger="3"),
        "/in": files(maxfilespertrigger="3"),
    }
    assert names_in_checkpoint(now, known) == {name: name for name in now}


def test_secrets_tell_nothing():
    known = {"/in": files(**{"fs.s3a.secret.key": "old"}), "/in#2": files(header="true")}
    now = {"/in": files(header="true"), "/in#2": files(**{"fs.s3a.secret.key": "new"})}
    assert names_in_checkpoint(now, known) == {"/in": "/in#2", "/in#2": "/in"}


def test_a_new_stream_takes_a_name_that_no_other_has():
    known = {"/in": files(header="true")}
    now = {"/in": files(), "/in#2": files(header="true")}
    assert names_in_checkpoint(now, known) == {"/in": "/in#2", "/in#2": "/in"}


@pytest.mark.parametrize(
    "now",
    [
        [files(maxfilespertrigger="3"), files(maxfilespertrigger="4")],
        [files(), files(maxfilespertrigger="3"), files(maxfilespertrigger="4")],
    ],
    ids=["both changed", "one changed and one was added"],
)
def test_what_can_not_be_told_apart_is_refused(now):
    known = {"/in": files(), "/in#2": files(maxfilespertrigger="2")}
    names = {f"/in#{number}": traits for number, traits in enumerate(now)}
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint(names, known)


def test_streams_of_tables_go_on_by_their_names_when_all_their_options_changed():
    known = {f"main.t{n}": table(maxfilespertrigger=n) for n in ("", "#2")}
    now = {f"main.t{n}": table(maxbytespertrigger=n) for n in ("", "#2")}
    assert names_in_checkpoint(now, known) == {name: name for name in now}


def test_a_checkpoint_that_says_nothing_of_its_streams_has_their_names():
    now = {"/in": files(), "/in o*": files(pathglobfilter="o*"), "main.t": table()}
    assert names_in_checkpoint(now, dict.fromkeys(now)) == {name: name for name in now}
    known = {"/in r*": None, "/in o*": None}
    now = {"/in r*.csv": files(pathglobfilter="r*.csv"), "/in o*": files(pathglobfilter="o*")}
    assert names_in_checkpoint(now, known) == {"/in r*.csv": "/in r*", "/in o*": "/in o*"}
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint({"/in": files(), "/in#2": files(header="true")}, {"/in": None})


@given(st.data())
def test_streams_keep_their_names_through_any_changes_of_one_at_a_time(data):
    streams, known, numbers = {0: 0}, {}, {}
    for option in range(1, data.draw(st.integers(1, 8))):
        order = data.draw(st.permutations(list(streams)))
        now = {f"/in#{at}": files(option=str(streams[one])) for at, one in enumerate(order)}
        names = names_in_checkpoint(now, known)
        found = {one: names[f"/in#{at}"] for at, one in enumerate(order)}
        assert len(set(found.values())) == len(streams)
        assert {one: found[one] for one in numbers} == numbers
        numbers, known = found, {names[name]: traits for name, traits in now.items()}
        changed = data.draw(st.sampled_from([*streams, len(streams)]))
        streams[changed] = option


def test_a_checkpoint_notes_what_its_streams_are(tmp_path):
    checkpoint = Checkpoint(tmp_path, LocalStore())
    checkpoint.note_streams({"a": files()})
    assert checkpoint.streams() == {}  # none that a batch has
    checkpoint.plan(PlannedBatch(0, {name: SourceRange("csv /in", {}, {}) for name in "ab"}))
    assert checkpoint.streams() == {"a": files(), "b": None}
    checkpoint.note_streams({"b": files(header="true")})
    assert checkpoint.streams() == {"a": files(), "b": files(header="true")}
    (tmp_path / "streams.json").write_text('{"a": 1}')
    with pytest.raises(CheckpointUnreadableError, match="does not name the streams"):
        checkpoint.streams()
