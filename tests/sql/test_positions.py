"""Places: lines, columns and carets in the user's own file."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors.caret import WIDTH, line_of, point_at
from millpond.sql import parse_file, query_location
from millpond.sql.positions import ExpandedText, Replacement, SourceText


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(line_end):
    source = SourceText(line_end.join(["ab", "", "cd"]), "a.sql")
    location = source.location(source.text.index("d"))
    assert (location.line, location.column) == (3, 2)
    assert source.offset(location) == source.text.index("d")
    assert line_of(source.text, 3) == "cd"
    assert line_of(source.text, 2) == ""
    assert line_of(source.text, 9) == ""


def test_carets_stand_below_the_place():
    assert point_at("SELECT abc", line=7, column=8, length=3) == "7 | SELECT abc\n  |        ^^^"


def test_a_tab_is_four_spaces_wide_in_both_lines():
    assert point_at("\tab", line=10, column=3, length=1) == "10 |     ab\n   |      ^"


def test_wide_characters_take_two_columns_and_combining_ones_none():
    assert point_at("漢x", line=1, column=2, length=1) == "1 | 漢x\n  |   ^"
    assert point_at("漢x", line=1, column=1, length=1) == "1 | 漢x\n  | ^^"
    assert point_at("e\N{COMBINING ACUTE ACCENT}x", line=1, column=3) == (
        "1 | e\N{COMBINING ACUTE ACCENT}x\n  |  ^"
    )


def test_characters_that_disturb_a_terminal_are_replaced():
    shown = point_at("a\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}b\x0c", line=1, column=1)
    assert "\x1b" not in shown
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown
    assert len(shown.splitlines()) == 2


def test_a_place_behind_the_line_is_at_its_end():
    assert point_at("ab", line=1, column=3) == "1 | ab\n  |   ^"
    assert point_at("ab", line=1, column=99) == "1 | ab\n  |   ^"
    assert point_at("", line=1, column=1) == "1 | \n  | ^"


def test_a_long_line_is_shortened_on_both_sides():
    line = "a" * 500 + "HERE" + "b" * 500
    shown, carets = point_at(line, line=1, column=501, length=4).split("\n")
    text = shown.removeprefix("1 | ")
    assert len(text) <= WIDTH
    assert text.startswith("...aaa")
    assert text.endswith("bbb...")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_a_long_line_keeps_its_start_where_the_place_is_near_it():
    shown, _ = point_at("HERE" + "b" * 500, line=1, column=1, length=4).split("\n")
    assert shown.startswith("1 | HEREbbb")
    assert shown.endswith("bbb...")


def test_a_long_line_keeps_its_end_where_the_place_is_near_it():
    shown, _ = point_at("a" * 500 + "HERE", line=1, column=501, length=4).split("\n")
    assert shown.startswith("1 | ...aaa")
    assert shown.endswith("aaaHERE")


@given(st.text(st.sampled_from("ab漢\t\N{COMBINING ACUTE ACCENT}\x00 "), max_size=400), st.data())
def test_a_shown_line_never_gets_too_wide(line, data):
    column = data.draw(st.integers(1, len(line) + 2))
    length = data.draw(st.integers(0, 300))
    shown, carets = point_at(line, line=1, column=column, length=length).split("\n")
    width = sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in {"W", "F"}
        else 1
        for char in shown.removeprefix("1 | ")
    )
    assert width <= WIDTH
    assert len(carets.removeprefix("  | ")) <= WIDTH + 1
    assert carets.endswith("^")


PARTS = st.lists(
    st.one_of(
        st.text("ab\n", min_size=1, max_size=4).map(lambda text: (text, None)),
        st.tuples(st.just("${v}"), st.text("xy\n", max_size=8)),
    ),
    max_size=8,
)


def expanded_from(parts):
    replacements, position = [], 3
    for written, value in parts:
        if value is not None:
            replacements.append(Replacement(position, position + len(written), value))
        position += len(written)
    file = "--\n" + "".join(written for written, _ in parts) + " end"
    return ExpandedText(SourceText(file, "a.sql"), 3, position, tuple(replacements))


@given(PARTS)
def test_each_character_leads_back_to_the_file(parts):
    expanded = expanded_from(parts)
    assert expanded.text == "".join(w if value is None else value for w, value in parts)
    offset, position = 0, 3
    for written, value in parts:
        for index in range(len(written if value is None else value)):
            place = expanded.file_offset(offset + index)
            inside = expanded.replacement_at(offset + index)
            assert place == (position + index if value is None else position)
            assert (inside is None) == (value is None)
        offset += len(written if value is None else value)
        position += len(written)
    if not parts or parts[-1][1] is None:
        assert expanded.file_offset(offset) == position


@given(st.lists(st.sampled_from(["1 ", "${a} ", "${b} ", "\n", "'${a}' "]), max_size=10))
def test_each_character_of_a_query_leads_back_to_the_file(parts):
    text = "CREATE VIEW v AS SELECT " + "".join(parts) + "1;"
    pipeline, problems = parse_file(
        text, file="a.sql", catalog="c", schema="s", configuration={"a": "xyz", "b": ""}
    )
    assert not problems
    query = pipeline.flows[0].query
    source = SourceText(text, "a.sql")
    for offset, char in enumerate(query.text):
        found = text[source.offset(query_location(query, offset)) :]
        assert found.startswith((char, "${a}"))
    assert source.offset(query_location(query, len(query.text) - 1)) == text.index("1;")


def test_a_query_that_begins_inside_a_value_begins_at_the_variable():
    text = "CREATE VIEW v ${rest} + 1;"
    pipeline, problems = parse_file(
        text, file="a.sql", catalog="c", schema="s", configuration={"rest": "AS SELECT 2"}
    )
    assert not problems
    query = pipeline.flows[0].query
    assert query.text == "SELECT 2 + 1"
    assert query.location.column == 15
    assert query_location(query, query.text.index("2")).column == 15
    assert query_location(query, query.text.index("+")).column == text.index("+") + 1
