"""A join of two streams: every pair of rows once, whichever of the two came first.

New rows of each side meet the rows that the other side kept, and each other. The engine evaluates
the user's own condition, over no more than the kept rows whose keys occur in the batch. In an outer
join, rows that met nobody come out once the watermark shows that nobody can come any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import LongType

from millpond import state
from millpond.engine.connect.cuts import Cut
from millpond.engine.connect.expressions import (
    attribute,
    called,
    cast,
    fingerprint,
    literal,
    named,
)
from millpond.engine.connect.scope import ROW_COLUMN, plan_ids
from millpond.engine.embedded.stateful.descriptions import columns_of
from millpond.engine.embedded.stateful.event_time import behind_us, further_behind, late_by
from millpond.engine.embedded.stateful.execution import (
    Carried,
    CutRows,
    Execution,
    Files,
    column_names,
    renamed,
    row_numbers,
    with_columns,
)
from millpond.engine.embedded.stateful.join_analysis import (
    JoinAnalysis,
    JoinKey,
    SideAnalysis,
    analyse,
)

_OUTER: Mapping[Any, tuple[state.SideName, ...]] = {
    proto.Join.JOIN_TYPE_INNER: (),
    proto.Join.JOIN_TYPE_CROSS: (),
    proto.Join.JOIN_TYPE_LEFT_OUTER: ("left",),
    proto.Join.JOIN_TYPE_RIGHT_OUTER: ("right",),
    proto.Join.JOIN_TYPE_FULL_OUTER: ("left", "right"),
}
_SIDES = {
    frozenset({"left"}): "left",
    frozenset({"right"}): "right",
    frozenset({"left", "right"}): "full",
}
# The columns that tell a row of either side, in the rows of the join.
_LEFT_ID, _RIGHT_ID = "__millpond_left_id", "__millpond_right_id"
_KEY = "key{index}"
_DUE = "due"
_MATCHABLE = "matchable"


def stream_join(execution: Execution, cut: Cut, relation: Any) -> Any:
    outer = frozenset(_OUTER[relation.join.join_type])
    found = execution.found(cut, lambda: analyse(relation.join, execution.client))
    left = _cut_side(execution, cut, relation.join.left, "left", found)
    right = _cut_side(execution, cut, relation.join.right, "right", found)
    _check(cut, found, outer)
    execution.describe(
        cut,
        operator="join",
        type=f"{_SIDES[outer]} outer" if outer else "inner",
        condition=fingerprint(relation.join.join_condition, plans=_sides(relation.join)),
        using=[name.lower() for name in relation.join.using_columns],
        sides=[columns_of(left.schema), columns_of(right.schema)],
        event_time=found.left.due is not None or found.right.due is not None,
    )
    schema = further_behind(execution.schema(relation), _behind_us(left, right, found))
    joined = CutRows(execution.scope(relation), schema, column_names(schema))
    files: Files = ()
    if execution.batch is not None:
        files = _Joining(execution, cut, relation, found, left, right, joined, outer).files()
    return execution.rows(joined, files)


def _behind_us(left: CutRows, right: CutRows, found: JoinAnalysis) -> int | None:
    """By how much rows that come out can be older than the watermark: as long as they are kept."""
    if found.left.kept_us is None or found.right.kept_us is None:
        return None
    before = max(behind_us(left.schema), behind_us(right.schema))
    return before + max(found.left.kept_us, found.right.kept_us, 0)


def _sides(join: Any) -> dict[int, str]:
    """Which of its inputs a part of the plan belongs to."""
    left, right = plan_ids(join.left), plan_ids(join.right)
    return {
        number: " ".join(name for name, ids in (("left", left), ("right", right)) if number in ids)
        for number in left | right
    }


def _cut_side(
    execution: Execution, cut: Cut, relation: Any, name: str, found: JoinAnalysis
) -> CutRows:
    side: SideAnalysis = getattr(found, name)
    helpers = {}
    for index, key in enumerate(side.keys):
        helpers[_KEY.format(index=index)] = _key(key)
    if side.due is not None:
        helpers[_DUE] = side.due.expression
    if side.conditions:
        helpers[_MATCHABLE] = reduce(partial(called, "and"), side.conditions)
    return execution.cut(cut, relation, name=name, helpers=helpers, is_kept=True)


def _key(key: JoinKey) -> Any:
    """A key by which rows are found: in a struct, null is a value, and matches null."""
    if not key.is_null_safe:
        return key.expression
    # By a name of its own: a struct of a column takes that column's, and the sides' may differ.
    return called("named_struct", literal("value"), key.expression)


def _check(cut: Cut, found: JoinAnalysis, outer: frozenset[state.SideName]) -> None:
    if not found.left.keys:
        raise cut.refused(
            "no column of the one stream has to equal one of the other",
            instead="add such a condition, as ON a.k = b.k, with one type on both sides",
        )
    for name in sorted(outer):
        if getattr(found, name).due is None:
            raise cut.refused(
                "it can't be told when a row that has met no other may come out",
                instead="give both streams a watermark, and bound their event times in the "
                "condition, as AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
            )


@dataclass(frozen=True)
class _Joining:
    """One batch of a join."""

    execution: Execution
    cut: Cut
    relation: Any
    found: JoinAnalysis
    left: CutRows
    right: CutRows
    joined: CutRows
    outer: frozenset[state.SideName]

    def files(self) -> Files:
        """The rows that come out of the join in this batch."""
        assert self.execution.batch is not None
        behind = max(behind_us(side.schema) for side in (self.left, self.right))
        join = state.StreamJoin(
            self.execution.batch.state.behind(behind),
            self.cut.operator,
            self._side(self.left, self.found.left),
            self._side(self.right, self.found.right),
            outer=self.outer,
            folder=self.execution.folder(self.cut) / "state",
        )
        met: Files = ()
        for number, (left, right) in enumerate(join.terms):
            if left and right:
                met += self._write(number, left, right, proto.Join.JOIN_TYPE_INNER)
        if not self.outer:
            return met
        lonely_left, lonely_right = join.unmatched(met, left_id=_LEFT_ID, right_id=_RIGHT_ID)
        alone: Files = ()
        if lonely_left:
            alone += self._write(2, lonely_left, (), proto.Join.JOIN_TYPE_LEFT_OUTER)
        if lonely_right:
            alone += self._write(3, (), lonely_right, proto.Join.JOIN_TYPE_RIGHT_OUTER)
        return met + alone

    def _side(self, rows: CutRows, side: SideAnalysis) -> state.Side:
        event_time = late_by(rows.schema)
        return state.Side(
            rows.files,
            keys=[_KEY.format(index=index) for index in range(len(side.keys))],
            event_time=None if event_time is None else rows.names[event_time],
            due=None if side.due is None else state.Due(_DUE, side.due.shift_us),
            matchable=_MATCHABLE if side.conditions else None,
        )

    def _write(self, number: int, left: Files, right: Files, join_type: Any) -> Files:
        """Join some rows of the left with some of the right, and write what comes out."""
        execution = self.execution
        join = proto.Relation()
        join.join.CopyFrom(self.relation.join)
        join.join.join_type = join_type
        ids = [(_LEFT_ID, self.left, left), (_RIGHT_ID, self.right, right)]
        sides = [
            execution.rows(rows, files, carried=[Carried(state.ROW_ID_COLUMN, name, LongType())])
            for name, rows, files in ids
        ]
        join.join.left.CopyFrom(sides[0])
        join.join.right.CopyFrom(sides[1])
        rows = with_columns(self._as_joined(join), {ROW_COLUMN: row_numbers(number)})
        return execution.write(self.cut, rows, name=f"joined-{number}")

    def _as_joined(self, join: Any) -> Any:
        """The columns by their names in files, and of the types that the user's join gives.

        A column of USING has that of the left, of the right or of both, as the type of join is.
        """
        fields = self.execution.schema(join).fields
        columns = iter(zip(self.joined.names, self.joined.schema.fields, strict=True))
        names: list[str] = []
        project = proto.Relation()
        for field in fields:
            if field.name in {_LEFT_ID, _RIGHT_ID}:
                names.append(field.name)
                project.project.expressions.append(attribute(field.name))
                continue
            name, wanted = next(columns)
            names.append(name)
            column, wanted_type = attribute(name), wanted.dataType.simpleString()
            if field.dataType.simpleString() != wanted_type:
                column = named(cast(column, wanted_type), name)
            project.project.expressions.append(column)
        project.project.input.CopyFrom(renamed(join, names))
        return project
