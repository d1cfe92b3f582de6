"""Flows: inside CREATE STREAMING TABLE, and CREATE FLOW."""

from __future__ import annotations

import pytest

from millpond.definitions import FlowKind

# The three documented forms of one flow.
INLINE = """
CREATE OR REFRESH STREAMING TABLE current_bookings
FLOW REPLACE USING (booking_id)
SEQUENCE BY updated_at
BY NAME
SELECT * FROM STREAM(samples.wanderbricks.booking_updates);
"""
LONG = """
CREATE OR REFRESH STREAMING TABLE current_bookings;

CREATE FLOW current_bookings_flow
COMMENT 'newest state'
AS INSERT INTO current_bookings BY NAME
REPLACE USING (booking_id)
SEQUENCE BY updated_at
SELECT * FROM STREAM(samples.wanderbricks.booking_updates);
"""
WITH_EXPECTATION = """
CREATE OR REFRESH STREAMING TABLE payments_by_booking (
  CONSTRAINT valid_amount EXPECT (amount > 0) ON VIOLATION DROP ROW
)
FLOW REPLACE USING (booking_id, payment_method) SEQUENCE BY payment_date BY NAME
SELECT * FROM STREAM(samples.wanderbricks.payments);
"""
QUERY = "SELECT * FROM STREAM(samples.wanderbricks.booking_updates)"


def test_the_inline_form_names_keys_sequence_and_query(parse_flow):
    flow = parse_flow(INLINE)
    assert flow.kind is FlowKind.REPLACE_USING
    assert flow.name == "main.sales.current_bookings"
    assert str(flow.target) == "main.sales.current_bookings"
    assert flow.replace_using == ("booking_id",)
    assert flow.sequence_by == "updated_at"
    assert flow.by_name
    assert not flow.once
    assert flow.query.text == QUERY
    assert (flow.location.line, flow.location.column) == (3, 1)
    assert (flow.query.location.line, flow.query.location.column) == (6, 1)


def test_the_long_form_means_the_same_under_a_name_of_its_own(parse_flow):
    flow = parse_flow(LONG)
    assert flow.kind is FlowKind.REPLACE_USING
    assert flow.name == "main.sales.current_bookings_flow"
    assert str(flow.target) == "main.sales.current_bookings"
    assert flow.comment == "newest state"
    assert flow.replace_using == ("booking_id",)
    assert flow.sequence_by == "updated_at"
    assert flow.query.text == QUERY


def test_several_keys_and_an_expectation(parse):
    pipeline = parse(WITH_EXPECTATION)
    assert pipeline.flows[0].replace_using == ("booking_id", "payment_method")
    assert [e.name for e in pipeline.datasets[0].expectations] == ["valid_amount"]


@pytest.mark.parametrize(
    "expression",
    [
        "ts",
        "`my ts`",
        "STRUCT(a, b)",
        "struct(a.from, 'BY NAME SELECT')",
        "a.from",
        "coalesce(ts, TIMESTAMP '2020-01-01')",
        "CAST(extract(YEAR FROM ts) AS INT) * 10 + m[0]",
        "values",
        "version -- BY NAME\n + 1",
        "(a)",
        "CASE WHEN a > 1 THEN (b) ELSE c END",
    ],
)
@pytest.mark.parametrize("long", [False, True])
def test_a_sequence_may_be_any_expression_and_is_kept_as_written(expression, long, parse):
    inline = (
        f"CREATE STREAMING TABLE t FLOW REPLACE USING (k) SEQUENCE BY {expression} BY NAME {QUERY}"
    )
    named = (
        f"CREATE FLOW f AS INSERT INTO t BY NAME REPLACE USING (k) SEQUENCE BY {expression} {QUERY}"
    )
    (flow,) = parse(named if long else inline).flows
    assert flow.sequence_by == expression
    assert flow.query.text == QUERY


def test_keys_are_given_without_their_quotes(parse_flow):
    flow = parse_flow(
        "CREATE STREAMING TABLE t FLOW REPLACE USING (`a b`, c, `d``e`, `f.g`) "
        f"SEQUENCE BY s BY NAME {QUERY}"
    )
    assert flow.replace_using == ("a b", "c", "d`e", "f.g")


def test_keywords_are_read_in_any_case_with_comments_anywhere(parse_flow):
    flow = parse_flow(
        "create/*1*/streaming/*2*/table t/*3*/flow--4\nreplace/*5*/using/*6*/(/*7*/k/*8*/,l)"
        "/*9*/Sequence/*10*/By/*11*/s/*12*/by/*13*/Name/*14*/select 1/*15*/;/*16*/"
    )
    assert flow.replace_using == ("k", "l")
    assert flow.sequence_by == "s"
    assert flow.query.text == "select 1"


@pytest.mark.parametrize("head", ["FLOW INSERT BY NAME", "FLOW INSERT ONCE BY NAME"])
def test_inline_insert(head, parse_flow):
    flow = parse_flow(f"CREATE STREAMING TABLE t {head} {QUERY}")
    assert flow.kind is FlowKind.APPEND
    assert flow.once is ("ONCE" in head)
    assert flow.replace_using == ()
    assert flow.sequence_by is None


@pytest.mark.parametrize(
    ("into", "once", "target"),
    [
        ("INSERT INTO t", False, "main.sales.t"),
        ("INSERT ONCE INTO t", True, "main.sales.t"),
        ("INSERT INTO ONCE t", True, "main.sales.t"),
        ("INSERT INTO ONCE c.s.t", True, "c.s.t"),
        ("INSERT INTO ONCE `t`", True, "main.sales.t"),
        ("INSERT INTO once", False, "main.sales.once"),
        ("INSERT ONCE INTO once", True, "main.sales.once"),
        ("INSERT INTO ONCE once", True, "main.sales.once"),
        ("INSERT INTO once.t", False, "main.once.t"),
        ("INSERT INTO `once`", False, "main.sales.once"),
        ("INSERT INTO ONCE by", True, "main.sales.by"),
        ("INSERT INTO LIVE.t", False, "main.sales.t"),
        ("INSERT INTO TABLE t", False, "main.sales.t"),
    ],
)
def test_once_is_read_in_both_places_and_may_be_a_table(into, once, target, parse_flow):
    flow = parse_flow(f"CREATE FLOW f AS {into} BY NAME {QUERY}")
    assert flow.kind is FlowKind.APPEND
    assert (flow.once, str(flow.target)) == (once, target)


def test_a_flow_is_named_like_a_table(parse_flow):
    flow = parse_flow(f"USE c.s; CREATE FLOW `my flow` AS INSERT INTO t BY NAME {QUERY}")
    assert flow.name == "c.s.`my flow`"
    assert (flow.location.line, flow.location.column) == (1, 22)


R = "CREATE STREAMING TABLE t FLOW REPLACE USING"
F = "CREATE FLOW f AS INSERT"


@pytest.mark.parametrize(
    ("text", "name", "column", "marked"),
    [
        (f"{R} () SEQUENCE BY s BY NAME SELECT 1", "REPLACE_USING_NO_KEY", 45, "("),
        (f"{R} (a, b, A) SEQUENCE BY s BY NAME SELECT 1", "REPLACE_USING_DUPLICATE_KEY", 52, "A"),
        (f"{R} (a, `A`) SEQUENCE BY s BY NAME SELECT 1", "REPLACE_USING_DUPLICATE_KEY", 49, "`A`"),
        (f"{R} (a) BY NAME SELECT 1", "REPLACE_USING_MISSING_SEQUENCE_BY", 49, "BY"),
        (f"{R} (a) SELECT 1", "REPLACE_USING_MISSING_SEQUENCE_BY", 49, "SELECT"),
        (f"{R} (a) SEQUENCE BY s SELECT 1", "REPLACE_USING_MISSING_BY_NAME", 63, "SELECT"),
        (f"{R} (a) SEQUENCE BY s (SELECT 1)", "REPLACE_USING_MISSING_BY_NAME", 63, "("),
        (
            f"{R} (a) SEQUENCE BY s WITH x AS (SELECT 1) SELECT 1",
            "REPLACE_USING_MISSING_BY_NAME",
            63,
            "WITH",
        ),
        (f"{R} (a) SEQUENCE BY s", "REPLACE_USING_MISSING_BY_NAME", 62, ""),
        (f"{R} ONCE (a) SEQUENCE BY s BY NAME SELECT 1", "REPLACE_USING_WITH_ONCE", 45, "ONCE"),
        (
            "CREATE STREAMING TABLE t FLOW REPLACE ONCE USING (a) SEQUENCE BY s BY NAME SELECT 1",
            "REPLACE_USING_WITH_ONCE",
            39,
            "ONCE",
        ),
        (
            "CREATE STREAMING TABLE t FLOW INSERT SEQUENCE BY s BY NAME SELECT 1",
            "SEQUENCE_BY_WITHOUT_REPLACE_USING",
            38,
            "SEQUENCE",
        ),
        (
            f"{F} INTO t BY NAME REPLACE USING () SEQUENCE BY s SELECT 1",
            "REPLACE_USING_NO_KEY",
            54,
            "(",
        ),
        (
            f"{F} INTO t BY NAME REPLACE USING (a,a) SEQUENCE BY s SELECT 1",
            "REPLACE_USING_DUPLICATE_KEY",
            57,
            "a",
        ),
        (
            f"{F} INTO t BY NAME REPLACE USING (a) SELECT 1",
            "REPLACE_USING_MISSING_SEQUENCE_BY",
            58,
            "SELECT",
        ),
        (
            f"{F} INTO t REPLACE USING (a) SEQUENCE BY s SELECT 1",
            "REPLACE_USING_MISSING_BY_NAME",
            32,
            "REPLACE",
        ),
        (
            f"{F} INTO t REPLACE USING (a) SEQUENCE BY s BY NAME SELECT 1",
            "REPLACE_USING_MISSING_BY_NAME",
            32,
            "REPLACE",
        ),
        (
            f"{F} ONCE INTO t BY NAME REPLACE USING (a) SEQUENCE BY s SELECT 1",
            "REPLACE_USING_WITH_ONCE",
            25,
            "ONCE",
        ),
        (
            f"{F} INTO ONCE t BY NAME REPLACE USING (a) SEQUENCE BY s SELECT 1",
            "REPLACE_USING_WITH_ONCE",
            30,
            "ONCE",
        ),
        (
            f"{F} INTO t BY NAME SEQUENCE BY s SELECT 1",
            "SEQUENCE_BY_WITHOUT_REPLACE_USING",
            40,
            "SEQUENCE",
        ),
        (
            f"{F} INTO t SEQUENCE BY s BY NAME SELECT 1",
            "SEQUENCE_BY_WITHOUT_REPLACE_USING",
            32,
            "SEQUENCE",
        ),
    ],
)
def test_a_replace_using_flow_that_is_not_whole_is_refused(text, name, column, marked, refused):
    problem = refused(text)
    assert problem.error_class == name
    assert (problem.where.line, problem.where.column) == (1, column)
    carets = problem.detail.splitlines()[1]
    shown = problem.detail.splitlines()[0]
    assert shown[carets.index("^") : carets.rindex("^") + 1] == marked
    assert ("main.sales.f" if "CREATE FLOW" in text else "main.sales.t") in problem.what
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "column", "marked"),
    [
        (f"{R} (a) BY NAME SEQUENCE BY s SELECT 1", 49, "BY"),
        (f"{R} (a.b) SEQUENCE BY s BY NAME SELECT 1", 47, "."),
        (f"{R} (a b) SEQUENCE BY s BY NAME SELECT 1", 48, "b"),
        (f"{R} (a,) SEQUENCE BY s BY NAME SELECT 1", 48, ")"),
        (f"{R} (upper(a)) SEQUENCE BY s BY NAME SELECT 1", 51, "("),
        (f"{R} ('a') SEQUENCE BY s BY NAME SELECT 1", 46, "'a'"),
        (f"{R} a SEQUENCE BY s BY NAME SELECT 1", 45, "a"),
        (f"{R} (a) SEQUENCE s BY NAME SELECT 1", 58, "s"),
        (f"{R} (a) SEQUENCE BY BY NAME SELECT 1", 61, "BY"),
        (f"{R} (a) SEQUENCE BY SELECT 1", 61, "SELECT"),
        (f"{R} (a) SEQUENCE BY s, t BY NAME SELECT 1", 62, ","),
        (f"{R} (a) SEQUENCE BY s BY SELECT 1", 66, "SELECT"),
        (f"{R} (a) SEQUENCE BY s BY NAME", 70, ""),
        (f"{R} (a) SEQUENCE BY s BY NAME foo", 71, "foo"),
        ("CREATE STREAMING TABLE t FLOW REPLACE (a) SEQUENCE BY s BY NAME SELECT 1", 39, "("),
        ("CREATE STREAMING TABLE t FLOW INSERT SELECT 1", 38, "SELECT"),
        ("CREATE STREAMING TABLE t FLOW INSERT INTO t BY NAME SELECT 1", 38, "INTO"),
        (
            "CREATE STREAMING TABLE t FLOW INSERT BY NAME REPLACE USING (a) SEQUENCE BY s SELECT 1",
            46,
            "REPLACE",
        ),
        (
            "CREATE STREAMING TABLE t FLOW INSERT REPLACE USING (a) SEQUENCE BY s SELECT 1",
            38,
            "REPLACE",
        ),
        ("CREATE STREAMING TABLE t FLOW SELECT 1", 31, "SELECT"),
        ("CREATE FLOW f INSERT INTO t BY NAME SELECT 1", 15, "INSERT"),
        ("CREATE FLOW f COMMENT c AS INSERT INTO t BY NAME SELECT 1", 23, "c"),
        ("CREATE FLOW f AS SELECT 1", 18, "SELECT"),
        (f"{F} t BY NAME SELECT 1", 25, "t"),
        (f"{F} OVERWRITE t BY NAME SELECT 1", 25, "OVERWRITE"),
        (f"{F} ONCE INTO ONCE t BY NAME SELECT 1", 40, "t"),
        (f"{F} INTO t (a, b) BY NAME SELECT 1", 32, "("),
        (f"{F} INTO t SELECT 1", 32, "SELECT"),
        (f"{F} INTO t BY NAME REPLACE USING (a) SEQUENCE BY s BY NAME SELECT 1", 72, "BY"),
        ("CREATE FLOW AS INSERT INTO t BY NAME SELECT 1", 16, "INSERT"),
    ],
)
def test_a_flow_is_refused_where_it_goes_wrong(text, column, marked, refusal):
    assert refusal(text) == ("SQL_SYNTAX_ERROR", 1, column, marked)


def test_each_form_is_explained_where_the_other_was_written(refused):
    inline = refused(f"{R} (a) BY NAME SEQUENCE BY s SELECT 1")
    assert "FLOW REPLACE USING (..) SEQUENCE BY .. BY NAME <query>" in inline.hint
    long = refused(f"{F} INTO t REPLACE USING (a) SEQUENCE BY s BY NAME SELECT 1")
    assert "BY NAME before REPLACE USING" in long.hint
    struct = refused(f"{R} (a) SEQUENCE BY s, t BY NAME SELECT 1")
    assert "SEQUENCE BY STRUCT(first, second)" in struct.hint


@pytest.mark.parametrize(
    ("text", "kind", "column"),
    [
        (
            "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (k) SEQUENCE BY v",
            "AUTO CDC",
            31,
        ),
        ("CREATE STREAMING TABLE t FLOW REPLACE WHERE d > 1 BY NAME SELECT 1", "REPLACE WHERE", 31),
        ("CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY v", "AUTO CDC", 18),
        (
            "CREATE FLOW f AS AUTO CDC ONCE INTO t FROM STREAM s KEYS (k) SEQUENCE BY v",
            "AUTO CDC",
            18,
        ),
        (f"{F} INTO t BY NAME REPLACE WHERE d > 1 SELECT 1", "REPLACE WHERE", 40),
        ("APPLY CHANGES INTO LIVE.t FROM STREAM(s) KEYS (k) SEQUENCE BY v", "APPLY CHANGES", 1),
        ("AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY v", "AUTO CDC", 1),
    ],
)
def test_flow_kinds_that_millpond_lacks_are_named(text, kind, column, refused):
    problem = refused(text)
    assert problem.error_class == "SQL_FLOW_NOT_SUPPORTED"
    assert kind in problem.what
    assert problem.where.column == column
