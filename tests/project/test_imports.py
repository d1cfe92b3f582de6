"""What user code can import while it runs, and that nothing of it is left afterwards."""

import sys
import types
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from millpond import pipelines


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    import pyspark

    def state():
        attribute = vars(pyspark).get("pipelines")
        return sys.path, list(sys.path), list(sys.meta_path), Path.cwd(), attribute

    modules, before = dict(sys.modules), state()
    yield
    assert state() == before
    assert state()[0] is before[0]
    for name in set(sys.modules) - set(modules):
        assert PathFinder.find_spec(name.partition(".")[0]), name
    assert all(sys.modules.get(name) is module for name, module in modules.items())


@pytest.mark.parametrize(
    "text",
    [
        "from pyspark import pipelines as dp",
        "import pyspark.pipelines as dp",
        "import pyspark.pipelines\ndp = pyspark.pipelines",
        "import dlt as dp",
        "from millpond import pipelines as dp",
        "import importlib\ndp = importlib.import_module('pyspark.pipelines')",
    ],
)
def test_every_spelling_gives_millponds_module(project, text):
    project.write("transformations/a.py", f"{text}\n\n@dp.table\ndef orders():\n    return dp\n")
    assert project.loaded().flows[0].query.function() is pipelines


@pytest.mark.parametrize("module", ["pyspark.pipelines", "dlt"])
def test_names_can_be_imported_from_it(project, module):
    project.write(
        "transformations/a.py", f"from {module} import table\n\n@table\ndef orders(): ...\n"
    )
    assert len(project.loaded().flows) == 1


def test_an_installed_package_of_the_old_name_is_there_again_afterwards(project, monkeypatch):
    installed, part = types.ModuleType("dlt"), types.ModuleType("dlt.sources")
    monkeypatch.setitem(sys.modules, "dlt", installed)
    monkeypatch.setitem(sys.modules, "dlt.sources", part)
    project.write("transformations/a.py", "import dlt\n\n@dlt.view\ndef orders(): ...\n")
    project.loaded()
    assert sys.modules["dlt"] is installed
    assert sys.modules["dlt.sources"] is part


def test_sparks_own_module_is_there_again_afterwards(project, monkeypatch):
    import pyspark

    own = types.ModuleType("pyspark.pipelines")
    monkeypatch.setitem(sys.modules, "pyspark.pipelines", own)
    monkeypatch.setattr(pyspark, "pipelines", own, raising=False)
    project.python("transformations/a.py", "@dp.table\ndef orders(): ...\n")
    project.loaded()
    assert sys.modules["pyspark.pipelines"] is own
    assert pyspark.pipelines is own


def test_the_session_is_a_global_of_source_files(project):
    project.python("transformations/a.py", "@dp.table\ndef orders():\n    return spark\n")
    assert project.loaded().flows[0].query.function() is project.session


def test_the_current_folder_is_the_projects(project):
    project.write("rules.txt", "id > 0")
    project.python(
        "transformations/a.py",
        """
        rule = open("rules.txt").read()

        @dp.table
        def orders():
            return rule, open("rules.txt").read()
        """.replace("open(", "__import__('pathlib').Path(").replace(").read()", ").read_text()"),
    )
    assert project.loaded().flows[0].query.function() == ("id > 0", "id > 0")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("rules.py", "from rules import VALUE"),
        ("transformations/rules.py", "from rules import VALUE"),
        ("transformations/rules.py", "from transformations.rules import VALUE"),
        ("lib/__init__.py", "from lib import VALUE"),
        ("lib/rules.py", "from lib.rules import VALUE"),
        ("lib/deep/rules.py", "import lib.deep.rules as r; VALUE = r.VALUE"),
        ("shared/rules.py", "import sys; sys.path.append('shared'); from rules import VALUE"),
    ],
)
def test_modules_of_the_project_can_be_imported(project, path, text):
    project.write(path, "VALUE = 1\n")
    project.python(
        "transformations/a.py", f"{text}\n\n@dp.table\ndef orders():\n    return VALUE\n"
    )
    assert project.loaded().flows[0].query.function() == 1


def test_a_query_function_can_import_when_it_is_called(project):
    project.write("rules.py", "VALUE = 1\n")
    project.write("shared/more.py", "VALUE = 2\n")
    project.python(
        "transformations/a.py",
        """
        import sys
        sys.path.insert(0, "shared")

        @dp.table
        def orders():
            from more import VALUE
            from pyspark import pipelines
            import rules
            return rules.VALUE, VALUE, pipelines
        """,
    )
    flow = project.loaded().flows[0]
    assert flow.query.function() == (1, 2, pipelines)
    assert flow.query.function() == (1, 2, pipelines)


def test_a_helper_is_one_module_for_all_files_and_later_calls(project):
    project.write("state.py", "calls = []\n")
    for name in "ab":
        project.python(
            f"transformations/{name}.py",
            f"""
            import state
            state.calls.append("{name}")

            @dp.table(name="{name}")
            def orders():
                import state as again
                return again.calls
            """,
        )
    first, second = project.loaded().flows
    assert first.query.function() == ["a", "b"]
    assert first.query.function() is second.query.function()


def test_a_second_load_reads_helpers_anew(project):
    project.python(
        "transformations/a.py",
        "import rules\n\n@dp.table\ndef orders():\n    return rules.VALUE\n",
    )
    project.write("rules.py", "VALUE = 1\n")
    before = project.loaded()
    project.write("rules.py", "VALUE = 2\n")
    after = project.loaded()
    assert after.flows[0].query.function() == 2
    assert before.flows[0].query.function() == 1


def test_a_source_file_that_another_imports_runs_once(project):
    project.python(
        "transformations/a.py",
        "from z import rule\nimport transformations.z as again\nassert again.rule is rule\n",
    )
    project.python("transformations/z.py", "rule = object()\n\n@dp.table\ndef orders(): ...\n")
    pipeline = project.loaded()
    assert [str(dataset.location) for dataset in pipeline.datasets] == ["transformations/z.py:4"]


def test_source_files_may_import_each_other(project):
    project.python("transformations/a.py", "import b\n\n@dp.table\ndef first(): ...\n")
    project.python("transformations/b.py", "import a\n\n@dp.table\ndef second(): ...\n")
    assert len(project.loaded().datasets) == 2


def test_the_failure_of_an_imported_source_file_is_reported_once(project):
    project.python("transformations/a.py", "from z import rule\n")
    project.python("transformations/z.py", "@dp.table\ndef orders(): ...\n\n1 / 0\n")
    project.python("transformations/zz.py", "from z import rule\n")
    pipeline, (error,) = project.load()
    assert str(error.where) == "transformations/z.py:5"
    assert len(pipeline.datasets) == 1


@pytest.mark.parametrize("name", ["json", "colorsys", "pytest", "polars", "spark", "orders"])
def test_a_source_file_may_be_called_like_any_other_module(project, name):
    project.write(
        f"transformations/{name}.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from pyspark import pipelines as dp

        @dataclass
        class Rule:
            value: int

        @dp.table
        def orders(): ...
        """,
    )
    project.write(
        "transformations/z.py",
        "import colorsys, json, polars, pytest\n"
        "assert json.dumps and colorsys.rgb_to_hsv and polars.DataFrame and pytest.raises\n",
    )
    assert len(project.loaded().datasets) == 1


def test_a_folder_called_like_a_package_does_not_hide_it(project):
    project.write("polars/readme.txt", "")
    project.write("transformations/a.py", "import polars\npolars.DataFrame\n")
    project.loaded()


def test_everything_is_put_back_after_a_failure(project):
    project.write("rules.py", "VALUE = 1\n")
    project.write(
        "transformations/a.py",
        "import os, rules, sys\nsys.path = ['x']\nos.chdir('/')\nsys.meta_path.append(object())\n1 / 0\n",
    )
    hooks = list(sys.meta_path)
    project.load()
    sys.meta_path[:] = hooks
    assert "rules" not in sys.modules


def test_functions_of_the_project_are_pickled_whole(project):
    from pyspark import cloudpickle

    project.write("rules.py", "def double(x):\n    return 2 * x\n")
    project.python(
        "transformations/a.py",
        """
        import rules
        from pyspark import cloudpickle

        def quadruple(x):
            return rules.double(rules.double(x))

        @dp.table
        def orders():
            return cloudpickle.dumps((quadruple, rules.double))
        """,
    )
    quadruple, double = cloudpickle.loads(project.loaded().flows[0].query.function())
    assert (quadruple(1), double(1)) == (4, 2)
    assert not cloudpickle.list_registry_pickle_by_value()
