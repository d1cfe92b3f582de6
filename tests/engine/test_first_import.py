"""PySpark's client comes without pandas, which comes whole once it is asked for."""

import subprocess
import sys
import textwrap

import pytest

IMPORT = """
import sys
from millpond.engine.connect.first_import import import_client
import_client()
from pyspark.sql.connect import session
from pyspark.sql.connect.client import core
"""


def printed(tmp_path, program, *, before=""):
    file = tmp_path / "program.py"
    file.write_text(before + IMPORT + textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_pandas_is_not_imported_with_the_client(tmp_path):
    names = "[name for name in sys.modules if name.partition('.')[0] == 'pandas']"
    assert printed(tmp_path, f"print({names})") == ["[]"]


def test_a_whole_update_does_without_pandas(tmp_path):
    (tmp_path / "pipeline.sql").write_text("CREATE MATERIALIZED VIEW t AS SELECT 1 AS one;")
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: p\nstorage: storage\nlibraries:\n  - glob:\n      include: pipeline.sql\n"
    )
    program = f"""
    from pathlib import Path
    from millpond.runner import Project, run_update
    result = run_update(Project.open(Path({str(tmp_path / "spark-pipeline.yml")!r})))
    print(len(result.flows), result.problems, "pandas" in sys.modules)
    """
    assert printed(tmp_path, program) == ["1 () False"]


@pytest.mark.parametrize(
    "use",
    [
        "session.is_datetime64_dtype(core.pd.Series([1], dtype='datetime64[ns]').dtype)",
        "isinstance(core.pd.DataFrame({'a': [1]}), session.pd.DataFrame)",
        "isinstance(pandas.DataFrame({'a': [1]}), session.pd.DataFrame)",
        "session.pd.api.types.is_integer_dtype(pandas.Series([1]).dtype)",
    ],
)
def test_what_asks_for_pandas_later_gets_pandas(tmp_path, use):
    program = f"""
    import pandas
    print({use})
    print(core.pd.DataFrame is pandas.DataFrame, core.pd.__version__ == pandas.__version__)
    """
    assert printed(tmp_path, program) == ["True", "True True"]
    without = printed(tmp_path, f"print({use.replace('pandas.', 'core.pd.')})")
    assert without == ["True"]


def test_a_pandas_that_is_there_before_is_the_one(tmp_path):
    program = "print(core.pd is pandas, session.pd is pandas, sys.modules['pandas'] is pandas)"
    assert printed(tmp_path, program, before="import pandas\n") == ["True True True"]


def test_another_thread_that_imports_pandas_meanwhile_gets_all_of_it(tmp_path):
    before = """
import sys, threading
made = []

def use():
    while "pandas" not in sys.modules:
        pass
    import pandas
    class Frame(pandas.DataFrame):
        pass
    made.append((Frame, isinstance(5, pandas.DataFrame), pandas.DataFrame({"a": [1]})))

thread = threading.Thread(target=use)
thread.start()
"""
    program = """
    thread.join()
    import pandas
    [(frame, is_frame, rows)] = made
    print(issubclass(frame, pandas.DataFrame), is_frame, type(rows) is pandas.DataFrame)
    """
    assert printed(tmp_path, program, before=before) == ["True False True"]
