"""Columns of `JOIN ... USING`: Spark knows them by the name of either table as well.

Sail merges the two columns into one without a table's name, so `a.k` is written as `k` where it
means the merged column. Where it does not (`b.k` after `a LEFT JOIN b USING (k)`), it is left for
Sail to refuse; and `a.*`, of which Sail would leave the merged column out, is refused here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.source import Edit, QueryText
from millpond.errors.engine import UnsupportedReadError

# For each column of a USING, the tables whose column of that name is the merged one.
_Merged = Mapping[str, Collection[str]]


def using_edits(tree: exp.Query) -> dict[int, Edit]:
    """Edits that take a table's name off a merged column, by where the column starts."""
    found: dict[int, Edit] = {}
    for select in tree.find_all(exp.Select):
        steps = _merged(select)
        if not steps[-1]:
            continue
        conditions = _columns_of_conditions(select)
        for column in _own_columns(select):
            parts = identifiers(column)
            if len(parts) < 2 or len(parts) != len(column.parts):
                continue
            merged = steps[conditions.get(id(column), -1)]
            table, name = parts[-2].name.lower(), parts[-1].name.lower()
            if table in merged.get(name, ()):
                start = parts[0].meta["start"]
                found[start] = Edit(start, parts[-1].meta["start"], "")
    return found


def check_using(tree: exp.Query, source: QueryText) -> None:
    """Refuse what would come out wrong.

    Raises:
        UnsupportedReadError: A NATURAL JOIN, or `t.*` beside a USING.
    """
    for select in tree.find_all(exp.Select):
        for join in select.args.get("joins") or []:
            if join.method.upper() == "NATURAL":
                raise _unsupported("A NATURAL JOIN", join.this, source)
        if not _merged(select)[-1]:
            continue
        for column in _own_columns(select):
            if column.is_star and column.table:
                raise _unsupported(f"{column.table}.* after JOIN ... USING", column, source)


def _unsupported(what: str, node: exp.Expr, source: QueryText) -> UnsupportedReadError:
    parts = [part for part in node.find_all(exp.Identifier) if "start" in part.meta]
    start = min((part.meta["start"] for part in parts), default=0)
    end = max((part.meta["end"] + 1 for part in parts), default=1)
    return UnsupportedReadError.of(
        what,
        where=source.locate(start),
        instead="write JOIN ... ON, or name the columns",
        detail=source.caret(start, end),
    )


def _merged(select: exp.Select) -> list[_Merged]:
    """The merged columns before each join of a SELECT, from left to right, and after the last."""
    start = select.args.get("from_")
    left = {_table_name(start.this)} if start is not None else set()
    steps: list[_Merged] = [{}]
    for join in select.args.get("joins") or []:
        merged = dict(steps[-1])
        right = _table_name(join.this)
        for column in join.args.get("using") or []:
            name = column.name.lower()
            before = set(merged.get(name, left))
            match join.side.upper():
                case "LEFT":
                    merged[name] = before
                case "RIGHT":
                    merged[name] = {right}
                case "FULL":
                    merged[name] = ()
                case _:
                    merged[name] = before | {right}
        left.add(right)
        steps.append(merged)
    return steps


def _columns_of_conditions(select: exp.Select) -> dict[int, int]:
    """The number of the join in whose ON a column stands, by the column's identity."""
    return {
        id(column): number
        for number, join in enumerate(select.args.get("joins") or [])
        if isinstance(join.args.get("on"), exp.Expr)
        for column in join.args["on"].find_all(exp.Column)
    }


def _table_name(node: exp.Expr) -> str:
    return str(node.alias_or_name).lower()


def _own_columns(select: exp.Select) -> Iterator[exp.Column]:
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if isinstance(node, exp.Column):
            yield node
