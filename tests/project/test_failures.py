"""The place that is named where a source file fails."""

import pytest

from millpond.errors.pipelines import ArgumentTypeError
from millpond.errors.project import PythonSyntaxError, SourceFileFailedError


def failure(project):
    _, (error,) = project.load()
    return error


def test_an_exception_is_reported_at_the_innermost_line_of_the_user(project):
    project.write("rules.py", 'import json\n\n\ndef load():\n    return json.loads("{")\n')
    project.write("transformations/a.py", "import rules\n\nrules.load()\n")
    error = failure(project)
    assert isinstance(error, SourceFileFailedError)
    assert str(error.where) == "rules.py:5"
    assert error.what.startswith("rules.py raised JSONDecodeError: Expecting property name")
    assert error.detail.splitlines() == [
        '5 |     return json.loads("{")',
        "  |            ^^^^^^^^^^^^^^^",
    ]
    assert type(error.__cause__).__name__ == "JSONDecodeError"


def test_a_syntax_error_shows_its_place(project):
    project.write("transformations/a.py", "ok = 1\nvalue = (ok +* 2)\n")
    error = failure(project)
    assert isinstance(error, PythonSyntaxError)
    assert isinstance(error, SyntaxError)
    assert (error.where.file, error.where.line) == ("transformations/a.py", 2)
    assert error.detail.splitlines() == ["2 | value = (ok +* 2)", "  |              ^"]


def test_a_syntax_error_in_an_imported_module_is_reported_there_once(project):
    project.write("rules.py", "def rule(:\n")
    project.write("transformations/a.py", "import rules\n")
    project.write("transformations/b.py", "import rules\n")
    error = failure(project)
    assert isinstance(error, PythonSyntaxError)
    assert str(error.where) == "rules.py:1:10"


def test_a_syntax_error_in_evaluated_text_is_an_ordinary_exception(project):
    project.write("transformations/a.py", '\neval("1 +")\n')
    error = failure(project)
    assert isinstance(error, SourceFileFailedError)
    assert error.where.line == 2


def test_null_characters_are_no_python(project):
    project.write("transformations/a.py", "x = 1\0\n")
    error = failure(project)
    assert isinstance(error, PythonSyntaxError)
    assert error.where.file == "transformations/a.py"


@pytest.mark.parametrize("code", ["sys.exit()", "sys.exit(3)", "raise SystemExit('done')"])
def test_a_file_that_exits_does_not_end_the_program(project, code):
    project.write("transformations/a.py", f"import sys\n{code}\n")
    error = failure(project)
    assert isinstance(error, SourceFileFailedError)
    assert "ended the program" in error.what
    assert error.where.line == 2


def test_an_interrupt_by_the_user_is_none_of_the_files_failures(project):
    project.write("transformations/a.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        project.load()


def test_a_module_that_is_missing_says_where_to_put_it(project):
    project.write("transformations/a.py", "import no_such_module\n")
    assert "install the package" in failure(project).hint


def test_parts_of_the_old_package_are_not_there(project):
    project.write("transformations/a.py", "import dlt.sources\n")
    assert "millpond's own module" in failure(project).hint


def test_what_the_api_refuses_keeps_its_class_and_place(project):
    project.python("transformations/a.py", "\ndp.create_streaming_table(\n    1,\n)\n")
    error = failure(project)
    assert isinstance(error, ArgumentTypeError)
    assert str(error.where) == "transformations/a.py:3"


def test_an_endless_recursion_is_a_failure_like_others(project):
    project.write("transformations/a.py", "def f():\n    f()\nf()\n")
    assert "RecursionError" in failure(project).what
