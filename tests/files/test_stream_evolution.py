"""Columns of a stream of files: inferred once and kept; what becomes of more, and of misfits."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from millpond.errors.engine import DuplicateColumnError
from millpond.errors.file_reads import (
    ColumnsNotInferredError,
    FilesNotReadError,
    NewColumnsError,
    TooManyColumnsError,
)
from millpond.errors.files import FilesSchemaMissingError, InvalidFileOptionError
from millpond.errors.graph import DeclaredSchemaMismatchError
from millpond.events import FlowStatus

READ = "SELECT * FROM STREAM read_files('SENT', format => 'csv', header => true"


def types(suppliers):
    fields = json.loads(DeltaTable(suppliers.pipeline.table("t")).schema().to_json())["fields"]
    return {field["name"]: field["type"] for field in fields}


def rescued(text):
    """The values that were rescued, without the path of their file."""
    if text is None:
        return None
    found = json.loads(text)
    assert found.pop("_file_path").startswith("file:/")
    return found


def test_types_are_inferred_by_read_files_and_not_by_cloud_files(suppliers):
    suppliers.query(f"{READ})")
    suppliers.write_python(
        """
@dp.table
def c():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
            .option("header", True).load("SENT"))
"""
    )
    suppliers.send("a.csv", "i,d,s\n1,2.5,x\n")
    suppliers.updated()
    assert suppliers.rows("t") == [(1, 2.5, "x", None)]
    assert suppliers.rows("c") == [("1", "2.5", "x", None)]


def test_columns_are_kept_between_updates_and_inferred_anew_by_a_full_refresh(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v\nword\n")
    suppliers.updated()
    assert types(suppliers) == {"v": "integer", "_rescued_data": "string"}
    found = sorted((v, rescued(text)) for v, text in suppliers.rows() if v is not None)
    assert found == [(1, None)]
    assert [rescued(text) for v, text in suppliers.rows() if v is None] == [{"v": "word"}]
    suppliers.updated(full_refresh=["t"])
    assert types(suppliers) == {"v": "string", "_rescued_data": "string"}
    assert suppliers.rows() == [("1", None), ("word", None)]


def test_a_full_refresh_infers_columns_anew_through_a_view_too(suppliers):
    suppliers.write(
        f"CREATE TEMPORARY VIEW b AS {READ}); "
        "CREATE OR REFRESH STREAMING TABLE t AS SELECT v FROM STREAM(b);"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v\nword\n")
    suppliers.updated(full_refresh=["t"])
    assert suppliers.rows() == [("1",), ("word",)]


def test_a_full_refresh_of_a_reader_leaves_the_columns_of_its_source(suppliers):
    suppliers.write(
        f"CREATE OR REFRESH STREAMING TABLE b AS {READ}); "
        "CREATE OR REFRESH STREAMING TABLE t AS SELECT v FROM STREAM(b);"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v\nword\n")
    suppliers.updated(refresh=["b"], full_refresh=["t"])
    assert suppliers.rows() == [(1,), (None,)]


def test_a_full_refresh_of_one_table_leaves_others_the_columns_of_the_same_files(suppliers):
    suppliers.write(
        f"CREATE OR REFRESH STREAMING TABLE t AS {READ}); "
        f"CREATE OR REFRESH STREAMING TABLE u AS {READ});"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v\nword\n")
    suppliers.updated(full_refresh=["t"])
    suppliers.updated()
    assert suppliers.rows("t") == [("1", None), ("word", None)]
    assert [v for v, _ in suppliers.rows("u")] == [1, None]


VIEW = f"CREATE TEMPORARY VIEW b AS {READ}); "


def test_new_columns_come_through_a_view_to_each_table_that_reads_it(suppliers):
    suppliers.write(
        VIEW + "CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(b); "
        "CREATE OR REFRESH STREAMING TABLE u AS SELECT * FROM STREAM(b);"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,new\n")
    errors = [flow.error for flow in suppliers.update().flows]
    assert [type(error) for error in errors] == [NewColumnsError, NewColumnsError]
    suppliers.updated()
    assert types(suppliers) == {"v": "integer", "_rescued_data": "string", "w": "string"}
    for table in ("t", "u"):
        assert suppliers.rows(table) == [(1, None, None), (2, None, "new")]
    suppliers.write(
        f"CREATE TEMPORARY VIEW b AS {READ.replace('*', 'w, v')}); "
        "CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(b);"
    )
    suppliers.send("c.csv", "v,w\n3,more\n")
    suppliers.updated()
    assert (3, None, "more") in suppliers.rows()


def test_a_full_refresh_of_one_reader_of_a_view_leaves_the_other_its_columns(suppliers):
    suppliers.write(
        VIEW + "CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(b); "
        "CREATE OR REFRESH STREAMING TABLE u AS SELECT * FROM STREAM(b);"
    )
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v\nword\n")
    suppliers.updated(full_refresh=["t"])
    suppliers.updated()
    assert suppliers.rows("t") == [("1", None), ("word", None)]
    assert [v for v, _ in suppliers.rows("u")] == [1, None]


INFERRING = (
    'spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")'
    '.option("cloudFiles.inferColumnTypes", True).option("header", True){}.load("SENT")'
)


@pytest.mark.parametrize(
    ("read", "hint"),
    [
        (f"{READ}HINTS)", "schemaHints => 'price decimal(10,2)'"),
        (
            INFERRING.format("HINTS"),
            '.option("cloudFiles.schemaHints", "price decimal(10,2)")',
        ),
    ],
)
def test_a_declared_type_that_was_inferred_otherwise_is_given_where_files_are_read(
    suppliers, read, hint
):
    """By the time of a CAST, a price of 1.10 would be NULL already."""
    declared = "price decimal(10,2), _rescued_data string"

    def pipeline(hints):
        if "spark" in read:
            decorator = f'@dp.table(schema="{declared}")'
            suppliers.write_python(f"{decorator}\ndef t(): return {read.replace('HINTS', hints)}")
        else:
            suppliers.write(
                f"CREATE OR REFRESH STREAMING TABLE t ({declared}) AS "
                + read.replace("HINTS", f", {hints}" if hints else "")
            )

    pipeline("")
    suppliers.send("a.csv", "price\n1\n")
    error = suppliers.error()
    assert isinstance(error, DeclaredSchemaMismatchError)
    assert hint in error.hint
    pipeline(hint)
    suppliers.send("b.csv", "price\n1.10\n")
    suppliers.updated()
    assert sorted(suppliers.rows()) == [(Decimal("1.00"), None), (Decimal("1.10"), None)]


def test_without_files_columns_cannot_be_told_and_the_next_update_tells_them(suppliers):
    suppliers.query(f"{READ})")
    assert isinstance(suppliers.error(), ColumnsNotInferredError)
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    assert suppliers.rows() == [(1, None)]


def test_with_given_columns_a_folder_may_be_empty(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT')")
    suppliers.updated()
    assert suppliers.rows() == []


def test_new_columns_stop_the_update_once_and_the_next_one_has_them(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n", at_s=1)
    suppliers.send("c.csv", "v\n3\n", at_s=2)
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "b.csv: 'w' string" in str(error)
    # The others of the batch were read.
    assert suppliers.rows() == [(1, None), (3, None)]
    suppliers.updated()
    assert sorted((v, w) for v, w, _ in map(by_name(suppliers), suppliers.rows())) == [
        (1, None),
        (2, "x"),
        (3, None),
    ]
    suppliers.updated()
    assert len(suppliers.rows()) == 3


def by_name(suppliers):
    """Rows as v, w and what was rescued, however the table orders its columns."""
    columns = suppliers.pipeline.columns("t")
    wanted = [columns.index(name) for name in ("v", "w", "_rescued_data")]
    return lambda row: tuple(row[index] for index in wanted)


SENDER = READ.replace("*", "*, _metadata.file_name AS sender")
OTHER = "CREATE OR REFRESH STREAMING TABLE other AS " + READ.replace("SENT", "others") + "); "


@pytest.fixture
def beside(suppliers):
    """Tables over two folders, the first update of both done; the other's files come later."""

    def start(definition):
        others = suppliers.sent.parent / "others"
        others.mkdir()
        suppliers.write(f"{definition}; {OTHER.replace('others', str(others))}")
        (others / "1.csv").write_text("o\n1\n")
        suppliers.updated()
        (others / "2.csv").write_text("o\n2\n")

    return start


def read_by_other(suppliers):
    return [row[0] for row in suppliers.rows("other")]


def test_a_new_column_that_the_query_has_already_costs_its_file_alone(suppliers, beside):
    suppliers.send("a.csv", "v\n1\n")
    beside(f"CREATE OR REFRESH STREAMING TABLE t AS {SENDER})")
    suppliers.send("bad.csv", "v,Sender\n2,me\n", at_s=1)
    suppliers.send("good.csv", "v,w\n3,x\n", at_s=2)
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "good.csv: 'w' string\n1 file could not be read:\n" in str(error)
    assert "bad.csv: its new column 'Sender' string can't be added" in str(error)
    for _ in range(2):
        error = suppliers.error()
        assert isinstance(error, FilesNotReadError)
        assert "bad.csv: its new column 'Sender' string can't be added" in str(error)
        assert "good.csv" not in str(error)
        assert {v: row["sender"] for v, row in by_v(suppliers).items()} == {
            1: "a.csv",
            3: "good.csv",
        }
        assert read_by_other(suppliers) == [1, 2]
    (suppliers.sent / "bad.csv").unlink()
    suppliers.updated()
    suppliers.updated()


DECLARED = "CREATE OR REFRESH STREAMING TABLE t (v INT, _rescued_data STRING) AS "
PLAIN = f"CREATE OR REFRESH STREAMING TABLE t AS {READ}); "
VIEWED = f"CREATE TEMPORARY VIEW b AS {SENDER}); "


@pytest.mark.parametrize(
    "pipeline",
    [
        f"CREATE OR REFRESH STREAMING TABLE t AS {SENDER})",
        f"{DECLARED}{READ})",
        VIEWED + "CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(b)",
        PLAIN + "CREATE MATERIALIZED VIEW m AS SELECT *, 1 AS sender FROM t",
        PLAIN + "CREATE TEMPORARY VIEW w AS SELECT *, 1 AS sender FROM t; "
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM w",
    ],
    ids=["the query", "the table", "a view above", "a reader below", "a reader by a view"],
)
def test_the_update_that_meets_a_column_says_already_what_cannot_take_it(suppliers, pipeline):
    suppliers.write(pipeline)
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("bad.csv", "v,sender\n2,me\n")
    first = suppliers.update().flows[0].error
    assert isinstance(first, FilesNotReadError)
    assert "bad.csv: its new column 'sender' string can't be added" in str(first)
    assert str(suppliers.update().flows[0].error) == str(first)


@pytest.mark.parametrize(
    "pipeline",
    [
        f"CREATE OR REFRESH STREAMING TABLE t AS {SENDER.replace('*', 'v')})",
        f"{DECLARED}{READ.replace('*', 'v')})",
        PLAIN + "CREATE MATERIALIZED VIEW m AS SELECT v, 1 AS sender FROM t",
    ],
    ids=["the query", "the table", "a reader below"],
)
def test_what_takes_no_columns_by_a_star_can_take_any(suppliers, pipeline):
    suppliers.write(pipeline)
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,sender\n2,me\n")
    first = suppliers.update().flows[0].error
    assert isinstance(first, NewColumnsError)
    assert "The next update adds the columns" in str(first)
    suppliers.updated()
    assert len(suppliers.rows()) == 2


def test_a_refused_column_is_taken_once_the_query_can_take_it(suppliers, beside):
    suppliers.send("a.csv", "v\n1\n")
    beside(f"CREATE OR REFRESH STREAMING TABLE t AS {SENDER})")
    suppliers.send("b.csv", "v,sender\n2,me\n")
    suppliers.error()
    suppliers.error()
    suppliers.query(READ.replace("*", "v, sender") + ")")
    suppliers.updated()
    assert sorted(row[:1] + row[-1:] for row in suppliers.rows()) == [(1, "a.csv"), (2, "me")]


def test_a_new_column_that_a_reader_of_the_table_has_already_costs_its_file_alone(
    suppliers, beside
):
    suppliers.send("a.csv", "v\n1\n")
    beside(
        f"CREATE OR REFRESH STREAMING TABLE t AS {READ}); "
        "CREATE MATERIALIZED VIEW m AS SELECT *, 1 AS extra FROM t"
    )
    suppliers.send("b.csv", "v,extra\n2,me\n")
    suppliers.update()
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "'extra' string can't be added" in str(error)
    assert len(suppliers.rows("m")) == 1


def test_a_new_column_that_is_not_declared_costs_its_file_alone(suppliers, beside):
    suppliers.send("a.csv", "v\n1\n")
    beside(f"CREATE OR REFRESH STREAMING TABLE t (v INT, _rescued_data STRING) AS {READ})")
    suppliers.send("b.csv", "v,w\n2,me\n")
    suppliers.error()
    assert "'w' string can't be added" in str(suppliers.error())
    assert read_by_other(suppliers) == [1, 2]


def test_new_columns_of_two_flows_that_contradict_each_other_cost_one_file(suppliers, beside):
    for part in ("north", "south"):
        suppliers.send(f"{part}/1.json", '{"v": 1}')
    read = "INSERT INTO t BY NAME SELECT * FROM STREAM read_files('SENT/{}', format => 'json')"
    beside(
        "CREATE OR REFRESH STREAMING TABLE t; "
        f"CREATE FLOW n AS {read.format('north')}; CREATE FLOW s AS {read.format('south')}"
    )
    suppliers.send("north/2.json", '{"v": 2, "w": "x"}')
    suppliers.send("south/2.json", '{"v": 3, "w": {"y": 1}}')
    assert len([flow for flow in suppliers.update().flows if flow.error]) == 2
    for _ in range(2):
        error = suppliers.error()
        assert "south/2.json: its new column 'w' struct<y:bigint> can't be added" in str(error)
        assert len(suppliers.rows()) == 3
    assert read_by_other(suppliers) == [1, 2]


def test_a_new_column_that_the_table_cannot_take_costs_its_file_alone(suppliers):
    """It has one of that name and another type, from a query of earlier days."""
    suppliers.query("SELECT *, 'x' AS w" + READ.removeprefix("SELECT *") + ")")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.query(f"{READ})")
    suppliers.send("b.csv", "v,w\n2,3\n")
    suppliers.send("c.csv", "v\n3\n", at_s=1)
    suppliers.error()
    assert "'w' int can't be added" in str(suppliers.error())
    suppliers.send("d.csv", "v\n4\n", at_s=2)
    suppliers.error()
    assert sorted(by_v(suppliers)) == [1, 3, 4]


def test_columns_inferred_at_first_are_kept_once_the_queries_can_take_them(suppliers):
    suppliers.query(f"{SENDER})")
    suppliers.send("a.csv", "v\n1\n")
    bad = suppliers.send("bad.csv", "v,sender\n2,me\n")
    assert isinstance(suppliers.error(), DuplicateColumnError)
    bad.unlink()
    suppliers.updated()
    assert by_v(suppliers).keys() == {1}


def test_a_csv_file_without_any_of_the_columns_is_left_until_it_is_mended_or_they_are_named(
    suppliers,
):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv", "v,w\n1,2\n")
    suppliers.updated()
    suppliers.send("more.csv", "v,w,x\n3,4,5\n")
    suppliers.send("separator.csv", "v;w\n6;7\n")
    suppliers.send("no-header.csv", "8,9\n")
    told = f"  {suppliers.uri('separator.csv')}: it has none of the stream's columns"
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "more.csv: 'x' int" in str(error)
    assert told in str(error)
    for _ in range(2):
        error = suppliers.error()
        assert isinstance(error, FilesNotReadError)
        assert told in str(error)
        assert suppliers.uri("no-header.csv") in str(error)
        assert sorted(by_v(suppliers)) == [1, 3]
    suppliers.send("no-header.csv", "v,w\n8,9\n")
    suppliers.query(f"{READ}, schemaHints => '`v;w` STRING')")
    suppliers.updated()
    assert sorted(map(str, by_v(suppliers))) == ["1", "3", "8", "None"]


def test_a_file_of_too_many_columns_holds_no_other_up(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'failOnNewColumns')")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    names = [f"c{number}" for number in range(2_600)]
    suppliers.send("wide.csv", f"{','.join(names)}\n{','.join(names)}\n")
    suppliers.send("b.csv", "v\n2\n", at_s=1)
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "wide.csv" in str(error)
    assert sorted(by_v(suppliers)) == [1, 2]


def test_new_columns_of_several_files_come_together(suppliers):
    suppliers.query(f"{READ}, maxFilesPerTrigger => 1)")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n", at_s=1)
    suppliers.send("c.csv", "v,z\n3,7\n", at_s=2)
    broken = suppliers.send("broken.csv.gz", b"this is no gzip")
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "b.csv: 'w' string" in str(error)
    assert "c.csv: 'z' int" in str(error)
    assert suppliers.uri("broken.csv.gz") in str(error)
    broken.unlink()
    suppliers.updated()
    assert set(suppliers.pipeline.columns("t")) == {"v", "w", "z", "_rescued_data"}
    assert len(suppliers.rows()) == 3


def test_new_fields_of_columns_stop_the_update_once_too(suppliers):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("a.json", '{"who": {"name": "x"}, "tags": [{"k": 1}]}')
    suppliers.updated()
    suppliers.send(
        "b.json", '{"who": {"name": "y", "age": 3}, "tags": [{"k": 2, "v": "z"}]}', at_s=1
    )
    assert isinstance(suppliers.error(), NewColumnsError)
    suppliers.updated()
    assert sorted(suppliers.rows(), key=repr) == [
        ([{"k": 1, "v": None}], {"name": "x", "age": None}, None),
        ([{"k": 2, "v": "z"}], {"name": "y", "age": 3}, None),
    ]


def test_columns_called_like_those_beside_the_files_are_rescued_and_not_new(suppliers):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("day=7/a.json", '{"DAY": 1, "v": 2, "_rescued_data": "x"}')
    suppliers.updated()
    [(v, day, text)] = suppliers.rows()
    assert (v, day, rescued(text)) == (2, 7, {"DAY": 1, "_rescued_data": "x"})


FORGED = '{"v": 2, "_metadata": {"file_name": "a.json"}}'
NAMED = "SELECT v, _metadata.file_name AS f, _rescued_data FROM STREAM read_files('SENT', format => 'json'"


@pytest.mark.parametrize("comes", ["with the first files", "later"])
@pytest.mark.parametrize("forged", [FORGED, '{"v": 2, "_METADATA": 7}'])
def test_a_file_cannot_take_over_what_metadata_means(suppliers, comes, forged):
    suppliers.query(f"{NAMED})")
    suppliers.send("a.json", '{"v": 1}')
    if comes == "later":
        suppliers.updated()
    suppliers.send("evil.json", forged, at_s=1)
    suppliers.updated()
    one, two = suppliers.rows()
    assert one == (1, "a.json", None)
    assert two[:2] == (2, "evil.json")
    assert rescued(two[2]) == {k: v for k, v in json.loads(forged).items() if k != "v"}


def test_metadata_in_files_is_theirs_where_the_user_gives_its_type(suppliers):
    hint = "_metadata STRUCT<file_name: STRING>"
    suppliers.query(f"{NAMED}, schemaHints => '{hint}')")
    suppliers.send("mine.json", FORGED)
    suppliers.updated()
    assert suppliers.rows() == [(2, "a.json", None)]


def test_a_folder_named_metadata_gives_no_column(suppliers):
    suppliers.query(f"{NAMED})")
    suppliers.send("_metadata=7/a.json", '{"v": 1}')
    suppliers.updated()
    assert [row[:2] for row in suppliers.rows()] == [(1, "a.json")]


def test_columns_are_inferred_from_the_files_that_can_be_read(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("a.csv.gz", "broken")
    suppliers.send("b.csv", "v\n1\n", at_s=1)
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert str(error).count("a.csv.gz") == 1
    assert suppliers.rows() == [(1, None)]


def test_rescue_keeps_new_columns_beside_the_others(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'rescue')")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n")
    suppliers.updated()
    assert sorted((v, rescued(text)) for v, text in suppliers.rows()) == [
        (1, None),
        (2, {"w": "x"}),
    ]
    text = next(text for v, text in suppliers.rows() if v == 2)
    assert json.loads(text)["_file_path"] == suppliers.uri("b.csv")


def test_a_rescued_column_can_have_another_name(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'rescue', rescuedDataColumn => 'odd')")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["v", "odd"]


@pytest.mark.parametrize(
    ("option", "column"),
    [
        ("schemaEvolutionMode => 'rescue'", "_rescued_data"),
        ("rescuedDataColumn => 'odd'", "odd"),
    ],
)
def test_what_does_not_fit_a_given_schema_is_kept_where_that_is_asked_for(
    suppliers, option, column
):
    suppliers.query(f"{READ}, schema => 'v INT', {option})")
    suppliers.send("a.csv", "v,w\n1,x\nmany,y\n")
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["v", column]
    assert sorted((v or 0, rescued(text)) for v, text in suppliers.rows()) == [
        (0, {"v": "many", "w": "y"}),
        (1, {"w": "x"}),
    ]


def test_what_is_told_to_do_about_new_columns_beside_a_given_schema_can_be_done(suppliers):
    read = f"{READ}, schema => 'v INT', schemaEvolutionMode => '{{}}')"
    suppliers.query(read.format("failOnNewColumns"))
    suppliers.send("a.csv", "v,w\n1,x\n")
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "addNewColumns" not in error.hint
    assert "schemaHints" not in error.hint
    assert "set schemaEvolutionMode to rescue" in error.hint
    suppliers.query(read.format("rescue"))
    suppliers.updated()
    [(v, text)] = suppliers.rows()
    assert (v, rescued(text)) == (1, {"w": "x"})


def test_fail_on_new_columns_leaves_such_files_for_good(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'failOnNewColumns')")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n")
    suppliers.send("c.csv", "v\n3\n")
    for _ in range(2):
        error = suppliers.error()
        assert isinstance(error, NewColumnsError)
        assert "b.csv: 'w' string" in str(error)
        assert [row[0] for row in suppliers.rows()] == [1, 3]
    suppliers.send("b.csv", "v\n2\n")
    suppliers.updated()
    assert [row[0] for row in suppliers.rows()] == [1, 2, 3]


def test_none_passes_new_columns_over(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'none')")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n")
    suppliers.updated()
    assert suppliers.pipeline.columns("t") == ["v"]
    assert suppliers.rows() == [(1,), (2,)]


def test_given_columns_take_no_new_ones(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT, _rescued_data STRING')")
    suppliers.send("b.csv", "v,w\n2,x\n")
    suppliers.updated()
    assert [(v, rescued(text)) for v, text in suppliers.rows()] == [(2, {"w": "x"})]


def test_given_columns_and_new_columns_contradict_each_other(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT', schemaEvolutionMode => 'addNewColumns')")
    assert isinstance(suppliers.error(), InvalidFileOptionError)


def test_hints_change_types_and_add_columns(suppliers):
    suppliers.query(f"{READ}, schemaHints => 'p DECIMAL(10, 2), later STRING')")
    suppliers.send("a.csv", "v,p\n1,2.5\n")
    suppliers.updated()
    assert types(suppliers)["p"] == "decimal(10,2)"
    assert types(suppliers)["later"] == "string"
    suppliers.send("b.csv", "v,p,later\n2,3,x\n")
    suppliers.updated()
    columns = suppliers.pipeline.columns("t")
    found = [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]
    assert [(row["v"], row["p"], row["later"]) for row in found] == [
        (1, Decimal("2.50"), None),
        (2, Decimal("3.00"), "x"),
    ]


def test_hints_reach_into_columns(suppliers):
    suppliers.query(
        "SELECT * FROM STREAM read_files('SENT', format => 'json', schemaHints => 'a.b BIGINT')"
    )
    suppliers.send("a.json", '{"a": {"b": 1, "c": "x"}}\n')
    suppliers.updated()
    fields = {field["name"]: field["type"] for field in types(suppliers)["a"]["fields"]}
    assert fields == {"b": "long", "c": "string"}


def test_given_columns_come_from_folders_that_were_not_there_at_first(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT, Day DATE')")
    suppliers.updated()
    suppliers.send("day=2026-01-31/a.csv", "v\n1\n")
    suppliers.send("DAY=2026-02-01/a.csv", "v\n2\n")
    suppliers.updated()
    assert suppliers.rows() == [(1, date(2026, 1, 31)), (2, date(2026, 2, 1))]


def by_v(suppliers):
    """Rows by their column `v`, without the path of what was rescued."""
    columns = suppliers.pipeline.columns("t")
    found = {}
    for values in suppliers.rows():
        row = dict(zip(columns, values, strict=True))
        row["_rescued_data"] = rescued(row["_rescued_data"])
        found[row.pop("v")] = row
    return found


def test_a_folder_whose_value_has_another_type_is_rescued(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("n=1/a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("n=1.7/a.csv", "v\n2\n")
    suppliers.send("n=x'%22y/a.csv", "v\nword\n")
    suppliers.send("n=2/a.csv", "v\n3\n")
    suppliers.updated()
    assert by_v(suppliers) == {
        1: {"n": 1, "_rescued_data": None},
        2: {"n": None, "_rescued_data": {"n": "1.7"}},
        None: {"n": None, "_rescued_data": {"v": "word", "n": "x'\"y"}},
        3: {"n": 2, "_rescued_data": None},
    }


def test_a_folder_whose_value_has_another_type_is_told_of_where_nothing_is_rescued(suppliers):
    suppliers.query(f"{READ}, schema => 'v INT, n INT')")
    suppliers.send("n=1/a.csv", "v\n1\n")
    suppliers.send("n=1.7/a.csv", "v\n2\n")
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert (
        "n=1.7/a.csv: [FILE_COLUMN_TYPE_MISMATCH] The value of the folder n=1.7 is no int"
        in str(error)
    )
    assert suppliers.rows() == [(1, 1)]


def test_a_new_level_of_folders_is_a_new_column(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("day=1/a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("day=2/hour=3/a.csv", "v\n2\n")
    suppliers.send("day=2/b.csv", "v\n3\n")
    error = suppliers.error()
    assert isinstance(error, NewColumnsError)
    assert "day=2/hour=3/a.csv: 'hour' int" in str(error)
    assert by_v(suppliers).keys() == {1, 3}
    suppliers.updated()
    assert by_v(suppliers)[2] == {"day": 2, "hour": 3, "_rescued_data": None}
    assert by_v(suppliers)[3] == {"day": 2, "hour": None, "_rescued_data": None}


def test_a_new_level_of_folders_is_rescued_where_new_columns_are(suppliers):
    suppliers.query(f"{READ}, schemaEvolutionMode => 'rescue')")
    suppliers.send("day=1/a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("day=2/hour=3/a.csv", "v,w\n2,x\n3,\n")
    suppliers.updated()
    assert by_v(suppliers)[2] == {"day": 2, "_rescued_data": {"w": "x", "hour": "3"}}
    assert by_v(suppliers)[3] == {"day": 2, "_rescued_data": {"hour": "3"}}


@pytest.mark.parametrize("when", ["at first", "later"])
def test_a_path_that_gives_a_column_twice_costs_its_own_file_alone(suppliers, when):
    suppliers.query(f"{READ})")
    suppliers.send("day=1/a.csv", "v\n1\n")
    if when == "later":
        suppliers.updated()
    suppliers.send("day=2/DAY=3/a.csv", "v\n2\n")
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert "day=2/DAY=3/a.csv: The path of " in str(error)
    assert by_v(suppliers) == {1: {"day": 1, "_rescued_data": None}}


def test_given_columns_are_not_kept_for_a_read_that_infers_its_own(suppliers):
    suppliers.query(f"{READ}, schema => 'v STRING')", name="given")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.query(f"{READ})")
    suppliers.updated()
    assert [row[0] for row in suppliers.rows()] == [1]


def test_folders_give_columns_that_files_do_not_have(suppliers):
    suppliers.query(f"{READ})")
    suppliers.send("year=2024/country=A%20B/a.csv", "v\n1\n")
    suppliers.send("year=2025/country=C/a.csv", "v\n2\n")
    suppliers.updated()
    columns = suppliers.pipeline.columns("t")
    found = [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]
    assert [(row["v"], row["year"], row["country"]) for row in found] == [
        (1, 2024, "A B"),
        (2, 2025, "C"),
    ]
    # A value that is no number comes later.
    suppliers.send("year=__HIVE_DEFAULT_PARTITION__/country=D/a.csv", "v\n3\n")
    suppliers.updated()
    found = [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]
    assert (3, None, "D") in [(row["v"], row["year"], row["country"]) for row in found]


def test_a_plain_stream_wants_its_columns(suppliers):
    suppliers.write_python(
        """
@dp.table
def t():
    return spark.readStream.format("csv").load("SENT")
"""
    )
    error = suppliers.error()
    assert isinstance(error, FilesSchemaMissingError)


def test_a_table_that_reads_named_columns_goes_on_after_new_ones(suppliers):
    """The new column is none of the query's: the table stays as it is."""
    suppliers.query(READ.replace("*", "v") + ")")
    suppliers.send("a.csv", "v\n1\n")
    suppliers.updated()
    suppliers.send("b.csv", "v,w\n2,x\n")
    result = suppliers.update()
    assert [flow.status for flow in result.flows] == [FlowStatus.FAILED]
    suppliers.updated()
    assert suppliers.rows() == [(1,), (2,)]


def test_new_fields_inside_columns_are_added_as_well(suppliers):
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("a.json", '{"n": {"x": 1}, "l": [{"y": 1}]}\n')
    suppliers.updated()
    suppliers.send("b.json", '{"n": {"x": 2, "z": "new"}, "l": [{"y": 2, "w": true}]}\n')
    assert isinstance(suppliers.error(), NewColumnsError)
    suppliers.updated()
    columns = suppliers.pipeline.columns("t")
    found = [dict(zip(columns, row, strict=True)) for row in suppliers.rows()]
    assert sorted(((row["n"], row["l"]) for row in found), key=repr) == [
        ({"x": 1, "z": None}, [{"w": None, "y": 1}]),
        ({"x": 2, "z": "new"}, [{"w": True, "y": 2}]),
    ]


def test_columns_without_end_are_not_inferred(suppliers):
    """As where keys of JSON are values themselves."""
    suppliers.query("SELECT * FROM STREAM read_files('SENT', format => 'json')")
    suppliers.send("a.json", json.dumps({f"k{n}": n for n in range(2001)}))
    error = suppliers.error()
    assert isinstance(error, TooManyColumnsError)
    suppliers.send("b.json", '{"v": 1}')
    error = suppliers.error()
    assert isinstance(error, FilesNotReadError)
    assert f"{suppliers.uri('a.json')}: Its columns, with those of the other" in str(error)
    assert suppliers.rows() == [(1, None)]
