"""What all source files of a project define together."""

import pytest

from millpond.definitions import Language
from millpond.errors.project import (
    DuplicateDatasetError,
    DuplicateFlowError,
    PythonSyntaxError,
    SourceFileFailedError,
)
from millpond.project import find_spec, load_pipeline, load_spec


def tables(pipeline):
    return [dataset.name.table for dataset in pipeline.datasets]


def places(error):
    return error.what.partition("at ")[2].rstrip("."), str(error.where)


def test_python_and_sql_files_define_one_pipeline(project):
    project.python("transformations/b.py", "@dp.table\ndef orders(): ...\n")
    project.write(
        "transformations/a.sql",
        "CREATE OR REFRESH MATERIALIZED VIEW totals AS SELECT count(*) AS n FROM orders;",
    )
    pipeline = project.loaded()
    assert [str(dataset.name) for dataset in pipeline.datasets] == [
        "main.sales.totals",
        "main.sales.orders",
    ]
    assert [flow.language for flow in pipeline.flows] == [Language.SQL, Language.PYTHON]


def test_the_configuration_reaches_sql_files(project):
    project.write(
        "spark-pipeline.yml",
        "name: shop\nstorage: store\nconfiguration: {table: orders}\n"
        "libraries: [{glob: {include: transformations/**}}]",
    )
    project.write("transformations/a.sql", "CREATE TEMPORARY VIEW ${table} AS SELECT 1 AS a")
    assert tables(project.loaded()) == ["orders"]


def test_a_file_that_fails_stops_only_itself(project):
    project.python(
        "transformations/a.py", "@dp.table\ndef first(): ...\n1 / 0\n@dp.table\ndef late(): ...\n"
    )
    project.write("transformations/b.py", "def broken(:\n")
    project.python("transformations/c.py", "@dp.table\ndef last(): ...\n")
    pipeline, problems = project.load()
    assert tables(pipeline) == ["first", "last"]
    assert [type(problem) for problem in problems] == [SourceFileFailedError, PythonSyntaxError]


@pytest.mark.parametrize(
    "second",
    [
        "CREATE STREAMING TABLE orders",
        "CREATE STREAMING TABLE main.sales.`orders`",
        "CREATE MATERIALIZED VIEW Sales.ORDERS AS SELECT 1 AS a",
        "CREATE TEMPORARY VIEW orders AS SELECT 1 AS a",
    ],
)
def test_a_name_is_defined_once_whatever_the_language(project, second):
    project.python("transformations/a.py", "@dp.table\ndef orders(): ...\n")
    project.write("transformations/b.sql", f"\n\n{second};")
    pipeline, (error,) = project.load()
    assert isinstance(error, DuplicateDatasetError)
    first, second_place = places(error)
    assert first == "transformations/a.py:2"
    assert second_place.startswith("transformations/b.sql:3")
    assert tables(pipeline) == ["orders"]
    assert [flow.language for flow in pipeline.flows] == [Language.PYTHON]


def test_a_loop_that_defines_one_name_twice_is_reported(project):
    project.python(
        "transformations/a.py",
        """
        for region in ("north", "south"):
            @dp.table
            def sales(region=region):
                return region
        """,
    )
    pipeline, (error,) = project.load()
    assert isinstance(error, DuplicateDatasetError)
    assert [flow.query.function() for flow in pipeline.flows] == ["north"]


def test_a_flow_name_stands_once_in_a_pipeline(project):
    project.python(
        "transformations/a.py",
        """
        dp.create_streaming_table("orders")

        @dp.append_flow(target="orders")
        def shop(): ...
        """,
    )
    project.python(
        "transformations/b.py", '@dp.append_flow(target="orders", name="SHOP")\ndef other(): ...\n'
    )
    pipeline, (error,) = project.load()
    assert isinstance(error, DuplicateFlowError)
    assert places(error) == ("transformations/a.py:5", "transformations/b.py:2")
    assert len(pipeline.flows) == 1


def test_a_flow_may_have_the_name_of_a_table_that_has_no_query(project):
    project.python(
        "transformations/a.py",
        """
        dp.create_streaming_table("orders")

        @dp.append_flow(target="orders")
        def orders(): ...
        """,
    )
    assert [flow.name for flow in project.loaded().flows] == ["main.sales.orders"]


def test_a_flow_with_the_name_of_a_tables_own_is_refused(project):
    project.python(
        "transformations/a.py",
        """
        @dp.table
        def orders(): ...

        @dp.append_flow(target="orders", name="orders")
        def more(): ...
        """,
    )
    _, (error,) = project.load()
    assert isinstance(error, DuplicateFlowError)


def test_a_folder_that_apache_spark_made_loads_as_it_is(project, tmp_path, monkeypatch):
    from pyspark.pipelines.init_cli import init

    monkeypatch.chdir(tmp_path)
    init("made_by_spark")
    folder = tmp_path.resolve() / "made_by_spark"
    spec = load_spec(find_spec(folder))
    assert spec.storage == folder / "pipeline-storage"
    pipeline, problems = load_pipeline(spec, project.session)
    assert problems == []
    assert tables(pipeline) == ["example_python_materialized_view", "example_sql_materialized_view"]
