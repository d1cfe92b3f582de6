"""The project that `init` makes."""

from pathlib import Path

import pytest

from millpond.definitions import FlowKind, Language
from millpond.errors.project import ProjectExistsError, ProjectNameError, ProjectNotCreatedError
from millpond.project import find_spec, init_project, load_pipeline, load_spec


def test_a_new_project_loads_without_a_problem(tmp_path):
    folder = init_project(tmp_path, "my_shop")
    assert folder == tmp_path / "my_shop"
    spec = load_spec(find_spec(folder / "transformations"))
    assert spec.name == "my_shop"
    assert spec.storage == folder.resolve() / "pipeline-storage"
    pipeline, problems = load_pipeline(spec, object())
    assert problems == []
    replacing = [flow for flow in pipeline.flows if flow.kind is FlowKind.REPLACE_USING]
    assert {flow.language for flow in replacing} == {Language.SQL, Language.PYTHON}


def test_a_new_project_keeps_its_storage_out_of_git(tmp_path):
    folder = init_project(tmp_path, "shop")
    assert "pipeline-storage/" in (folder / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("name", ["shop", "shop-2", "2026", "größe", "a.b"])
def test_a_plain_name_is_accepted(tmp_path, name):
    assert load_spec(init_project(tmp_path, name) / "spark-pipeline.yml").name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../shop",
        "/shop",
        "a/b",
        "-rf",
        ".git",
        "a b",
        'a"b',
        "a\nb",
        "a\0b",
        "a:b",
        "a.",
        "x" * 256,
    ],
)
def test_a_name_that_is_more_than_a_name_is_refused(tmp_path, name):
    with pytest.raises(ProjectNameError):
        init_project(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_what_exists_is_left_alone(tmp_path, make):
    make(tmp_path / "shop")
    with pytest.raises(ProjectExistsError):
        init_project(tmp_path, "shop")


def test_a_folder_that_can_not_be_made_is_reported(tmp_path):
    with pytest.raises(ProjectNotCreatedError, match="No such file"):
        init_project(tmp_path / "missing", "shop")
