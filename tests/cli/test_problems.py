"""Errors as people see them: on the standard error stream, whole, each once."""

import errno

import pytest

from millpond import project
from millpond.cli import main as program
from millpond.cli.problems import print_bug, print_problems, wrapped
from millpond.cli.settings import ExitCode
from millpond.errors import MillpondError, SourceLocation
from millpond.redaction import Redactor


class BrokenRuleError(MillpondError):
    error_class = "BROKEN_RULE"
    sqlstate = "42000"


ERROR = BrokenRuleError(
    "A rule was broken by a flow whose sentence is so long that no terminal of eighty columns "
    "could hold it.",
    where=SourceLocation("transformations/orders.sql", 3, 8),
    detail="SELECT oops FROM t" + " " * 70 + "-- a long line that has its caret below\n       ^",
    hint="mend the rule, or leave it out and see whether the flow that broke it can do without",
)


def test_every_problem_is_printed_once(capsys):
    other = BrokenRuleError("Another rule was broken.")
    print_problems([ERROR, other, BrokenRuleError("Another rule was broken.")], redactor=Redactor())
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"{ERROR}\n\n{other}\n"


def test_text_of_users_is_not_taken_for_markup(capsys):
    print_problems([BrokenRuleError("No column [bold]x[/bold] :smile:")], redactor=Redactor())
    assert (
        capsys.readouterr().err
        == "[BROKEN_RULE] No column [bold]x[/bold] :smile: (SQLSTATE 42000)\n"
    )


def test_on_a_terminal_sentences_are_broken_between_words_and_carets_stay_in_place():
    lines = wrapped(ERROR, width=80).splitlines()
    assert lines[:2] == [
        "[BROKEN_RULE] A rule was broken by a flow whose sentence is so long that no",
        "  terminal of eighty columns could hold it. (SQLSTATE 42000)",
    ]
    assert lines[2] == "  at transformations/orders.sql:3:8"
    assert lines[3] == "  " + ERROR.detail.splitlines()[0]
    assert lines[4] == "         ^"
    assert lines[5:] == [
        "  hint: mend the rule, or leave it out and see whether the flow that broke it",
        "        can do without",
    ]


def test_an_unexpected_error_says_that_it_is_a_bug_and_how_to_get_the_traceback(capsys):
    print_bug(ZeroDivisionError("division by zero"), redactor=Redactor(), debug=False)
    assert capsys.readouterr().err == (
        "[ZeroDivisionError] division by zero\n"
        "  This is a bug in millpond, or in a library that it uses.\n"
        "  hint: run again with MILLPOND_DEBUG=1 for the traceback, and report it with that\n"
    )


def test_with_debug_the_traceback_is_shown(capsys):
    try:
        1 / 0  # noqa: B018 for its error
    except ZeroDivisionError as error:
        print_bug(error, redactor=Redactor(), debug=True)
    text = capsys.readouterr().err
    assert "Traceback (most recent call last)" in text
    assert "test_problems.py" in text


def test_a_file_that_can_not_be_read_is_no_bug_whichever_command_meets_it(monkeypatch, capsys):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/lake/a.parquet")

    monkeypatch.setattr(project, "init_project", refused)
    with pytest.raises(SystemExit) as ended:
        program.main(["init", "shop"])
    assert ended.value.code == ExitCode.FAILURE
    told = capsys.readouterr().err
    assert "[STORAGE_NOT_WRITABLE] A file could not be read or written: Permission denied: " in told
    assert "/lake/a.parquet" in told
    assert "bug" not in told
