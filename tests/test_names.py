"""Names of datasets: which are the same, and which folder each gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors.names import InvalidNameError
from millpond.names import TableName, path_segment, quote_identifier, resolve_name, split_name

NAMES = st.text(st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=40).filter(
    str.strip
)


def test_letter_case_makes_no_difference_but_letters_do():
    assert TableName("Main", "s", "T").key == TableName("main", "S", "t").key
    assert TableName("m", "s", "straße").key != TableName("m", "s", "strasse").key


@given(NAMES, NAMES)
def test_two_names_share_a_folder_only_if_they_are_the_same(one, other):
    assert (path_segment(one) == path_segment(other)) == (one.lower() == other.lower())


@given(NAMES)
def test_a_folder_name_has_only_characters_that_every_reader_takes(name):
    assert set(path_segment(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


@given(NAMES)
def test_a_quoted_name_is_read_back(name):
    assert split_name(quote_identifier(name)) == (name,)


@pytest.mark.parametrize(
    "text", ["", "a.", ".a", "a..b", "a.b.c.d", "`a", "a\nb", "a\0", "x" * 300]
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(InvalidNameError):
        resolve_name(text)
