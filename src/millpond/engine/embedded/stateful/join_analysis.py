"""What a join of two streams has to keep: by which keys its rows are found, and until when.

The engine evaluates the join's whole condition. What is found here only leaves rows out that the
condition would leave out too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from millpond.engine.connect.conditions import Comparator, Comparison, comparisons, conjuncts
from millpond.engine.connect.expressions import attribute, cast, named, text_expression
from millpond.engine.connect.row_expressions import follows_from_row
from millpond.engine.embedded.stateful.join_input import JoinInput
from millpond.engine.embedded.stateful.time_bounds import Due, constant_lag_us, due, earliest

# What the engine rounds to compare it with a decimal, and not always as a cast does.
_ROUNDED = (FloatType, DoubleType, StringType)
_NO_KEY = (
    MapType,
    VariantType,
    NullType,
    CalendarIntervalType,
    DayTimeIntervalType,
    YearMonthIntervalType,
)


@dataclass(frozen=True)
class JoinKey:
    """An expression that must equal that of the other side, of the same type as that.

    Attributes:
        is_null_safe: Whether null equals null; else a row with null matches nothing.
    """

    expression: Any
    is_null_safe: bool
    data_type: DataType


@dataclass(frozen=True)
class SideAnalysis:
    """What is known of one side.

    Attributes:
        keys: As many as the other side has, in the same order.
        due: When no row of the other side that is yet to come can match a row, or `None` where
            that is never known.
        conditions: What the condition asks of this side alone. Where one is not true, a row
            matches nothing.
        kept_us: For how long after its event time a row is kept, where that is known.
    """

    keys: tuple[JoinKey, ...]
    due: Due | None
    conditions: tuple[Any, ...]
    kept_us: int | None


@dataclass(frozen=True)
class JoinAnalysis:
    left: SideAnalysis
    right: SideAnalysis


@dataclass(frozen=True)
class _Pair:
    """A comparison of an expression over the left with one over the right.

    Attributes:
        left: Cast to `common`.
        right: Cast to `common`.
        common: The type in which the two are compared.
    """

    operator: Comparator
    left: Any
    right: Any
    common: DataType
    plain: Comparison


def analyse(join: Any, client: Any) -> JoinAnalysis:
    """Find keys and time bounds of a join.

    Args:
        join: `proto.Join`. Its inputs are analysed, not read.
        client: A client of the engine.
    """
    return _Analysis(join, client).run()


class _Analysis:
    def __init__(self, join: Any, client: Any) -> None:
        self._join = join
        self._client = client
        self._left = JoinInput(client, join.left)
        self._right = JoinInput(client, join.right)

    def run(self) -> JoinAnalysis:
        pairs = [pair for each in self._comparisons() if (pair := self._pair(each)) is not None]
        equal = [pair for pair in pairs if pair.operator in {"=", "<=>"} and _is_key(pair.common)]
        left_keys = [JoinKey(pair.left, pair.operator == "<=>", pair.common) for pair in equal]
        right_keys = [JoinKey(pair.right, pair.operator == "<=>", pair.common) for pair in equal]
        left_bounds = [
            due(
                pair.left,
                pair.operator,
                pair.plain.right,
                other_input=self._right,
                common=pair.common,
            )
            for pair in pairs
        ]
        right_bounds = [
            due(
                pair.right,
                pair.plain.flipped().operator,
                pair.plain.left,
                other_input=self._left,
                common=pair.common,
            )
            for pair in pairs
        ]
        left_conditions, right_conditions = self._conditions()
        return JoinAnalysis(
            self._side(self._left, left_keys, _first(left_bounds), left_conditions),
            self._side(self._right, right_keys, _first(right_bounds), right_conditions),
        )

    @staticmethod
    def _side(
        source: JoinInput, keys: list[JoinKey], bound: Due | None, conditions: tuple[Any, ...]
    ) -> SideAnalysis:
        lag_us = None
        if bound is not None:
            lag_us = constant_lag_us(bound.expression, source, bound.data_type)
        kept_us = None if bound is None or lag_us is None else lag_us + bound.shift_us
        return SideAnalysis(tuple(keys), bound, conditions, kept_us)

    def _comparisons(self) -> Iterator[Comparison]:
        for name in self._join.using_columns:
            yield Comparison("=", attribute(name), attribute(name))
        if self._join.HasField("join_condition"):
            yield from comparisons(self._join.join_condition)

    def _pair(self, comparison: Comparison) -> _Pair | None:
        """A comparison as one between the two sides, or `None` where it is something else."""
        if not (follows_from_row(comparison.left) and follows_from_row(comparison.right)):
            return None
        if self._join.using_columns:
            left, right = self._left.column(comparison.left), self._right.column(comparison.right)
        else:
            left = self._column_of_one(comparison.left, self._left, self._right)
            right = self._column_of_one(comparison.right, self._right, self._left)
            if left is None and right is None:
                comparison = comparison.flipped()
                left = self._column_of_one(comparison.left, self._left, self._right)
                right = self._column_of_one(comparison.right, self._right, self._left)
        if left is None or right is None:
            return None
        common = self._common_type(comparison, left.dataType, right.dataType)
        if common is None:
            return None
        return _Pair(
            comparison.operator,
            _as_type(comparison.left, left.dataType, common),
            _as_type(comparison.right, right.dataType, common),
            common,
            comparison,
        )

    @staticmethod
    def _column_of_one(expression: Any, own: JoinInput, other: JoinInput) -> StructField | None:
        """What an expression is over one input, where it is nothing over the other."""
        found = own.column(expression)
        return found if found is not None and other.column(expression) is None else None

    def _common_type(
        self, comparison: Comparison, left: DataType, right: DataType
    ) -> DataType | None:
        """The type in which values of two types are compared, or `None` where it is not known."""
        if left.simpleString() == right.simpleString():
            return left
        nested = (ArrayType, StructType, MapType)
        if isinstance(left, nested) or isinstance(right, nested):
            return None
        for one, other in ((left, right), (right, left)):
            if isinstance(one, DecimalType) and isinstance(other, _ROUNDED):
                return None
        project = proto.Relation()
        both = project.project.input.join
        both.join_type = proto.Join.JOIN_TYPE_CROSS
        for side, source, name, expression in (
            (both.left, self._join.left, "own", comparison.left),
            (both.right, self._join.right, "other", comparison.right),
        ):
            side.project.input.CopyFrom(source)
            side.project.expressions.append(named(expression, name))
        project.project.expressions.append(text_expression("coalesce(own, other)"))
        try:
            schema: StructType = self._client.schema(proto.Plan(root=project))
        except PySparkException:
            return None
        return schema.fields[0].dataType

    def _conditions(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What is asked of the left alone, and of the right alone."""
        left: list[Any] = []
        right: list[Any] = []
        if self._join.HasField("join_condition"):
            for part in conjuncts(self._join.join_condition):
                if not follows_from_row(part):
                    continue
                if _is_boolean(self._column_of_one(part, self._left, self._right)):
                    left.append(part)
                elif _is_boolean(self._column_of_one(part, self._right, self._left)):
                    right.append(part)
        return tuple(left), tuple(right)


def _first(bounds: list[Due | None]) -> Due | None:
    return earliest([bound for bound in bounds if bound is not None])


def _is_boolean(field: StructField | None) -> bool:
    return field is not None and isinstance(field.dataType, BooleanType)


def _as_type(expression: Any, own: DataType, common: DataType) -> Any:
    if own.simpleString() == common.simpleString():
        return expression
    return cast(expression, common.simpleString())


def _is_key(data_type: DataType) -> bool:
    """Whether values of a type can be kept in Parquet and compared."""
    if isinstance(data_type, StructType):
        return all(_is_key(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _is_key(data_type.elementType)
    return not isinstance(data_type, _NO_KEY)
