"""Where the spec is looked for."""

import pytest

from millpond.errors.project import SeveralSpecsError, SpecNotFoundError
from millpond.project import find_spec


@pytest.mark.parametrize("name", ["spark-pipeline.yml", "spark-pipeline.yaml"])
def test_the_spec_is_found_in_the_folder_or_above_it(tmp_path, name):
    (tmp_path / name).touch()
    below = tmp_path / "transformations" / "deep"
    below.mkdir(parents=True)
    assert find_spec(tmp_path) == find_spec(below) == (tmp_path / name).resolve()


def test_the_nearest_spec_counts(tmp_path):
    (tmp_path / "spark-pipeline.yml").touch()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "spark-pipeline.yaml").touch()
    assert find_spec(inner) == (inner / "spark-pipeline.yaml").resolve()


def test_a_folder_of_that_name_is_no_spec(tmp_path):
    (tmp_path / "spark-pipeline.yml").mkdir()
    with pytest.raises(SpecNotFoundError) as caught:
        find_spec(tmp_path)
    assert "millpond init" in caught.value.hint


def test_two_specs_in_one_folder_are_refused(tmp_path):
    (tmp_path / "spark-pipeline.yml").touch()
    (tmp_path / "spark-pipeline.yaml").touch()
    with pytest.raises(SeveralSpecsError, match=r"spark-pipeline.yml and spark-pipeline.yaml"):
        find_spec(tmp_path)
