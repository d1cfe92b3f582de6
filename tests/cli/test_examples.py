"""The examples in docstrings hold."""

import doctest
import importlib
import pkgutil

import pytest

MODULES = [
    module.name
    for package in ("millpond.cli", "millpond.events")
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
