"""The engines that every test here runs on, and the stories that share their updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conformance.stories import tell
from tests.once import once, shared_folder
from tests.pipeline_folder import PipelineFolder

ENGINES = ("embedded", "spark")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def settings(engine: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """What makes a pipeline run on an engine, with tables that delta-rs can feed and read."""
    if engine == "embedded":
        return {}
    server = request.getfixturevalue("spark_server")
    return {"millpond.engine": server.url, "millpond.spark.tables": "storage"}


@pytest.fixture
def folder(tmp_path: Path, settings: Mapping[str, str]) -> PipelineFolder:
    return PipelineFolder.made(tmp_path / "pipeline", settings)


@pytest.fixture
def told(
    request: pytest.FixtureRequest,
    engine: str,
    settings: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], None]:
    """Tells the stories of the module that were chosen, on first use, and how one of them ended."""
    chosen = {
        item.function.__name__: item.function.story
        for item in request.session.items
        if getattr(item, "module", None) is request.module
        and hasattr(item.function, "story")
        and item.callspec.params["engine"] == engine
    }
    place = shared_folder(tmp_path_factory) / f"{request.module.__name__}-{engine}"
    outcomes = once(place, lambda root: tell(root, chosen, settings))

    def check(name: str) -> None:
        assert isinstance(outcomes, dict), outcomes
        if outcomes[name] is not None:
            pytest.fail(outcomes[name], pytrace=False)

    return check
