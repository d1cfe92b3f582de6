"""LATERAL means what it means in Spark, however the engine reads it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from tests.engine.queries import plan, python, rows, sql, tables

ROWS = [
    {"id": 1, "xs": [1, 2], "m": [("p", 1)]},
    {"id": 2, "xs": [], "m": []},
    {"id": 3, "xs": None, "m": None},
    {"id": 4, "xs": [3, None], "m": [("q", 2), ("r", 3)]},
]
INNER = [(1, 1), (1, 2), (4, 3), (4, None)]
OUTER = [*INNER, (2, None), (3, None)]

TEXTS = {
    "SELECT id, item FROM STREAM t LATERAL VIEW explode(xs) l AS item": INNER,
    "SELECT id, item FROM STREAM t LATERAL VIEW explode(xs) l AS item WHERE id > 0": INNER,
    "SELECT id, item FROM STREAM t LATERAL VIEW OUTER explode(xs) l AS item WHERE id > 0": OUTER,
    "SELECT id, item FROM STREAM t LATERAL VIEW explode(xs) l AS item WHERE item > 1": [(1, 2), (4, 3)],
    "SELECT t.id, l.item FROM STREAM t LATERAL VIEW explode(t.xs) l AS item WHERE l.item > 1": [(1, 2), (4, 3)],
    "SELECT id, col FROM STREAM t LATERAL VIEW explode(xs) l WHERE col = 1": [(1, 1)],
    "SELECT id, item FROM STREAM t LATERAL VIEW explode(xs) AS item WHERE item = 1": [(1, 1)],
    (
        "SELECT item, n FROM STREAM t LATERAL VIEW explode(xs) l AS item "
        "LATERAL VIEW OUTER explode(m) r AS name, n WHERE item > 1 AND name <> 'q'"
    ): [(2, 1), (3, 3)],
    (
        "SELECT place, twice FROM STREAM t LATERAL VIEW posexplode(xs) l AS place, item "
        "LATERAL VIEW explode(array(item * 2)) r AS twice WHERE twice > 2"
    ): [(1, 4), (0, 6)],
    "SELECT id, x FROM STREAM t, LATERAL explode(t.xs) AS l(x)": INNER,
    "SELECT id, x FROM STREAM t,LATERAL explode(xs) l(x) WHERE x > 1": [(1, 2), (4, 3)],
    "SELECT id, x FROM STREAM t CROSS JOIN LATERAL explode(t.xs) AS l(x)": INNER,
    "SELECT id, x FROM STREAM t JOIN LATERAL explode(t.xs) AS l(x) ON true": INNER,
    "SELECT id, x FROM STREAM t LEFT JOIN LATERAL explode(t.xs) AS l(x) ON TRUE": OUTER,
    "SELECT id, x FROM STREAM t LEFT OUTER JOIN LATERAL explode(t.xs) l(x)": OUTER,
    "SELECT id, x FROM STREAM t, LATERAL explode_outer(t.xs) AS l(x)": OUTER,
}  # fmt: skip # a row a line


@pytest.fixture
def read(engine, tmp_path):
    def read(query):
        binder = tables(engine, tmp_path, t=table())
        found = plan(engine, query, binder)
        return rows(engine.stage(found, binder, folder=tmp_path / "rows"))

    return read


def table():
    import pyarrow as pa

    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("xs", pa.list_(pa.int32())),
            ("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    return pa.Table.from_pylist(ROWS, schema=schema)


@pytest.mark.parametrize("text", TEXTS)
def test_rows_of_a_text(read, text):
    assert read(sql(text)) == sorted(TEXTS[text], key=repr)


FRAMES = {
    "inner": (lambda rows, tvf: rows.lateralJoin(tvf.explode(sf.col("xs").outer())), INNER),
    "left": (
        lambda rows, tvf: rows.lateralJoin(tvf.explode(sf.col("xs").outer()), how="left"),
        OUTER,
    ),
    "left, always": (
        lambda rows, tvf: rows.lateralJoin(
            tvf.explode(sf.col("xs").outer()),
            sf.lit(True),
            "left",
        ),
        OUTER,
    ),
    "under another name": (
        lambda rows, tvf: rows.lateralJoin(
            tvf.explode_outer(sf.col("xs").outer()).toDF("item")
        ).where("item IS NOT NULL OR id = 2"),
        [(1, 1), (1, 2), (4, 3), (2, None)],
    ),
    "with a condition": (
        lambda rows, tvf: rows.lateralJoin(tvf.explode(sf.col("xs").outer()), sf.col("col") > 1),
        [(1, 2), (4, 3)],
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_rows_of_a_frame(engine, spark, read, name):
    build, expected = FRAMES[name]

    def function():
        return build(spark.readStream.table("t").select("id", "xs"), spark.tvf).drop("xs")

    assert read(python(function)) == sorted(expected, key=repr)
