"""Describes what a parsed query does over its inputs, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from millpond.engine.protocol import TableRead
from millpond.engine.shapes import JoinType, Operator, OperatorKind, Rows, SubqueryForm
from millpond.engine.shapes.functions import GENERATORS, kind_of_function
from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.limits import is_all, limit_count
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.places import Places, own_nodes
from millpond.engine.sqltext.source import QueryText
from millpond.engine.sqltext.subqueries import form_of, nested_queries, queries_in
from millpond.sql.tokens import identifier_value

# Clauses of a query: what each is, and the keyword at which it stands.
_CLAUSES = {
    "group": (OperatorKind.GROUPING, "GROUP BY", "GROUP"),
    "having": (OperatorKind.AGGREGATION, "HAVING", "HAVING"),
    "distinct": (OperatorKind.DISTINCT, "DISTINCT", "DISTINCT"),
    "qualify": (OperatorKind.WINDOW_FUNCTION, "QUALIFY", "QUALIFY"),
    "windows": (OperatorKind.WINDOW_FUNCTION, "WINDOW", "WINDOW"),
    "order": (OperatorKind.SORT, "ORDER BY", "ORDER"),
    "sort": (OperatorKind.SORT, "SORT BY", "SORT"),
    "cluster": (OperatorKind.SORT, "CLUSTER BY", "CLUSTER"),
    "limit": (OperatorKind.LIMIT, "LIMIT", "LIMIT"),
    "offset": (OperatorKind.OFFSET, "OFFSET", "OFFSET"),
    "sample": (OperatorKind.SAMPLE, "TABLESAMPLE", "TABLESAMPLE"),
}
# What else a node may carry: a clause that is followed where the node is read, or one that looks
# at a row at a time. Whatever sqlglot knows beside these is refused over a stream.
_PLAIN = {
    exp.Select: frozenset(
        {"with_", "expressions", "hint", "from_", "joins", "laterals", "where", "pivots"}
        | {"distribute"}
    ),
    exp.Subquery: frozenset(
        {"with_", "this", "alias", "joins", "laterals", "pivots", "distribute"}
    ),
    exp.SetOperation: frozenset({"with_", "this", "expression", "by_name", "distinct"}),
    exp.Table: frozenset(
        {"this", "db", "catalog", "alias", "joins", "laterals", "pivots", "version"}
    ),
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method"}),
}
_SUBTOTALS = {
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
    exp.GroupingSets: "GROUPING SETS",
}
_JOIN_TYPES = {
    ("", ""): JoinType.INNER,
    ("", "INNER"): JoinType.INNER,
    ("", "CROSS"): JoinType.INNER,
    ("LEFT", ""): JoinType.LEFT,
    ("LEFT", "OUTER"): JoinType.LEFT,
    ("RIGHT", ""): JoinType.RIGHT,
    ("RIGHT", "OUTER"): JoinType.RIGHT,
    ("FULL", ""): JoinType.FULL,
    ("FULL", "OUTER"): JoinType.FULL,
    ("", "SEMI"): JoinType.SEMI,
    ("LEFT", "SEMI"): JoinType.SEMI,
    ("", "ANTI"): JoinType.ANTI,
    ("LEFT", "ANTI"): JoinType.ANTI,
}
_LATERAL_JOIN_TYPES = {JoinType.INNER, JoinType.LEFT}


def describe(
    tree: exp.Query,
    *,
    outline: Outline,
    source: QueryText,
    tables: Mapping[int, TableRead],
    external: Mapping[str, Rows],
    watermarks: Sequence[tuple[int, int]] = (),
    aggregates: Collection[str] = (),
) -> tuple[list[Operator], Rows]:
    """The operators of a query, and what is known of its rows.

    Args:
        tables: By the offset of a table's name, how it is read.
        external: By name, the rows of a DataFrame that the text names.
        watermarks: Start and end of every WATERMARK clause.
        aggregates: The user's own aggregate functions, in lower case.
    """
    places = Places(outline)
    description = _Description(
        places, source, tables, places.watermarked(tree, watermarks), aggregates
    )
    rows = description.query(tree, dict(external))
    aside = [
        (table, read)
        for table in tree.find_all(exp.Table)
        if (read := description.stream_of(table, external)).streaming
        and not (rows.streaming and _start(table) in description.described)
    ]
    for table, read in aside:
        description.add_aside(table, read)
    return description.operators, Rows.of_inputs([rows, *(read for _, read in aside)])


@dataclass
class _Description:
    places: Places
    source: QueryText
    tables: Mapping[int, TableRead]
    watermarked: Mapping[int, tuple[int, int]]
    aggregates: Collection[str]
    operators: list[Operator] = field(default_factory=list)
    described: set[int] = field(default_factory=set)

    def stream_of(self, table: exp.Table, external: Mapping[str, Rows]) -> Rows:
        parts = identifiers(table)
        if not parts:
            return Rows()
        read = self.tables.get(_start(table))
        return external.get(parts[0].name, Rows()) if read is None else Rows.of_read(read)

    def add_aside(self, table: exp.Table, rows: Rows) -> None:
        """A stream that gives the query no rows: in an argument of a table function, or unused."""
        self._add(OperatorKind.SUBQUERY, "A subquery", (Rows(), rows), table)

    def query(self, node: exp.Expr, visible: Mapping[str, Rows]) -> Rows:
        """Describe a query. Returns what is known of its rows."""
        visible = self._with(node, visible)
        match node:
            case exp.Select():
                return self._select(node, visible)
            case exp.SetOperation():
                return self._set_operation(node, visible)
            case exp.Subquery():
                return self._subquery(node, visible)
            case exp.Values():
                index = self.places.of_word("VALUES")
                self._add(OperatorKind.SOURCE, "VALUES", (Rows(),), node, index=index)
                return Rows()
        # Of a query that is none of these, all that can be said is whether a stream is in it.
        rows = Rows.of_inputs(self._table(table, visible) for table in node.find_all(exp.Table))
        self._add(OperatorKind.UNKNOWN, type(node).__name__, (rows,), node)
        return rows

    def _with(self, node: exp.Expr, visible: Mapping[str, Rows]) -> Mapping[str, Rows]:
        clause = node.args.get("with_")
        if not isinstance(clause, exp.With):
            return visible
        visible = dict(visible)
        for key in ("search", "cycle", "udfs"):
            if clause.args.get(key):
                rows = Rows.of_inputs(map(Rows.of_read, self.tables.values()))
                self._add(OperatorKind.UNKNOWN, f"WITH .. {key.upper()}", (rows,), clause)
        for cte in clause.expressions:
            name = cte.alias.lower()
            inside = {**visible, name: Rows()} if clause.args.get("recursive") else visible
            rows = self.query(cte.this, inside)
            if clause.args.get("recursive") and _names(cte.this, name):
                self._add(OperatorKind.RECURSION, "WITH RECURSIVE", (rows,), cte)
            visible[name] = rows
        return visible

    def _select(self, select: exp.Select, visible: Mapping[str, Rows]) -> Rows:
        rows = Rows()
        start = select.args.get("from_")
        if start is not None:
            rows = self._source(start.this, visible)
        rows = self._joined(select, rows, visible)
        self._clauses(select, rows)
        self._expressions(select, rows, visible)
        return rows

    def _joined(self, node: exp.Expr, rows: Rows, visible: Mapping[str, Rows]) -> Rows:
        """Describe what a node joins to the rows that it reads."""
        for join in node.args.get("joins") or []:
            rows = self._join(join, rows, visible)
        for lateral in node.args.get("laterals") or []:
            name = f"LATERAL VIEW {_name_of_function(lateral.this)}"
            self._add(_kind_of_lateral(lateral), name, (rows,), lateral)
        return rows

    def _set_operation(self, node: exp.SetOperation, visible: Mapping[str, Rows]) -> Rows:
        # Each is the first side of the next, and there may be more than calls can be nested.
        chain = [(node, visible)]
        while isinstance(node.this, exp.SetOperation):
            node = node.this
            visible = self._with(node, visible)
            chain.append((node, visible))
        rows = self.query(node.this, visible)
        for node, visible in reversed(chain):
            rows = self._put_together(node, rows, visible)
        return rows

    def _put_together(
        self, node: exp.SetOperation, first: Rows, visible: Mapping[str, Rows]
    ) -> Rows:
        inputs = (first, self.query(node.expression, visible))
        rows = Rows.of_inputs(inputs)
        is_union, distinct = isinstance(node, exp.Union), bool(node.args.get("distinct"))
        if not is_union:
            kind = OperatorKind.SET_OPERATION
        else:
            kind = OperatorKind.UNION_DISTINCT if distinct else OperatorKind.UNION_ALL
        index = self.places.of_set_operation(node)
        name = type(node).__name__.upper() if index is None else self.places.outline.word(index)
        name += " ALL" if is_union and not distinct else ""
        self._add(kind, name, inputs, node, index=index)
        self._clauses(node, rows)
        return rows

    def _subquery(self, node: exp.Subquery, visible: Mapping[str, Rows]) -> Rows:
        inner = node.this
        rows = (
            self.query(inner, visible)
            if isinstance(inner, exp.Query)
            else self._source(inner, visible)
        )
        rows = self._joined(node, self._with_watermark(node, rows), visible)
        self._clauses(node, rows)
        return rows

    def _source(self, node: exp.Expr, visible: Mapping[str, Rows]) -> Rows:
        """Describe what stands in FROM or behind JOIN."""
        match node:
            case exp.Table():
                rows = self._with_watermark(node, self._table(node, visible))
                rows = self._joined(node, rows, visible)
                self._clauses(node, rows)
                return rows
            case exp.Lateral():
                self._add(_kind_of_lateral(node), "LATERAL", (Rows(),), node)
                return Rows()
            case exp.Unnest():
                return Rows()
        return self.query(node, visible)

    def _table(self, table: exp.Table, visible: Mapping[str, Rows]) -> Rows:
        """The rows of a table; those of a function and those of files are no stream."""
        parts = identifiers(table)
        if not parts:
            name = _name_of_function(table.this)
            index = self.places.of_word(name.upper())
            self._add(OperatorKind.SOURCE, f"{name}()", (Rows(),), table, index=index)
            return Rows()
        start = _start(table)
        self.described.add(start)
        if start in self.tables or len(parts) > 1:
            read = self.tables.get(start)
            rows = Rows() if read is None else Rows.of_read(read)
            name = self.source.text[start : max(part.meta["end"] for part in parts) + 1]
            self._add(OperatorKind.SOURCE, name, (rows,), table)
            return rows
        name = parts[0].name
        return visible.get(name.lower(), visible.get(name, Rows()))

    def _with_watermark(self, node: exp.Expr, rows: Rows) -> Rows:
        """The rows of a table or subquery, behind its WATERMARK clause if it has one."""
        clause = self.watermarked.get(id(node))
        if clause is None:
            return rows
        index = self.places.outline.index_at(clause[0])
        self._add(OperatorKind.WATERMARK, "WATERMARK", (rows,), node, index=index)
        return Rows(rows.streaming, rows.streaming, rows.reads)

    def _join(self, join: exp.Join, left: Rows, visible: Mapping[str, Rows]) -> Rows:
        join_type = _join_type(join)
        if isinstance(join.this, exp.Lateral):
            return self._lateral_join(join.this, join_type, left, visible)
        right = self._source(join.this, visible)
        words = " ".join(part for part in (join.method, join.side, join.kind, "JOIN") if part)
        self._add(
            OperatorKind.UNKNOWN if join_type is None else OperatorKind.JOIN,
            words.upper(),
            (left, right),
            join,
            index=self.places.of_join(join),
            join_type=join_type,
        )
        rows = Rows.of_inputs((left, right))
        condition = join.args.get("on")
        for nested in queries_in(condition) if isinstance(condition, exp.Expr) else ():
            self._expression_query(nested, rows, visible, SubqueryForm.JOIN_CONDITION)
        return rows

    def _lateral_join(
        self,
        lateral: exp.Lateral,
        join_type: JoinType | None,
        left: Rows,
        visible: Mapping[str, Rows],
    ) -> Rows:
        is_subquery = isinstance(lateral.this, exp.Subquery)
        right = self.query(lateral.this, visible) if is_subquery else Rows()
        kind = OperatorKind.LATERAL_JOIN if is_subquery else _kind_of_lateral(lateral)
        if join_type not in _LATERAL_JOIN_TYPES:
            kind = OperatorKind.UNKNOWN
        self._add(kind, "LATERAL", (left, right), lateral)
        return Rows.of_inputs((left, right))

    def _clauses(self, node: exp.Expr, rows: Rows) -> None:
        """Describe the clauses that a query or table carries."""
        plain = next(args for kind, args in _PLAIN.items() if isinstance(node, kind))
        for key, value in node.args.items():
            if not value or key in plain:
                continue
            kind, name, word = _CLAUSES.get(key, (OperatorKind.UNKNOWN, key.strip("_").upper(), ""))
            if key == "group":
                kind, name = _grouping(value)
            elif key == "having" and node.args.get("group"):
                continue
            elif key == "distinct" and value.args.get("on"):
                kind, name = OperatorKind.UNKNOWN, "DISTINCT ON"
            elif key == "limit":
                if is_all(value):
                    continue
                kind = _kind_of_limit(value)
            index = self.places.of_clause(node, word)
            self._add(kind, name, (rows,), node, index=index)
        for pivot in node.args.get("pivots") or []:
            word = "UNPIVOT" if pivot.args.get("unpivot") else "PIVOT"
            kind = OperatorKind.PIVOT if word == "PIVOT" else OperatorKind.STATELESS
            self._add(kind, word, (rows,), pivot, index=self.places.of_clause(node, word))

    def _expressions(self, select: exp.Select, rows: Rows, visible: Mapping[str, Rows]) -> None:
        """Describe what the expressions of a SELECT do that looks at more than one row."""
        for nested in nested_queries(select):
            self._expression_query(nested, rows, visible, form_of(nested, self.aggregates))
        if not rows.streaming:
            return
        over = self.places.of_clause(select, "OVER")
        for node in own_nodes(select):
            if isinstance(node, exp.Window):
                name = "A window function"
                self._add(OperatorKind.WINDOW_FUNCTION, name, (rows,), node, index=over)
        # What a GROUP BY aggregates is part of it.
        grouped = bool(select.args.get("group"))
        for index in self._calls(select):
            name = identifier_value(self.places.outline.tokens[index])
            kind = kind_of_function(name, self.aggregates)
            if kind is not None and not (grouped and kind is OperatorKind.AGGREGATION):
                self._add(kind, f"{name}()", (rows,), select, index=index)
        for node in own_nodes(select):
            # Aggregates that the list of names may not have, and sqlglot knows.
            if isinstance(node, exp.AggFunc) and not grouped:
                name = f"{node.sql_name().lower()}()"
                self._add(OperatorKind.AGGREGATION, name, (rows,), node)

    def _expression_query(
        self, query: exp.Query, outer: Rows, visible: Mapping[str, Rows], form: SubqueryForm
    ) -> None:
        """Describe a subquery in an expression, and after it what it does itself."""
        at = len(self.operators)
        inner = self.query(query, visible)
        name = {
            SubqueryForm.IN_VALUE: "IN with a subquery",
            SubqueryForm.EXISTS_OF_TOTAL: "EXISTS with an aggregate",
        }.get(form, "A subquery")
        index = self.places.of_query(query)
        kind = OperatorKind.SUBQUERY
        self._add(kind, name, (outer, inner), query, index=index, subquery=form)
        self.operators.insert(at, self.operators.pop())

    def _calls(self, select: exp.Select) -> Iterator[int]:
        """Tokens of the functions that a SELECT calls itself."""
        block = self.places.block(select)
        if block is None:
            return
        outline = self.places.outline
        yield from (index for index in block.calls if not outline.is_quantifier(index))

    def _add(
        self,
        kind: OperatorKind,
        name: str,
        inputs: tuple[Rows, ...],
        node: exp.Expr,
        *,
        index: int | None = None,
        join_type: JoinType | None = None,
        subquery: SubqueryForm | None = None,
    ) -> None:
        if index is None:
            index = self.places.of(node) or 0
        tokens = self.places.outline.tokens
        token = tokens[min(index, len(tokens) - 1)]
        self.operators.append(
            Operator(
                kind,
                name,
                inputs,
                join_type=join_type,
                subquery=subquery,
                where=self.source.locate(token.start),
                detail=self.source.caret(token.start, token.end),
            )
        )


def _grouping(group: exp.Expr) -> tuple[OperatorKind, str]:
    """What a GROUP BY is, and what to call it."""
    if group.args.get("all"):
        return OperatorKind.GROUP_BY_ALL, "GROUP BY ALL"
    for kind, word in _SUBTOTALS.items():
        if group.find(kind) is not None:
            return OperatorKind.SUBTOTALS, f"GROUP BY with {word}"
    if group.args.get("totals"):
        return OperatorKind.UNKNOWN, "GROUP BY with TOTALS"
    return OperatorKind.GROUPING, "GROUP BY"


def _kind_of_limit(limit: exp.Expr) -> OperatorKind:
    if not isinstance(limit, exp.Limit) or {"offset", "limit_options", "expressions"} & {
        key for key, value in limit.args.items() if value
    }:
        return OperatorKind.UNKNOWN
    is_known = isinstance(limit.expression, exp.Placeholder) or limit_count(limit) is not None
    return OperatorKind.LIMIT if is_known else OperatorKind.LIMIT_OF_EXPRESSION


def _join_type(join: exp.Join) -> JoinType | None:
    """The type of a join that Spark has; `None` for others, which an engine may have."""
    if any(value and key not in _PLAIN[exp.Join] for key, value in join.args.items()):
        return None
    if join.method:
        return None
    return _JOIN_TYPES.get((join.side.upper(), join.kind.upper()))


def _start(table: exp.Table) -> int:
    return min((int(part.meta["start"]) for part in identifiers(table)), default=-1)


def _name_of_function(function: exp.Expr) -> str:
    if isinstance(function, exp.Func) and not isinstance(function, exp.Anonymous):
        return str(function.sql_name())
    return str(function.name)


def _kind_of_lateral(lateral: exp.Lateral) -> OperatorKind:
    function = lateral.this
    known = isinstance(function, exp.Explode | exp.Inline)
    known = known or _name_of_function(function).lower() in GENERATORS
    if lateral.args.get("cross_apply") or lateral.args.get("ordinality"):
        return OperatorKind.UNKNOWN
    return OperatorKind.GENERATOR if known else OperatorKind.UNKNOWN


def _names(query: exp.Expr, name: str) -> bool:
    return any(
        len(parts := identifiers(table)) == 1 and parts[0].name.lower() == name
        for table in query.find_all(exp.Table)
    )
