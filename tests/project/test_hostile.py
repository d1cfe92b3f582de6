"""Hostile specs and files: refused with a place, soon, and nothing outside the project is read."""

from __future__ import annotations

import os
import random
import re
import socket
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from millpond.errors import MillpondError
from millpond.project import load_spec
from millpond.project.source_files import find_source_files

ROOT = Path(__file__).parents[2]
LEAST = "name: shop\nstorage: store\n"
LIBRARIES = LEAST + "libraries:\n"
# Processor time that a spec may take.
BOUND_S = 5
LONGEST_MESSAGE = 3000
EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
FRESH_SEED = random.SystemRandom().getrandbits(32)

SPECS = [path.read_text() for path in sorted(ROOT.glob("examples/**/spark-pipeline.yml"))]
SPECS += re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/spec.md").read_text(), re.DOTALL)
LINES = sorted({line for text in SPECS for line in text.splitlines(keepends=True)})
ODD = [
    *("&a ", "*a", "<<: *a\n", "<<: [*a, *a]\n", "!!python/object:os.system ", "!!str ", "!!null "),
    *("!!binary ", "!!merge ", "? ", ": ", "- ", "[", "]", "{", "}", "|\n", ">\n", "'", '"', "\\"),
    *('"\\ud800"', '"\\U00110000"', '"\\UFFFFFFFF"', '"\\0"', "%YAML 9.9\n---\n", "%TAG ! a\n"),
    *("---\n", "...\n", "\t", "\r", "\x85", "\u2028", "\u202e", "\ufeff", "\x00", "\x07"),
    *("storage: ../../x\n", "name: name\n", "9" * 5000, "1e999", ".inf", "2026-99-99", "~", "/**"),
    *("file:", "s3://", "../", "x" * 5000, "!%ff ", "!<> ", "#", "[" * 60, "0x", "1:60:60"),
]
pieces = st.sampled_from([*ODD, *LINES])
token_soup = st.lists(pieces, max_size=40).map(lambda parts: "".join(parts).encode())
byte_soup = st.binary(max_size=300)


@st.composite
def mutated(draw):
    """A real spec with pieces cut out, repeated or put in."""
    text = draw(st.sampled_from(SPECS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        put = draw(st.one_of(st.just(""), st.just(text[start:end] * 3), pieces))
        text = text[:start] + put + text[end:]
    return text.encode()


def loaded(data, folder):
    """Load a spec, and check what holds for each: the files, and the problems of it."""
    path = folder / "spark-pipeline.yml"
    path.write_bytes(data)
    started = time.process_time()
    files, problems = [], []
    try:
        files, problems = find_source_files(load_spec(path))
    except MillpondError as error:
        problems = [error]
    assert time.process_time() - started < BOUND_S
    for problem in problems:
        assert problem.where.file
        assert len(str(problem)) <= LONGEST_MESSAGE
        str(problem).encode()
    return files, problems


@pytest.fixture
def only_problem(tmp_path):
    """Load a spec that is refused, and return (class, line)."""

    def only_problem(text):
        data = text if isinstance(text, bytes) else text.encode()
        _, (problem,) = loaded(data, tmp_path)
        return problem.error_class, problem.where.line

    return only_problem


@EXAMPLES
@given(mutated())
def test_real_specs_with_damage(data):
    with tempfile.TemporaryDirectory() as folder:
        loaded(data, Path(folder))


@EXAMPLES
@given(st.one_of(token_soup, byte_soup))
def test_token_and_byte_soup(data):
    with tempfile.TemporaryDirectory() as folder:
        loaded(data, Path(folder))


def test_a_seed_that_no_run_had_before():
    print(f"@seed({FRESH_SEED})")  # noqa: T201 - shown with a failure, to run it again

    @seed(FRESH_SEED)
    @settings(EXAMPLES, derandomize=False, database=None)
    @given(st.one_of(mutated(), token_soup, byte_soup))
    def fresh(data):
        with tempfile.TemporaryDirectory() as folder:
            loaded(data, Path(folder))

    fresh()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name: "\\UFFFFFFFF"\n', 1),
        ('name: a\nstorage: "\\U00110000"\n', 2),
        ("%YAML " + "1" * 5000 + ".1\n---\nname: a\n", 1),
        (LEAST + "configuration: &a [" + "x," * 15_000 + "*a]", None),
        (LEAST + "libraries: [" + "a," * 45_000 + "a]", None),
        ((LEAST).encode("utf-16"), None),
    ],
    ids=["code point", "last code point", "version", "list in itself", "many values", "UTF-16"],
)
def test_what_yaml_itself_stumbles_over_is_refused(only_problem, text, line):
    error_class, found = only_problem(text)
    assert error_class == "SPEC_UNREADABLE"
    assert found == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LEAST + "configuration:\n  ? !!str [a]\n  : b\n", 4),
        (LEAST + "configuration:\n  ? !!str {a: b}\n  : b\n", 4),
        ('name: a\nstorage: "\\ud800"\n', 2),
        (LEAST + 'catalog: "\\udfff"\n', 3),
        (LIBRARIES + '  - file: {path: "\\ud800.sql"}\n', 4),
        (LEAST + 'configuration: {"\\ud800": a}\n', 3),
        (LEAST + "configuration:\n  a: 1" + "0" * 60_000, 4),
        (LEAST + "? " + "x" * 60_000 + "\n: 2\n", 3),
    ],
)
def test_a_value_that_is_no_text_is_refused_with_its_line(only_problem, text, line):
    assert only_problem(text) == ("SPEC_FIELD", line)


@pytest.mark.parametrize(
    "path", ["x" * 65_000 + ".sql", "x" * 65_000 + "/**", "a/" * 5000 + "b.sql"]
)
def test_a_library_with_an_endless_path_is_refused(only_problem, path):
    assert only_problem(LIBRARIES + f"  - glob:\n      include: {path}\n") == (
        "LIBRARY_PATTERN",
        4,
    )


@pytest.mark.parametrize("path", ["../beside/**", "a/../../beside/**", "out/**", "a/out.sql"])
def test_a_library_does_not_lead_out_of_the_folder(tmp_path, path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "secret.sql").write_text("CREATE VIEW v AS SELECT 1;")
    project = tmp_path / "project"
    (project / "a").mkdir(parents=True)
    (project / "out").symlink_to(tmp_path / "beside")
    (project / "a" / "out.sql").symlink_to(tmp_path / "beside" / "secret.sql")
    data = (LIBRARIES + f"  - glob: {{include: {path}}}\n").encode()
    files, (problem,) = loaded(data, project)
    assert files == []
    assert "leads out of the project folder" in problem.what


def test_a_circle_of_links_is_survived(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    text = "name: a\nstorage: loop/x\nlibraries:\n  - glob: {include: loop/**}\n"
    _, (problem,) = loaded(text.encode(), tmp_path)
    assert problem.error_class == "LIBRARY_PATTERN"
    spec = tmp_path / "spec.yml"
    spec.symlink_to("spec.yml")
    with pytest.raises(MillpondError):
        load_spec(spec)


def test_what_is_no_regular_file_is_not_waited_for(project, monkeypatch):
    monkeypatch.chdir(project.write("transformations/a.sql", "").parent)
    os.mkfifo("pipe.sql")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.sql")  # in the current folder, as the path must be short
    _, problems = project.load()
    assert [problem.where.file for problem in problems] == [
        "transformations/pipe.sql",
        "transformations/socket.sql",
    ]
    assert all("not a file" in problem.what for problem in problems)


@pytest.mark.parametrize(
    "data",
    [
        "CREATE VIEW v AS SELECT 1;".encode("utf-16"),
        b"CREATE VIEW v AS SELECT '\xed\xa0\x80';",
        b"CREATE VIEW v AS SELECT '\xc0\xaf';",
        "CREATE VIEW v AS SELECT 1;".encode("utf-16-le"),
        b"\xef\xbb\xbf\xef\xbb\xbf\xef\xbb\xbfCREATE",
    ],
    ids=["UTF-16", "surrogate", "overlong", "UTF-16 without a mark", "three marks"],
)
def test_a_sql_file_in_a_wrong_encoding_is_refused_with_its_place(project, data):
    project.write("transformations/a.sql", "").write_bytes(data)
    pipeline, problems = project.load()
    assert pipeline.datasets == ()
    assert problems
    assert all(problem.where.file == "transformations/a.sql" for problem in problems)
    assert all(problem.where.line == 1 for problem in problems)
