import pytest
from pyspark.sql.connect.session import SparkSession

from millpond.engine.embedded import EmbeddedEngine


@pytest.fixture(scope="session")
def engine():
    engine = EmbeddedEngine(configuration={"my.key": "my value"}, catalog="main", schema="sales")
    yield engine
    engine.close()


@pytest.fixture
def spark(engine):
    """The session that source files see, active as it is while they run."""
    slot = SparkSession._active_session
    before = getattr(slot, "session", None)
    slot.session = engine.session
    yield engine.session
    slot.session = before
