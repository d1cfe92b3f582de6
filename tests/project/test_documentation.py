"""The page about the spec: complete, and its example is a spec."""

import re
from pathlib import Path

from millpond.options import OPTIONS
from millpond.project import load_spec
from millpond.project.spec import FIELDS

PAGE = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")


def test_the_example_uses_every_field_and_loads(tmp_path):
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    path = tmp_path / "spark-pipeline.yml"
    path.write_text(example)
    spec = load_spec(path)
    assert spec.name == "shop"
    assert all(f"{name}:" in example for name in FIELDS if name != "database")


def test_the_page_names_every_field_and_setting():
    for name in [*FIELDS, *(option.key for option in OPTIONS)]:
        assert f"`{name}`" in PAGE
