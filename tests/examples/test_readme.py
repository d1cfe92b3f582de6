"""README.md: the first example is run as it stands, in both languages."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## REPLACE USING\n")[1].split("\n## ")[0]
_BLOCK = re.compile(r"^```(console|sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def script(language: str) -> Iterator[str]:
    """The example in the shell: of its commands, those print that the page shows the output of."""
    for kind, code in _BLOCK.findall(SECTION):
        if kind == "console":
            for command, output in _COMMAND.findall(code):
                yield command if output else f"{{ {command}; }} >/dev/null"
        elif kind == language:
            ending = "sql" if language == "sql" else "py"
            yield f"cat >transformations/prices.{ending} <<'END'\n{code}END"


@pytest.mark.parametrize("language", ["sql", "python"])
def test_the_first_example_gives_what_the_page_states(language: str, tmp_path: Path) -> None:
    expected = [
        output for _, code in _BLOCK.findall(SECTION) for _, output in _COMMAND.findall(code)
    ]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(script(language)),
        cwd=tmp_path,
        env=os.environ | {"PATH": programs},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(expected) != ""


def test_links_lead_to_files_that_there_are():
    for target in re.findall(r"\]\(([\w./-]+)\)", PAGE):
        assert (Path(__file__).parents[2] / target).exists(), target
