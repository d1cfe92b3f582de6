"""A stream keeps its name in the checkpoint while its options, and reads beside it, change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors.streaming import CheckpointSourceChangedError, CheckpointUnreadableError
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, StreamTraits, names_in_checkpoint
from millpond.streaming.checkpoint import PlannedBatch, SourceRange

PLACE = "/in"
PATTERNS = ["o*", "r*", "{o,p}*", ""]


def files(reads=1, **options):
    given = {"format": "csv", **options}
    return StreamTraits.of(PLACE, options=given, is_files=True, reads=reads)


def table(**options):
    return StreamTraits.of("main.t", options=options, is_files=False)


def topic(servers, **options):
    given = {"kafka.bootstrap.servers": servers, "subscribe": "t", **options}
    return StreamTraits.of("kafka t", options=given, is_files=False)


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
        "/in o*": files(pathglobfilter="o*", maxfilespertrigger="3"),
        "/in r*": files(**{"cloudfiles.filenamepattern": "r*"}, maxfilespertrigger="3"),
    }
    assert names_in_checkpoint(now, known) == {name: name for name in now}
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint({**now, "/in": files(maxfilespertrigger="3")}, known)


@pytest.mark.parametrize("before", [["o*"], ["o*", "r*"]], ids=["one added", "both changed"])
def test_a_changed_read_is_not_taken_for_another_that_takes_its_files_now(before):
    known = {f"/in {pattern}": files(pathglobfilter=pattern) for pattern in before}
    now = {
        "/in {o,p}*": files(pathglobfilter="{o,p}*"),
        "/in o*": files(pathglobfilter="o*", maxfilespertrigger="5"),
    }
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint(now, known)


def test_a_read_that_is_gone_is_told_before_anything_is_taken_for_it():
    known = {f"/in {pattern}": files(pathglobfilter=pattern) for pattern in ("o*", "r*")}
    now = {"/in": files(pathglobfilter="o*", maxfilespertrigger="5")}
    with pytest.raises(CheckpointSourceChangedError) as refused:
        names_in_checkpoint(now, known)
    assert "no longer reads /in in one of the ways in which it has read it so far (/in r*)" in str(
        refused.value
    )
    assert "/in (maxfilespertrigger => '5', pathglobfilter => 'o*')" in str(refused.value)


def test_streams_are_shown_by_the_options_that_tell_them_apart():
    secret = {"fs.s3a.secret.key": "abc", "url": "http://me:abc@host/"}
    known = {"/in": files(), "/in#2": files(header="true")}
    now = {
        "/in": files(recursivefilelookup="true", schema="v INT"),
        "/in#2": files(**secret, schema="v INT", nullvalue="x" * 61),
    }
    with pytest.raises(CheckpointSourceChangedError) as refused:
        names_in_checkpoint(now, known)
    message = str(refused.value)
    assert "/in (recursivefilelookup => 'true')" in message
    assert f"nullvalue => '{'x' * 57}...'" in message
    assert "url => 'http://" in message
    assert "abc" not in message
    assert "schema" not in message
    assert "#2" not in message


def test_one_of_several_equal_reads_gets_no_options_of_its_own():
    known = {"/in": files(reads=2)}
    apart = {"/in": files(), "/in#2": files(maxfilespertrigger="5")}
    with pytest.raises(CheckpointSourceChangedError, match="equal options, as one stream"):
        names_in_checkpoint(apart, known)
    names = names_in_checkpoint({**apart, "/in": files(reads=2)}, known)
    assert names == {"/in": "/in", "/in#2": "/in#2"}
    assert names_in_checkpoint({"/in": files()}, known) == {"/in": "/in"}
    changed = files(maxfilespertrigger="5", reads=2)
    assert names_in_checkpoint({"/in": changed}, known) == {"/in": "/in"}


def test_secrets_tell_nothing():
    known = {"/in": files(**{"fs.s3a.secret.key": "old"}), "/in#2": files(header="true")}
    now = {"/in": files(header="true"), "/in#2": files(**{"fs.s3a.secret.key": "new"})}
    assert names_in_checkpoint(now, known) == {"/in": "/in#2", "/in#2": "/in"}


def test_a_new_stream_takes_a_name_that_no_other_has():
    known = {"/in": files(header="true"), "/in#2": files()}
    now = {"/in": files(), "/in#2": files(header="true")}
    assert names_in_checkpoint(now, known) == {"/in": "/in#2", "/in#2": "/in"}
    known = {"/in#2": files()}
    now = {"/in": files(), "/in#2": files(header="true")}
    assert names_in_checkpoint(now, known) == {"/in": "/in#2", "/in#2": "/in#2#2"}


A, B, C = (files(comment=sign) for sign in "#%$")


def test_a_new_read_with_the_options_of_the_changed_one_behind_it_looks_like_that_one():
    """It is the same text as if another read had been added behind."""
    assert names_in_checkpoint({"/in": A, "/in#2": B}, {"/in": A}) == {
        "/in": "/in",
        "/in#2": "/in#2",
    }


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([A], [B, A]),
        ([A, B], [A, C, B]),
        ([A, B], [C, A]),
        ([A, B], [B, C]),
        ([A, B], [files(comment="%", reads=2), A]),
        ([files(comment="#", reads=2), B], [files(comment="%", reads=2), A]),
        (
            [files(pathglobfilter="o*"), files(pathglobfilter="r*")],
            [files(pathglobfilter=p, maxfilespertrigger="3") for p in ("r*", "o*")],
        ),
    ],
    ids=[
        "put in front",
        "put between",
        "changed, moved",
        "options given on",
        "given on to a new one",
        "one of two equal ones taken over",
        "patterns exchanged",
    ],
)
def test_streams_that_move_while_options_change_are_refused(before, now):
    known = {f"/in#{number}": traits for number, traits in enumerate(before)}
    names = {f"/in#{number}": traits for number, traits in enumerate(now)}
    with pytest.raises(
        CheckpointSourceChangedError, match="no longer come first, in their former order"
    ):
        names_in_checkpoint(names, known)


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


def test_streams_of_a_table_whose_options_all_changed_are_refused():
    known = {f"main.t{n}": table(maxfilespertrigger=n) for n in ("", "#2")}
    now = {f"main.t{n}": table(maxbytespertrigger=n) for n in ("", "#2")}
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint(now, known)
    now["main.t"] = known["main.t"]
    assert names_in_checkpoint(now, known) == {name: name for name in now}


def test_a_topic_of_two_clusters_is_two_streams_whatever_other_options_say():
    known = {"kafka t#2": topic("one"), "kafka t": topic("two")}
    now = {
        "kafka t": topic("one", failondataloss="false"),
        "kafka t#2": topic("two", failondataloss="false"),
    }
    names = {"kafka t": "kafka t#2", "kafka t#2": "kafka t"}
    assert names_in_checkpoint(now, known) == names
    # The brokers of one of them may change.
    now["kafka t#2"] = topic("three")
    assert names_in_checkpoint(now, known) == names
    now["kafka t"] = topic("four")
    with pytest.raises(CheckpointSourceChangedError, match="can't be told which"):
        names_in_checkpoint(now, known)


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
    _go_on(data, most_changes=1)


@given(st.data())
def test_streams_keep_their_names_or_are_refused_through_changes_of_several(data):
    _go_on(data, most_changes=2)


def _go_on(data, *, most_changes):
    """Move streams, each of a pattern and an option, change some, or add one, again and again.

    More than one change may be refused, and then is not made. What is the same text as another
    edit is left out: streams that exchange all they have, or get what others had and move as well.
    """
    streams, known, numbers = {0: ("o*", 0)}, {}, {}
    changed, is_moved = streams, False
    for update in range(1, data.draw(st.integers(1, 8))):
        order = data.draw(st.permutations(list(changed))) if is_moved else list(changed)
        now = {f"/in#{at}": _drawn(*changed[one]) for at, one in enumerate(order)}
        try:
            names = names_in_checkpoint(now, known)
        except CheckpointSourceChangedError:
            assert most_changes > 1
        else:
            found = {one: names[f"/in#{at}"] for at, one in enumerate(order)}
            assert len(set(found.values())) == len(changed)
            assert {one: found[one] for one in numbers} == numbers
            numbers, known = found, {names[name]: traits for name, traits in now.items()}
            streams = {one: changed[one] for one in order}
        is_moved = data.draw(st.booleans())
        touched = st.sampled_from([*streams, len(streams)])
        most = most_changes - is_moved
        chosen = data.draw(st.lists(touched, max_size=most, unique=True))
        given = st.tuples(st.sampled_from(PATTERNS), st.just(update))
        if most > 1:
            given |= st.sampled_from(list(streams.values()))
        changed = streams | {one: data.draw(given) for one in chosen}
        if len({*changed.values()}) < len(changed) or {*changed.values()} == {*streams.values()}:
            changed = streams


def _drawn(pattern, option):
    given = {"pathglobfilter": pattern} if pattern else {}
    return files(option=str(option), **given)


def test_a_checkpoint_notes_what_its_streams_are(tmp_path):
    checkpoint = Checkpoint(tmp_path, LocalStore())
    checkpoint.note_streams({"a": files(reads=2)}, known={})
    assert checkpoint.streams() == {}  # none that a batch has
    checkpoint.plan(PlannedBatch(0, {name: SourceRange("csv /in", {}, {}) for name in "abc"}))
    known = {"a": files(reads=2), "b": None, "c": None}
    assert checkpoint.streams() == known
    checkpoint.note_streams({"b": files(header="true"), "c": table()}, known=known)
    known = {"a": files(reads=2), "b": files(header="true"), "c": table()}
    assert checkpoint.streams() == known


@pytest.mark.parametrize(
    "note",
    ["", "[]", '{"a": 1}', '{"format": 1}', '{"format": 1, "streams": {"a": {"place": "/in"}}}'],
)
def test_a_note_that_is_torn_may_be_removed(tmp_path, note):
    checkpoint = Checkpoint(tmp_path, LocalStore())
    checkpoint.plan(PlannedBatch(0, {"a": SourceRange("csv /in", {}, {})}))
    (tmp_path / "streams.json").write_text(note)
    with pytest.raises(CheckpointUnreadableError, match="does not name the streams") as refused:
        checkpoint.streams()
    assert "remove it" in refused.value.hint


def test_a_note_of_a_newer_format_says_so(tmp_path):
    checkpoint = Checkpoint(tmp_path, LocalStore())
    checkpoint.plan(PlannedBatch(0, {"a": SourceRange("csv /in", {}, {})}))
    (tmp_path / "streams.json").write_text('{"format": 2, "streams": []}')
    with pytest.raises(CheckpointUnreadableError, match="format 2") as refused:
        checkpoint.streams()
    assert "newer millpond" in refused.value.hint
