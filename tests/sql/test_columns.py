"""Columns, expectations and constraints between a table's parentheses."""

from __future__ import annotations

import pytest

from millpond.definitions import ExpectationAction


@pytest.fixture
def columns(parse_dataset):
    return lambda items: parse_dataset(f"CREATE STREAMING TABLE t ({items})").schema


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("INT", "INT"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("DECIMAL ( 10 , 2 )", "DECIMAL ( 10 , 2 )"),
        ("VARCHAR(20)", "VARCHAR(20)"),
        ("STRUCT<a: INT, b: ARRAY<STRING>>", "STRUCT<a: INT, b: ARRAY<STRING>>"),
        (
            "struct<`a b` INT NOT NULL COMMENT 'x>,)', m:map<STRING,STRUCT<>>>",
            "struct<`a b` INT NOT NULL COMMENT 'x>,)', m:map<STRING,STRUCT<>>>",
        ),
        ("ARRAY<  -- items\n  INT>", "ARRAY< INT>"),
        ("INTERVAL DAY TO SECOND", "INTERVAL DAY TO SECOND"),
        ("INTERVAL YEAR", "INTERVAL YEAR"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
        ("STRING COLLATE UNICODE_CI", "STRING COLLATE UNICODE_CI"),
        ("VARIANT", "VARIANT"),
    ],
)
def test_a_type_is_kept_as_text_without_comments(written, kept, columns):
    first, second = columns(f"a {written}, b INT")
    assert (first.name, first.type_text) == ("a", kept)
    assert (second.name, second.type_text) == ("b", "INT")


def test_the_properties_of_a_column(columns):
    a, b, c, d, e, f = columns(
        "`a b` INT NOT NULL COMMENT 'it''s', b DATE DEFAULT current_date() COMMENT 'x',\n"
        "c INT GENERATED ALWAYS AS (year(b) + (1)), d INT DEFAULT (CASE WHEN NOT true THEN 1 END),\n"
        "e BIGINT CONSTRAINT pk PRIMARY KEY NOT ENFORCED RELY COMMENT 'y',\n"
        "f INT REFERENCES s.o (id) MATCH FULL ON UPDATE NO ACTION NOT NULL"
    )
    assert (a.name, a.nullable, a.comment) == ("a b", False, "it's")
    assert (b.default, b.comment, b.nullable) == ("current_date()", "x", True)
    assert c.generated == "year(b) + (1)"
    assert d.default == "(CASE WHEN NOT true THEN 1 END)"
    assert (e.type_text, e.comment, e.nullable) == ("BIGINT", "y", True)
    assert f.nullable is False
    assert (c.location.line, c.location.column) == (2, 1)


def test_columns_may_be_called_like_keywords(columns):
    names = "comment, primary, key, default, check, constraint, expect, values, 2nd, date"
    found = columns(", ".join(f"{name.strip()} STRING" for name in names.split(",")))
    assert [column.name for column in found] == names.split(", ")


def test_expectations_hold_their_text_action_and_place(parse_dataset):
    dataset = parse_dataset(
        "CREATE STREAMING TABLE t (\n"
        "  CONSTRAINT warn EXPECT (a > 0 AND (b == ')' OR c)),\n"
        "  a INT,\n"
        "  CONSTRAINT `drop it` EXPECT (a IS NOT NULL) ON VIOLATION DROP ROW,\n"
        "  constraint fail expect (f(a, 'x') /* why */ <> 1) on violation fail update\n"
        ")"
    )
    warn, drop, fail = dataset.expectations
    assert warn.constraint == "a > 0 AND (b == ')' OR c)"
    assert warn.action is ExpectationAction.WARN
    assert (warn.location.line, warn.location.column) == (2, 14)
    assert (drop.name, drop.action) == ("drop it", ExpectationAction.DROP)
    assert drop.constraint == "a IS NOT NULL"
    assert (fail.name, fail.action) == ("fail", ExpectationAction.FAIL)
    assert fail.constraint == "f(a, 'x') /* why */ <> 1"
    assert [column.name for column in dataset.schema] == ["a"]


def test_expectations_alone_declare_no_columns(parse_dataset):
    dataset = parse_dataset("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 0)) AS SELECT 1 a")
    assert dataset.schema is None


def test_informational_constraints_are_accepted(parse_dataset):
    dataset = parse_dataset(
        "CREATE STREAMING TABLE t (a INT, b TIMESTAMP, PRIMARY KEY (a, b TIMESERIES) RELY,\n"
        "CONSTRAINT fk FOREIGN KEY (a) REFERENCES other (id) NOT ENFORCED INITIALLY DEFERRED NORELY,\n"
        "FOREIGN KEY (b) REFERENCES c.s.o)"
    )
    assert [column.name for column in dataset.schema] == ["a", "b"]
    assert dataset.expectations == ()


@pytest.mark.parametrize(
    ("items", "name", "column", "marked"),
    [
        ("", "SQL_SYNTAX_ERROR", 27, ")"),
        ("a", "SQL_SYNTAX_ERROR", 28, ")"),
        ("a INT,", "SQL_SYNTAX_ERROR", 33, ")"),
        ("a INT b INT", "SQL_SYNTAX_ERROR", 33, "b"),
        ("a INT NULL", "SQL_SYNTAX_ERROR", 33, "NULL"),
        ("a STRNG", "SQL_SYNTAX_ERROR", 29, "STRNG"),
        ("a ARRAY", "SQL_SYNTAX_ERROR", 34, ")"),
        ("a ARRAY<INT", "SQL_SYNTAX_ERROR", 38, ")"),
        ("a MAP<INT>", "SQL_SYNTAX_ERROR", 36, ">"),
        ("a STRUCT<INT>", "SQL_SYNTAX_ERROR", 39, ">"),
        ("a DECIMAL(x)", "SQL_SYNTAX_ERROR", 37, "x"),
        ("a INT(3)", "SQL_SYNTAX_ERROR", 32, "("),
        ("a INTERVAL DAY TO LUNCH", "SQL_SYNTAX_ERROR", 45, "LUNCH"),
        ("a INT COMMENT x", "SQL_SYNTAX_ERROR", 41, "x"),
        ("a INT DEFAULT", "SQL_SYNTAX_ERROR", 40, ")"),
        ("a INT NOT b", "SQL_SYNTAX_ERROR", 37, "b"),
        ("a INT GENERATED ALWAYS (b)", "SQL_SYNTAX_ERROR", 50, "("),
        ("a INT GENERATED ALWAYS AS ()", "SQL_SYNTAX_ERROR", 54, ")"),
        ("a INT GENERATED BY DEFAULT AS (b)", "SQL_SYNTAX_ERROR", 57, "("),
        ("a INT CONSTRAINT c EXPECT (a > 0)", "SQL_SYNTAX_ERROR", 46, "EXPECT"),
        ("CONSTRAINT c EXPECT a > 0", "SQL_SYNTAX_ERROR", 47, "a"),
        ("CONSTRAINT c EXPECT ()", "SQL_SYNTAX_ERROR", 48, ")"),
        ("CONSTRAINT c EXPECT (a > 0", "SQL_SYNTAX_ERROR", 54, ""),
        ("CONSTRAINT 'c' EXPECT (a > 0)", "SQL_SYNTAX_ERROR", 38, "'c'"),
        ("CONSTRAINT EXPECT (a > 0)", "SQL_SYNTAX_ERROR", 45, "("),
        ("CONSTRAINT c EXPECT (a > 0) ON VIOLATION DROP", "SQL_SYNTAX_ERROR", 72, ")"),
        ("CONSTRAINT c EXPECT (a > 0) ON VIOLATION WARN", "SQL_SYNTAX_ERROR", 68, "WARN"),
        ("CONSTRAINT c EXPECT (a > 0) ON CONFLICT", "SQL_SYNTAX_ERROR", 58, "CONFLICT"),
        ("CONSTRAINT c UNIQUE (a)", "SQL_SYNTAX_ERROR", 40, "UNIQUE"),
        ("FOREIGN KEY (a)", "SQL_SYNTAX_ERROR", 42, ")"),
        ("a INT, b INT, A STRING", "DUPLICATE_CLAUSE", 41, "A"),
        ("a INT COMMENT 'x' COMMENT 'y'", "DUPLICATE_CLAUSE", 45, "COMMENT"),
        ("CONSTRAINT c EXPECT (a), CONSTRAINT c EXPECT (b)", "DUPLICATE_EXPECTATION", 63, "c"),
        ("a INT MASK f", "SQL_CLAUSE_NOT_SUPPORTED", 33, "MASK"),
        ("a BIGINT GENERATED ALWAYS AS IDENTITY", "SQL_CLAUSE_NOT_SUPPORTED", 36, "GENERATED"),
        (
            "a BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1)",
            "SQL_CLAUSE_NOT_SUPPORTED",
            36,
            "GENERATED",
        ),
        ("a INT CHECK (a > 0)", "SQL_CLAUSE_NOT_SUPPORTED", 33, "CHECK"),
        ("CHECK (a > 0)", "SQL_CLAUSE_NOT_SUPPORTED", 27, "CHECK"),
        ("CONSTRAINT c CHECK (a > 0)", "SQL_CLAUSE_NOT_SUPPORTED", 40, "CHECK"),
    ],
)
def test_a_wrong_item_is_refused_where_it_goes_wrong(items, name, column, marked, problems):
    found = problems(f"CREATE STREAMING TABLE t ({items})")
    assert found == [(name, 1, column, marked)]


def test_a_type_nested_without_end_is_refused(refusal):
    name, *_ = refusal(f"CREATE STREAMING TABLE t (a {'ARRAY<' * 20000})")
    assert name == "SQL_SYNTAX_ERROR"


def test_a_mistyped_type_is_named(refused):
    assert refused("CREATE STREAMING TABLE t (a STRNG)").hint == "did you mean STRING?"
