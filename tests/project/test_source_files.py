"""Which files a spec's libraries name, and in which order."""

import pytest

from millpond.errors.project import (
    LibraryPatternError,
    NoSourceFilesError,
    SourceFileTypeError,
    SourceFileUnreadableError,
)
from millpond.project.source_files import find_source_files


def libraries(project, *patterns):
    lines = "".join(f"  - glob: {{include: '{pattern}'}}\n" for pattern in patterns)
    project.write("spark-pipeline.yml", f"name: shop\nstorage: store\nlibraries:\n{lines}")


def found(project):
    files, problems = find_source_files(project.spec())
    assert problems == []
    return [file.name for file in files]


def problem(project):
    files, (problem,) = find_source_files(project.spec())
    assert files == []
    return problem


def test_all_files_below_a_folder_come_in_the_order_of_their_names(project):
    for path in ("b/2.sql", "b/1.py", "a.sql", "b.sql", "B.sql", "b/c/0.sql"):
        project.write(f"transformations/{path}", "")
    assert found(project) == [
        "transformations/B.sql",
        "transformations/a.sql",
        "transformations/b/1.py",
        "transformations/b/2.sql",
        "transformations/b/c/0.sql",
        "transformations/b.sql",
    ]


def test_a_file_that_two_libraries_name_is_loaded_once(project):
    project.write("transformations/a.sql", "")
    project.write("extra/b.sql", "")
    libraries(
        project,
        "transformations/**",
        "transformations/a.sql",
        "./transformations/**",
        "extra/b.sql",
    )
    assert found(project) == ["extra/b.sql", "transformations/a.sql"]


def test_what_tools_leave_behind_is_no_source_file(project):
    project.write("transformations/a.sql", "")
    project.write("transformations/__pycache__/a.cpython-311.pyc", "")
    project.write("transformations/.ipynb_checkpoints/a.ipynb", "")
    project.write("transformations/.DS_Store", "")
    assert found(project) == ["transformations/a.sql"]


@pytest.mark.parametrize(
    "pattern",
    ["transformations/*.sql", "transformations/**/*.py", "**/a.sql", "trans*/**", "a?.sql"],
)
def test_other_patterns_are_refused_as_apache_spark_does(project, pattern):
    project.write("transformations/a.sql", "")
    libraries(project, pattern)
    error = problem(project)
    assert isinstance(error, LibraryPatternError)
    assert error.where.line == 4


def test_a_folder_alone_is_no_pattern(project):
    project.write("transformations/a.sql", "")
    libraries(project, "transformations/")
    assert "write transformations/**" in problem(project).hint


@pytest.mark.parametrize("pattern", ["missing/**", "missing.sql", "transformations/missing.sql"])
def test_a_library_that_does_not_exist_is_reported(project, pattern):
    libraries(project, pattern)
    error = problem(project)
    assert isinstance(error, LibraryPatternError)
    assert "does not exist" in error.what


def test_one_wrong_library_does_not_hide_the_others(project):
    project.write("transformations/a.sql", "")
    libraries(project, "missing/**", "transformations/**")
    files, problems = find_source_files(project.spec())
    assert [file.name for file in files] == ["transformations/a.sql"]
    assert len(problems) == 1


def test_a_relative_path_stays_in_the_project(project, tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "a.sql").touch()
    libraries(project, "../beside/**")
    assert "leads out of the project" in problem(project).what


def test_a_symbolic_link_does_not_lead_out_of_the_project(project, tmp_path):
    (tmp_path / "secret.sql").touch()
    project.write("transformations/a.sql", "")
    (project.root / "transformations" / "b.sql").symlink_to(tmp_path / "secret.sql")
    assert "leads out of the project" in problem(project).what


def test_an_absolute_path_may_lie_elsewhere(project, tmp_path):
    outside = (tmp_path / "beside").resolve()
    outside.mkdir()
    (outside / "a.sql").touch()
    libraries(project, f"{outside}/**", f"{outside}/a.sql")
    assert found(project) == [f"{outside}/a.sql"]


@pytest.mark.parametrize(
    ("name", "word"), [("README.md", "neither"), ("a.ipynb", "notebook"), ("a", "neither")]
)
def test_a_file_of_another_type_is_refused(project, name, word):
    project.write(f"transformations/{name}", "")
    error = problem(project)
    assert isinstance(error, SourceFileTypeError)
    assert word in error.what
    assert error.where.file == f"transformations/{name}"


def test_a_pipeline_without_any_source_file_is_reported(project):
    (project.root / "transformations").mkdir()
    assert isinstance(problem(project), NoSourceFilesError)
    project.write("spark-pipeline.yml", "name: shop\nstorage: store\n")
    assert isinstance(problem(project), NoSourceFilesError)


@pytest.mark.parametrize("suffix", ["py", "sql"])
def test_a_file_that_is_not_utf8_is_refused_with_its_line(project, suffix):
    file = project.write(f"transformations/a.{suffix}", "")
    file.write_bytes("-- fine\n-- Größe\n".encode("latin-1"))
    _, (error,) = project.load()
    assert isinstance(error, SourceFileUnreadableError)
    assert str(error.where) == f"transformations/a.{suffix}:2"


def test_a_file_that_can_not_be_read_is_reported(project):
    project.write("transformations/c.py", "").with_name("b.sql").symlink_to("b.sql")
    _, (error,) = project.load()
    assert "b.sql" in error.what


def test_a_byte_order_mark_is_no_part_of_the_text(project):
    file = project.write("transformations/a.py", "")
    file.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert project.load()[1] == []
