"""Rewrites a query's text so that each table it names is one that was bound beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.references import TableReference
from millpond.engine.sqltext.source import Edit, apply_edits, blanked
from millpond.engine.sqltext.using import using_edits


def bound_text(
    text: str,
    references: Sequence[TableReference],
    names: Sequence[str],
    *,
    without: Sequence[tuple[int, int]],
    tree: exp.Query | None,
    edits: Iterable[Edit] = (),
) -> str:
    """The text with the n-th of `names` where the n-th reference names a table.

    A table without an alias keeps its own name as one, so that `t.c` still means its column, and
    longer qualifiers such as `s.t.c` are cut to it. The spans of `without` are left out; `edits`
    are other changes, of other places.
    """
    aliases = table_aliases(references)
    edits = [*edits]
    for reference, name, alias in zip(references, names, aliases, strict=True):
        as_alias = f" AS {alias}"
        # Edits must not touch, so an alias right behind the name is part of the same edit.
        joined = as_alias if reference.alias_at == reference.end else ""
        edits.append(Edit(reference.start, reference.end, name + joined))
        if reference.alias_at is not None and not joined:
            edits.append(Edit(reference.alias_at, reference.alias_at, as_alias))
    if tree is not None:
        edits += column_edits(tree, references)
    return apply_edits(blanked(text, without), edits)


def column_edits(tree: exp.Query, references: Sequence[TableReference]) -> list[Edit]:
    """Edits of the names that stand before columns: as `table_aliases` and merged columns ask."""
    merged = using_edits(tree)
    qualifiers = _qualifier_edits(tree, references, table_aliases(references))
    return [*merged.values(), *(edit for edit in qualifiers if edit.start not in merged)]


def table_aliases(references: Sequence[TableReference]) -> list[str]:
    """An alias in backticks for each reference; of several with the same last name, the whole."""
    unaliased = [reference for reference in references if reference.alias_at is not None]
    whole_names = {tuple(part.lower() for part in reference.written) for reference in unaliased}
    last_names = Counter(name[-1] for name in whole_names)
    return [
        quoted(
            reference.written[-1]
            if last_names[reference.written[-1].lower()] < 2
            else ".".join(reference.written)
        )
        for reference in references
    ]


def quoted(name: str) -> str:
    """A name in backticks, always: Sail reserves words that Spark does not, such as VIEW."""
    return "`" + name.replace("`", "``") + "`"


def _qualifier_edits(
    tree: exp.Query, references: Sequence[TableReference], aliases: Sequence[str]
) -> Iterator[Edit]:
    qualifiers: dict[tuple[str, ...], str] = {}
    whole: dict[int, str] = {}
    for reference, alias in zip(references, aliases, strict=True):
        written = tuple(part.lower() for part in reference.written)
        if reference.alias_at is None:
            continue
        if alias != quoted(reference.written[-1]):
            whole[reference.name_start] = alias
        for first in range(len(written) - 1):
            qualifiers[written[first:]] = alias
    if not qualifiers:
        return
    for column in tree.find_all(exp.Column, exp.Dot):
        if isinstance(column.parent, exp.Dot):
            continue
        parts = identifiers(column)
        names = tuple(part.name.lower() for part in parts)
        longest = min(len(names), _written_length(column) - 1)
        for length in range(longest, 0, -1):
            found = (
                qualifiers.get(names[:length])
                if length > 1
                else _alias_in_scope(column, names[0], whole)
            )
            if found is not None:
                yield Edit(parts[0].meta["start"], parts[length - 1].meta["end"] + 1, found)
                break


def _alias_in_scope(column: exp.Expr, name: str, whole: Mapping[int, str]) -> str | None:
    """The alias, if it is a whole name, of the table whose last name stands before a column.

    It is a table of the innermost SELECT that has one of the name.
    """
    select = column.find_ancestor(exp.Select) if whole else None
    while select is not None:
        tables = [table for table in _own_tables(select) if table.alias_or_name.lower() == name]
        if tables:
            starts = [part.meta["start"] for part in identifiers(tables[0])[:1]]
            # Two tables of the name in one place: only the engine can say that it is ambiguous.
            return whole.get(starts[0]) if starts and len(tables) == 1 else None
        select = select.find_ancestor(exp.Select)
    return None


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if isinstance(node, exp.Table):
            yield node


def _written_length(column: exp.Expr) -> int:
    """The number of parts of a dotted name, a star at its end included."""
    return len(getattr(column, "parts", ()))
