"""Files whose nested fields are written in another case than the table has them."""

from __future__ import annotations

import pytest

from millpond.events import UpdateState

TABLES = """
CREATE STREAMING TABLE appended AS SELECT * FROM STREAM read_files('{folder}', format => 'json');
CREATE STREAMING TABLE declared (p STRUCT<x: BIGINT, y: BIGINT>)
AS SELECT p FROM STREAM read_files('{folder}', format => 'json');
CREATE STREAMING TABLE replaced
FLOW REPLACE USING (file) SEQUENCE BY time BY NAME
SELECT p, _rescued_data, _metadata.file_path AS file, _metadata.file_modification_time AS time
FROM STREAM read_files('{folder}', format => 'json');
CREATE MATERIALIZED VIEW viewed (p STRUCT<x: BIGINT, y: BIGINT>)
AS SELECT p FROM read_files('{folder}', format => 'json');
"""


@pytest.mark.parametrize(
    ("then", "found"),
    [
        ('{"X": 100, "y": 200}', {"x": 100, "y": 200}),
        ('{"Y": 200, "X": 100}', {"x": 100, "y": 200}),
        ('{"Y": 200}', {"x": None, "y": 200}),
    ],
)
def test_a_supplier_that_changes_the_case_of_names_loses_no_value(folder, tmp_path, then, found):
    """After a full refresh too, when columns are inferred anew but tables keep theirs."""
    landing = tmp_path / "landing"
    landing.mkdir()
    folder.write("p.sql", TABLES.format(folder=landing))
    (landing / "1.json").write_text('{"k": 1, "p": {"x": 1, "y": 2}}\n')
    assert folder.run().state is UpdateState.COMPLETED
    (landing / "1.json").write_text(f'{{"k": 1, "p": {then}}}\n')
    assert folder.run(full_refresh_all=True).state is UpdateState.COMPLETED
    assert folder.rows("appended") == [(1, found, None)]
    assert folder.rows("declared") == [(found,)]
    assert [row[:2] for row in folder.rows("replaced")] == [(found, None)]
    assert folder.rows("viewed") == [(found,)]
