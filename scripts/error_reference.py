"""Write docs/errors.md, the list of error classes, from the classes themselves.

With `--check`, only compare, and exit 1 where the page is not current.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from millpond.errors import MillpondError, all_error_classes

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"

INTRODUCTION = """\
# Error classes

Every error that millpond raises on purpose has a stable name, in the style of Spark's error
classes. It is the first word of the message, `[REPLACE_USING_NULL_SEQUENCE] ...`, and `error_class`
in the `error` column of the [event log](event-log.md). A message says what happened, where, and
what to do.

From Python, each is a class of its own below `millpond.errors`, derived from `MillpondError` and
from the builtin exception named here.

This page is written by `scripts/error_reference.py`.
"""


def page() -> str:
    sections: dict[str, list[type[MillpondError]]] = {}
    for cls in all_error_classes():
        sections.setdefault(cls.__module__.rpartition(".")[2], []).append(cls)
    lines = [INTRODUCTION]
    for module, classes in sorted(sections.items()):
        lines += [f"## {module.replace('_', ' ').capitalize()}\n"]
        lines += ["| class | meaning | SQLSTATE | also a |", "|---|---|---|---|"]
        for cls in classes:
            meaning = " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())
            lines.append(
                f"| `{cls.error_class}` | {meaning} | {cls.sqlstate or ''} | {_builtin(cls)} |"
            )
        lines.append("")
    return "\n".join(lines)


def _builtin(cls: type[MillpondError]) -> str:
    found = [
        base.__name__
        for base in cls.__mro__
        if base.__module__ == "builtins" and base not in {Exception, BaseException, object}
    ]
    return f"`{found[0]}`" if found else ""


def main() -> int:
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("docs/errors.md is current" if current else "docs/errors.md is not current")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
