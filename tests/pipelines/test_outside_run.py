"""Definitions belong into a run; the module can be imported anywhere."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from millpond import pipelines as dp
from millpond.errors.pipelines import (
    DefinitionInsideQueryError,
    DefinitionOutsideRunError,
    FeatureNotSupportedError,
)
from millpond.pipelines.registry import Registry, evaluating, registering
from millpond.pipelines.unsupported import UNSUPPORTED


@pytest.mark.parametrize(
    "define",
    [
        lambda: dp.table(lambda: None),
        lambda: dp.table(name="t"),
        lambda: dp.materialized_view(name="t"),
        lambda: dp.temporary_view(name="t"),
        lambda: dp.append_flow(target="t"),
        lambda: dp.replace_flow(target="t", replace_using=["a"], sequence_by="b"),
        lambda: dp.create_streaming_table("t"),
        lambda: dp.read("t"),
        lambda: dp.read_stream("t"),
    ],
)
def test_a_definition_outside_a_run_says_how_to_run_it(define):
    with pytest.raises(DefinitionOutsideRunError) as caught:
        define()
    assert "millpond run" in caught.value.hint
    assert caught.value.where.file == __file__


def test_a_query_function_defines_nothing(tmp_path):
    with (
        evaluating(Registry(tmp_path)),
        pytest.raises(DefinitionInsideQueryError, match=r"dp.table is called by a query function"),
    ):
        dp.table(name="t")


def test_nothing_is_registered_after_a_run(tmp_path):
    with registering(Registry(tmp_path)):
        pass
    with pytest.raises(DefinitionOutsideRunError):
        dp.create_streaming_table("t")


def test_the_import_is_light_and_needs_no_engine():
    code = textwrap.dedent(
        """
        import sys
        from millpond import pipelines as dp
        heavy = {"pyspark", "pandas", "pyarrow", "duckdb", "sqlglot", "deltalake", "pysail"}
        sys.exit(" ".join(heavy.intersection(sys.modules)) or None)
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_function_of_other_runtimes_says_what_is_missing(name):
    function = getattr(dp, name)
    with pytest.raises(FeatureNotSupportedError) as caught:
        function("target", source="s")
    assert f"dp.{name}" in caught.value.what
    assert caught.value.hint
    assert caught.value.where.file == __file__
    assert name not in dp.__all__


def test_a_name_that_nobody_knows_is_an_attribute_error():
    with pytest.raises(AttributeError, match="tabel"):
        dp.tabel  # noqa: B018 - the access is what fails
