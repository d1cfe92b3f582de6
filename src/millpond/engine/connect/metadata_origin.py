"""Which field of `_metadata` a column of a query is, where it is one as it stands.

A flow whose key is a file, and whose sequence is the file's time, can be told of files without
rows. That is so only if the columns are certain to be just that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from millpond.engine.connect.messages import leaves
from millpond.engine.connect.operators import Source
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.parsing import parse_query
from millpond.files import METADATA_NAME
from millpond.names import split_name

# Relations that hand on the columns of their input.
_HANDS_ON = frozenset(
    {
        "filter",
        "hint",
        "subquery_alias",
        "repartition",
        "repartition_by_expression",
        "with_watermark",
        "sample",
        "drop",
        "drop_na",
    }
)


def metadata_origin(relation: Any, sources: tuple[Source, ...], column: str) -> str | None:
    """The field of `_metadata`, in lower case, or `None` where the column is anything else.

    Args:
        sources: What the leaves of the relation read, in order.
        column: The name of a column that the relation gives.
    """
    if len(sources) != 1:
        # Of a join or a union, it could be that of other files.
        return None
    texts = {
        id(leaf): source
        for leaf, source in zip(leaves(relation), sources, strict=True)
        if isinstance(source, TextAnalysis)
    }
    return _Origins(texts).of(relation, column.lower())


class _Origins:
    def __init__(self, texts: dict[int, TextAnalysis]) -> None:
        self._texts = texts

    def of(self, relation: Any, column: str) -> str | None:
        kind = relation.WhichOneof("rel_type")
        node = getattr(relation, kind)
        items: list[_Item] = []
        if kind == "sql":
            text = self._texts.get(id(relation))
            if text is None or text.tree is None or text.tree.find(exp.Join):
                return None
            return _of_query(text.tree, column, {})
        if kind == "project":
            items = [_Item.of(expression) for expression in node.expressions]
        elif kind == "with_columns":
            items = [_Item.of(alias.expr, alias.name[0]) for alias in node.aliases]
        elif kind == "with_columns_renamed":
            names = {rename.new_col_name.lower(): rename.col_name for rename in node.renames}
            column = names.get(column, column).lower()
        elif kind not in _HANDS_ON:
            return None
        for item in items:
            if item.name == column:
                return self._of_item(node.input, item)
        is_handed_on = kind != "project" or any(item.is_star for item in items)
        return self.of(node.input, column) if is_handed_on else None

    def _of_item(self, below: Any, item: _Item) -> str | None:
        # With a name before it, it may be a field of a struct.
        return self.of(below, item.parts[0]) if len(item.parts) == 1 else item.field


@dataclass(frozen=True)
class _Item:
    """One thing that a projection gives.

    Attributes:
        name: What the column is called, in lower case.
        parts: The parts of the name that it is, in lower case; none for anything else.
    """

    name: str
    parts: tuple[str, ...] = ()
    is_star: bool = False

    @property
    def field(self) -> str | None:
        """The field of `_metadata` that it is."""
        is_field = len(self.parts) > 1 and self.parts[-2] == METADATA_NAME
        return self.parts[-1] if is_field else None

    @classmethod
    def of(cls, expression: Any, name: str | None = None) -> _Item:
        match expression.WhichOneof("expr_type"):
            case "alias":
                return cls.of(expression.alias.expr, expression.alias.name[0])
            case "unresolved_star":
                return cls("", is_star=True)
            case "unresolved_attribute":
                text = expression.unresolved_attribute.unparsed_identifier
                parts = tuple(part.lower() for part in split_name(text))
                return cls((name or parts[-1]).lower(), parts)
            case "expression_string":
                tree = parse_query(f"SELECT {expression.expression_string.expression}")
                if isinstance(tree, exp.Select) and len(tree.expressions) == 1:
                    found = cls.of_tree(tree.expressions[0])
                    return replace(found, name=name.lower()) if name else found
        return cls((name or "").lower())

    @classmethod
    def of_tree(cls, item: exp.Expr) -> _Item:
        name, inner = item.alias_or_name.lower(), item.unalias()
        if inner.is_star:
            return cls("", is_star=True)
        if not isinstance(inner, exp.Column):
            return cls(name)
        return cls(name, tuple(part.name.lower() for part in inner.parts))


def _of_query(query: exp.Expr, column: str, known: Mapping[str, exp.Expr]) -> str | None:
    clause = query.args.get("with_")
    if isinstance(clause, exp.With):
        known = dict(known)
        for cte in clause.expressions:
            # With a list of names it stands for a table that is not looked into.
            known[cte.alias.lower()] = exp.Table() if cte.alias_column_names else cte.this
    if isinstance(query, exp.Subquery):
        return _of_query(query.this, column, known)
    if not isinstance(query, exp.Select):
        return None
    items = [_Item.of_tree(item) for item in query.expressions]
    for item in items:
        if item.name == column:
            return item.field or _of_tables(query, item.parts, known)
    return _of_tables(query, (column,), known) if any(item.is_star for item in items) else None


def _of_tables(
    query: exp.Select, parts: tuple[str, ...], known: Mapping[str, exp.Expr]
) -> str | None:
    """The field that a column of the query in FROM is; no other is in reach, by name."""
    clause = query.args.get("from_")
    if clause is None or query.args.get("laterals") or not parts:
        return None
    source, column = clause.this, parts[-1]
    if parts[:-1] not in {(), (source.alias_or_name.lower(),)}:
        # A field of a struct.
        return None
    if source.alias_column_names or source.args.get("pivots"):
        return None
    if isinstance(source, exp.Table) and len(source.parts) == 1:
        source = known.get(source.name.lower(), source)
    return None if isinstance(source, exp.Table) else _of_query(source, column, known)
