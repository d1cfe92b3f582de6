"""Describes what a parsed query does over its inputs, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from millpond.engine.shapes import JoinType, Operator, OperatorKind
from millpond.engine.shapes.functions import GENERATORS, kind_of_function
from millpond.engine.sqltext.blocks import Block, Outline
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.source import QueryText
from millpond.sql.tokens import identifier_value

Streams = Mapping[str, bool]

# Clauses of a query: what each is, and the keyword at which it stands.
_CLAUSES = {
    "group": (OperatorKind.AGGREGATION, "GROUP BY", "GROUP"),
    "having": (OperatorKind.AGGREGATION, "HAVING", "HAVING"),
    "distinct": (OperatorKind.DISTINCT, "DISTINCT", "DISTINCT"),
    "qualify": (OperatorKind.WINDOW_FUNCTION, "QUALIFY", "QUALIFY"),
    "windows": (OperatorKind.WINDOW_FUNCTION, "WINDOW", "WINDOW"),
    "order": (OperatorKind.SORT, "ORDER BY", "ORDER"),
    "sort": (OperatorKind.SORT, "SORT BY", "SORT"),
    "cluster": (OperatorKind.SORT, "CLUSTER BY", "CLUSTER"),
    "limit": (OperatorKind.LIMIT, "LIMIT", "LIMIT"),
    "offset": (OperatorKind.LIMIT, "OFFSET", "OFFSET"),
    "sample": (OperatorKind.SAMPLE, "TABLESAMPLE", "TABLESAMPLE"),
}
_PLAIN = frozenset(
    {"with_", "expressions", "hint", "from_", "joins", "laterals", "where", "pivots"}
)
_PLAIN_CLAUSES = _PLAIN | {"distribute", "this", "alias", "expression", "by_name"}
_JOIN_SIDES = {
    "": JoinType.INNER,
    "LEFT": JoinType.LEFT,
    "RIGHT": JoinType.RIGHT,
    "FULL": JoinType.FULL,
}
_SET_WORDS = {exp.Union: ("UNION",), exp.Except: ("EXCEPT", "MINUS"), exp.Intersect: ("INTERSECT",)}


def describe(
    tree: exp.Query,
    *,
    outline: Outline,
    source: QueryText,
    tables: Mapping[int, bool],
    external: Streams,
    aggregates: Collection[str] = (),
) -> tuple[list[Operator], bool]:
    """The operators of a query, and whether its rows are a stream.

    Args:
        tables: By the offset of a table's name, whether the table is read as a stream.
        external: By name, whether a DataFrame that the text names is a stream.
        aggregates: The user's own aggregate functions, in lower case.
    """
    description = _Description(outline, source, tables, aggregates)
    streaming = description.query(tree, dict(external))
    aside = [
        table
        for table in _tables(tree)
        if description.is_stream(table, external)
        and not (streaming and _start(table) in description.described)
    ]
    for table in aside:
        description.add_aside(table)
    return description.operators, streaming or bool(aside)


@dataclass
class _Description:
    outline: Outline
    source: QueryText
    tables: Mapping[int, bool]
    aggregates: Collection[str]
    operators: list[Operator] = field(default_factory=list)
    described: set[int] = field(default_factory=set)

    def is_stream(self, table: exp.Table, external: Streams) -> bool:
        return self.tables.get(_start(table), external.get(identifiers(table)[0].name, False))

    def add_aside(self, table: exp.Table) -> None:
        """A stream that gives the query no rows: in an argument of a table function, or unused."""
        self._add(OperatorKind.SUBQUERY, "A subquery", (True,), table)

    def query(self, node: exp.Expr, visible: dict[str, bool]) -> bool:
        """Describe a query. Returns whether its rows are a stream."""
        visible = self._with(node, visible)
        match node:
            case exp.Select():
                return self._select(node, visible)
            case exp.SetOperation():
                return self._set_operation(node, visible)
            case exp.Subquery():
                return self._subquery(node, visible)
            case exp.Values():
                return False
        # Of a query that is none of these, all that can be said is whether a stream is in it.
        streaming = any(self._table(table, visible) for table in node.find_all(exp.Table))
        self._add(OperatorKind.UNKNOWN, type(node).__name__, (streaming,), node)
        return streaming

    def _with(self, node: exp.Expr, visible: dict[str, bool]) -> dict[str, bool]:
        clause = node.args.get("with_")
        if not isinstance(clause, exp.With):
            return visible
        visible = dict(visible)
        for cte in clause.expressions:
            name = cte.alias.lower()
            inside = {**visible, name: False} if clause.args.get("recursive") else visible
            streaming = self.query(cte.this, inside)
            if clause.args.get("recursive") and _names(cte.this, name):
                self._add(OperatorKind.RECURSION, "WITH RECURSIVE", (streaming,), cte)
            visible[name] = streaming
        return visible

    def _select(self, select: exp.Select, visible: dict[str, bool]) -> bool:
        streaming = False
        start = select.args.get("from_")
        if start is not None:
            streaming = self._source(start.this, visible)
        for join in select.args.get("joins") or []:
            streaming = self._join(join, streaming, visible)
        for lateral in select.args.get("laterals") or []:
            self._lateral(lateral, streaming)
        self._clauses(select, streaming)
        self._expressions(select, streaming, visible)
        return streaming

    def _set_operation(self, node: exp.SetOperation, visible: dict[str, bool]) -> bool:
        inputs = (self.query(node.this, visible), self.query(node.expression, visible))
        words = next(words for cls, words in _SET_WORDS.items() if isinstance(node, cls))
        is_union, distinct = isinstance(node, exp.Union), bool(node.args.get("distinct"))
        if not is_union:
            kind = OperatorKind.SET_OPERATION
        else:
            kind = OperatorKind.UNION_DISTINCT if distinct else OperatorKind.UNION_ALL
        index = self._set_word(node, words)
        name = self.outline.word(index) if index is not None else words[0]
        name += " ALL" if is_union and not distinct else ""
        self._add(kind, name, inputs, node, index=index)
        self._clauses(node, any(inputs), but=("distinct",))
        return any(inputs)

    def _subquery(self, node: exp.Subquery, visible: dict[str, bool]) -> bool:
        inner = node.this
        streaming = (
            self.query(inner, visible)
            if isinstance(inner, exp.Query)
            else self._source(inner, visible)
        )
        for join in node.args.get("joins") or []:
            streaming = self._join(join, streaming, visible)
        self._clauses(node, streaming)
        return streaming

    def _source(self, node: exp.Expr, visible: dict[str, bool]) -> bool:
        """Describe what stands in FROM or behind JOIN."""
        if isinstance(node, exp.Table):
            streaming = self._table(node, visible)
            for join in node.args.get("joins") or []:
                streaming = self._join(join, streaming, visible)
            for lateral in node.args.get("laterals") or []:
                self._lateral(lateral, streaming)
            self._extras(node, streaming)
            return streaming
        if isinstance(node, exp.Lateral):
            return self._lateral(node, streaming=False)
        if isinstance(node, exp.Values | exp.Unnest):
            return False
        return self.query(node, visible)

    def _table(self, table: exp.Table, visible: dict[str, bool]) -> bool:
        parts = identifiers(table)
        if not parts:
            return False
        start = _start(table)
        self.described.add(start)
        if start in self.tables:
            return self.tables[start]
        name = parts[0].name
        return visible.get(name.lower(), visible.get(name, False))

    def _join(self, join: exp.Join, left: bool, visible: dict[str, bool]) -> bool:
        if isinstance(join.this, exp.Lateral):
            subquery = isinstance(join.this.this, exp.Subquery)
            right = subquery and self.query(join.this.this, visible)
            kind = OperatorKind.LATERAL_JOIN if subquery else _kind_of_generator(join.this.this)
            self._add(kind, "LATERAL", (left, right), join.this)
            return left or right
        right = self._source(join.this, visible)
        is_function = isinstance(join.this, exp.Table) and not identifiers(join.this)
        side, word = join.side.upper(), join.kind.upper()
        join_type = {"SEMI": JoinType.SEMI, "ANTI": JoinType.ANTI}.get(word, _JOIN_SIDES.get(side))
        words = " ".join(part for part in (join.method, side, word, "JOIN") if part)
        self._add(
            OperatorKind.UNKNOWN if join_type is None or is_function else OperatorKind.JOIN,
            words.upper(),
            (left, right),
            join,
            index=self._join_word(join),
            join_type=join_type,
        )
        return left or right

    def _lateral(self, lateral: exp.Lateral, streaming: bool) -> bool:
        function = lateral.this
        name = _name_of_function(function)
        self._add(_kind_of_generator(function), f"LATERAL VIEW {name}", (streaming,), lateral)
        return streaming

    def _clauses(self, node: exp.Expr, streaming: bool, *, but: tuple[str, ...] = ()) -> None:
        """Describe the clauses that a query carries."""
        for key, value in node.args.items():
            if not value or key in _PLAIN_CLAUSES or key in but:
                continue
            kind, name, word = _CLAUSES.get(key, (OperatorKind.UNKNOWN, key.upper(), ""))
            block = self._block(node)
            index = block.words.get(word) if block is not None else None
            self._add(kind, name, (streaming,), node, index=index)
        self._extras(node, streaming)

    def _extras(self, node: exp.Expr, streaming: bool) -> None:
        for pivot in node.args.get("pivots") or []:
            stateless = bool(pivot.args.get("unpivot"))
            self._add(
                OperatorKind.STATELESS if stateless else OperatorKind.PIVOT,
                "UNPIVOT" if stateless else "PIVOT",
                (streaming,),
                pivot,
            )
        if isinstance(node, exp.Table) and node.args.get("sample"):
            self._add(OperatorKind.SAMPLE, "TABLESAMPLE", (streaming,), node)

    def _expressions(self, select: exp.Select, streaming: bool, visible: dict[str, bool]) -> None:
        """Describe what the expressions of a SELECT do that looks at more than one row."""
        for nested in _nested_queries(select):
            inner = self.query(nested, visible)
            self._add(OperatorKind.SUBQUERY, "A subquery", (streaming, inner), nested)
        if not streaming:
            return
        windows = [node for node in _own_nodes(select) if isinstance(node, exp.Window)]
        for window in windows:
            block = self._block(select)
            index = block.words.get("OVER") if block is not None else None
            self._add(
                OperatorKind.WINDOW_FUNCTION, "A window function", (True,), window, index=index
            )
        for index in self._calls(select):
            name = identifier_value(self.outline.tokens[index])
            kind = kind_of_function(name, self.aggregates)
            if kind is not None:
                self._add(kind, f"{name}()", (True,), select, index=index)
        for node in _own_nodes(select):
            # Aggregates that the list of names may not have, and sqlglot knows.
            if isinstance(node, exp.AggFunc):
                self._add(OperatorKind.AGGREGATION, f"{node.sql_name().lower()}()", (True,), node)

    def _calls(self, select: exp.Select) -> Iterator[int]:
        """Tokens of the functions that a SELECT calls itself."""
        block = self._block(select)
        if block is None:
            return
        yield from (index for index in block.calls if not self.outline.is_quantifier(index))

    def _add(
        self,
        kind: OperatorKind,
        name: str,
        streaming: tuple[bool, ...],
        node: exp.Expr,
        *,
        index: int | None = None,
        join_type: JoinType | None = None,
    ) -> None:
        if index is None:
            offset = _first_offset(node)
            index = 0 if offset is None else self.outline.index_at(offset)
        token = self.outline.tokens[min(index, len(self.outline.tokens) - 1)]
        self.operators.append(
            Operator(
                kind,
                name,
                streaming,
                join_type=join_type,
                where=self.source.locate(token.start),
                detail=self.source.caret(token.start, token.end),
            )
        )

    def _block(self, node: exp.Expr) -> Block | None:
        """The block of tokens that a SELECT is."""
        offset = next(_own_offsets(node), None)
        if offset is not None:
            return self.outline.owner[self.outline.index_at(offset)]
        for nested in _from_queries(node):
            inner = self._block(nested)
            if inner is not None:
                return inner.parent
        return None

    def _set_word(self, node: exp.SetOperation, words: tuple[str, ...]) -> int | None:
        """The keyword between the two sides of a set operation."""
        right = _first_offset(node.expression)
        if right is None:
            return None
        for index in range(self.outline.index_at(right), -1, -1):
            if self.outline.word(index) in words:
                return index
        return None

    def _join_word(self, join: exp.Join) -> int | None:
        start = _first_offset(join.this)
        if start is None:
            return None
        for index in range(self.outline.index_at(start), -1, -1):
            if self.outline.word(index) in {"JOIN", ","}:
                return index
        return None


def _tables(tree: exp.Query) -> Iterator[exp.Table]:
    return (table for table in tree.find_all(exp.Table) if identifiers(table))


def _start(table: exp.Table) -> int:
    return min(int(part.meta["start"]) for part in identifiers(table))


def _name_of_function(function: exp.Expr) -> str:
    if isinstance(function, exp.Func) and not isinstance(function, exp.Anonymous):
        return str(function.sql_name())
    return str(function.name)


def _kind_of_generator(function: exp.Expr) -> OperatorKind:
    known = isinstance(function, exp.Explode | exp.Inline)
    known = known or _name_of_function(function).lower() in GENERATORS
    return OperatorKind.GENERATOR if known else OperatorKind.UNKNOWN


def _own_nodes(select: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a query that are not inside a query of its own."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if not isinstance(node, exp.Query):
            yield node


def _own_offsets(node: exp.Expr) -> Iterator[int]:
    inside_with = {id(cte) for cte in node.find_all(exp.With)}
    for own in node.walk(
        prune=lambda other: (
            other is not node and (isinstance(other, exp.Query) or id(other) in inside_with)
        )
    ):
        if isinstance(own, exp.Identifier) and "start" in own.meta:
            yield own.meta["start"]


def _nested_queries(select: exp.Select) -> Iterator[exp.Query]:
    """Queries inside a SELECT's expressions, not those that it reads from."""
    for key, value in select.args.items():
        if key in {"with_", "from_"}:
            continue
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, exp.Expr):
                continue
            root = part.args.get("on") if isinstance(part, exp.Join) else part
            if not isinstance(root, exp.Expr):
                continue
            for node in root.walk(prune=lambda node: isinstance(node, exp.Query)):
                if isinstance(node, exp.Query):
                    yield node


def _from_queries(node: exp.Expr) -> Iterator[exp.Query]:
    start = node.args.get("from_")
    if start is not None:
        yield from start.find_all(exp.Query)


def _first_offset(node: exp.Expr) -> int | None:
    offsets = [
        identifier.meta["start"]
        for identifier in node.find_all(exp.Identifier)
        if "start" in identifier.meta
    ]
    return min(offsets, default=None)


def _names(query: exp.Expr, name: str) -> bool:
    return any(
        len(parts := identifiers(table)) == 1 and parts[0].name.lower() == name
        for table in query.find_all(exp.Table)
    )
