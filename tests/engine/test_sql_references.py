"""Which tables a text names, how they are read, and the text with other names in their places."""

import pytest

from millpond.engine.sqltext.analysis import analyse
from millpond.engine.sqltext.source import QueryText
from millpond.errors import SourceLocation
from millpond.errors.engine import InvalidReadOptionError


def analysed(text, **options):
    source = QueryText(text, SourceLocation("a.sql", 1, 1))
    return analyse(source, can_read=lambda _: False, **options)


def bound(analysis):
    return analysis.bound([f"#{number}" for number in range(len(analysis.references))])


def shown(read):
    name = ".".join(read.name) if read.name else f"<{read.path}>"
    options = "".join(f" {key}={value}" for key, value in sorted(read.options.items()))
    return ("STREAM " if read.streaming else "") + name + options


CASES = {
    "plain": ("SELECT a FROM t", ["t"], "SELECT a FROM #0 AS `t`"),
    "name in parts": (
        "SELECT * FROM c.s.t",
        ["c.s.t"],
        "SELECT * FROM #0 AS `t`",
    ),
    "alias": ("SELECT x.a FROM t x", ["t"], "SELECT x.a FROM #0 x"),
    "alias with columns": ("SELECT m FROM t AS x(m, n)", ["t"], "SELECT m FROM #0 AS x(m, n)"),
    "stream": ("SELECT a FROM STREAM t", ["STREAM t"], "SELECT a FROM #0 AS `t`"),
    "stream in parentheses": (
        "SELECT a FROM STREAM(s.t) AS x",
        ["STREAM s.t"],
        "SELECT a FROM #0 AS x",
    ),
    "stream in lower case and lines": (
        "select a from stream (\n  `my t`\n)",
        ["STREAM my t"],
        "select a from #0 AS `my t`",
    ),
    "stream of a path": (
        "SELECT a FROM STREAM(delta.`/data/x y`)",
        ["STREAM </data/x y>"],
        "SELECT a FROM #0 AS `/data/x y`",
    ),
    "batch read of a path": (
        "SELECT p.a FROM delta.`/d` AS p",
        ["</d>"],
        "SELECT p.a FROM #0 AS p",
    ),
    "options": (
        (
            "SELECT a FROM STREAM(t) WITH (SKIPCHANGECOMMITS, startingVersion = 3, "
            "maxFilesPerTrigger => '2') AS x WHERE a > 1"
        ),
        ["STREAM t maxfilespertrigger=2 skipchangecommits=true startingversion=3"],
        "SELECT a FROM #0" + " " * 74 + "AS x WHERE a > 1",
    ),
    "options behind the alias": (
        "SELECT a FROM STREAM t AS x WITH ('a.b' = -1)",
        ["STREAM t a.b=-1"],
        "SELECT a FROM #0 AS x",
    ),
    "options belong to the read before them": (
        "SELECT * FROM STREAM(a) WITH (p = 1) JOIN b ON true",
        ["STREAM a p=1", "b"],
        "SELECT * FROM #0 AS `a`              JOIN #1 AS `b` ON true",
    ),
    "legacy prefix": (
        "SELECT LIVE.t.a FROM STREAM(LIVE.t)",
        ["STREAM t"],
        "SELECT `t`.a FROM #0 AS `t`",
    ),
    "a column and a table named stream": (
        "SELECT stream FROM stream WHERE stream > 1",
        ["stream"],
        "SELECT stream FROM #0 AS `stream` WHERE stream > 1",
    ),
    "a function named stream": (
        "SELECT stream(a) FROM t",
        ["t"],
        "SELECT stream(a) FROM #0 AS `t`",
    ),
    "the word in strings and comments": (
        "SELECT 'FROM STREAM(x)' -- FROM STREAM(y)\n, a /* STREAM z */ FROM t",
        ["t"],
        "SELECT 'FROM STREAM(x)' -- FROM STREAM(y)\n, a /* STREAM z */ FROM #0 AS `t`",
    ),
    "joins": (
        "SELECT * FROM a JOIN s.b ON a.k = s.b.k LEFT JOIN c USING (k), d",
        ["a", "s.b", "c", "d"],
        "SELECT * FROM #0 AS `a` JOIN #1 AS `b` ON a.k = `b`.k LEFT JOIN #2 AS `c` USING (k), #3 AS `d`",
    ),
    "same last name twice": (
        "SELECT a.t.x, b.t.x FROM a.t JOIN b.t ON a.t.k = b.t.k",
        ["a.t", "b.t"],
        "SELECT `a.t`.x, `b.t`.x FROM #0 AS `a.t` JOIN #1 AS `b.t` ON `a.t`.k = `b.t`.k",
    ),
    "long qualifiers, fields and stars": (
        "SELECT c.s.t.a.b, s.t.*, t.a, a.b FROM c.s.t",
        ["c.s.t"],
        "SELECT `t`.a.b, `t`.*, t.a, a.b FROM #0 AS `t`",
    ),
    "quotes": (
        "SELECT `a b`.`c``d`.x FROM `a b`.`c``d`",
        ["a b.c`d"],
        "SELECT `c``d`.x FROM #0 AS `c``d`",
    ),
    "common table expressions": (
        "WITH c AS (SELECT * FROM t), t AS (SELECT * FROM c) SELECT * FROM t JOIN q.c",
        ["t", "q.c"],
        "WITH c AS (SELECT * FROM #0 AS `t`), t AS (SELECT * FROM c) SELECT * FROM t JOIN #1 AS `c`",
    ),
    "an inner WITH ends with its query": (
        "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x JOIN c ON true",
        ["c"],
        "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x JOIN #0 AS `c` ON true",
    ),
    "recursive": (
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r JOIN t) SELECT * FROM r",
        ["t"],
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r JOIN #0 AS `t`) SELECT * FROM r",
    ),
    "subqueries": (
        (
            "SELECT * FROM (SELECT * FROM a) x WHERE k IN (SELECT k FROM b) AND EXISTS "
            "(SELECT 1 FROM c WHERE c.k = x.k)"
        ),
        ["a", "b", "c"],
        (
            "SELECT * FROM (SELECT * FROM #0 AS `a`) x WHERE k IN (SELECT k FROM #1 AS `b`) AND EXISTS "
            "(SELECT 1 FROM #2 AS `c` WHERE c.k = x.k)"
        ),
    ),
    "union": (
        "SELECT a FROM STREAM a UNION ALL (SELECT a FROM STREAM(b)) EXCEPT SELECT a FROM c",
        ["STREAM a", "STREAM b", "c"],
        "SELECT a FROM #0 AS `a` UNION ALL (SELECT a FROM #1 AS `b`) EXCEPT SELECT a FROM #2 AS `c`",
    ),
    "lateral view": (
        "SELECT x, y FROM STREAM(t) LATERAL VIEW OUTER posexplode(xs) l AS x, y WHERE x > 1",
        ["STREAM t"],
        "SELECT x, y FROM #0 AS `t` LEFT JOIN LATERAL posexplode(xs) AS l(x, y) WHERE x > 1",
    ),
    "table functions": (
        "SELECT * FROM range(3) JOIN t, LATERAL explode(xs) AS e(x)",
        ["t"],
        "SELECT * FROM range(3) JOIN #0 AS `t` INNER JOIN LATERAL explode(xs) AS e(x)",
    ),
    "FROM that names no table": (
        "SELECT extract(YEAR FROM ts), trim(BOTH 'x' FROM s), a IS DISTINCT FROM b FROM t",
        ["t"],
        "SELECT extract(YEAR FROM ts), trim(BOTH 'x' FROM s), a IS DISTINCT FROM b FROM #0 AS `t`",
    ),
    "sample": (
        "SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1) WHERE a",
        ["t"],
        "SELECT * FROM #0 TABLESAMPLE (10 PERCENT) REPEATABLE (1) AS `t` WHERE a",
    ),
    "time travel": (
        "SELECT * FROM t VERSION AS OF 3 x JOIN u FOR VERSION AS OF '4'",
        ["t versionasof=3", "u versionasof=4"],
        "SELECT * FROM #0 x JOIN #1 AS `u`",
    ),
    "hint": (
        "SELECT /*+ BROADCAST(u) */ * FROM t JOIN u",
        ["t", "u"],
        "SELECT /*+ BROADCAST(u) */ * FROM #0 AS `t` JOIN #1 AS `u`",
    ),
    "files are the engine's to read": (
        "SELECT * FROM parquet.`/data/f` JOIN t",
        ["t"],
        "SELECT * FROM parquet.`/data/f` JOIN #0 AS `t`",
    ),
    "merged column of USING": (
        "SELECT a.k, b.k, s.b.v FROM a JOIN s.b USING (k)",
        ["a", "s.b"],
        "SELECT k, k, `b`.v FROM #0 AS `a` JOIN #1 AS `b` USING (k)",
    ),
    "the side of a left join without a match keeps its own column": (
        "SELECT a.k, b.k FROM a LEFT JOIN b USING (k)",
        ["a", "b"],
        "SELECT k, b.k FROM #0 AS `a` LEFT JOIN #1 AS `b` USING (k)",
    ),
    "semicolon at the end": ("SELECT a FROM t ;", ["t"], "SELECT a FROM #0 AS `t` "),
    "lambdas, casts and intervals": (
        "SELECT transform(xs, x -> x + 1), a::string, INTERVAL '1' DAY, {p} FROM t".format(p=":p"),
        ["t"],
        "SELECT transform(xs, x -> x + 1), a::string, INTERVAL '1' DAY, :p FROM #0 AS `t`",
    ),
}


@pytest.mark.parametrize(("text", "reads", "replaced"), CASES.values(), ids=CASES)
def test_tables_are_found_and_replaced_by_position(text, reads, replaced):
    analysis = analysed(text)
    assert [shown(read) for read in analysis.reads] == reads
    assert bound(analysis) == replaced


@pytest.mark.parametrize(
    ("text", "reads", "replaced"),
    [
        case
        for name, case in CASES.items()
        if not {"s.b", "c.s.t"} & {*case[1]}
        and "USING" not in case[0]
        and name
        not in {
            "an inner WITH ends with its query",
            "common table expressions",
            "quotes",
            "legacy prefix",
            "same last name twice",
        }
    ],
)
def test_tables_are_found_without_a_syntax_tree_too(monkeypatch, text, reads, replaced):
    from sqlglot.errors import ParseError

    from millpond.engine.sqltext import analysis as module

    monkeypatch.setattr(module, "parse_query", lambda _text: ParseError("no tree"))
    source = QueryText(text, SourceLocation("a.sql", 1, 1))
    found = module.analyse(source, can_read=lambda _: True)
    assert found.tree is None
    assert [shown(read) for read in found.reads] == reads
    assert bound(found) == replaced


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        (
            "SELECT t.a FROM s1.t UNION ALL SELECT t.* FROM s2.t",
            "SELECT `s1.t`.a FROM #0 AS `s1.t` UNION ALL SELECT `s2.t`.* FROM #1 AS `s2.t`",
        ),
        (
            # Left as it is, the first t.a would be a column of the outer t, without an error.
            (
                "SELECT 1 FROM x AS t WHERE EXISTS (SELECT 1 FROM s1.t WHERE t.a = 1) "
                "AND EXISTS (SELECT 1 FROM s2.t) AND t.b = 2"
            ),
            (
                "SELECT 1 FROM #0 AS t WHERE EXISTS (SELECT 1 FROM #1 AS `s1.t` "
                "WHERE `s1.t`.a = 1) AND EXISTS (SELECT 1 FROM #2 AS `s2.t`) AND t.b = 2"
            ),
        ),
        (
            "SELECT t.a FROM s1.t JOIN s2.t ON s1.t.a = s2.t.a",
            "SELECT t.a FROM #0 AS `s1.t` JOIN #1 AS `s2.t` ON `s1.t`.a = `s2.t`.a",
        ),
    ],
)
def test_a_last_name_means_the_table_of_its_own_select(text, replaced):
    assert bound(analysed(text)) == replaced


@pytest.mark.parametrize(
    "text",
    [
        "WITH c AS (SELECT * FROM STREAM t) SELECT * FROM c WITH (skipChangeCommits)",
        "SELECT * FROM STREAM t WITH (startingVersion = 3) WITH (skipChangeCommits)",
        "SELECT * FROM csv.`/x` WITH (skipChangeCommits)",
    ],
)
def test_options_that_no_table_takes_are_refused_where_they_stand(text):
    with pytest.raises(InvalidReadOptionError, match="no table stands before them") as caught:
        analysed(text)
    assert caught.value.detail.count("^") == len("WITH (skipChangeCommits)")


def test_names_of_dataframes_are_not_tables():
    analysis = analysed("SELECT * FROM _dataframe0 JOIN t", external={"_dataframe0"})
    assert [shown(read) for read in analysis.reads] == ["t"]


def test_a_read_knows_its_place_and_the_defaults_of_its_file():
    source = QueryText(
        "SELECT a\nFROM STREAM(t)", SourceLocation("a.sql", 3, 5), catalog="main", schema="sales"
    )
    (read,) = analyse(source, can_read=lambda _: False).reads
    assert (read.catalog, read.schema) == ("main", "sales")
    assert read.location is not None
