"""The table of cases: every shape of query that a flow supports, a row each, in SQL and in Python.

The rows stand in one module for each kind of shape. `record_spark_answers.py` runs all on Apache
Spark, `test_cases.py` on millpond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.shapes import distinct_cases, join_cases, stateless_cases, time_cases
from tests.shapes.case import Case

# The cases of a kind run beside each other.
KINDS: Mapping[str, Sequence[Case]] = {
    "stateless": stateless_cases.CASES,
    "distinct": distinct_cases.CASES,
    "joins": join_cases.CASES,
    "joins in time": join_cases.TIMED,
    "time": time_cases.CASES,
}
CASES = tuple(case for cases in KINDS.values() for case in cases)
assert len({case.name for case in CASES}) == len(CASES)
