"""`* EXCEPT (a)` gives the other columns, whatever the star stands over."""

from __future__ import annotations

import pytest

from millpond.engine.protocol import PlanInput
from millpond.errors.engine import QueryAnalysisError, UnresolvedColumnError
from tests.engine.queries import plan, sql, tables
from tests.pipeline_folder import folder

__all__ = ["folder"]

T = [{"k": 1, "A b": 2, "s": {"x": 3, "y": 4}}]
U = [{"k": 1, "z": 5, "view": 6}]


@pytest.mark.parametrize(
    ("text", "names", "row"),
    [
        ("SELECT * EXCEPT (k) FROM t", ["A b", "s"], (2, {"x": 3, "y": 4})),
        ("select * except(K, `a B`), s.x + k AS k FROM t", ["s", "k"], ({"x": 3, "y": 4}, 4)),
        ("SELECT 7 AS n, t.* EXCEPT (s) FROM t", ["n", "k", "A b"], (7, 1, 2)),
        ("SELECT main.sales.t.* EXCEPT (s) FROM main.sales.t", ["k", "A b"], (1, 2)),
        ("SELECT t.* EXCEPT (t.s) FROM t", ["k", "A b"], (1, 2)),
        ("SELECT s.* EXCEPT (x) FROM t", ["y"], (4,)),
        (
            "SELECT * EXCEPT (s, t.k) FROM t JOIN u ON t.k = u.k",
            ["A b", "k", "z", "view"],
            (2, 1, 5, 6),
        ),
        ("SELECT * EXCEPT (z, s) FROM t JOIN u USING (k)", ["k", "A b", "view"], (1, 2, 6)),
        (
            "SELECT t.k, x.* EXCEPT (k) FROM t, u AS x WHERE x.k = t.k",
            ["k", "z", "view"],
            (1, 5, 6),
        ),
        ("SELECT * EXCEPT (s) FROM t LEFT SEMI JOIN u ON t.k = u.k", ["k", "A b"], (1, 2)),
        ("SELECT * EXCEPT (z) FROM (SELECT * EXCEPT (view) FROM u) WHERE k = 1", ["k"], (1,)),
        (
            """
            WITH a AS (SELECT * EXCEPT (s) FROM t), b AS (SELECT * EXCEPT (k) FROM a)
            SELECT * EXCEPT (n), 1 AS one FROM (SELECT *, 2 AS n FROM b)
            """,
            ["A b", "one"],
            (2, 1),
        ),
        (
            "SELECT k FROM t WHERE EXISTS (SELECT * EXCEPT (z) FROM u WHERE u.k = t.k)",
            ["k"],
            (1,),
        ),
        ("SELECT struct(* EXCEPT (view)) AS one FROM u", ["one"], ({"k": 1, "z": 5},)),
        (
            "SELECT * EXCEPT (e) FROM u LATERAL VIEW explode(array(8)) x AS e ORDER BY k LIMIT 1",
            ["k", "z", "view"],
            (1, 5, 6),
        ),
        (
            "SELECT * EXCEPT (z) FROM u UNION ALL SELECT * EXCEPT (z) FROM u LIMIT 1",
            ["k", "view"],
            (1, 6),
        ),
        ("SELECT * EXCEPT (z) FROM u EXCEPT SELECT 2, 2", ["k", "view"], (1, 6)),
        ("SELECT * EXCEPT (`c, d`) FROM (SELECT 1 AS `c, d`, 2 AS `e``f`)", ["e`f"], (2,)),
    ],
)
def test_a_star_gives_the_columns_that_are_not_left_out(engine, tmp_path, text, names, row):
    binder = tables(engine, tmp_path, t=T, u=U)
    found = engine.query(text, binder)
    assert found.column_names == names
    assert [tuple(each.values()) for each in found.to_pylist()] == [row]
    assert engine.schema(plan(engine, sql(text), binder), binder).names == names


@pytest.mark.parametrize(
    ("text", "error_class", "words", "marked"),
    [
        ("SELECT * EXCEPT (kk) FROM t", UnresolvedColumnError, "did you mean", "kk"),
        ("SELECT u.* EXCEPT (t.k) FROM t, u", UnresolvedColumnError, "t.k", "t.k"),
        (
            "SELECT * EXCEPT (z, s) FROM t LEFT SEMI JOIN u USING (k)",
            UnresolvedColumnError,
            "z",
            "z",
        ),
        ("SELECT * EXCEPT (s.x) FROM t", UnresolvedColumnError, "s.x", "s.x"),
        ("SELECT * EXCEPT (k) FROM t, u", QueryAnalysisError, "several columns", "k"),
        ("SELECT * EXCEPT (k) FROM (SELECT k FROM t)", QueryAnalysisError, "no column", "*"),
        ("SELECT * EXCEPT (k) FROM t, (SELECT k FROM u)", QueryAnalysisError, "name them", "*"),
    ],
)
def test_what_can_not_be_left_out_is_told_at_its_place(
    engine, tmp_path, text, error_class, words, marked
):
    binder = tables(engine, tmp_path, t=T, u=U)
    query = sql(text)
    with pytest.raises(error_class) as caught:
        engine.schema(plan(engine, query, binder), binder)
    assert words in str(caught.value)
    assert caught.value.where.column == query.location.column + text.index(
        f"({marked}" if marked != "*" else "*"
    ) + (marked != "*")


def test_a_view_and_a_data_frame_can_leave_columns_out(engine, spark, tmp_path):
    binder = tables(engine, tmp_path, t=T, u=U)
    view = PlanInput(plan(engine, sql("SELECT * EXCEPT (s) FROM t"), binder))

    def bind(read):
        return view if read.name[-1] == "v" else binder(read)

    assert engine.query("SELECT * EXCEPT (k) FROM v", bind).to_pylist() == [{"A b": 2}]
    with engine.defining(bind):
        frame = spark.sql(
            "SELECT * EXCEPT (z) FROM {v} JOIN {u} USING (k)",
            v=spark.table("v"),
            u=spark.table("u"),
        )
        assert frame.columns == ["k", "A b", "view"]


def test_a_stream_with_state_can_leave_columns_out(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE t AS SELECT DISTINCT * EXCEPT (at) FROM STREAM(landing);
        CREATE TEMPORARY VIEW seen AS SELECT DISTINCT * FROM STREAM(landing);
        CREATE STREAMING TABLE u AS SELECT * EXCEPT (at), v + 1 AS w FROM STREAM(seen);
        CREATE STREAMING TABLE r
        FLOW REPLACE USING (k) SEQUENCE BY at BY NAME SELECT * EXCEPT (v) FROM STREAM(landing);
        CREATE MATERIALIZED VIEW m AS SELECT * EXCEPT (w) FROM u;
        """,
    )
    folder.feed("landing", [{"k": 1, "v": 2, "at": 3}, {"k": 1, "v": 2, "at": 4}])
    result = folder.run()
    assert [str(flow.error) for flow in result.flows if flow.error] == []
    assert folder.rows("t") == [(1, 2)]
    assert folder.rows("u") == [(1, 2, 3), (1, 2, 3)]
    assert folder.rows("r") == [(1, 4)]
    assert folder.rows("m") == [(1, 2), (1, 2)]


def test_a_star_beside_metadata_leaves_columns_out_and_gives_no_metadata(folder):
    (folder.root / "data").mkdir()
    (folder.root / "data" / "a.json").write_text('{"k": 1, "v": 2}\n')
    folder.write(
        "p.sql",
        f"""
        CREATE STREAMING TABLE t AS
        SELECT f.* EXCEPT (v, _rescued_data), _metadata.file_name AS name
        FROM STREAM read_files('{folder.root}/data', format => 'json') AS f;
        CREATE MATERIALIZED VIEW m AS
        SELECT * EXCEPT (v, w, _rescued_data), f._metadata.file_name AS name
        FROM read_files('{folder.root}/data', format => 'json') AS f
        JOIN (SELECT 1 AS k, 3 AS w) USING (k);
        """,
    )
    result = folder.run()
    assert [str(flow.error) for flow in result.flows if flow.error] == []
    assert folder.rows("t") == [(1, "a.json")]
    assert folder.rows("m") == [(1, "a.json")]
    assert folder.columns("t") == folder.columns("m") == ["k", "name"]
