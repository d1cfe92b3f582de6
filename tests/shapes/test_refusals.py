"""The table of refusals, through a dry run: class, message and place, in both kinds of flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent

import pyarrow as pa
import pytest

from millpond.errors import MillpondError
from millpond.runner import dry_run
from tests.pipeline_folder import SPEC, PipelineFolder
from tests.shapes.refusals import DELAY, REFUSED

PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StatefulProcessor


class Processor(StatefulProcessor):
    def init(self, handle):
        pass

    def handleInputRows(self, key, rows, timers):
        return rows

    def close(self):
        pass
"""
VIEWS = f"""\
CREATE TEMPORARY VIEW late AS SELECT * FROM STREAM t {DELAY};
CREATE TEMPORARY VIEW later AS SELECT k, s, ts FROM STREAM(late) WHERE s > 1;
CREATE TEMPORARY VIEW early AS SELECT * FROM STREAM t;
CREATE TEMPORARY VIEW sums AS
SELECT k, max(s) AS s
FROM STREAM(late)
GROUP BY k, window(ts, '5 minutes');
CREATE TEMPORARY VIEW figures AS SELECT k, max(s) AS s FROM w GROUP BY k;
"""
FLOWS = ("append", "replace")


@dataclass(frozen=True)
class Definition:
    """A flow in a source file, from line `first` to `last`."""

    file: str
    text: str
    first: int
    last: int


class Files:
    """Source files that are put together from definitions."""

    def __init__(self, folder: PipelineFolder) -> None:
        self.folder = folder
        self.texts = {"flows.sql": VIEWS, "flows.py": PYTHON}

    def add(self, file: str, text: str) -> Definition:
        first = self.texts[file].count("\n") + 1
        self.texts[file] += text + "\n"
        return Definition(file, text, first, first + text.count("\n"))

    def problems(self) -> list[MillpondError]:
        for name, text in self.texts.items():
            (self.folder.root / "transformations" / name).write_text(text)
        return dry_run(self.folder.project())


def of_sql(name: str, query: str, flow: str) -> str:
    if flow == "append":
        return f"CREATE STREAMING TABLE {name} AS\n{query};"
    return f"CREATE STREAMING TABLE {name}\nFLOW REPLACE USING (k) SEQUENCE BY s BY NAME\n{query};"


def of_python(name: str, expression: str, flow: str) -> str:
    head = (
        f'dp.create_streaming_table("{name}")\n@dp.append_flow(target="{name}")'
        if flow == "append"
        else '@dp.table(replace_using=["k"], sequence_by="s")'
    )
    function = f"{name}_flow" if flow == "append" else name
    return f"{head}\ndef {function}():\n    return (\n{indent(expression, ' ' * 8)}\n    )"


@pytest.fixture(scope="module")
def empty_folder(tmp_path_factory) -> PipelineFolder:
    root = tmp_path_factory.mktemp("refusals")
    (root / "spark-pipeline.yml").write_text(SPEC)
    (root / "transformations").mkdir()
    folder = PipelineFolder(root)
    schema = pa.schema(
        [
            ("k", pa.string()),
            ("s", pa.int32()),
            ("v", pa.int32()),
            ("ts", pa.timestamp("us", tz="UTC")),
        ]
    )
    for name in ("t", "u", "w"):
        folder.feed(name, schema.empty_table())
    return folder


CASES = [
    pytest.param(name, language, flow, id=f"{name}-{language}-{flow}")
    for name, case in REFUSED.items()
    for language, text in (("sql", case.sql), ("python", case.python))
    for flow in FLOWS
    if text is not None
]


def identifier(name: str, language: str, flow: str) -> str:
    return "_".join([*name.replace("-", " ").lower().split(), language, flow])


def found_in(
    folder: PipelineFolder, queries: Mapping[str, tuple[str, str, str]]
) -> Mapping[str, tuple[Definition, list[MillpondError]]]:
    """By flow, its definition and the problems that were found in it: all in one dry run.

    Args:
        queries: By flow, the language, the kind of flow, and the text.
    """
    files = Files(folder)
    definitions = {"": Definition("flows.sql", VIEWS, 1, VIEWS.count("\n"))}
    for name, (language, flow, text) in queries.items():
        if language == "sql":
            definitions[name] = files.add("flows.sql", of_sql(name, text, flow))
        else:
            definitions[name] = files.add("flows.py", of_python(name, text, flow))
    problems = files.problems()
    assert not folder.layout.checkpoints.exists()
    return {
        name: (
            definition,
            [
                problem
                for problem in problems
                if problem.where.file == f"transformations/{definition.file}"
                and definition.first <= problem.where.line <= definition.last
            ],
        )
        for name, definition in definitions.items()
    }


def line_of(definition: Definition, problem: MillpondError) -> str:
    return definition.text.split("\n")[problem.where.line - definition.first]


@pytest.fixture(scope="module")
def results(empty_folder) -> Mapping[str, tuple[Definition, list[MillpondError]]]:
    return found_in(
        empty_folder,
        {
            identifier(name, language, flow): (
                language,
                flow,
                getattr(REFUSED[name], language).text,
            )
            for name, language, flow in (case.values for case in CASES)
        },
    )


@pytest.mark.parametrize(("name", "language", "flow"), CASES)
def test_refused_before_data_is_read(results, name, language, flow):
    refused = REFUSED[name]
    definition, problems = results[identifier(name, language, flow)]
    if refused.only_replacing and flow == "append":
        assert not problems
        return
    (problem,) = problems
    text = refused.sql if language == "sql" else refused.python
    assert problem.error_class == "UNSUPPORTED_STREAMING_OPERATION"
    assert problem.what.startswith(text.operation)
    assert " over a stream is not supported: " in problem.what
    if flow == "replace" and refused.when_replacing:
        assert refused.when_replacing in problem.what
    else:
        assert refused.reason in problem.what
        assert refused.instead in problem.hint
    line = line_of(definition, problem)
    if language == "sql":
        assert line[problem.where.column - 1 :].startswith(text.at)
        shown, carets = problem.detail.splitlines()
        assert shown[carets.index("^") :].startswith(
            text.at.split(" ", maxsplit=1)[0].split("(")[0]
        )
    else:
        assert text.at in line


# Queries that read no stream, the place that the message gives, and what it says is read.
NO_STREAM = {
    "table": (
        ("SELECT k, s\nFROM w", "w", "w"),
        ('spark.read.table("w")\n.where("s > 1")', "spark.read.table", "w"),
    ),
    "view": (
        ("SELECT k, s FROM figures", "figures", "figures"),
        ('spark.table("figures")', "spark.table", "figures"),
    ),
    "rows that are counted out": (
        ("SELECT 'a' AS k, id AS s FROM range(3)", "range(3)", "range()"),
        ('spark.range(3)\n.selectExpr("\'a\' AS k", "id AS s")', "spark.range", "range()"),
    ),
    "rows that are given": (
        ("SELECT * FROM VALUES ('a', 1) AS given(k, s)", "VALUES", "VALUES"),
        (
            "spark.createDataFrame([('a', 1)], 'k STRING, s INT')",
            "createDataFrame",
            "createDataFrame()",
        ),
    ),
    "files": (
        ("SELECT k, s FROM parquet.`/nowhere`", "parquet", "parquet.`/nowhere`"),
        ("spark.read.parquet('/nowhere')", "spark.read.parquet", "parquet()"),
    ),
    "text in Python": (None, ('spark.sql("SELECT k, s FROM w")', "spark.sql", "w")),
    "nothing": (("SELECT 'a' AS k, 1 AS s", "SELECT", None), None),
}
NO_STREAM_CASES = [
    pytest.param(name, language, flow, id=f"{name}-{language}-{flow}")
    for name, texts in NO_STREAM.items()
    for language, text in zip(("sql", "python"), texts, strict=True)
    for flow in FLOWS
    if text is not None
]
CLASSES = {"append": "FLOW_NOT_STREAMING", "replace": "REPLACE_USING_NOT_STREAMING"}


@pytest.fixture(scope="module")
def without_streams(empty_folder) -> Mapping[str, tuple[Definition, list[MillpondError]]]:
    return found_in(
        empty_folder,
        {
            identifier(name, language, flow): (
                language,
                flow,
                NO_STREAM[name][language == "python"][0],
            )
            for name, language, flow in (case.values for case in NO_STREAM_CASES)
        },
    )


@pytest.mark.parametrize(("name", "language", "flow"), NO_STREAM_CASES)
def test_a_query_that_reads_no_stream_is_told_what_it_reads(without_streams, name, language, flow):
    definition, problems = without_streams[identifier(name, language, flow)]
    (problem,) = problems
    _, at, source = NO_STREAM[name][language == "python"]
    assert problem.error_class == CLASSES[flow]
    assert (f"reads {source} as a whole" if source else "reads no stream") in problem.what
    assert "spark.readStream" in problem.hint
    assert at in line_of(definition, problem)
    if language == "sql":
        assert line_of(definition, problem)[problem.where.column - 1 :].startswith(at)


# Queries over views with and without a watermark, and the kinds of flow that may have them.
OVER_VIEWS = {
    "window": ("SELECT k, s, window(ts, '5 minutes') AS w FROM STREAM(late)", FLOWS),
    "window through two": ("SELECT k, s, window(ts, '5 minutes') AS w FROM STREAM(later)", FLOWS),
    "no watermark": ("SELECT k, s, window(ts, '5 minutes') AS w FROM STREAM(early)", ()),
    "sum": ("SELECT k, sum(s) AS s FROM STREAM(later) GROUP BY k, ts", ("append",)),
    "sums of a view": ("SELECT k, s FROM STREAM(sums)", ("append",)),
    "figures of a table": (
        "SELECT t.k, f.s FROM STREAM t JOIN figures AS f ON t.k = f.k",
        FLOWS,
    ),
}


@pytest.fixture(scope="module")
def over_views(empty_folder) -> Mapping[str, tuple[Definition, list[MillpondError]]]:
    return found_in(
        empty_folder,
        {
            identifier(name, "sql", flow): ("sql", flow, text)
            for name, (text, _) in OVER_VIEWS.items()
            for flow in FLOWS
        },
    )


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("name", OVER_VIEWS)
def test_a_view_may_set_the_watermark_and_may_hold_what_its_reader_may_not(over_views, name, flow):
    _, problems = over_views[identifier(name, "sql", flow)]
    if flow in OVER_VIEWS[name][1]:
        assert not problems
    elif name == "sums of a view":
        (problem,) = over_views[""][1]
        assert (
            problem.where.line
            == VIEWS.split("\n").index("GROUP BY k, window(ts, '5 minutes');") + 1
        )
        assert "the flow main.sales.sums_of_a_view_sql_replace is a REPLACE USING" in problem.what
    else:
        (problem,) = problems
        assert problem.error_class == "UNSUPPORTED_STREAMING_OPERATION"
        assert problem.hint
