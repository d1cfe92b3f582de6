"""The page of commands is current."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_command_reference_is_current():
    script = runpy.run_path(str(ROOT / "scripts" / "command_reference.py"))
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert text == script["page"](text), "run scripts/command_reference.py"


def test_the_page_names_every_phase_of_a_profile():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| phase \|.*\n\|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    named = {
        name for row in table.splitlines() for name in re.split("[,;] ", row.split("|")[1].strip())
    }
    modules = (ROOT / "src").rglob("*.py")
    code = "".join(module.read_text(encoding="utf-8") for module in modules)
    phases = {
        name for found in re.findall(r'\bphase\("([^"]+)"', code) for name in found.split(", ")
    }
    assert "list files" in phases <= named


def test_every_command_and_option_is_explained():
    from millpond.cli.main import millpond

    for command in millpond.commands.values():
        assert command.help
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, f"{command.name} {parameter.name}"
