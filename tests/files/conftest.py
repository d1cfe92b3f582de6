"""What the tests of files share."""

import pytest

from tests.files.shared_engine import Suppliers, started_engine
from tests.pipeline_folder import folder

__all__ = ["folder"]


@pytest.fixture(scope="session")
def shared_engine():
    with started_engine() as engine:
        yield engine


@pytest.fixture
def suppliers(folder, shared_engine):
    """A pipeline over a folder of files that has none yet."""
    sent = folder.root / "suppliers"
    sent.mkdir()
    return Suppliers(folder, shared_engine, sent)


@pytest.fixture
def write(tmp_path):
    """Writes a file, of JSON if nothing else is said, and gives its path."""

    def write(content, name="a.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
