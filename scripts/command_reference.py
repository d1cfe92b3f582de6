"""Write the part of docs/command-line.md that lists commands and options, from their help.

With `--check`, only compare, and exit 1 where the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from millpond.cli.main import HELP_WIDTH, millpond
from millpond.cli.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
BEGIN = "<!-- Written by scripts/command_reference.py from here ... -->"
END = "<!-- ... to here. -->"


def reference() -> str:
    """The commands with their help, as Markdown."""
    group = millpond.make_context("millpond", ["--help"], resilient_parsing=True, obj=Settings())
    group.terminal_width = HELP_WIDTH
    parts = [_section("millpond", millpond.get_help(group))]
    for name, command in millpond.commands.items():
        context = click.Context(command, info_name=name, parent=group)
        parts.append(_section(f"millpond {name}", command.get_help(context)))
    return "\n".join(parts)


def page(current: str) -> str:
    """The whole page, with the generated part renewed."""
    before, _, rest = current.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def _section(title: str, text: str) -> str:
    return f"### `{title}`\n\n```text\n{text}\n```\n"


def main() -> int:
    current = PAGE.read_text(encoding="utf-8")
    renewed = page(current)
    if "--check" in sys.argv[1:]:
        print(f"{PAGE.name} is {'' if current == renewed else 'not '}current")
        return 0 if current == renewed else 1
    PAGE.write_text(renewed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
