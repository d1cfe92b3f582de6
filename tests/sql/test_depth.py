"""How deep the tree of a text is, from its tokens: deep ones are found, wide ones are not."""

import time

import pytest

from millpond.sql.depth import MAX_DEPTH, MAX_NESTED, too_deep
from millpond.sql.tokens import scan

MANY = MAX_DEPTH + 1
NESTED = MAX_NESTED + 1
DEEP = {
    "additions": "SELECT " + "1+" * MANY + "1",
    "NOT": "SELECT " + "NOT " * MANY + "true",
    "minus": "SELECT " + "- " * MANY + "1",
    "tilde": "SELECT " + "~" * MANY + "1",
    "AND": "SELECT " + " AND ".join(["1=1"] * (MANY + 1)),
    "OR": "SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * (MANY + 1)),
    "IS NULL": "SELECT a" + " IS NULL" * MANY,
    "concatenation": "SELECT " + "||".join(["'a'"] * (MANY + 1)),
    "casts behind": "SELECT 1" + "::int" * MANY,
    "indexes": "SELECT a" + "[0]" * MANY,
    "fields": "SELECT a" + ".a" * MANY,
    "the first of a chain": "SELECT " + "(1" + "+1" * (MAX_DEPTH // 2) + ")" + "+1" * MANY,
    "a chain in a chain": f"SELECT 1{'+1' * (MAX_DEPTH // 2)}+(2{'+1' * (MAX_DEPTH // 2)})",
    "UNION ALL": " UNION ALL ".join(["SELECT 1 AS x"] * (MANY + 1)),
    "joins": "SELECT a FROM t " + "JOIN t ON true " * MANY,
    "tables behind a hint": "SELECT /*+ BROADCAST(t) */ * FROM " + ", ".join(["t"] * (MANY + 1)),
    "tables": "SELECT a FROM " + ", ".join(["t"] * (MANY + 1)),
    "CTEs": "WITH " + ", ".join(["c AS (SELECT 1)"] * (MANY + 1)) + " SELECT 1",
    "parentheses": "SELECT " + "(" * NESTED + "1" + ")" * NESTED,
    "parentheses that stay open": "SELECT " + "(" * 50_000,
    "calls": "SELECT " + "abs(" * NESTED + "1" + ")" * NESTED,
    "CASE": "SELECT " + "CASE WHEN true THEN " * NESTED + "1" + " END" * NESTED,
    "subqueries": "SELECT * FROM (" * NESTED + "SELECT 1" + ")" * NESTED,
    "names like keywords": "SELECT " + "offset + " * MANY + "values",
    "products of names like keywords": "SELECT " + "offset * " * MANY + "1",
    "a name like the end of a CASE": "SELECT "
    + "CASE WHEN end THEN " * NESTED
    + "1"
    + " END" * NESTED,
    "types": "SELECT CAST(NULL AS " + "array<" * NESTED + "int" + ">" * NESTED + ")",
}
WIDE = {
    "IN": f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(20_000)))})",
    "WHEN": "SELECT CASE a " + " ".join(f"WHEN a + {n} THEN -{n}" for n in range(3_000)) + " END",
    "columns": "SELECT " + ", ".join(f"a + {n} AS c{n}" for n in range(5_000)) + " FROM t",
    "rows": "SELECT * FROM VALUES " + ", ".join(f"({n}, -{n})" for n in range(5_000)),
    "ORs of ANDs": "SELECT a FROM t WHERE "
    + " OR ".join(f"(t.a = {n} AND NOT t.b >= {n})" for n in range(MAX_DEPTH - 20)),
    "ORs": "SELECT a FROM t WHERE " + " OR ".join([f"t.a <> {n}" for n in range(MAX_DEPTH - 20)]),
    "UNION ALL": " UNION ALL ".join(f"SELECT a + {n} FROM t" for n in range(MAX_DEPTH - 20)),
    "joins": "SELECT 1 FROM t "
    + " ".join(f"JOIN u{n} ON t.a = u{n}.a AND t.b = u{n}.b" for n in range(MAX_DEPTH // 2)),
    "names like keywords": "SELECT t.case, t.end, `case`, t.a < 1, t.b > 2 FROM t",
    "sums of fields": "SELECT " + " + ".join(["c.s.t.a"] * (MAX_DEPTH - 20)) + " FROM t",
    "columns behind DISTINCT FROM": "SELECT a IS DISTINCT FROM b, "
    + ", ".join(f"c{n}" for n in range(MANY))
    + " FROM t",
    "columns behind a star": "SELECT *, "
    + ", ".join(f"t.*, a * {n}" for n in range(MANY))
    + " FROM t",
    "columns called like types": "SELECT "
    + " + ".join(["CASE WHEN map < 1 THEN 2 END"] * NESTED)
    + " FROM t",
    "CASEs": "SELECT " + ", ".join(["CASE WHEN a < 1 THEN array(1)[0] END"] * 2_000) + " FROM t",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_an_engine_would_read_by_deep_recursion_is_found(text):
    tokens = list(scan(text))
    started = time.process_time()
    assert too_deep(tokens) in tokens
    assert time.process_time() - started < 2


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_what_is_only_long_is_not(text):
    assert too_deep(list(scan(text))) is None


def test_the_place_is_where_the_limit_is_passed():
    text = "SELECT " + "(" * 500
    assert too_deep(list(scan(text))).start == len("SELECT ") + MAX_NESTED
