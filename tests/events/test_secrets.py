"""Secrets of the configuration never reach the event log."""

import pytest

from millpond.events import FlowStatus, UpdateState
from millpond.events.secrets import Redactor


@pytest.mark.parametrize(
    "key", ["db.password", "API_TOKEN", "fs.secret", "storage.account.Key", "aws.credentials"]
)
def test_values_of_keys_that_look_secret_are_hidden_in_every_text(record, heard, key):
    recorder = record(configuration={key: "hunter2", "region": "north"})
    error = ValueError("can't log in as north with hunter2")
    recorder.flow_progress("f", "t", FlowStatus.FAILED, error=error)
    recorder.update_progress(UpdateState.CANCELED, cancellation_cause="hunter2 expired")
    for event in heard:
        assert "hunter2" not in str(event.to_record())
    assert "as north with [REDACTED]" in heard[0].message


def test_the_longest_secret_is_hidden_whole():
    redactor = Redactor({"a.token": "abcd", "b.token": "abcdefgh"})
    assert redactor.text("it is abcdefgh") == "it is [REDACTED]"


@pytest.mark.parametrize("value", ["", "1", "abc", "true", "FALSE", "None"])
def test_a_value_too_common_to_be_a_secret_hides_nothing(value):
    assert Redactor({"use.token": value}).text("true FALSE abc 1 None") == "true FALSE abc 1 None"


def test_text_that_is_no_unicode_is_written_out():
    assert Redactor().text("file \udcff.csv") == "file \\udcff.csv"
