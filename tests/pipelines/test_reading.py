"""`read` and `read_stream` read with the pipeline's session."""

from types import SimpleNamespace

import pytest

from millpond import pipelines as dp
from millpond.errors.pipelines import ArgumentTypeError
from millpond.pipelines.registry import Registry, evaluating


@pytest.fixture
def session():
    """Stands for a session that is asked for tables; nothing runs."""
    return SimpleNamespace(
        read=SimpleNamespace(table=lambda name: ("batch", name)),
        readStream=SimpleNamespace(table=lambda name: ("stream", name)),
    )


def test_each_reads_a_table_of_that_name(tmp_path, session):
    with evaluating(Registry(tmp_path, session=session)):
        assert dp.read("a.b") == ("batch", "a.b")
        assert dp.read_stream("a.b") == ("stream", "a.b")


def test_a_name_is_text(tmp_path, session):
    with (
        evaluating(Registry(tmp_path, session=session)),
        pytest.raises(ArgumentTypeError, match="must be a string"),
    ):
        dp.read(None)
