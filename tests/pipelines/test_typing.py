"""Type checkers understand the API: right calls pass `mypy --strict`, wrong calls fail."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFIGURATION = """
[mypy]
strict = True
disallow_any_unimported = False
[mypy-pyspark.*]
follow_imports = skip
ignore_missing_imports = True
"""

RIGHT = Path(__file__).with_name("typed_user.py")
START = """\
from millpond import pipelines as dp
from pyspark.sql import DataFrame

def query() -> DataFrame:
    return dp.read("source")

"""
WRONG = {
    'dp.table(replace_using="region", sequence_by="v")': "overload",
    'dp.table(replace_usng=["region"])': "overload",
    'dp.table(replace_where="a > 1")': "overload",
    'dp.table("orders")': "overload",
    'dp.materialized_view(replace_using=["a"])': "overload",
    "dp.temporary_view(private=True)": "overload",
    "dp.append_flow()": "Missing named argument",
    'dp.replace_flow(target="t", replace_using=["a"])': "Missing named argument",
    'dp.replace_flow(target=1, replace_using=["a"], sequence_by="v")': "incompatible type",
    "dp.create_streaming_table()": "Missing positional argument",
    'dp.create_streaming_table("t", expect_all=["a"])': "incompatible type",
    'dp.expect("a")(query)': "Missing positional argument",
    'dp.expect("a", "b")(dp.table(query))': "incompatible type",
    'dp.table(name="t")(lambda region: query())': "incompatible type",
    'dp.create_sink("s", "kafka")': "has no attribute",
    "dp.tabel": "has no attribute",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What mypy says of both files, as pairs of file name and line with the message."""
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(CONFIGURATION)
    wrong = folder / "wrong_user.py"
    wrong.write_text(START + "\n".join(WRONG) + "\n")
    # In a process of its own, because mypy raises the recursion limit of the one it runs in.
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", "mypy.ini"]
    run = subprocess.run(
        [*command, wrong.name, str(RIGHT)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_right_calls_pass_strict_checks(complaints):
    assert [line for line in complaints if RIGHT.name in line] == []


@pytest.mark.parametrize(("call", "words"), WRONG.items())
def test_a_wrong_call_is_found(complaints, call, words):
    number = START.count("\n") + 1 + list(WRONG).index(call)
    found = [line for line in complaints if line.startswith(f"wrong_user.py:{number}: error:")]
    assert any(words in line for line in found), complaints


def test_the_right_calls_define_what_they_say(registry):
    namespace = {"spark": None}
    exec(compile(RIGHT.read_text(), str(RIGHT), "exec"), namespace)  # noqa: S102 - our own file
    assert len(registry.datasets) == 9
    assert len(registry.flows) == 10
