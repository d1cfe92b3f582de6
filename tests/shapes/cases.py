"""The table of cases: every shape of query that a flow supports, a row each, in SQL and in Python.

The rows stand in one module for each kind of shape. `record_spark_answers.py` runs all on Apache
Spark, `test_cases.py` on millpond.
"""

from __future__ import annotations

from tests.shapes import distinct_cases, join_cases, stateless_cases, time_cases

CASES = (
    *stateless_cases.CASES,
    *distinct_cases.CASES,
    *join_cases.CASES,
    *time_cases.CASES,
)
assert len({case.name for case in CASES}) == len(CASES)
