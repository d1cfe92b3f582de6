"""What a join's condition is taken apart into. What is not understood is not listed."""

import pytest
from pyspark.sql import functions as sf

from millpond.engine.connect.conditions import comparisons, conjuncts
from millpond.engine.connect.expressions import text_expression


def shown(expression):
    """An expression in short, as text or as its call."""
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        return expression.expression_string.expression
    if kind == "unresolved_attribute":
        return f"<{expression.unresolved_attribute.unparsed_identifier}>"
    if kind == "unresolved_function":
        function = expression.unresolved_function
        return f"{function.function_name}({', '.join(map(shown, function.arguments))})"
    return kind


def of_text(text):
    found = comparisons(text_expression(text))
    return [(shown(each.left), each.operator, shown(each.right)) for each in found]


def of_column(spark, column):
    found = comparisons(column.to_plan(spark.client))
    return [(shown(each.left), each.operator, shown(each.right)) for each in found]


EQUAL = ("x.k", "=", "y.k")


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "x.k = y.k": [EQUAL],
        "x.k==y.k": [EQUAL],
        "x.k <=> y.k": [("x.k", "<=>", "y.k")],
        "x.k<=>-1": [("x.k", "<=>", "-1")],
        "x.k IS NOT DISTINCT FROM y.k": [("x.k", "<=>", "y.k")],
        "x.a < y.a and x.b <= y.b AND x.c > y.c And x.d >= y.d": [
            ("x.a", "<", "y.a"),
            ("x.b", "<=", "y.b"),
            ("x.c", ">", "y.c"),
            ("x.d", ">=", "y.d"),
        ],
        "x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 HOUR": [
            EQUAL,
            ("y.ts", ">=", "x.ts"),
            ("y.ts", "<=", "x.ts + INTERVAL 1 HOUR"),
        ],
        "y.ts between x.ts and x.ts + interval '1' day and x.k = y.k": [
            ("y.ts", ">=", "x.ts"),
            ("y.ts", "<=", "x.ts + interval '1' day"),
            EQUAL,
        ],
        "(x.k = y.k)": [EQUAL],
        "((x.k = y.k) AND ((x.a > 1 AND (y.b < 2))))": [
            EQUAL,
            ("x.a", ">", "1"),
            ("y.b", "<", "2"),
        ],
        "(x.k) = (y.k)": [("(x.k)", "=", "(y.k)")],
        "lower(x.k) = concat(y.a, ' = AND ')": [("lower(x.k)", "=", "concat(y.a, ' = AND ')")],
        "x.m['a'] = y.xs[0]": [("x.m['a']", "=", "y.xs[0]")],
        "x.w.end = y.w.end": [("x.w.end", "=", "y.w.end")],
        "end > x.k AND x.`and` = y.`a = b`": [("end", ">", "x.k"), ("x.`and`", "=", "y.`a = b`")],
        "x.k = CASE WHEN y.a = 1 AND y.b THEN 1 ELSE 2 END AND x.j = y.j": [
            ("x.k", "=", "CASE WHEN y.a = 1 AND y.b THEN 1 ELSE 2 END"),
            ("x.j", "=", "y.j"),
        ],
        "x.k /* = */ = -- AND\n y.k -- OR": [EQUAL],
        "x.k = y.a + /* inside */ 1": [("x.k", "=", "y.a + /* inside */ 1")],
        "x.a <> y.a AND x.k = y.k": [EQUAL],
        "x.k = y.k AND x.s NOT LIKE 'a' AND x.v IN (1, 2) AND y.v IS NULL": [EQUAL],
        "x.k = y.k AND NOT x.a = y.a": [EQUAL],
        "x.k = y.k AND (x.a = y.a OR x.b = y.b)": [EQUAL],
        "x.k = y.k AND x.a NOT BETWEEN y.a AND y.b": [EQUAL],
        "x.k = y.k AND EXISTS (SELECT 1 FROM t WHERE t.a = x.a AND t.b > 1)": [EQUAL],
    }.items(),
)
def test_text_is_split_where_its_parts_must_all_be_true(text, expected):
    assert of_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x.k",
        "true",
        "x.k = y.k OR x.j = y.j",
        "x.k = y.k AND x.a = y.a OR true",
        "NOT x.k = y.k",
        "! x.k = y.k",
        "NOT (x.k = y.k AND x.j = y.j)",
        "x.k != y.k",
        "x.k <> y.k",
        "x.a = y.a = y.b",
        "x.a = y.a IS NULL",
        "x.a = y.a IS NOT DISTINCT FROM y.b",
        "x.a IS DISTINCT FROM y.a",
        "x.a << 1 > y.a",
        "x.a BETWEEN y.a",
        "x.a = y.a BETWEEN y.b AND y.c",
        "x.k =",
        "= y.k",
        "x.k = y.k AS same",
        "x.k = y.k, x.j = y.j",
        "x.k = y.k; x.j = y.j",
        "(x.k = y.k",
        "x.k = y.k)",
        "(x.k = y.k]",
        "x.k = 'y.k AND x.j = y.j",
        "(SELECT x.k = y.k)",
        "CASE WHEN x.a THEN x.k = y.k END",
        "CASE WHEN end > 1 AND x.k = y.k THEN 1 END",
        "x.k < = y.k",
        "x.k => y.k",
    ],
)
def test_text_that_is_no_comparison_is_not_listed(text):
    assert of_text(text) == []


def test_columns_are_taken_apart_by_pysparks_operators(spark):
    a = spark.table("a").alias("a")
    b = spark.table("b").alias("b")
    condition = (
        (a.k == b.k)
        & a.j.eqNullSafe(b.j)
        & a.ts.between(b.ts, b.ts + sf.expr("INTERVAL 1 HOUR"))
        & sf.expr("a.x > b.x AND a.y < b.y")
        & (a.v != b.v)
        & ~(a.w == b.w)
        & ((a.p == b.p) | (a.q == b.q))
        & sf.col("a.flag")
    )
    assert of_column(spark, condition) == [
        ("<k>", "=", "<k>"),
        ("<j>", "<=>", "<j>"),
        ("<ts>", ">=", "<ts>"),
        ("<ts>", "<=", "+(<ts>, INTERVAL 1 HOUR)"),
        ("a.x", ">", "b.x"),
        ("a.y", "<", "b.y"),
    ]


def test_operators_called_by_name_are_the_same(spark):
    called = sf.call_function("and", sf.call_function("=", "a", "b"), sf.col("c") < sf.col("d"))
    assert of_column(spark, called) == [("<a>", "=", "<b>"), ("<c>", "<", "<d>")]


def test_a_part_that_is_no_comparison_is_still_a_part(spark):
    condition = sf.expr("(a.v > 1 AND NOT a.w) AND (a.x OR b.x)") & sf.col("a.flag")
    found = conjuncts(condition.to_plan(spark.client))
    assert [*map(shown, found)] == ["a.v > 1", "NOT a.w", "a.x OR b.x", "<a.flag>"]


def test_text_that_can_not_be_read_is_one_part():
    assert [*map(shown, conjuncts(text_expression("a AND 'b")))] == ["a AND 'b"]
    assert [*map(shown, conjuncts(text_expression("a AND AND b")))] == ["a AND AND b"]


def test_a_comparison_can_be_read_from_right_to_left():
    found = comparisons(text_expression("a < b AND c >= d AND e = f AND g <=> h"))
    flipped = [each.flipped() for each in found]
    assert [(shown(each.left), each.operator, shown(each.right)) for each in flipped] == [
        ("b", ">", "a"),
        ("d", "<=", "c"),
        ("f", "=", "e"),
        ("h", "<=>", "g"),
    ]
