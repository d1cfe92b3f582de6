"""The list of functions that look at more than one row is complete."""

import re
from pathlib import Path

import pyspark.sql.functions
import pytest

from millpond.engine.shapes.functions import GENERATORS, WINDOW_FUNCTIONS, kind_of_function


def section(title):
    """The functions that PySpark lists under a heading."""
    text = Path(pyspark.sql.functions.__file__).read_text(encoding="utf-8")
    found = re.search(rf"# {title} Functions\n(.*?)\n    # ", text, re.DOTALL)
    return sorted(re.findall(r'"(\w+)"', found[1]))


@pytest.mark.parametrize("name", section("Aggregate") + section("Window"))
def test_functions_that_pyspark_calls_aggregates_or_window_functions_are_known(name):
    assert kind_of_function(name) is not None
    assert kind_of_function(name.upper()) is not None


def test_window_functions_and_generators_are_those_of_pyspark():
    assert set(section("Window")) == WINDOW_FUNCTIONS
    assert set(section("Generator")) - GENERATORS == set()


@pytest.mark.parametrize("title", ["Mathematical", "String", "Array", "Map", "Date and Timestamp"])
def test_functions_on_one_row_are_not_in_the_list(title):
    # The window functions of time stand among PySpark's functions on timestamps.
    found = {name for name in section(title) if kind_of_function(name) is not None}
    assert found <= {"window", "session_window", "window_time"}
