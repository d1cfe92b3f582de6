"""Tables of text: aligned, never wider than asked for, safe to print."""

import pytest
from rich.cells import cell_len

from millpond.cli.grid import Column, fit_widths, render_grid

COLUMNS = [Column("name"), Column("rows", is_number=True)]


def test_text_stands_left_and_numbers_right():
    assert render_grid(COLUMNS, [["orders", "12"], ["o", "1,200"]], width=80) == [
        "name     rows",
        "------  -----",
        "orders     12",
        "o       1,200",
    ]


def test_no_rows_leave_the_headings():
    assert render_grid(COLUMNS, [], width=80) == ["name  rows", "----  ----"]


@pytest.mark.parametrize("width", [20, 40, 79, 100, 200])
def test_no_line_is_wider_than_the_screen(width):
    columns = [Column(f"column {number}") for number in range(5)]
    rows = [["x" * 10 * number for number in range(5)], ["日本語" * 20] * 5]
    for line in render_grid(columns, rows, width=width)[:-1]:
        assert cell_len(line) <= width


def test_a_cell_that_does_not_fit_ends_in_an_ellipsis():
    lines = render_grid([Column("text")], [["abcdefghijklmnop"]], width=10)
    assert lines[-1] == "abcdefghi…"


def test_the_widest_columns_give_way_first():
    assert fit_widths([10, 50, 20], available=64) == [10, 30, 20]
    assert fit_widths([10, 50, 50], available=64) == [10, 25, 25]


def test_columns_for_which_there_is_no_room_are_left_out_and_counted():
    columns = [Column(f"c{number}") for number in range(6)]
    lines = render_grid(columns, [["x" * 20] * 6], width=30)
    assert lines[0].split() == ["c0", "c1", "c2"]
    assert lines[-1] == "(3 of 6 columns left out for want of room: --format json shows all)"


def test_wide_characters_are_measured_as_the_terminal_shows_them():
    assert render_grid([Column("a"), Column("b")], [["日本", "x"], ["ab", "y"]], width=80) == [
        "a     b",
        "----  -",
        "日本  x",
        "ab    y",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb", "a\\nb"), ("\x1b[31mred", "\\x1b[31mred"), ("a\u202eb", "a\\u202eb")],
)
def test_characters_that_would_act_on_the_terminal_are_written_out(text, shown):
    assert render_grid([Column("t")], [[text]], width=80)[-1] == shown
