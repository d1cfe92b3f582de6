"""Source files with a real session: which one they find, and that their functions reach the engine."""

import pytest


@pytest.fixture(scope="module")
def session():
    from pysail.spark import SparkConnectServer
    from pyspark.sql.connect.session import SparkSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address
    session = SparkSession(f"sc://{host}:{port}")
    yield session
    session.stop()
    server.stop()


@pytest.fixture
def project(project, session):
    project.session = session
    return project


@pytest.mark.parametrize(
    "text",
    [
        "SparkSession.getActiveSession()",
        "SparkSession.active()",
        "SparkSession.builder.getOrCreate()",
    ],
)
def test_every_way_to_the_session_gives_the_pipelines(project, session, text):
    from pyspark.sql import SparkSession

    project.python(
        "transformations/a.py",
        f"""
        from pyspark.sql import SparkSession

        at_load = {text}

        @dp.table
        def orders():
            return spark, at_load, {text}
        """,
    )
    before = SparkSession.getActiveSession()
    found = project.loaded().flows[0].query.function()
    assert all(one is session for one in found)
    assert SparkSession.getActiveSession() is before


def test_a_function_of_a_helper_module_runs_in_the_engine(project):
    project.write("rules/amounts.py", "FACTOR = 3\n\n\ndef scaled(x):\n    return FACTOR * x\n")
    project.python(
        "transformations/a.py",
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import LongType
        import rules.amounts
        from rules import amounts
        from rules.amounts import scaled

        def twice(x):
            return amounts.scaled(x) + rules.amounts.scaled(x)

        @dp.materialized_view
        def orders():
            direct = F.udf(scaled, LongType())
            wrapped = F.udf(twice, LongType())
            return spark.range(1, 3).select(direct("id").alias("a"), wrapped("id").alias("b"))
        """,
    )
    frame = project.loaded().flows[0].query.function()
    assert [tuple(row) for row in frame.orderBy("a").collect()] == [(3, 6), (6, 12)]


def test_older_reads_build_plans_that_the_engine_can_look_into(project):
    project.python(
        "transformations/a.py",
        """
        @dp.materialized_view
        def orders():
            return dp.read("raw_orders")

        @dp.table
        def new_orders():
            return dp.read_stream("raw_orders")
        """,
    )
    batch, stream = (flow.query.function() for flow in project.loaded().flows)
    client = project.session.client
    reads = [frame._plan.to_proto(client).root.read for frame in (batch, stream)]
    assert [read.named_table.unparsed_identifier for read in reads] == ["raw_orders", "raw_orders"]
    assert [read.is_streaming for read in reads] == [False, True]
