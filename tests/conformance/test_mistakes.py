"""Mistakes in source files and queries: found before data is read, with the same name and place."""

from __future__ import annotations

import re

import pytest

from millpond.errors import MillpondError
from millpond.events import UpdateState
from millpond.runner import dry_run, run_query

# By file. The line of each mistake ends with the class of its error, as a comment.
MISTAKES = {
    "missing_table.sql": """\
CREATE STREAMING TABLE a1
AS SELECT * FROM STREAM(nowhere); -- TABLE_OR_VIEW_NOT_FOUND
""",
    "missing_column.sql": """\
CREATE MATERIALIZED VIEW a2 AS SELECT k,
  nothing -- UNRESOLVED_COLUMN
FROM landing;
""",
    "missing_column_of_a_stream.sql": """\
CREATE STREAMING TABLE a3 AS
SELECT l.nothing FROM STREAM(landing) l; -- UNRESOLVED_COLUMN
""",
    "missing_function.sql": """\
CREATE STREAMING TABLE a4 AS SELECT
  no_such(k) AS n -- UNRESOLVED_ROUTINE
FROM STREAM(landing);
""",
    "syntax.sql": """\
CREATE STREAMING TABLE a5 AS
SELECT CASE WHEN v > 0 THEN k FROM STREAM(landing); -- QUERY_SYNTAX_ERROR
""",
    "type.sql": """\
CREATE MATERIALIZED VIEW a6 AS
SELECT explode(k) AS e FROM landing; -- QUERY_ANALYSIS_FAILED
""",
    "no_flow.sql": """\
CREATE STREAMING TABLE a7; -- DATASET_WITHOUT_FLOW
""",
    "key.sql": """\
CREATE STREAMING TABLE a8
FLOW REPLACE USING (nothing) SEQUENCE BY v BY NAME -- REPLACE_USING_KEY_NOT_FOUND
SELECT * FROM STREAM(landing);
""",
    "sequence.sql": """\
CREATE STREAMING TABLE a9
FLOW REPLACE USING (k) SEQUENCE BY nothing BY NAME -- REPLACE_USING_SEQUENCE_NOT_FOUND
SELECT * FROM STREAM(landing);
""",
    "sequence_expression.sql": """\
CREATE STREAMING TABLE a10
FLOW REPLACE USING (k) SEQUENCE BY nothing + 1 BY NAME -- INVALID_SEQUENCE_EXPRESSION
SELECT * FROM STREAM(landing);
""",
    "expectation.sql": """\
CREATE STREAMING TABLE a11
(CONSTRAINT c EXPECT (nothing > 0)) -- UNRESOLVED_COLUMN
AS SELECT * FROM STREAM(landing);
""",
    "declared.sql": """\
CREATE STREAMING TABLE a12 (k STRING NOT NULL, v INT)
AS SELECT k, v FROM STREAM(landing); -- DECLARED_SCHEMA_MISMATCH
""",
    "declared_too_few.sql": """\
CREATE STREAMING TABLE a13 (k STRING)
AS SELECT k, v FROM STREAM(landing); -- DECLARED_SCHEMA_MISMATCH
""",
    "missing_column.py": """\
from pyspark import pipelines as dp

@dp.table
def b1():
    df = spark.readStream.table("landing")
    return df.select("nothing")  # UNRESOLVED_COLUMN
""",
    "missing_function.py": """\
from pyspark import pipelines as dp

@dp.table
def b2():
    df = spark.readStream.table("landing")
    return df.selectExpr("no_such(k) AS n")  # UNRESOLVED_ROUTINE
""",
    "missing_table.py": """\
from pyspark import pipelines as dp

@dp.materialized_view
def b3():
    return spark.read.table("nowhere")  # TABLE_OR_VIEW_NOT_FOUND
""",
    "raises.py": """\
import pyspark.pipelines as dp

1 / 0  # SOURCE_FILE_FAILED
""",
    "action.py": """\
from pyspark import pipelines as dp

@dp.materialized_view
def b4():
    df = spark.read.table("landing")
    df.count()  # OPERATION_NOT_ALLOWED_IN_DEFINITION
    return df
""",
}
MARK = re.compile(r"(?:--|#) ([A-Z_]+)$")


def marked(text: str) -> list[tuple[str, int]]:
    """The mistakes in a text: their classes and lines."""
    lines = enumerate(text.splitlines(), start=1)
    return [(found[1], number) for number, line in lines if (found := MARK.search(line))]


def test_every_mistake_is_found_in_one_dry_run_which_prints_nothing(folder, capfd):
    folder.feed("landing", [{"k": "a", "v": 1}])
    for name, text in MISTAKES.items():
        folder.write(name, text)
    found: dict[str, list[tuple[str, int]]] = {}
    for problem in dry_run(folder.project()):
        assert problem.where is not None, problem
        name = problem.where.file.removeprefix("transformations/")
        found.setdefault(name, []).append((problem.error_class, problem.where.line))
    assert found == {name: marked(text) for name, text in MISTAKES.items()}
    assert not folder.table("a1").exists()
    assert capfd.readouterr() == ("", "")


def test_an_update_tells_what_is_wrong_and_runs_nothing(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE a;\nCREATE MATERIALIZED VIEW b AS SELECT * FROM missing;\n",
    )
    events = []
    assert folder.run(listeners=[events.append]).state is UpdateState.FAILED
    assert "2 problems in the source files, the first: [DATASET_WITHOUT_FLOW]" in events[-1].message
    classes = [exception["error_class"] for exception in events[-1].error.exceptions]
    assert classes == ["DATASET_WITHOUT_FLOW", "TABLE_OR_VIEW_NOT_FOUND"]


QUERIES = {
    "SELECT nothing FROM landing": "UNRESOLVED_COLUMN",
    "SELECT CASE WHEN k THEN v FROM landing": "QUERY_SYNTAX_ERROR",
    "SELECT raise_error(k) FROM landing": "QUERY_FAILED",
}


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_that_is_wrong_says_what_is(folder, text):
    folder.feed("landing", [{"k": "a", "v": 1}])
    with pytest.raises(MillpondError) as caught:
        run_query(folder.project(), text)
    assert caught.value.error_class == QUERIES[text]
