"""What becomes of values in files that do not fit the columns, by the mode of the read."""

from __future__ import annotations

import json

import pytest

from millpond.errors.file_reads import FilesNotReadError

READ = "SELECT * FROM STREAM read_files('SENT', format => 'csv', header => true"


def rescued(text):
    """The values that were rescued, without the path of their file."""
    if text is None:
        return None
    found = json.loads(text)
    assert found.pop("_file_path").startswith("file:/")
    return found


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_what_does_not_fit_is_rescued_in_any_mode(suppliers, mode):
    suppliers.query(f"{READ}, schema => 'v INT, _rescued_data STRING', mode => '{mode}')")
    suppliers.send("a.csv", "v\n1\nword\n2\n")
    suppliers.updated()
    found = [(v, rescued(text)) for v, text in suppliers.rows()]
    assert found == [(1, None), (2, None), (None, {"v": "word"})]


@pytest.mark.parametrize(
    ("mode", "expected"), [("PERMISSIVE", [(1,), (2,), (None,)]), ("DROPMALFORMED", [(1,), (2,)])]
)
def test_what_does_not_fit_is_null_or_dropped_where_nothing_is_rescued(suppliers, mode, expected):
    suppliers.query(f"{READ}, schema => 'v INT', mode => '{mode}')")
    suppliers.send("a.csv", "v\n1\nword\n2\n")
    suppliers.updated()
    assert suppliers.rows() == expected


def test_fail_fast_leaves_a_file_that_has_what_does_not_fit(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT', mode => 'FAILFAST')")
    suppliers.send("a.csv", "v\n1\nword\n")
    suppliers.send("b.csv", "v\n2\n")
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert suppliers.uri("a.csv") in str(error)
    assert "word" in str(error)
    assert suppliers.rows() == [(2,)]


def test_names_that_no_table_can_have_are_rescued(suppliers):
    """Such as NUL, at which other readers of the table end a name, and those of millpond's own."""
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    odd = r'"__millpond_file": 1, "__row": 2, "": 3, "x\u0000": 4'
    suppliers.send("a.json", f'{{"v": 1, "n": {{"z": 1, "\\u0000": 2}}, {odd}}}\n')
    suppliers.updated()
    suppliers.send("b.json", f'{{"v": 2, "n": {{"z": 1, "": 2}}, {odd}, "__file": 5}}\n')
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["n", "v", "_rescued_data"]
    expected = {"__millpond_file": 1, "__row": 2, "": 3, "x\0": 4}
    assert [(v, n, rescued(text)) for n, v, text in suppliers.rows()] == [
        (1, {"z": 1}, expected | {"n": {"z": 1, "\0": 2}}),
        (2, {"z": 1}, expected | {"n": {"z": 1, "": 2}, "__file": 5}),
    ]
