"""What a join of streams keeps rows by, and until when, as the engine itself resolves and computes."""

import datetime as dt

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.connect import proto
from pyspark.sql.types import StructField, StructType

from millpond.engine.connect.expressions import text_expression
from millpond.engine.connect.messages import empty_relation
from millpond.engine.embedded.stateful.event_time import WATERMARK
from millpond.engine.embedded.stateful.join_analysis import analyse

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# What a comparison that holds for equal times, too, waits longer: one millisecond, as in Spark.
MS = 1000

COLUMNS = (
    "k INT, j BIGINT, s STRING, d DOUBLE, f FLOAT, m DECIMAL(10, 2), day DATE, ts TIMESTAMP, "
    "other TIMESTAMP, ntz TIMESTAMP_NTZ, w STRUCT<start: TIMESTAMP, end: TIMESTAMP>, "
    "p STRUCT<a: INT>, xs ARRAY<STRING>, mm MAP<STRING, INT>, flag BOOLEAN"
)


@pytest.fixture
def client(engine):
    return engine._sessions.client()


@pytest.fixture
def side(engine):
    """Makes an empty relation with a name, and a column of event time."""

    def make(alias, *, event_time="ts", columns=COLUMNS, plan_id=None):
        fields = [
            StructField(
                field.name,
                field.dataType,
                True,
                {WATERMARK: "0"} if field.name == event_time else {},
            )
            for field in engine.parse_schema(columns).fields
        ]
        relation = proto.Relation()
        relation.subquery_alias.input.CopyFrom(empty_relation(StructType(fields)))
        relation.subquery_alias.alias = alias
        if plan_id is not None:
            relation.common.plan_id = plan_id
        return relation

    return make


@pytest.fixture
def analysed(client, side):
    """Analyses a join of `x` and `y` by its condition."""

    def run(condition="", *, left=None, right=None, using=()):
        join = proto.Join(left=left or side("x"), right=right or side("y"), using_columns=using)
        if isinstance(condition, str) and condition:
            join.join_condition.CopyFrom(text_expression(condition))
        elif condition:
            join.join_condition.CopyFrom(condition)
        return analyse(join, client)

    return run


def shown(expression):
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        return expression.expression_string.expression
    if kind == "unresolved_attribute":
        return expression.unresolved_attribute.unparsed_identifier
    if kind == "cast":
        return f"{shown(expression.cast.expr)}::{expression.cast.type_str}"
    if kind == "unresolved_extract_value":
        value = expression.unresolved_extract_value
        return f"{shown(value.child)}.{value.extraction.literal.string}"
    if kind == "literal":
        return str(expression.literal.day_time_interval)
    function = expression.unresolved_function
    return f"{function.function_name}({', '.join(map(shown, function.arguments))})"


def sql_of(expression):
    """The SQL of a time bound."""
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        return f"({expression.expression_string.expression})"
    if kind == "literal":
        return f"INTERVAL {expression.literal.day_time_interval} MICROSECONDS"
    function = expression.unresolved_function
    arguments = [*map(sql_of, function.arguments)]
    if function.function_name == "+":
        return " + ".join(arguments)
    return f"{function.function_name}({', '.join(arguments)})"


def keys(found):
    pairs = zip(found.left.keys, found.right.keys, strict=True)
    assert all(
        (left.is_null_safe, left.data_type) == (right.is_null_safe, right.data_type)
        for left, right in zip(found.left.keys, found.right.keys, strict=True)
    )
    return [
        (shown(left.expression), "<=>" if left.is_null_safe else "=", shown(right.expression))
        for left, right in pairs
    ]


def bounds(found):
    return tuple(
        None if each.due is None else (shown(each.due.expression), each.due.shift_us)
        for each in (found.left, found.right)
    )


class TestKeys:
    @pytest.mark.parametrize(
        ("condition", "expected"),
        {
            "x.k = y.k": [("x.k", "=", "y.k")],
            "y.k == x.k": [("x.k", "=", "y.k")],
            "x.k <=> y.k AND x.s = y.s": [("x.k", "<=>", "y.k"), ("x.s", "=", "y.s")],
            "lower(x.s) = concat(y.s, 'a')": [("lower(x.s)", "=", "concat(y.s, 'a')")],
            "unix_timestamp(x.ts) = y.j": [("unix_timestamp(x.ts)", "=", "y.j")],
            "x.p.a = y.p.a": [("x.p.a", "=", "y.p.a")],
            "x.p = y.p AND x.xs = y.xs": [("x.p", "=", "y.p"), ("x.xs", "=", "y.xs")],
            "x.k = y.k AND x.j > y.j AND (x.d = y.d OR x.flag)": [("x.k", "=", "y.k")],
        }.items(),
    )
    def test_an_equality_of_one_side_with_the_other_is_a_key(self, analysed, condition, expected):
        assert keys(analysed(condition)) == expected

    @pytest.mark.parametrize(
        "condition",
        [
            "x.k = 1",
            "1 = 1",
            "x.k = x.j",
            "x.k + y.k = 3",
            "x.k + y.k = y.j",
            "x.k = z.k",
            "k = j",
            "x.k = y.nothing",
            "x.k = y.k + rand()",
            "x.s = concat(y.s, uuid())",
            "x.ts = y.ts + (current_timestamp - timestamp'2024-01-01')",
            "x.j = y.j + unix_timestamp()",
            "x.k = max(y.k)",
            "x.k = explode(array(y.k))",
            "x.k = y.k + (SELECT 1)",
            "x.k = row_number() OVER (ORDER BY y.k)",
            "x.mm = y.mm",
        ],
    )
    def test_nothing_else_is_a_key(self, analysed, condition):
        found = analysed(condition)
        assert (keys(found), bounds(found)) == ([], (None, None))

    def test_names_that_sound_like_functions_of_now_are_columns(self, analysed, side):
        columns = "uuid STRING, now INT, t STRUCT<current_date: INT>"
        left = side("x", columns=columns)
        right = side("y", columns=columns)
        condition = "x.uuid = y.uuid AND x.now = y.now AND x.t.current_date = y.t.current_date"
        assert len(keys(analysed(condition, left=left, right=right))) == 3

    def test_unqualified_names_of_one_side_are_found(self, analysed, side):
        found = analysed(
            "a = b", left=side("x", columns="a INT, c INT"), right=side("y", columns="b INT, c INT")
        )
        assert keys(found) == [("a", "=", "b")]

    def test_dataframes_columns_are_found_by_their_number(self, analysed, side, spark):
        a, b = spark.table("a"), spark.table("b")
        left, right = side("x", plan_id=a._plan._plan_id), side("y", plan_id=b._plan._plan_id)
        condition = ((a.k == b.k) & b.s.eqNullSafe(a.s)).to_plan(spark.client)
        assert keys(analysed(condition, left=left, right=right)) == [
            ("k", "=", "k"),
            ("s", "<=>", "s"),
        ]

    @pytest.mark.parametrize("changing", [sf.rand, sf.current_timestamp, sf.uuid])
    def test_functions_that_change_by_themselves_make_no_key(self, analysed, spark, changing):
        condition = sf.col("x.s") == sf.concat("y.s", changing().cast("string"))
        assert analysed(condition.to_plan(spark.client)).left.keys == ()

    def test_a_function_of_python_is_a_key_where_it_says_the_same_each_time(self, analysed, spark):
        same = sf.udf(lambda value: value, "int")
        condition = (same("x.k") == sf.col("y.k")).to_plan(spark.client)
        assert len(analysed(condition).left.keys) == 1
        condition = (same.asNondeterministic()("x.k") == sf.col("y.k")).to_plan(spark.client)
        assert analysed(condition).left.keys == ()

    def test_using_names_one_column_of_each_side(self, analysed):
        found = analysed(using=["k", "S"])
        assert keys(found) == [("k", "=", "k"), ("S", "=", "S")]

    def test_columns_that_using_names_may_have_two_types(self, analysed, side):
        right = side("y", columns="k BIGINT, s STRING")
        assert keys(analysed(using=["k", "s"], right=right)) == [
            ("k::bigint", "=", "k"),
            ("s", "=", "s"),
        ]

    def test_names_that_both_sides_have_may_have_two_types(self, analysed, side, spark):
        a, b = spark.table("a"), spark.table("b")
        left = side("x", plan_id=a._plan._plan_id)
        right = side("y", columns="k BIGINT", plan_id=b._plan._plan_id)
        condition = (a.k == b.k).to_plan(spark.client)
        assert keys(analysed(condition, left=left, right=right)) == [("k::bigint", "=", "k")]

    @pytest.mark.parametrize(
        ("left", "right", "common"),
        [
            ("k", "j", "bigint"),
            ("j", "d", "double"),
            ("f", "d", "double"),
            ("k", "m", "decimal(12,2)"),
            ("s", "k", "int"),
            ("s", "day", "date"),
            ("ts", "ntz", "timestamp"),
        ],
    )
    def test_keys_of_two_types_are_cast_to_what_they_are_compared_as(
        self, analysed, left, right, common
    ):
        one = analysed(f"x.{left} = y.{right}")
        other = analysed(f"x.{right} = y.{left}")
        for found in (one, other):
            types = {each.keys[0].data_type.simpleString() for each in (found.left, found.right)}
            assert types == {common}
        cast = {f"{name}::{common}" for name in (f"x.{left}", f"y.{right}")}
        assert set(keys(one)[0]) - {"=", f"x.{left}", f"y.{right}"} <= cast

    @pytest.mark.parametrize(
        ("left", "right"),
        [("d", "m"), ("m", "f"), ("s", "m"), ("flag", "k"), ("day", "ts"), ("p", "k")],
    )
    def test_types_that_are_compared_in_no_type_that_is_known_are_no_keys(
        self, analysed, left, right
    ):
        assert analysed(f"x.{left} = y.{right}").left.keys == ()
        assert analysed(f"x.{right} = y.{left}").left.keys == ()

    def test_keys_and_bounds_are_expressions_of_their_sides_of_the_types_told(
        self, client, analysed, side
    ):
        found = analysed(
            "x.k = y.j AND x.s = y.day AND x.ts > y.ntz AND x.other > y.ntz AND y.ts > x.ts",
            right=side("y", event_time="ntz"),
        )
        for relation, each in ((side("x"), found.left), (side("y"), found.right)):
            project = proto.Relation()
            project.project.input.CopyFrom(relation)
            expressions = [*each.keys, each.due]
            project.project.expressions.extend(part.expression for part in expressions)
            fields = client.schema(proto.Plan(root=project)).fields
            assert [field.dataType for field in fields] == [part.data_type for part in expressions]

    NUMBERS = ("0", "1", "-1", "0.1", "1.5", "16777217", "9007199254740993", "12345678.12")

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("INT", "BIGINT"),
            ("BIGINT", "FLOAT"),
            ("BIGINT", "DOUBLE"),
            ("FLOAT", "DOUBLE"),
            ("BIGINT", "DECIMAL(20, 2)"),
            ("DECIMAL(20, 2)", "DECIMAL(22, 6)"),
        ],
    )
    def test_what_the_engine_finds_equal_has_equal_keys(self, client, analysed, side, left, right):
        found = analysed(
            "x.v = y.v", left=side("x", columns=f"v {left}"), right=side("y", columns=f"v {right}")
        )
        values = ", ".join(f"('{number}')" for number in self.NUMBERS)
        common = found.left.keys[0].data_type.simpleString()
        text = (
            f"SELECT count(*) AS pairs, count_if(NOT CAST(x.v AS {common}) = CAST(y.v AS {common})) "
            f"AS missed FROM (SELECT try_cast(n AS {left}) AS v FROM VALUES {values} AS t(n)) AS x, "
            f"(SELECT try_cast(n AS {right}) AS v FROM VALUES {values} AS t(n)) AS y WHERE x.v = y.v"
        )
        table, *_ = client.to_table(proto.Plan(root=proto.Relation(sql=proto.SQL(query=text))), {})
        [row] = table.to_pylist()
        assert row["pairs"] >= 3
        assert row["missed"] == 0


class TestTimeBounds:
    @pytest.mark.parametrize(
        ("condition", "left", "right"),
        [
            ("x.ts > y.ts", ("x.ts", 0), None),
            ("x.ts >= y.ts", ("x.ts", MS), None),
            ("x.ts < y.ts", None, ("y.ts", 0)),
            ("x.ts <= y.ts", None, ("y.ts", MS)),
            ("y.ts < x.ts", ("x.ts", 0), None),
            ("y.ts <= x.ts", ("x.ts", MS), None),
            ("x.ts > y.ts + INTERVAL 1 SECOND", ("x.ts", -SECOND), None),
            ("x.ts + INTERVAL 2 SECONDS > y.ts", ("x.ts + INTERVAL 2 SECONDS", 0), None),
            ("x.ts > y.ts - INTERVAL 3 SECONDS", ("x.ts", 3 * SECOND), None),
            ("x.ts > y.ts - INTERVAL '1 20:30:40' DAY TO SECOND", ("x.ts", 160_240 * SECOND), None),
            ("x.ts > y.ts + INTERVAL 1500 MICROSECONDS", ("x.ts", -MS), None),
            ("x.ts > y.ts - INTERVAL 1500 MICROSECONDS", ("x.ts", 2 * MS), None),
            ("x.ts > (y.ts + 2 * INTERVAL 1 MINUTE)", ("x.ts", -2 * MINUTE), None),
            ("x.ts > timestampadd(HOUR, 1, y.ts)", ("x.ts", -HOUR), None),
            ("x.other > y.`ts` /* late */ - INTERVAL 1 DAY", ("x.other", DAY), None),
            (
                "y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 HOUR",
                ("x.ts + INTERVAL 1 HOUR", MS),
                ("y.ts", MS),
            ),
            (
                "y.ts >= x.ts - INTERVAL 5 MINUTES AND y.ts <= x.ts + INTERVAL 10 MINUTES",
                ("x.ts + INTERVAL 10 MINUTES", MS),
                ("y.ts", 5 * MINUTE + MS),
            ),
        ],
    )
    def test_a_comparison_with_the_others_event_time_bounds_a_row(
        self, analysed, condition, left, right
    ):
        assert bounds(analysed(condition)) == (left, right)

    @pytest.mark.parametrize(
        "condition",
        [
            "x.ts > y.other",
            "x.ts > y.ts + INTERVAL 1 MONTH",
            "x.ts > date_trunc('hour', y.ts)",
            "x.ts > y.ts + y.k * INTERVAL 1 SECOND",
            "x.ts > y.ts + (y.other - y.other)",
            "x.ts > y.ts + (now() - TIMESTAMP '2024-01-01 00:00:00')",
            "x.ts + (now() - TIMESTAMP '2024-01-01 00:00:00') > y.ts",
            "x.ts > least(y.ts, TIMESTAMP '2023-06-01 00:00:00')",
            "x.s > CAST(y.ts AS STRING)",
            "x.ts > TIMESTAMP '2024-01-01 00:00:00'",
            "x.ts <> y.ts",
            "NOT x.ts > y.ts",
            "x.ts > y.ts OR x.k = y.k",
            "x.ts > least(y.ts, TIMESTAMP '2100-01-01 00:00:00')",
            "x.ts > if(year(y.ts) > 2030, y.ts - INTERVAL 7 DAYS, y.ts)",
        ],
    )
    def test_what_is_no_constant_away_from_the_event_time_bounds_nothing(self, analysed, condition):
        assert bounds(analysed(condition)) == (None, None)

    def test_only_a_watermark_makes_an_event_time(self, analysed, side):
        found = analysed("x.ts = y.ts AND x.ts >= y.ts", right=side("y", event_time=None))
        assert bounds(found) == (None, ("y.ts", 0))

    def test_an_event_time_among_the_keys_bounds_both_sides(self, analysed):
        assert bounds(analysed("x.k = y.k AND x.ts = y.ts")) == (("x.ts", 0), ("y.ts", 0))
        assert bounds(analysed("x.ts <=> y.ts")) == (("x.ts", 0), ("y.ts", 0))
        assert bounds(analysed(using=["k", "ts"])) == (("ts", 0), ("ts", 0))

    def test_a_window_that_must_be_the_same_bounds_both_sides_by_its_end(self, analysed, side):
        sides = {"left": side("x", event_time="w"), "right": side("y", event_time="w")}
        assert bounds(analysed("x.w = y.w", **sides)) == (("x.w.end", 0), ("y.w.end", 0))
        assert bounds(analysed("x.w > y.w", **sides)) == (None, None)
        assert bounds(analysed("x.w = y.w")) == (None, None)

    def test_of_several_bounds_the_earliest_counts(self, analysed):
        condition = "x.ts > y.ts - INTERVAL 3 SECONDS AND x.ts > y.ts + INTERVAL 4 SECONDS"
        assert bounds(analysed(condition)) == (("x.ts", -4 * SECOND), None)
        condition = "x.ts > y.ts - INTERVAL 3 SECONDS AND x.other >= y.ts"
        left, right = bounds(analysed(condition))
        assert left == (f"least(+(x.ts, {3 * SECOND}), +(x.other, {MS}))", 0)
        assert right is None

    def test_dataframes_columns_are_bounded(self, analysed, side, spark):
        a, b = spark.table("a"), spark.table("b")
        left, right = side("x", plan_id=a._plan._plan_id), side("y", plan_id=b._plan._plan_id)
        hour = sf.expr("INTERVAL 1 HOUR")
        condition = (a.k == b.k) & (b.ts >= a.ts) & (b.ts <= a.ts + hour)
        found = analysed(condition.to_plan(spark.client), left=left, right=right)
        assert bounds(found) == (("+(ts, INTERVAL 1 HOUR)", MS), ("ts", MS))
        minute = sf.lit(dt.timedelta(minutes=1))
        condition = a.ts - minute > b.ts + minute
        found = analysed(condition.to_plan(spark.client), left=left, right=right)
        assert bounds(found) == (("-(ts, 60000000)", -MINUTE), None)

    def test_a_time_without_zone_is_bounded_by_its_own_watermark(self, analysed, side):
        sides = {"left": side("x", event_time="ntz"), "right": side("y", event_time="ntz")}
        found = analysed("x.ntz > y.ntz - INTERVAL 1 HOUR", **sides)
        assert bounds(found) == (("x.ntz", HOUR), None)
        found = analysed("x.ts > y.ntz", **sides)
        assert bounds(found) == (("x.ts", 0), None)

    def test_of_two_event_times_late_rows_are_told_by_the_first(self, analysed, engine):
        fields = [
            StructField(field.name, field.dataType, True, {WATERMARK: "0"})
            for field in engine.parse_schema("ts TIMESTAMP, other TIMESTAMP").fields
        ]
        right = proto.Relation()
        right.subquery_alias.input.CopyFrom(empty_relation(StructType(fields)))
        right.subquery_alias.alias = "y"
        assert bounds(analysed("x.ts > y.ts", right=right))[0] == ("x.ts", 0)
        assert bounds(analysed("x.ts > y.other", right=right))[0] is None

    @pytest.mark.parametrize(
        "condition",
        [
            "x.ts > y.ts",
            "x.ts >= y.ts + INTERVAL 2 MILLISECONDS",
            "x.ts + INTERVAL 1 MILLISECOND >= y.ts",
            "x.ts < y.ts - INTERVAL 1500 MICROSECONDS",
            "x.ts <= y.ts + INTERVAL 1500 MICROSECONDS",
            "x.ts = y.ts",
            "x.ts <=> y.ts - INTERVAL 1 MILLISECOND",
            "y.ts BETWEEN x.ts - INTERVAL 1 MILLISECOND AND x.ts + INTERVAL 2 MILLISECONDS",
            "x.ts > y.ts + INTERVAL 1 MILLISECOND AND x.other >= y.ts",
        ],
    )
    def test_a_row_that_is_due_meets_none_that_is_yet_to_come_and_others_may(
        self, client, analysed, condition
    ):
        times = "SELECT timestamp_micros(500 * id) AS ts FROM range(0, 24)"
        both = "SELECT ts, ts + INTERVAL 1 MILLISECOND AS other FROM times"
        found = analysed(condition)
        sides = [("x", "y", found.left.due), ("y", "x", found.right.due)]
        checked = [each for each in sides if each[2] is not None]
        assert checked
        for own, other, due in checked:
            moment = sql_of(due.expression)
            text = (
                f"WITH times AS ({times}), x AS ({both}), y AS ({both}), "
                "watermark AS (SELECT 1000 * id AS us FROM range(-4, 12)) "
                f"SELECT count_if(unix_micros({moment}) + {due.shift_us} <= us) AS dead_that_meet, "
                f"count_if(unix_micros({moment}) + {due.shift_us} <= us + {2 * MS}) AS soon_dead "
                f"FROM x, y, watermark WHERE unix_micros({other}.ts) > us AND ({condition})"
            )
            query = proto.Relation(sql=proto.SQL(query=text))
            table, *_ = client.to_table(proto.Plan(root=query), {})
            [row] = table.to_pylist()
            assert row["dead_that_meet"] == 0, own
            # A row lives no more than two milliseconds longer than it has to.
            assert row["soon_dead"] > 0, own


class TestConditions:
    def test_what_is_asked_of_one_side_alone_is_found(self, analysed):
        found = analysed(
            "x.k = y.k AND x.flag AND (y.d > 1 OR y.flag) AND x.s LIKE 'a%' AND x.j > y.j AND true"
        )
        assert [*map(shown, found.left.conditions)] == ["x.flag", "x.s LIKE 'a%'"]
        assert [*map(shown, found.right.conditions)] == ["y.d > 1 OR y.flag"]

    def test_what_changes_by_itself_is_asked_of_no_side(self, analysed):
        found = analysed("x.k = y.k AND x.d > rand() AND x.day < current_date() AND x.k")
        assert found.left.conditions == ()
