"""`${name}` and `:name` are replaced by values; places still lead to the user's file."""

from __future__ import annotations

import pytest

from millpond.errors.sql import UnknownVariableError
from millpond.sql import expand_variables


def test_a_variable_has_the_value_that_the_file_set_before(parse_flow):
    flow = parse_flow("SET d='2020-01-01';\nCREATE VIEW v AS SELECT * FROM t WHERE x > ${d};")
    assert flow.query.text == "SELECT * FROM t WHERE x > '2020-01-01'"


def test_the_file_is_looked_at_before_the_pipeline(parse):
    first, second = parse(
        "CREATE VIEW v AS SELECT ${a}; SET a = 2; CREATE VIEW w AS SELECT ${a}", a="1"
    ).flows
    assert (first.query.text, second.query.text) == ("SELECT 1", "SELECT 2")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("SELECT '${v}'", "SELECT 'x'"),
        ("SELECT `a_${v}`", "SELECT `a_x`"),
        ("SELECT a_${v}.${v}", "SELECT a_x.x"),
        ("SELECT ${conf.v}, ${spark:v}", "SELECT x, x"),
        ("SELECT ${conf.own}", "SELECT own value"),
        ("SELECT r'${v}'", "SELECT r'x'"),
        ("SELECT /*+ ${v}(a) */ 1", "SELECT /*+ x(a) */ 1"),
        ("SELECT 1 /* ${nope} */ + 2 -- ${nope}", "SELECT 1 /* ${nope} */ + 2"),
        ("SELECT ${empty} 1", "SELECT  1"),
        ("SELECT ${again}", "SELECT ${v}"),
        ("SELECT $ { v }, $v, ${ v }", "SELECT $ { v }, $v, ${ v }"),
    ],
)
def test_a_variable_is_replaced_everywhere_but_in_comments_and_once(written, expected, parse_flow):
    values = {"v": "x", "empty": "", "again": "${v}", "conf.own": "own value"}
    assert parse_flow(f"CREATE VIEW v AS {written}", **values).query.text == expected


def test_variables_may_make_up_heads(parse):
    pipeline = parse(
        "USE CATALOG ${c}; CREATE ${kind} TABLE ${s}.t_${n} (${column}) COMMENT '${n}!' ${rest}",
        c="cat",
        kind="STREAMING",
        s="sch",
        n="1",
        column="a INT, b INT",
        rest="FLOW REPLACE USING (a) SEQUENCE BY b BY NAME SELECT 1 a, 2 b",
    )
    (dataset,), (flow,) = pipeline.datasets, pipeline.flows
    assert str(dataset.name) == "cat.sch.t_1"
    assert [column.name for column in dataset.schema] == ["a", "b"]
    assert dataset.comment == "1!"
    assert flow.query.text == "SELECT 1 a, 2 b"


def test_every_unknown_variable_of_a_statement_is_found(problems):
    assert problems("CREATE VIEW v AS\n\tSELECT ${a}, '${b}', ${v}", v="1") == [
        ("UNKNOWN_VARIABLE", 2, 9, "${a}"),
        ("UNKNOWN_VARIABLE", 2, 16, "${b}"),
    ]


def test_the_variable_that_was_meant_is_named(refused):
    problem = refused("CREATE VIEW v AS SELECT ${enviroment}", environment="dev")
    assert "did you mean environment?" in problem.hint
    assert "SET enviroment=..." in problem.hint


def test_a_place_behind_a_variable_is_that_of_the_file(refusal):
    text = "CREATE STREAMING TABLE ${long} (a INT) COMENT 'x' AS SELECT 1"
    assert refusal(text, long="a_very_long_name_of_a_table_indeed") == (
        "SQL_SYNTAX_ERROR",
        1,
        text.index("COMENT") + 1,
        "COMENT",
    )


def test_a_place_behind_lines_of_values_is_that_of_the_file(refusal):
    text = "CREATE STREAMING TABLE t (${columns})\n  FLOW REPLACE USING (a, a)\n SEQUENCE BY x"
    assert refusal(text, columns="a INT,\n\n b INT") == (
        "REPLACE_USING_DUPLICATE_KEY",
        2,
        26,
        "a",
    )


def test_a_place_inside_a_value_is_that_of_the_variable(refused):
    problem = refused("CREATE STREAMING TABLE t (a ${type})", type="STRNG")
    assert problem.where.column == 29
    assert problem.detail.splitlines()[1].endswith(" ^^^^^^^")
    assert problem.what.startswith("Found STRNG (from ${type}), expected a type")


@pytest.mark.parametrize("value", ["1; DROP TABLE t", "'never ends", "/* never ends", "a`b"])
def test_a_value_can_end_no_statement(value, refusal):
    assert refusal("CREATE VIEW v AS SELECT ${x} FROM t;", x=value) == (
        "SQL_SYNTAX_ERROR",
        1,
        25,
        "${x}",
    )


def test_expand_variables_outside_a_file():
    assert expand_variables("SELECT '${a}' -- ${b}", {"a": "1"}) == "SELECT '1' -- ${b}"
    assert expand_variables("", {}) == ""
    with pytest.raises(UnknownVariableError) as caught:
        expand_variables("SELECT\n ${b}", {"a": "1"})
    assert str(caught.value.where) == "query:2:2"


def test_text_around_the_statement_is_kept_by_expand_variables():
    assert expand_variables("  ${a} -- x\n", {"a": "1"}) == "  1 -- x\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("WHERE a > :day", "WHERE a > '2020-01-01'"),
        ("WHERE a IN (:day, :quote)", r"WHERE a IN ('2020-01-01', 'it\'s \\')"),
        ("LIMIT :day", "LIMIT '2020-01-01'"),
        ("WHERE f(a,:day)", "WHERE f(a,'2020-01-01')"),
        ("WHERE v:day = 1 AND v:day.x", "WHERE v:day = 1 AND v:day.x"),
        ("WHERE f(v):day", "WHERE f(v):day"),
        ("WHERE a::day", "WHERE a::day"),
        ("WHERE ':day' = `:day` -- :day", "WHERE ':day' = `:day`"),
        ("WHERE CAST(x AS STRUCT<day :INT>)", "WHERE CAST(x AS STRUCT<day :INT>)"),
    ],
)
def test_a_parameter_is_a_string_of_the_configuration(written, expected, parse_flow):
    values = {"day": "2020-01-01", "quote": "it's \\"}
    flow = parse_flow(f"CREATE VIEW v AS SELECT * FROM t {written}", **values)
    assert flow.query.text == f"SELECT * FROM t {expected}"


def test_an_unknown_parameter_is_refused(refusal):
    assert refusal("CREATE VIEW v AS SELECT * FROM t WHERE a = :dya", day="1") == (
        "UNKNOWN_VARIABLE",
        1,
        44,
        ":dya",
    )
