"""A registry that takes definitions while a test runs, as if the test were a source file."""

from pathlib import Path

import pytest

from millpond.pipelines.registry import Registry, registering


@pytest.fixture
def registry():
    with registering(Registry(Path(__file__).parent, catalog="main", schema="sales")) as opened:
        yield opened
