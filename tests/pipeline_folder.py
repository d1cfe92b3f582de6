"""A pipeline folder on disk, with source tables that other programs write, run for real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millpond.names import TableName
from millpond.runner import Project, UpdateResult, run_update
from millpond.storage import Layout
from tests.readers import READERS

SPEC = """\
name: test
storage: storage
catalog: main
schema: sales
libraries:
  - glob:
      include: transformations/**
"""


@dataclass(frozen=True)
class PipelineFolder:
    """A folder with a spec and source files.

    Attributes:
        settings: Configuration that its spec always has.
    """

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, root: Path, settings: Mapping[str, str] | None = None) -> PipelineFolder:
        """Make one in a folder that is empty, or not there yet."""
        (root / "transformations").mkdir(parents=True)
        folder = cls(root, settings or {})
        folder.configure({})
        return folder

    @property
    def layout(self) -> Layout:
        return Layout(self.root / "storage")

    def write(self, name: str, text: str) -> None:
        path = self.root / "transformations" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")

    def configure(self, lines: Mapping[str, str]) -> None:
        text, found = SPEC, {**self.settings, **lines}
        if found:
            text += "configuration:\n" + "".join(f'  {k}: "{v}"\n' for k, v in found.items())
        (self.root / "spark-pipeline.yml").write_text(text, encoding="utf-8")

    def table(self, name: str) -> Path:
        return self.layout.table(TableName("main", "sales", name))

    def feed(self, name: str, rows: Sequence[Mapping[str, Any]] | pa.Table, **types: Any) -> None:
        """Append rows to a source table, as a program that is not millpond would."""
        data = rows if isinstance(rows, pa.Table) else _typed(rows, types)
        path = self.table(name)
        path.mkdir(parents=True, exist_ok=True)
        write_deltalake(path, data, mode="append")

    def project(self, **conf: str) -> Project:
        return Project.open(self.root / "spark-pipeline.yml", conf=conf)

    def run(self, **selection: Any) -> UpdateResult:
        return run_update(self.project(), **selection)

    def rows(self, name: str, *, reader: str = "delta-rs") -> list[tuple[Any, ...]]:
        """The rows of a table, sorted, as a program that is not millpond reads them."""
        rows = READERS[reader](self.table(name))
        return sorted((tuple(row.values()) for row in rows), key=repr)

    def columns(self, name: str) -> list[str]:
        return list(READERS["delta-rs"](self.table(name))[0])


def _typed(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> pa.Table:
    table = pa.Table.from_pylist([dict(row) for row in rows])
    for name, arrow_type in types.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, table.column(name).cast(arrow_type))
    return table


@pytest.fixture
def folder(tmp_path: Path) -> PipelineFolder:
    return PipelineFolder.made(tmp_path)
