"""SQL with operators that keep state, as relations: what comes out is what the text gives."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect import proto

from millpond.engine.connect.failures import Subject, analysis_error
from millpond.engine.connect.lowering import External, keeps_state, lowered
from millpond.engine.connect.messages import input_relations, leaves
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.protocol import TableRead
from millpond.engine.sqltext.analysis import TextAnalysis, analyse
from millpond.engine.sqltext.source import QueryText
from millpond.errors import SourceLocation
from millpond.errors.engine import UnresolvedColumnError, UnsupportedStreamingOperationError
from tests.engine.queries import sql, tables

STATEFUL = {"deduplicate", "limit", "with_watermark", "join", "aggregate"}


def at(minute):
    return dt.datetime(2024, 1, 1, 0, minute, tzinfo=dt.UTC)


ROWS = {
    "a": pa.table(
        {
            "k": pa.array([1, 2, 1, None, 4], pa.int32()),
            "v": [10, 20, 11, 5, 40],
            "s": ["x", "y", "x", None, "z"],
            "xs": pa.array([[1, 2], [3], [], None, [4, 4]], pa.list_(pa.int32())),
            "ts": [at(0), at(3), at(7), at(7), at(16)],
        }
    ),
    "b": pa.table(
        {
            "k": pa.array([1, 3, 1, 4], pa.int32()),
            "w": [100, 300, 101, 400],
            "ts": [at(1), at(3), at(8), at(30)],
        }
    ),
    "dim": pa.table({"k": pa.array([1, 2, 3], pa.int32()), "name": ["one", "two", "three"]}),
}


def understood(text, external=frozenset(), before=""):
    query = sql(text, before=before)
    return analyse(QueryText.of_query(query), can_read=lambda _: False, external=external)


def lower(text, *, before="", externals=None, message=None):
    externals = externals or {}
    analysis = understood(text, frozenset(externals), before)
    options = {"externals": externals, "reads_stream": lambda read: read.streaming}
    assert keeps_state(analysis, **options)
    return lowered(analysis, message or proto.SQL(query=text), **options)


def operators(relation):
    """The operators with state, from the outermost in."""
    kind = relation.WhichOneof("rel_type")
    here = [kind] if kind in STATEFUL else []
    return here + [found for child in input_relations(relation) for found in operators(child)]


def without_watermarks(relation):
    while relation.WhichOneof("rel_type") == "with_watermark":
        inner = proto.Relation()
        inner.CopyFrom(relation.with_watermark.input)
        relation.CopyFrom(inner)
    for child in input_relations(relation):
        without_watermarks(child)


@pytest.fixture(scope="module")
def run(engine, tmp_path_factory):
    """Runs a relation over the test's tables; gives its columns and its rows, sorted."""
    binder = tables(engine, tmp_path_factory.mktemp("tables"), **ROWS)

    def run(relation, sources):
        plan = ConnectPlan(relation, SourceLocation("a.sql", 1, 1), sources)
        root = plan.bind(binder, engine._inputs.relation)
        without_watermarks(root)
        table, *_ = engine._sessions.client().to_table(proto.Plan(root=root), {})
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return table.column_names, sorted(rows, key=repr)

    return run


WM = "WATERMARK ts DELAY OF INTERVAL 10 MINUTES"
CASES = {
    "distinct": (
        "SELECT DISTINCT k, s FROM STREAM a WHERE v > 5",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "limit": ("SELECT k FROM STREAM a LIMIT 100", ["limit"], ["LIMIT"]),
    "distinct and limit": (
        "SELECT DISTINCT k + 1, upper(s) FROM STREAM(a) x LIMIT 100",
        ["limit", "deduplicate"],
        ["LIMIT", "DISTINCT"],
    ),
    "distinct with a static join": (
        "SELECT DISTINCT a.k, main.sales.dim.name FROM STREAM(sales.a) JOIN main.sales.dim ON sales.a.k = sales.dim.k",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "distinct over a generator": (
        "SELECT DISTINCT e.x FROM STREAM a LATERAL VIEW OUTER explode(xs) e AS x",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "distinct in a subquery": (
        "SELECT t.k, name FROM (SELECT DISTINCT k FROM STREAM a) AS t LEFT JOIN dim USING (k) WHERE t.k > 0",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "subquery without alias": (
        "SELECT k + 1 AS j FROM (SELECT DISTINCT k FROM STREAM a)",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "alias with columns": (
        "SELECT t.q FROM (SELECT DISTINCT k, v FROM STREAM a) AS t(q, r) WHERE r > 5",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "subqueries in subqueries": (
        "SELECT DISTINCT q.k FROM (SELECT k FROM (SELECT DISTINCT k, v FROM STREAM a) p WHERE p.v > 5) q",
        ["deduplicate", "deduplicate"],
        ["DISTINCT", "DISTINCT"],
    ),
    "common table expressions": (
        (
            "WITH d AS (SELECT * FROM dim), u AS (SELECT DISTINCT k FROM STREAM a), "
            "j(kk, name) AS (SELECT u.k, d.name FROM u JOIN d ON u.k = d.k) SELECT * FROM j WHERE kk > 0"
        ),
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "a CTE that is not used, and one that shadows": (
        "WITH d AS (SELECT * FROM dim), e AS (SELECT 1 AS one) SELECT DISTINCT x.k FROM (WITH d AS (SELECT k FROM STREAM a) SELECT * FROM d) x",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "inner and outer WITH in one part": (
        "WITH d AS (SELECT * FROM dim) SELECT * FROM (WITH f AS (SELECT k AS fk FROM d), g AS (SELECT 1 AS one) SELECT DISTINCT a.k, fk, one FROM STREAM a JOIN f ON a.k = f.fk JOIN g) t",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "a CTE used twice": (
        "WITH u AS (SELECT DISTINCT k FROM STREAM a) SELECT k FROM u UNION ALL SELECT k + 1 FROM u",
        ["deduplicate", "deduplicate"],
        ["DISTINCT", "DISTINCT"],
    ),
    "a CTE with columns": (
        "WITH u(n) AS (SELECT DISTINCT k FROM STREAM a) SELECT u.n FROM u",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "union": (
        "SELECT k, v FROM STREAM a UNION ALL (SELECT DISTINCT k, w FROM STREAM b) LIMIT 100",
        ["limit", "deduplicate"],
        ["LIMIT", "DISTINCT"],
    ),
    "union in a CTE": (
        "WITH u AS (SELECT DISTINCT k FROM STREAM a UNION ALL SELECT k FROM STREAM b) SELECT * FROM u JOIN dim USING (k)",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "parentheses around everything": (
        "((SELECT DISTINCT k FROM STREAM a) LIMIT 100)",
        ["limit", "deduplicate"],
        ["LIMIT", "DISTINCT"],
    ),
    "watermark": (f"SELECT * FROM STREAM a {WM}", ["with_watermark"], ["WATERMARK"]),
    "watermark with alias, options and join": (
        f"SELECT x.k, sales.dim.name, x.ts FROM STREAM(a) WITH (maxFilesPerTrigger = 1) {WM} AS x JOIN sales.dim ON x.k = dim.k",
        ["with_watermark"],
        ["WATERMARK"],
    ),
    "watermark on a long name": (
        f"SELECT main.sales.a.k, sales.a.v, a.s FROM STREAM(main.sales.a) {WM} WHERE sales.a.k > 0",
        ["with_watermark"],
        ["WATERMARK"],
    ),
    "watermark on a subquery": (
        f"SELECT DISTINCT t.ts FROM (SELECT * FROM STREAM a WHERE v > 5) {WM} t",
        ["deduplicate", "with_watermark"],
        ["DISTINCT", "WATERMARK"],
    ),
    "watermark on a CTE": (
        f"WITH c AS (SELECT k, ts FROM STREAM a) SELECT c.k FROM c {WM}",
        ["with_watermark"],
        ["WATERMARK"],
    ),
    "watermark in a CTE": (
        f"WITH c AS (SELECT k, ts FROM STREAM a {WM}) SELECT k FROM c",
        ["with_watermark"],
        ["WATERMARK"],
    ),
    "stream with stream": (
        "SELECT a.*, b.w, a.k + b.k AS n, a.v + 1 FROM STREAM a JOIN STREAM(sales.b) ON a.k = sales.b.k AND a.ts <= b.ts WHERE a.v > 5",
        ["join"],
        ["JOIN"],
    ),
    "stream with stream, all columns": (
        "SELECT * FROM STREAM a x INNER JOIN STREAM b y ON x.k = y.k",
        ["join"],
        ["INNER JOIN"],
    ),
    "stream with stream, using": (
        "SELECT k, x.k AS j, v, w FROM STREAM a x JOIN STREAM b USING (k) WHERE x.k > 0",
        ["join"],
        ["JOIN"],
    ),
    "left outer": (
        f"SELECT x.k, y.w FROM STREAM a {WM} x LEFT OUTER JOIN STREAM b {WM} y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 MINUTES",
        ["join", "with_watermark", "with_watermark"],
        ["LEFT OUTER JOIN", "WATERMARK", "WATERMARK"],
    ),
    "right outer": (
        "SELECT x.k, y.w FROM STREAM a x RIGHT JOIN STREAM b y ON x.k = y.k",
        ["join"],
        ["RIGHT JOIN"],
    ),
    "full outer": (
        "SELECT k, v, w FROM STREAM a FULL JOIN STREAM b USING (k)",
        ["join"],
        ["FULL JOIN"],
    ),
    "by comma and WHERE": (
        "SELECT a.k, w FROM STREAM a, STREAM b WHERE a.k = b.k AND v > 10",
        ["join"],
        ["JOIN"],
    ),
    "join without ON": (
        "SELECT a.k, w FROM STREAM a CROSS JOIN STREAM b WHERE a.k = b.k",
        ["join"],
        ["CROSS JOIN"],
    ),
    "with static tables between": (
        "SELECT a.k, d.name, e.name, b.w FROM STREAM a JOIN dim d ON a.k = d.k JOIN STREAM b ON a.k = b.k LEFT JOIN (SELECT * FROM dim WHERE k > 1) e ON b.w > 0",
        ["join", "join", "join"],
        ["LEFT JOIN", "JOIN", "JOIN"],
    ),
    "with subqueries, CTEs and functions": (
        (
            "WITH c AS (SELECT k, w FROM STREAM b), d AS (SELECT * FROM dim) SELECT x.k, c.w, name, r.id "
            "FROM (SELECT DISTINCT k FROM STREAM a) x JOIN c ON x.k = c.k JOIN d ON d.k = c.k "
            "CROSS JOIN range(2) r"
        ),
        ["join", "join", "join", "deduplicate"],
        ["CROSS JOIN", "JOIN", "JOIN", "DISTINCT"],
    ),
    "joins in parentheses": (
        "SELECT x.k, y.w, name FROM dim JOIN (STREAM a x JOIN STREAM b y ON x.k = y.k) ON dim.k = x.k",
        ["join", "join"],
        ["JOIN", "JOIN"],
    ),
    "same last name twice": (
        "SELECT p.a.k, q.a.v FROM STREAM(p.a) JOIN STREAM(q.a) ON p.a.k = q.a.k",
        ["join"],
        ["JOIN"],
    ),
    "generator over a join": (
        "SELECT a.k, posexplode(xs) AS (p, x), w FROM STREAM a JOIN STREAM b ON a.k = b.k",
        ["join"],
        ["JOIN"],
    ),
    "lateral view over a join": (
        "SELECT a.k, x, e.x + 1 AS y, struct(e.x, w) AS both FROM STREAM a JOIN STREAM b ON a.k = b.k LATERAL VIEW explode(a.xs) e AS x WHERE v > 5",
        ["join"],
        ["JOIN"],
    ),
    "lateral view over a join, all columns": (
        "SELECT * FROM STREAM a JOIN STREAM b ON a.k = b.k LATERAL VIEW OUTER explode(a.xs) e AS w",
        ["join"],
        ["JOIN"],
    ),
    "distinct join": (
        "SELECT DISTINCT /*+ BROADCAST(b) */ a.k FROM STREAM a JOIN STREAM b ON a.k = b.k LIMIT 100",
        ["limit", "deduplicate", "join"],
        ["LIMIT", "DISTINCT", "JOIN"],
    ),
    "names of columns": (
        "SELECT A.K, a.v, (a.k), CAST(a.k AS STRING), a.k + 1, upper(s), CASE WHEN a.k = 1 THEN 2 END, 1, 'x', a.v w FROM STREAM a JOIN STREAM b ON a.k = b.k",
        ["join"],
        ["JOIN"],
    ),
    "window": (
        f"SELECT window.start, window.end AS e, k, k + 1 AS kk, count(*), sum(v) + 1 AS t FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), k",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "window, everything selected twice": (
        f"SELECT k, K, x.k, window, window(ts, '5 minutes'), CAST(k AS STRING), max(k) AS k FROM STREAM a {WM} x GROUP BY window(ts, '5 minutes'), k",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "sliding window by ordinal and alias": (
        f"SELECT k AS key, window(ts, '10 minutes', '5 minutes') AS w, count(*) AS n FROM STREAM a {WM} GROUP BY window(ts, '10 minutes', '5 minutes'), key",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "grouped by expressions": (
        f"SELECT window.start AS b, upper(s) AS u, concat(upper(s), 'x') AS c, v % 2 AS odd, count(*) AS n FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), upper(s), v % 2",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "having": (
        f"SELECT k, count(*) AS n FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), k HAVING n > 0 AND sum(v) > 10 AND k < 4",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "distinct groups": (
        f"SELECT DISTINCT count(*) FROM STREAM a {WM} GROUP BY window(ts, '5 minutes')",
        ["deduplicate", "aggregate", "with_watermark"],
        ["DISTINCT", "GROUP BY", "WATERMARK"],
    ),
    "window over a join with a table": (
        f"SELECT window.start, sales.dim.name, count(*) FROM STREAM a {WM} LEFT JOIN sales.dim ON a.k = dim.k WHERE v > 5 GROUP BY window(a.ts, '5 minutes'), dim.name",
        ["aggregate", "join", "with_watermark"],
        ["GROUP BY", "LEFT JOIN", "WATERMARK"],
    ),
    "window over several generators and a subquery": (
        f"WITH d AS (SELECT k FROM dim) SELECT window.start, p, e.x, n, count(*) AS c FROM STREAM a {WM} LATERAL VIEW posexplode(xs) e AS p, x LATERAL VIEW explode(array(e.x, 7)) f AS n WHERE k IN (SELECT k FROM d) GROUP BY window(ts, '5 minutes'), p, e.x, f.n",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "distinct beside a subquery": (
        "WITH d AS (SELECT k FROM dim) SELECT DISTINCT s FROM STREAM a x WHERE EXISTS (SELECT 1 FROM d WHERE d.k = x.k) AND k IN (SELECT k FROM dim)",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "distinct over a semi join": (
        "SELECT DISTINCT x.s FROM (SELECT DISTINCT k, s FROM STREAM a) x LEFT SEMI JOIN dim ON x.k = dim.k",
        ["deduplicate", "deduplicate"],
        ["DISTINCT", "DISTINCT"],
    ),
    "no spaces": (
        "WITH c AS (SELECT*FROM(STREAM a))SELECT*FROM(c)JOIN(STREAM b)y USING(k)",
        ["join"],
        ["JOIN"],
    ),
    "a long name beside a watermark": (
        f"SELECT DISTINCT a.k FROM STREAM(main.sales.a) {WM} JOIN main.sales.b ON main.sales.a.k = sales.b.k",
        ["deduplicate", "with_watermark"],
        ["DISTINCT", "WATERMARK"],
    ),
    "window over a lateral view": (
        f"SELECT window.start, x, count(*) AS n FROM STREAM a {WM} LATERAL VIEW explode(xs) e AS x GROUP BY window(ts, '5 minutes'), e.x",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "window in a subquery, joined": (
        f"SELECT g.k, n, name FROM (SELECT k, count(*) AS n FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), k) g JOIN dim ON g.k = dim.k",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "window of a column that was one": (
        f"SELECT window.end AS e, count(*) AS n FROM (SELECT window(ts, '5 minutes') AS window, k FROM STREAM a {WM}) GROUP BY window",
        ["aggregate", "with_watermark"],
        ["GROUP BY", "WATERMARK"],
    ),
    "keywords as names": (
        "SELECT DISTINCT limit, offset FROM (SELECT k AS limit, v AS offset FROM STREAM a) WHERE offset > 5",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "comments and odd spaces": (
        "SELECT -- GROUP BY\n  DISTINCT/* LIMIT 3 */k FROM\n\tSTREAM(a)-- x\nWHERE s != 'DISTINCT'",
        ["deduplicate"],
        ["DISTINCT"],
    ),
    "semicolon": ("SELECT DISTINCT k FROM STREAM a ;", ["deduplicate"], ["DISTINCT"]),
}


@pytest.mark.parametrize(("text", "kinds", "names"), CASES.values(), ids=CASES)
def test_the_relation_gives_the_rows_and_columns_of_the_text(run, text, kinds, names):
    found = lower(text)
    assert operators(found.relation) == kinds
    assert [place.name for place in in_order(found)] == names
    assert [type(source) for source in found.sources] == [
        TableRead if leaf.WhichOneof("rel_type") == "read" else TextAnalysis
        for leaf in leaves(found.relation)
    ]
    expected = run(proto.Relation(sql=proto.SQL(query=text)), (understood(text),))
    assert run(found.relation, found.sources) == expected


def in_order(found):
    """The places of the operators with state, from the outermost in."""

    def walk(relation):
        kind = relation.WhichOneof("rel_type")
        if kind in STATEFUL:
            yield found.places[relation.common.plan_id]
        for child in input_relations(relation):
            yield from walk(child)

    return list(walk(found.relation))


def nodes(relation, kind):
    here = [relation] if relation.WhichOneof("rel_type") == kind else []
    return here + [found for child in input_relations(relation) for found in nodes(child, kind)]


def test_a_lateral_view_comes_before_where(run):
    found = lower(
        "SELECT a.k, x FROM STREAM a JOIN STREAM b ON a.k = b.k AND b.w < 101 "
        "LATERAL VIEW explode(xs) e AS x WHERE e.x > 1"
    )
    assert run(found.relation, found.sources) == (["k", "x"], [(1, 2)])


def test_places_point_at_the_words_in_the_users_file():
    before = "CREATE STREAMING TABLE t AS\n"
    text = f"SELECT DISTINCT\n  x.k FROM STREAM a {WM} x\nFULL JOIN STREAM b ON x.k = b.k LIMIT 3"
    found = lower(text, before=before)
    places = {place.name: place for place in found.places.values()}
    lines = (before + text).split("\n")
    for name, word in {
        "DISTINCT": "DISTINCT",
        "WATERMARK": "WATERMARK",
        "FULL JOIN": "JOIN",
        "LIMIT": "LIMIT",
    }.items():
        where = places[name].where
        assert where.file == "transformations/a.sql"
        assert lines[where.line - 1][where.column - 1 :].startswith(word)
        shown, carets = places[name].detail.split("\n")[:2]
        assert "^" * len(word) in carets
        assert shown[carets.index("^") :].startswith(word)


def test_reads_in_parts_of_the_text_keep_their_places():
    text = (
        "SELECT * FROM dim JOIN (SELECT DISTINCT k FROM STREAM(sales.a)\n WHERE v > 1) t USING (k)"
    )
    found = lower(text, before="-- above\n")
    outer, inner = found.sources
    assert [(read.name, read.streaming, str(read.location)) for read in outer.reads] == [
        (("dim",), False, "transformations/a.sql:2:15")
    ]
    assert [(read.name, read.streaming, str(read.location)) for read in inner.reads] == [
        (("sales", "a"), True, "transformations/a.sql:2:55")
    ]
    assert inner.source.locate(text.index("v >")).line == 3
    assert len(outer.source.text) == len(inner.source.text) == len(text)


def test_a_part_of_text_in_python_code_is_shown_in_its_whole_line():
    query = QueryText("SELECT DISTINCT j + 1 FROM STREAM a LIMIT 3", SourceLocation("a.py", 7))
    analysis = analyse(query, can_read=lambda _: False)
    found = lowered(
        analysis,
        proto.SQL(query=query.text),
        externals={},
        reads_stream=lambda read: read.streaming,
    )
    (source,) = found.sources
    assert source.source.locate(16) == SourceLocation("a.py", 7)
    assert "SELECT DISTINCT j + 1 FROM STREAM a LIMIT 3" in source.source.caret(16, 17)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.k, b.zz FROM STREAM a JOIN STREAM b ON a.k = b.k",
        "SELECT a.k FROM STREAM a JOIN STREAM b ON a.k = b.zz",
        f"SELECT sum(b.zz) AS n FROM STREAM b {WM} GROUP BY window(ts, '5 minutes')",
        "SELECT DISTINCT b.zz FROM STREAM b",
    ],
)
def test_a_column_that_is_not_there_is_shown_in_the_users_file(run, text):
    query, found = sql(text, before="-- above\n"), lower(text)
    plan = ConnectPlan(
        found.relation, query.location, found.sources, True, QueryText.of_query(query)
    )
    with pytest.raises(PySparkException) as caught:
        run(found.relation, found.sources)
    error = analysis_error(caught.value, Subject.of_plan(plan))
    assert isinstance(error, UnresolvedColumnError)
    assert (error.where.line, error.where.column) == (2, text.index("b.zz") + 1)


DELAYS = [
    "INTERVAL 10 MINUTES",
    "interval '10 minutes'",
    "INTERVAL '2' DAY",
    "INTERVAL 1 HOUR 30 MINUTES",
    "INTERVAL '1:30' HOUR TO MINUTE",
    "INTERVAL - 5 SECONDS",
    "INTERVAL '1' HOUR '0.5' SECONDS",
]


@pytest.mark.parametrize("delay", DELAYS)
def test_the_delay_of_a_watermark_ends_where_its_interval_ends(delay):
    text = f"SELECT x.k FROM STREAM a WATERMARK ts DELAY OF {delay} x WHERE x.v > 1"
    found = lower(text)
    (node,) = nodes(found.relation, "with_watermark")
    assert node.with_watermark.delay_threshold == delay
    assert node.with_watermark.event_time == "`ts`"


@pytest.mark.parametrize(
    ("column", "event_time"),
    [("ts", "`ts`"), ("a.ts", "`ts`"), ("sales.a.ts", "`ts`"), ("`ts`", "`ts`")],
)
def test_a_watermark_may_name_its_column_with_its_table(run, column, event_time):
    found = lower(f"SELECT k FROM STREAM(sales.a) WATERMARK {column} DELAY OF INTERVAL 1 DAY")
    (node,) = nodes(found.relation, "with_watermark")
    assert node.with_watermark.event_time == event_time
    assert run(found.relation, found.sources)[0] == ["k"]


@pytest.mark.parametrize("name", ["AS late", "late"])
def test_a_watermark_may_compute_its_column_which_comes_first(run, name):
    found = lower(
        f"SELECT x.* FROM STREAM b WATERMARK date_trunc('HOUR', ts) {name} DELAY OF INTERVAL 1 DAY x"
    )
    columns, rows = run(found.relation, found.sources)
    assert columns == ["late", "k", "w", "ts"]
    assert {row[0] for row in rows} == {at(0)}


def test_a_watermark_over_a_table_that_does_not_stream_means_nothing():
    analysis = understood(f"SELECT k FROM a {WM}")
    assert not keeps_state(analysis, externals={}, reads_stream=lambda read: read.streaming)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM STREAM a JOIN dim USING (k)",
        "SELECT DISTINCT k FROM dim",
        "SELECT a.k FROM STREAM a JOIN (SELECT DISTINCT k FROM dim LIMIT 3) d ON a.k = d.k",
        "SELECT k FROM STREAM a UNION ALL SELECT k FROM STREAM b",
        "WITH d AS (SELECT k, count(*) AS n FROM dim GROUP BY k) SELECT * FROM STREAM a JOIN d USING (k)",
        "WITH d AS (SELECT DISTINCT k FROM STREAM a) SELECT k FROM STREAM b",
        "SELECT k FROM STREAM a LIMIT ALL",
        "SELECT x FROM STREAM a LATERAL VIEW explode(xs) e AS x",
    ],
)
def test_text_without_state_is_told(text):
    analysis = understood(text)
    assert not keeps_state(analysis, externals={}, reads_stream=lambda read: read.streaming)


def external(text, *, streaming=True):
    return External(proto.Relation(sql=proto.SQL(query=text)), (understood(text),), streaming)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT k FROM _df",
        "SELECT DISTINCT x.k FROM _df x JOIN dim USING (k)",
        "WITH c AS (SELECT * FROM _df) SELECT DISTINCT c.k FROM c",
        "SELECT d.k FROM (SELECT DISTINCT k FROM _df) d",
        "SELECT DISTINCT k FROM _df UNION ALL SELECT k FROM _df WHERE false",
        "SELECT DISTINCT x.k FROM _df x JOIN STREAM b y ON x.k = y.k OR true",
    ],
)
def test_a_dataframe_named_in_a_text_goes_where_it_is_named(run, text):
    found = lower(text, externals={"_df": external("SELECT k FROM STREAM a WHERE k = 1")})
    assert run(found.relation, found.sources) == (["k"], [(1,)])


def test_parameters_go_along(run):
    text = (
        "SELECT DISTINCT k, :name AS n FROM STREAM a WHERE v > :least "
        "UNION ALL SELECT x.k, :name FROM STREAM a x JOIN STREAM b y ON x.k = y.k AND y.w > :w"
    )
    message = proto.SQL(query=text)
    message.named_arguments["name"].literal.string = "it's"
    message.named_arguments["least"].literal.integer = 11
    message.named_arguments["w"].literal.long = 300
    found = lower(text, message=message)
    rows = [(2, "it's"), (4, "it's"), (4, "it's")]
    assert run(found.relation, found.sources) == (["k", "n"], rows)


def test_parameters_by_position_go_to_their_parts(run):
    text = (
        "SELECT DISTINCT k, ? AS n FROM STREAM a WHERE v > ? "
        "UNION ALL SELECT x.k, ? FROM STREAM a x JOIN STREAM b y ON x.k = y.k AND y.w > ? LIMIT ?"
    )
    message = proto.SQL(query=text)
    for value in (1, 11, -2, 300, 100):
        message.pos_arguments.add().literal.integer = value
    found = lower(text, message=message)
    assert run(found.relation, found.sources) == (["k", "n"], [(2, 1), (4, -2), (4, 1)])


def test_a_session_window_is_an_aggregation_by_it():
    found = lower(
        f"SELECT session_window.start, k, count(*) AS n FROM STREAM a {WM} "
        "GROUP BY session_window(ts, '5 minutes'), k"
    )
    (node,) = nodes(found.relation, "aggregate")
    texts = [each.expression_string.expression for each in node.aggregate.grouping_expressions]
    assert texts == ["session_window(ts, '5 minutes')", "k"]


def test_a_window_grouped_by_under_the_name_of_select_is_seen_as_a_window():
    for key in ("w", "1"):
        found = lower(
            f"SELECT window(ts, '5 minutes') AS w, count(*) AS n FROM STREAM a {WM} GROUP BY {key}"
        )
        (node,) = nodes(found.relation, "aggregate")
        (text,) = [
            each.expression_string.expression for each in node.aggregate.grouping_expressions
        ]
        assert text == "window(ts, '5 minutes')"


def test_a_query_may_group_by_the_names_of_its_select(run):
    """Which Sail itself can't, where one of them is a window."""
    named, plain = (
        f"SELECT k + 1 AS key, window(ts, '5 minutes') AS w, max(v) AS v FROM STREAM a {WM} "
        f"GROUP BY {keys} HAVING v > 5"
        for keys in ("w, key", "window(ts, '5 minutes'), k + 1")
    )
    found = lower(named)
    expected = run(proto.Relation(sql=proto.SQL(query=plain)), (understood(plain),))
    assert run(found.relation, found.sources) == expected


REFUSED = {
    "offset": ("SELECT k FROM STREAM a LIMIT 3 OFFSET 2", "OFFSET"),
    "order by": ("SELECT DISTINCT k FROM STREAM a ORDER BY k", "ORDER"),
    "limit of an expression": ("SELECT k FROM STREAM a LIMIT length('abc')", "length"),
    "limit that is too high": ("SELECT k FROM STREAM a LIMIT 3000000000", "3000000000"),
    "union without all": (
        "SELECT DISTINCT k FROM STREAM a UNION SELECT k FROM STREAM b",
        "UNION",
    ),
    "except": ("SELECT DISTINCT k FROM STREAM a EXCEPT SELECT k FROM STREAM b", "EXCEPT"),
    "limit before union": (
        "SELECT k FROM STREAM a LIMIT 3 UNION ALL SELECT k FROM STREAM b",
        "LIMIT",
    ),
    "subquery beside a join": (
        "SELECT a.k FROM STREAM a JOIN STREAM b ON a.k = b.k WHERE a.k IN (SELECT k FROM dim)",
        "SELECT k FROM dim",
    ),
    "subquery in on": (
        "SELECT a.k FROM STREAM a JOIN STREAM b ON a.k = b.k AND a.k IN (SELECT k FROM dim)",
        "SELECT k FROM dim",
    ),
    "qualify": (
        "SELECT a.k FROM STREAM a JOIN STREAM b ON a.k = b.k QUALIFY row_number() OVER (ORDER BY a.k) = 1",
        "QUALIFY",
    ),
    "posexplode in a lateral view": (
        "SELECT p FROM STREAM a JOIN STREAM b ON a.k = b.k LATERAL VIEW posexplode(xs) e AS p, x",
        "posexplode",
    ),
    "lateral function": (
        "SELECT x FROM STREAM a JOIN STREAM b ON a.k = b.k, LATERAL explode(xs) AS e(x)",
        "LATERAL",
    ),
    "pivot of rows without duplicates": (
        "SELECT b.k FROM (SELECT DISTINCT k, s, v FROM STREAM a) PIVOT (max(v) FOR s IN ('x')) AS p JOIN STREAM b ON p.k = b.k",
        "PIVOT",
    ),
    "pivot of a join": (
        "SELECT * FROM STREAM a JOIN STREAM b ON a.k = b.k PIVOT (max(v) FOR s IN ('x'))",
        "PIVOT",
    ),
    "rollup": (
        f"SELECT k FROM STREAM a {WM} GROUP BY ROLLUP(window(ts, '5 minutes'), k)",
        "ROLLUP",
    ),
    "with cube": (
        f"SELECT k FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), k WITH CUBE",
        "CUBE",
    ),
    "group by all": (f"SELECT window(ts, '5 minutes') FROM STREAM a {WM} GROUP BY ALL", "ALL"),
    "ordinal out of range": (f"SELECT k FROM STREAM a {WM} GROUP BY 2", "2"),
    "two tables of a name beside a watermark": (
        f"SELECT p.a.k FROM STREAM(p.a) {WM} JOIN q.a ON p.a.k = q.a.k",
        "p.a) WATERMARK",
    ),
    "grouped by a name of SELECT beside a column without one": (
        f"SELECT k + 1 AS key, count(*) FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), key",
        "k + 1",
    ),
    "unnamed expression of group by": (
        f"SELECT upper(s) FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), upper(s)",
        "upper",
    ),
    "a text named as a window": (
        f"SELECT 'window', count(*) AS n, k + 1 FROM STREAM a {WM} GROUP BY window(ts, '5 minutes')",
        "'window'",
    ),
    "an expression in parentheses": (
        f"SELECT (k + 1), k FROM STREAM a {WM} GROUP BY window(ts, '5 minutes'), k",
        "(k + 1)",
    ),
    "unnamed expression over a lateral view": (
        "SELECT x + 1 FROM STREAM a JOIN STREAM b ON a.k = b.k LATERAL VIEW explode(xs) e AS x",
        "x + 1",
    ),
    "watermark without a name": (
        "SELECT k FROM STREAM a WATERMARK date(ts) DELAY OF INTERVAL 1 DAY",
        "date",
    ),
    "watermark on a field": (
        "SELECT k FROM STREAM a WATERMARK z.ts DELAY OF INTERVAL 1 DAY",
        "z",
    ),
    "recursive beside another": (
        (
            "WITH d AS (SELECT 1 AS n) SELECT * FROM (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL "
            "SELECT n + 1 FROM r WHERE n < 3) SELECT DISTINCT a.k FROM STREAM a JOIN r JOIN d) t"
        ),
        "r AS",
    ),
    "a name that is taken by an inner CTE": (
        (
            "WITH d AS (SELECT * FROM dim) SELECT * FROM (WITH d AS (SELECT * FROM d) "
            "SELECT DISTINCT a.k FROM STREAM a JOIN d ON a.k = d.k) t"
        ),
        "d AS (SELECT * FROM d)",
    ),
    "array as a parameter": (
        "SELECT a.k FROM STREAM a JOIN STREAM b ON a.k = b.k WHERE array_contains(:xs, a.k)",
        ":",
    ),
}


@pytest.mark.parametrize(("text", "pointed_at"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_apart_is_refused_at_its_word(text, pointed_at):
    message = proto.SQL(query=text)
    if ":xs" in text:
        message.named_arguments["xs"].unresolved_function.function_name = "array"
    with pytest.raises(UnsupportedStreamingOperationError) as caught:
        lower(text, message=message)
    where = caught.value.where
    assert (where.file, where.line) == ("transformations/a.sql", 1)
    assert text[where.column - 1 :].startswith(pointed_at)
