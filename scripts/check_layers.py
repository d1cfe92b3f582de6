"""Check that imports point one way: a package may import only from packages below it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "millpond"

# From the bottom up. A package may import from every line above its own, and from itself.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"interruptible", "profiling", "redaction"}),
    frozenset({"errors"}),
    frozenset({"names"}),
    frozenset({"definitions", "options", "storage"}),
    frozenset({"delta", "pipelines", "sql"}),
    frozenset({"state", "files", "maintenance"}),
    frozenset({"engine", "events", "samples"}),
    frozenset({"streaming", "flows", "project"}),
    frozenset({"graph"}),
    frozenset({"runner"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_packages(path: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules = [node.module]
            if node.module == "millpond":
                modules = [f"millpond.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        found.extend(
            (node.lineno, module.split(".")[1])
            for module in modules
            if module.startswith("millpond.")
        )
    return found


def main() -> int:
    problems: list[str] = []
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        if own not in LEVEL:
            problems.append(f"{path}: {own} has no place in LAYERS")
            continue
        problems.extend(
            f"{path}:{line}: {own} may not import {other}"
            for line, other in imported_packages(path)
            if other != own and LEVEL.get(other, -1) >= LEVEL[own]
        )
    print("\n".join(problems) or "imports point one way")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
