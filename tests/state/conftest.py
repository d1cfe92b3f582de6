"""A flow's state in a folder, and a DuckDB to use it with."""

from __future__ import annotations

from contextlib import closing

import pytest

from millpond.delta import connect
from millpond.state import FlowState
from millpond.storage import LocalStore


@pytest.fixture
def connection(tmp_path):
    with closing(connect(temporary_folder=tmp_path / "spill")) as opened:
        yield opened


@pytest.fixture
def state(tmp_path) -> FlowState:
    return FlowState(tmp_path / "state", LocalStore())
