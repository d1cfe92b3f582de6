"""Quotes in a header, and in lines that are skipped, take no rows with them."""

from __future__ import annotations

import pytest

ROWS = "1,x\n2,y\n"
HEADERS = {
    "behind a quoted name": 'v,"k" (m)\n',
    "that stays open": 'v,"k\n',
    "doubled inside": 'v,"k ""size"""\n',
    "before more of a name": '"v"a,k\n',
    "in a plain name": 'v,5" pipe\n',
    "around all names": '"v","k"\n',
    "around a separator": '"v,w",k\n',
}
SKIPPED = {
    "around some words": '"Price list" of acme\n',
    "that stays open": '"open\n',
    "in the middle": 'Sent,"by acme\n',
}


def read(suppliers, text, **options):
    suppliers.send("a.csv", text)
    given = "".join(f", {name} => {value}" for name, value in options.items())
    found = suppliers.asked(f"SELECT * FROM read_files('SENT', format => 'csv'{given})")
    return [tuple(row.values())[:2] for row in found]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "FAILFAST"])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_in_a_header(suppliers, header, mode):
    found = read(suppliers, header + ROWS, header="true", mode=f"'{mode}'")
    assert found == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("header", ["", "v,k\n"])
@pytest.mark.parametrize("line", SKIPPED.values(), ids=SKIPPED)
def test_in_a_line_that_is_skipped(suppliers, line, header):
    is_there = "true" if header else "false"
    assert read(suppliers, line + header + ROWS, header=is_there, skipRows=1) == [
        (1, "x"),
        (2, "y"),
    ]


def test_beside_quoted_rows(suppliers):
    text = 'v,"k" (m)\r\n1,"x"\r\n2,"y, z"\r\n'
    assert read(suppliers, text, header="true") == [(1, "x"), (2, "y, z")]
