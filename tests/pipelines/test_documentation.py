"""The API's documentation is whole, and every example in it defines what it says."""

import inspect
import re
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from millpond import pipelines as dp
from millpond.engine.embedded import EmbeddedEngine
from millpond.pipelines.registry import Registry, registering
from millpond.pipelines.unsupported import UNSUPPORTED
from millpond.project import load_pipeline, load_spec

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^([ ]*)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def examples(text):
    return [textwrap.dedent(code) for _, code in BLOCK.findall(text)]


def section(name):
    return PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("name", dp.__all__)
def test_every_function_says_what_it_does_what_it_takes_and_what_it_refuses(name):
    function = getattr(dp, name)
    text = inspect.getdoc(function)
    for argument in inspect.signature(function).parameters:
        assert re.search(rf"^ +{argument}: ", text, re.MULTILINE), argument
    assert "Raises:" in text


@pytest.mark.parametrize(
    "code", [code for name in dp.__all__ for code in examples(getattr(dp, name).__doc__)]
)
def test_an_example_in_the_code_runs(code, tmp_path):
    with registering(Registry(tmp_path)) as registry:
        exec(code, {"dp": dp})  # noqa: S102 - our own documentation
    assert registry.datasets or registry.flows


@pytest.fixture(scope="module")
def session():
    with closing(EmbeddedEngine()) as engine:
        yield engine.session


@pytest.mark.parametrize("code", examples(PAGE))
def test_an_example_on_the_page_loads(code, tmp_path, session):
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text("{name: shop, storage: store, libraries: [{file: {path: example.py}}]}")
    (tmp_path / "example.py").write_text(code)
    pipeline, problems = load_pipeline(load_spec(spec), session)
    assert problems == []
    assert pipeline.datasets


@pytest.mark.parametrize("name", [*dp.__all__, *UNSUPPORTED])
def test_the_page_names_every_function(name):
    assert re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize("name", ["table", "append_flow"])
def test_the_page_names_every_argument(name):
    for argument in inspect.signature(getattr(dp, name)).parameters:
        if argument not in {"query_function", "replace_where"}:
            assert f"| `{argument}` |" in section(name)
