"""The page docs/loading-files.md: its files are made, its examples run, its tables compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline_folder import PipelineFolder
from tests.readers import read_with_delta_rs
from tests.shapes.documented import PageTable

PAGE = (Path(__file__).parents[2] / "docs" / "loading-files.md").read_text(encoding="utf-8")
# How many results each section states; sections without examples are left out.
RESULTS = {
    "Files that are sent again": 3,
    "Files that are emptied or removed": 2,
    "Columns": 1,
    "When files have new columns": 2,
    "Values and rows that do not fit": 1,
    "Where a row came from": 1,
    "Files that can't be read": 1,
    "Reading files whole": 1,
    "Options": 1,
    "Formats": 1,
}
_PART = re.compile(
    r"^`(?P<file>[^`]+)`, of (?P<time>\d\d:\d\d):\n\n```\w+\n(?P<content>.*?)^```$"
    r"|^```(?P<language>sql|python)\n(?P<code>.*?)^```$"
    r'|^```console\n\$ (?P<command>(?:[^\n"]|"[^"]*")*)\n(?P<output>.*?)^```$'
    r"|^```\n(?P<message>.*?)^```$"
    r"|(?P<again>another `millpond run`)"
    r"|(?P<table>(?:^\|[^\n]*\|\n)+)",
    re.MULTILINE | re.DOTALL,
)
_DEFINED = re.compile(r"(?:STREAMING TABLE|MATERIALIZED VIEW) (\w+)|^def (\w+)\(\):", re.MULTILINE)
_FOLDER = re.compile(r"""(?:read_files|csv|text)\(['"](\w+)""")
_PYTHON = """\
from pyspark import pipelines as dp


@dp.table
def {name}():
    return ({query})
"""


@dataclass(frozen=True)
class Example:
    """A definition, or the query of an append flow, in one language."""

    language: str
    code: str

    @property
    def name(self) -> str:
        """Of its table: as defined, or as the folder that it reads; Python's with an ending."""
        found = _DEFINED.search(self.code) or _FOLDER.search(self.code)
        assert found is not None, self.code
        name = next(part for part in found.groups() if part)
        return name if self.language == "sql" else f"{name}_py"

    @property
    def source(self) -> str:
        if not _DEFINED.search(self.code):
            if self.language == "sql":
                return f"CREATE STREAMING TABLE {self.name} AS {self.code};"
            return _PYTHON.format(name=self.name, query=self.code)
        return re.sub(r"^def \w+\(", f"def {self.name}(", self.code, flags=re.MULTILINE)


class Story:
    """A section of the page, told in a pipeline folder."""

    def __init__(self, folder: PipelineFolder) -> None:
        self.folder = folder
        self.examples: list[Example] = []
        self.results = 0
        self._is_run = False

    def tell(self, section: str) -> None:
        for part in _PART.finditer(section):
            match part.lastgroup:
                case "content":
                    self._deliver(part["file"], part["time"], part["content"])
                case "code":
                    self._define(Example(part["language"], part["code"]))
                case "output":
                    self._ask(part["command"], part["output"])
                case "message":
                    self._fail(part["message"])
                case "again":
                    self._is_run = False
                case "table":
                    self._compare(PageTable.read(part["table"]))

    def _deliver(self, name: str, time: str, content: str) -> None:
        path = self.folder.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        modified = datetime.fromisoformat(f"2026-01-05 {time}").replace(tzinfo=UTC).timestamp()
        os.utime(path, (modified, modified))
        self._is_run = False

    def _define(self, example: Example) -> None:
        self.examples.append(example)
        ending = "sql" if example.language == "sql" else "py"
        self.folder.write(f"{example.name}.{ending}", example.source)

    def _ask(self, command: str, output: str) -> None:
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            cwd=self.folder.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == output, done.stderr
        self.results += 1

    def _run(self) -> dict[str, Exception]:
        result = self.folder.run()
        assert not result.problems
        self._is_run = True
        return {flow.name: flow.error for flow in result.flows if flow.error}

    def _fail(self, message: str) -> None:
        errors = self._run()
        assert len(errors) == len(self.examples) == 1
        (error,) = errors.values()
        assert str(error).replace(str(self.folder.root), "/...") == message.strip()

    def _compare(self, table: PageTable) -> None:
        if not self.examples or not all(map(re.compile(r"\w+\Z").match, table.header)):
            return
        if not self._is_run:
            assert self._run() == {}
        self.results += 1
        for example in self.examples:
            rows = read_with_delta_rs(self.folder.table(example.name))
            columns = self.folder.columns(example.name)
            assert [name for name in columns if name in table.header] == list(table.header)
            actual = [tuple(self._shown(row[name]) for name in table.header) for row in rows]
            assert Counter(actual) == Counter(table.rows), example.name

    def _shown(self, value: Any) -> str:
        match value:
            case None:
                return "NULL"
            case bool():
                return str(value).lower()
            case datetime():
                return value.astimezone(UTC).strftime("%H:%M")
            case date():
                return value.isoformat()
            case dict():
                return f"{{{', '.join(f'{k}: {self._shown(v)}' for k, v in value.items())}}}"
        return str(value).replace(f"file:{self.folder.root}", "file:/...")


def sections() -> Iterator[tuple[str, str]]:
    for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, body = text.partition("\n")
        yield title, body


def test_every_section_with_an_example_is_told_below():
    with_code = [
        title for title, body in sections() if re.search(r"^```(sql|python)", body, re.MULTILINE)
    ]
    assert with_code == list(RESULTS)


@pytest.mark.parametrize("title", RESULTS)
def test_the_examples_give_what_the_page_states(title: str, tmp_path: Path) -> None:
    story = Story(PipelineFolder.made(tmp_path))
    story.tell(dict(sections())[title])
    assert story.results == RESULTS[title]


def test_links_lead_to_sections_that_there_are():
    for page, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", PAGE):
        text = PAGE if not page else (Path(__file__).parents[2] / "docs" / page).read_text()
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert anchor in slugs, anchor
