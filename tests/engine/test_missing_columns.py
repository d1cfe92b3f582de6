"""A column that is not there: what was likely meant, and where `_metadata` of files can be named."""

from __future__ import annotations

import pytest

from millpond.errors.engine import InvalidSequenceError, QueryRunError, UnresolvedColumnError
from millpond.runner import dry_run
from tests.engine.queries import empty, plan, sql, tables
from tests.pipeline_folder import folder

__all__ = ["folder"]

ONLY_WHERE_READ = "only where files are read there is _metadata"


def problem(folder, text):
    """What is wrong with a pipeline that reads a folder of files with the columns k and file."""
    data = folder.root / "data"
    data.mkdir()
    (data / "a.json").write_text('{"k": 1, "file": "x"}\n')
    files = f"read_files('{data}', format => 'json') AS f"
    folder.write("p.sql", text.replace("FILES", files))
    (found,) = dry_run(folder.project())
    return found


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        ("_metadata.file_pth", "did you mean _metadata.file_path?"),
        ("f._metadata.FILE_NAM", "did you mean _metadata.file_name?"),
        ("metadata.file_size", "did you mean _metadata.file_size?"),
        ("file_modification_time", "did you mean _metadata.file_modification_time?"),
        ("_metadata.zzz", "the fields of _metadata are file_path, file_name, file_size"),
        ("fil", "did you mean file?"),
        ("file_siz_of_mine", "the columns are _rescued_data, file, k"),
    ],
)
def test_fields_of_metadata_are_told_where_files_are_read(folder, item, hint):
    found = problem(folder, f"CREATE STREAMING TABLE t AS SELECT k, {item} FROM STREAM FILES")
    assert isinstance(found, UnresolvedColumnError)
    assert found.hint.startswith(hint)


@pytest.mark.parametrize(
    ("cure", "is_cured"),
    [
        ("schema => 'k INT'", False),
        ("schemaEvolutionMode => 'none'", False),
        ("schema => 'k INT, _rescued_data STRING'", True),
        ("schema => 'k INT', rescuedDataColumn => '_rescued_data'", True),
        ("schemaEvolutionMode => 'none', rescuedDataColumn => '_rescued_data'", True),
    ],
)
def test_the_column_of_rescued_values_is_told_how_to_ask_for(folder, cure, is_cured):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE t AS SELECT k, _rescued_data "
        f"FROM STREAM read_files('{folder.root}/data/*', format => 'json', {cure})",
    )
    (folder.root / "data").mkdir()
    (folder.root / "data" / "a.json").write_text('{"k": 1}')
    problems = dry_run(folder.project())
    if is_cured:
        assert not problems
        return
    assert isinstance(problems[0], UnresolvedColumnError)
    assert "given (_rescued_data STRING), or set the option rescuedDataColumn" in problems[0].hint


def test_metadata_is_told_to_be_where_files_are_read(folder):
    found = problem(
        folder,
        """
        CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM FILES;
        CREATE STREAMING TABLE t AS SELECT _metadata.file_path FROM STREAM(v);
        """,
    )
    assert isinstance(found, UnresolvedColumnError)
    assert found.hint.startswith(ONLY_WHERE_READ)


def test_an_expectation_can_not_name_metadata(folder):
    found = problem(
        folder,
        """
        CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (_metadata.file_size > 1))
        AS SELECT k FROM STREAM FILES;
        """,
    )
    assert isinstance(found, UnresolvedColumnError)
    assert found.hint.startswith(ONLY_WHERE_READ)


def test_a_sequence_can_not_name_metadata(folder):
    found = problem(
        folder,
        """
        CREATE STREAMING TABLE t
        FLOW REPLACE USING (k) SEQUENCE BY _metadata.file_modification_time BY NAME
        SELECT k FROM STREAM FILES;
        """,
    )
    assert isinstance(found, InvalidSequenceError)
    assert found.hint.startswith(ONLY_WHERE_READ)
    assert "ObjectName" not in str(found)


def test_a_sequence_of_a_column_that_is_not_there_is_told_in_plain_words(engine, spark):
    from pyspark.sql import functions as sf

    schema = engine.parse_schema("k INT, updated TIMESTAMP")
    for sequence in ("updatd + INTERVAL 1 DAY", sf.col("updatd")):
        with pytest.raises(InvalidSequenceError, match="names the column updatd, which") as caught:
            engine.sequence_type(sequence, schema)
        assert caught.value.hint == "did you mean updated?"
    with pytest.raises(InvalidSequenceError) as caught:
        engine.sequence_type(sf.col("_metadata.file_size"), schema)
    assert caught.value.hint.startswith(ONLY_WHERE_READ)


def test_long_names_are_cut_in_messages(engine):
    long = "k" * 100_000
    binder = empty(engine, f"{long} INT, v INT")
    with pytest.raises(UnresolvedColumnError) as caught:
        engine.schema(plan(engine, sql("SELECT nope FROM t"), binder), binder)
    assert len(str(caught.value)) < 500


def test_long_values_of_the_data_are_cut_in_messages(engine, tmp_path):
    binder = tables(engine, tmp_path, t=[{"v": "x" * 100_000}])
    with pytest.raises(QueryRunError) as caught:
        engine.query("SELECT CAST(v AS INT) FROM t", binder)
    assert "x" * 100 in str(caught.value)
    assert len(str(caught.value)) < 3_000
