import pytest

from tests.streaming.toy_flow import Stream


@pytest.fixture
def table(tmp_path):
    """The folder of a Delta table of (id, text) that a test appends to."""
    return tmp_path / "source"


@pytest.fixture
def stream(tmp_path, table):
    return Stream(tmp_path / "flow", {"main.shop.source": table})
