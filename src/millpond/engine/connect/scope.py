"""The names by which the columns of a relation can be reached, rebuilt over rows kept elsewhere.

Where a query is cut, the rows of a part of it are written to files, with columns named by their
position. What stands above goes on naming them as before: by a table's alias (`x.k`), or by the
DataFrame that they came from (`a.k`). A `Scope` remembers that and gives the rows their names back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.messages import EXPRESSION, children, input_relations, name_of
from millpond.names import split_name
from millpond.sql.tokens import identifier_value, scan

# Gives the names of a relation's columns.
ColumnNames = Callable[[Any], Sequence[str]]
# Numbers the rows of a scope of several parts, which are put together by it.
ROW_COLUMN = "__millpond_row"
_SAME_SCOPE = frozenset(
    {
        "filter",
        "hint",
        "repartition",
        "repartition_by_expression",
        "deduplicate",
        "limit",
        "with_watermark",
        "sample",
        "drop_na",
    }
)
_SIDES_OF = {proto.Join.JOIN_TYPE_LEFT_SEMI, proto.Join.JOIN_TYPE_LEFT_ANTI}


@dataclass(frozen=True)
class Part:
    """Columns next to each other that are reached by the same names.

    Attributes:
        alias: Name and qualifiers of `subquery_alias`, where there is one.
        plan_ids: Numbers of the DataFrames by which user code can name these columns.
    """

    columns: tuple[str, ...]
    alias: tuple[str, tuple[str, ...]] | None = None
    plan_ids: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Scope:
    """The parts of a relation's columns, in order.

    Attributes:
        plan_ids: Numbers of DataFrames that hold all parts.
    """

    parts: tuple[Part, ...]
    plan_ids: frozenset[int] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def needs_row_numbers(self) -> bool:
        return len(self.parts) > 1

    def over(
        self,
        rows: Any,
        names: Sequence[str],
        *,
        number: str = ROW_COLUMN,
        carried: Mapping[str, str] | None = None,
    ) -> Any:
        """A relation with these columns and names.

        Args:
            rows: The rows: a relation that can be read twice.
            names: What the columns are called in `rows`, in order.
            number: With several parts, the column of `rows` that is another number in each row.
            carried: Further columns of `rows` to have behind the others, with their names.
        """
        last = self.parts[-1]
        carried = carried or {}
        parts = (*self.parts[:-1], replace(last, columns=(*last.columns, *carried.values())))
        remaining = iter((*names, *carried))
        numbered_by = number if self.needs_row_numbers else None
        relations = [
            _part(rows, part, [next(remaining) for _ in part.columns], numbered_by)
            for part in parts
        ]
        if not self.needs_row_numbers:
            return identified(relations[0], self.plan_ids)
        whole = proto.Relation()
        whole.drop.input.CopyFrom(reduce(_beside, relations))
        whole.drop.column_names.append(ROW_COLUMN)
        return identified(whole, self.plan_ids)


def scope_of(relation: Any, names: ColumnNames) -> Scope:
    """The scope of a relation, as far as it can be told from its form.

    Names that are left out here can't be used above a cut: the query is refused then.
    """
    found = _Reader(names).scope(relation)
    columns = tuple(names(relation))
    if tuple(column.lower() for column in found.columns) != tuple(map(str.lower, columns)):
        return Scope((Part(columns),), own_plan_id(relation))
    return found


def plan_ids(relation: Any) -> frozenset[int]:
    """The numbers of a relation's DataFrame and of those that it is made of."""
    below = (plan_ids(child) for child in input_relations(relation))
    return own_plan_id(relation).union(*below)


@dataclass(frozen=True)
class NamesUsed:
    """What the expressions of a query name columns by, with how often.

    Attributes:
        plan_ids: Numbers of DataFrames.
        qualifiers: Names of tables, in lower case.
    """

    plan_ids: Counter[int]
    qualifiers: Counter[str]

    @classmethod
    def of(cls, relation: Any) -> NamesUsed:
        return cls(Counter(_plan_ids(relation)), Counter(_qualifiers(relation)))

    def besides(self, relation: Any) -> NamesUsed:
        """What is used outside a part of the query."""
        inside = NamesUsed.of(relation)
        return NamesUsed(self.plan_ids - inside.plan_ids, self.qualifiers - inside.qualifiers)

    def needed(self, scope: Scope) -> Scope:
        """The scope without names that nothing asks for: it has the fewer parts."""
        parts: list[Part] = []
        for part in scope.parts:
            alias = part.alias
            if alias is not None and alias[0].lower() not in self.qualifiers:
                alias = None
            kept = Part(part.columns, alias, part.plan_ids & self.plan_ids.keys())
            if parts and (parts[-1].alias, parts[-1].plan_ids) == (kept.alias, kept.plan_ids):
                parts[-1] = replace(kept, columns=parts[-1].columns + kept.columns)
            else:
                parts.append(kept)
        return Scope(tuple(parts), scope.plan_ids & self.plan_ids.keys())


class _Reader:
    def __init__(self, names: ColumnNames) -> None:
        self._names = names

    def scope(self, relation: Any) -> Scope:
        kind = relation.WhichOneof("rel_type")
        node = getattr(relation, kind)
        own = own_plan_id(relation)
        if kind in _SAME_SCOPE:
            found = self.scope(node.input)
        elif kind == "join":
            found = self._join(node)
        elif kind == "subquery_alias":
            alias = (node.alias, tuple(node.qualifier))
            parts = [replace(part, alias=alias) for part in _parts(self.scope(node.input))]
            found = Scope(tuple(parts))
        elif kind == "drop" and not node.columns:
            found = _without(self.scope(node.input), node.column_names)
        elif kind == "with_columns":
            found = _with(self.scope(node.input), [alias.name[0] for alias in node.aliases])
        elif kind == "project":
            found = self._project(relation)
        else:
            found = Scope((Part(tuple(self._names(relation))),))
        return Scope(found.parts, found.plan_ids | own)

    def _project(self, relation: Any) -> Scope:
        """Columns that are handed on as they are keep the names that they are reached by."""
        child = self.scope(relation.project.input)
        below = [replace(part, columns=(c,)) for part in _parts(child) for c in part.columns]
        parts: list[Part] = []
        for expression in relation.project.expressions:
            kind = expression.WhichOneof("expr_type")
            if kind == "unresolved_star" and not expression.unresolved_star.unparsed_target:
                parts.extend(below)
            else:
                parts.append(_handed_on(expression, below))
        columns = tuple(self._names(relation))
        if len(parts) != len(columns):
            return Scope((Part(columns),))
        return Scope(
            tuple(
                replace(part, columns=(column,))
                for part, column in zip(parts, columns, strict=True)
            )
        )

    def _join(self, node: Any) -> Scope:
        left = self.scope(node.left)
        if node.join_type in _SIDES_OF:
            return left
        right = self.scope(node.right)
        parts = (*_parts(left), *_parts(right))
        if node.using_columns:
            merged = Part(tuple(node.using_columns))
            rest = _without(Scope(parts), node.using_columns)
            return Scope((merged, *rest.parts))
        return Scope(parts)


def _parts(scope: Scope) -> Iterator[Part]:
    for part in scope.parts:
        yield replace(part, plan_ids=part.plan_ids | scope.plan_ids)


def _without(scope: Scope, names: Collection[str]) -> Scope:
    folded = {name.lower() for name in names}
    kept = [
        replace(part, columns=tuple(c for c in part.columns if c.lower() not in folded))
        for part in scope.parts
    ]
    return Scope(tuple(part for part in kept if part.columns), scope.plan_ids)


def _with(scope: Scope, names: Sequence[str]) -> Scope:
    """The scope with columns put in, or put in the place of those of the same name."""
    new = {name.lower() for name in names}
    parts: list[Part] = []
    for part in scope.parts:
        for column in part.columns:
            kept = replace(part, columns=(column,))
            parts.append(Part((column,)) if column.lower() in new else kept)
    known = {column.lower() for column in scope.columns}
    parts.extend(Part((name,)) for name in names if name.lower() not in known)
    return Scope(tuple(parts), scope.plan_ids)


def _handed_on(expression: Any, below: Sequence[Part]) -> Part:
    if expression.WhichOneof("expr_type") != "unresolved_attribute":
        return Part(("",))
    name = split_name(expression.unresolved_attribute.unparsed_identifier)[-1].lower()
    found = [part for part in below if part.columns[0].lower() == name]
    return found[0] if len(found) == 1 else Part(("",))


def _part(rows: Any, part: Part, names: Sequence[str], number: str | None) -> Any:
    relation = proto.Relation()
    relation.project.input.CopyFrom(rows)
    named = [] if number is None else [(number, ROW_COLUMN)]
    for name, column in [*named, *zip(names, part.columns, strict=True)]:
        alias = relation.project.expressions.add().alias
        alias.expr.unresolved_attribute.unparsed_identifier = name
        alias.name.append(column)
    if part.alias is not None:
        aliased = proto.Relation()
        aliased.subquery_alias.input.CopyFrom(relation)
        aliased.subquery_alias.alias, qualifier = part.alias
        aliased.subquery_alias.qualifier.extend(qualifier)
        relation = aliased
    return identified(relation, part.plan_ids)


def identified(relation: Any, plan_ids: Collection[int]) -> Any:
    """The relation under every one of the numbers: each needs a step of its own."""
    for plan_id in sorted(plan_ids):
        step = proto.Relation()
        step.common.plan_id = plan_id
        step.filter.input.CopyFrom(relation)
        step.filter.condition.literal.boolean = True
        relation = step
    return relation


def _beside(left: Any, right: Any) -> Any:
    """Two parts of the same rows, put together by the rows' numbers."""
    relation = proto.Relation()
    relation.join.left.CopyFrom(left)
    relation.join.right.CopyFrom(right)
    relation.join.join_type = proto.Join.JOIN_TYPE_INNER
    relation.join.using_columns.append(ROW_COLUMN)
    return relation


def own_plan_id(relation: Any) -> frozenset[int]:
    """The number of the DataFrame that a relation is, where it has one."""
    return frozenset({relation.common.plan_id} if relation.common.HasField("plan_id") else ())


def _expressions(message: Any) -> Iterator[Any]:
    for child in children(message):
        if name_of(child) == EXPRESSION:
            yield child
        yield from _expressions(child)


def _plan_ids(relation: Any) -> Iterator[int]:
    for expression in _expressions(relation):
        kind = expression.WhichOneof("expr_type")
        if kind in {"unresolved_attribute", "unresolved_star", "unresolved_regex"}:
            node = getattr(expression, kind)
            if node.HasField("plan_id"):
                yield node.plan_id


def _qualifiers(relation: Any) -> Iterator[str]:
    """Every name before a dot: the name of a table, or of a column with fields."""
    for expression in _expressions(relation):
        match expression.WhichOneof("expr_type"):
            case "unresolved_attribute":
                text = expression.unresolved_attribute.unparsed_identifier
            case "unresolved_star":
                text = expression.unresolved_star.unparsed_target
            case "expression_string":
                text = expression.expression_string.expression
            case _:
                continue
        tokens = list(scan(text))
        for token, following in pairwise(tokens):
            if following.word == ".":
                yield identifier_value(token).lower()
