"""The examples and error classes of the SQL page are true."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from millpond.errors import all_error_classes
from millpond.sql import parse_file

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: " ".join(text.split()[:5]))
def test_every_example_is_accepted(text, parse):
    assert parse(text).datasets


def test_the_shown_problem_is_what_is_printed():
    shown = re.search(r"^```\n(\[SQL_SYNTAX_ERROR\].*?)\n```", PAGE, re.MULTILINE | re.DOTALL)[1]
    text = "\n\nCREATE STREMING TABLE bookings"
    file = "transformations/bookings.sql"
    _, (problem,) = parse_file(text, file=file, catalog="c", schema="s", configuration={})
    assert str(problem) == shown


def test_every_class_that_the_page_names_exists():
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE)) - {"UTF8_BINARY"}
    assert len(named) > 10
    assert named <= {cls.error_class for cls in all_error_classes()}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (k)", "SQL_FLOW_NOT_SUPPORTED"),
        ("CREATE TABLE t FLOW INSERT BY NAME SELECT 1", "SQL_STATEMENT_NOT_SUPPORTED"),
        ("REFRESH STREAMING TABLE t", "SQL_STATEMENT_NOT_SUPPORTED"),
        ("CREATE STREAMING TABLE t WITH ROW FILTER f ON (a)", "SQL_CLAUSE_NOT_SUPPORTED"),
        ("CREATE STREAMING TABLE t SCHEDULE EVERY 1 DAY", "SQL_CLAUSE_NOT_SUPPORTED"),
    ],
)
def test_what_the_page_calls_refused_is_refused(text, name, refused):
    assert refused(text).error_class == name


@pytest.mark.parametrize(
    "module", ["errors.caret", "errors.sql", "errors.suggestion", "sql.tokens", "sql.variables"]
)
def test_the_examples_in_docstrings_are_true(module):
    result = doctest.testmod(importlib.import_module(f"millpond.{module}"))
    assert result.attempted
    assert not result.failed
