"""JSON that is nested more deeply than types can be costs no other file."""

from __future__ import annotations

import pytest

from millpond.errors.file_reads import NewColumnsError


@pytest.mark.parametrize("depth", [23, 24, 25, 200, 490])
@pytest.mark.parametrize("is_first", [True, False])
def test_json_of_many_levels_holds_up_no_other_file(suppliers, depth, is_first):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("a.json", '{"v":1}')
    if not is_first:
        suppliers.updated()
    suppliers.send("b.json", '{"v":2,"deep":' + '{"a":' * depth + "1" + "}" * depth + "}")
    suppliers.send("c.json", '{"v":3}')
    if not is_first:
        assert isinstance(suppliers.error(), NewColumnsError)
    suppliers.updated()
    place = suppliers.pipeline.columns("t").index("v")
    assert sorted(row[place] for row in suppliers.rows()) == [1, 2, 3]
