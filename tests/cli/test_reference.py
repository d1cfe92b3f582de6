"""The page of commands is current."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_command_reference_is_current():
    script = runpy.run_path(str(ROOT / "scripts" / "command_reference.py"))
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert text == script["page"](text), "run scripts/command_reference.py"


def test_every_command_and_option_is_explained():
    from millpond.cli.main import millpond

    for command in millpond.commands.values():
        assert command.help
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, f"{command.name} {parameter.name}"
