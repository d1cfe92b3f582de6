"""Project folders with real files, and a session for loading, where nothing runs."""

import textwrap

import pytest

from millpond.project import load_pipeline, load_spec

SPEC = """\
name: shop
storage: pipeline-storage
catalog: main
schema: sales
libraries:
  - glob:
      include: transformations/**
"""


class Session:
    """What source files see as `spark` where only their loading is tested."""


class Project:
    """A project folder that is filled file by file."""

    def __init__(self, root):
        self.root = root.resolve()
        self.session = Session()
        self.write("spark-pipeline.yml", SPEC)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    def python(self, path, text):
        """Write a source file that begins with the usual import."""
        return self.write(path, "from pyspark import pipelines as dp\n" + textwrap.dedent(text))

    def spec(self):
        return load_spec(self.root / "spark-pipeline.yml")

    def load(self):
        return load_pipeline(self.spec(), self.session)

    def loaded(self):
        pipeline, problems = self.load()
        assert problems == []
        return pipeline


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "shop")


def tables(pipeline):
    return [dataset.name.table for dataset in pipeline.datasets]
