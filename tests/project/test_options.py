"""The settings under `millpond.*`."""

import pytest

from millpond.errors.options import InvalidOptionError, UnknownOptionError
from millpond.options import (
    ENGINE,
    MAX_BYTES_PER_TRIGGER,
    MAX_FILES_PER_TRIGGER,
    OPTIONS,
    SAMPLES_SCALE,
    SAMPLES_SLICES,
    check_option,
)


def test_a_setting_that_is_left_out_has_its_default():
    assert {option.key: option.read({}) for option in OPTIONS} == {
        "millpond.engine": "embedded",
        "millpond.spark.storage": None,
        "millpond.spark.tables": "catalog",
        "millpond.samples.scale": 1.0,
        "millpond.samples.slices": 1,
        "millpond.maxFilesPerTrigger": None,
        "millpond.maxBytesPerTrigger": None,
    }


@pytest.mark.parametrize(
    "text", ["spark", "sc://", "sc://h:1;token=a", "sc://h:port", "http://h", "sc://a b"]
)
def test_an_engine_is_embedded_or_the_whole_address_of_a_server(text):
    with pytest.raises(InvalidOptionError):
        ENGINE.read({"millpond.engine": text})


@pytest.mark.parametrize("text", ["embedded", "sc://h", "sc://h:1", "sc://[::1]:1/;token=a"])
def test_such_engines_are_taken(text):
    assert ENGINE.read({"millpond.engine": text}) == text


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (SAMPLES_SCALE, "0.25", 0.25),
        (SAMPLES_SLICES, " 3 ", 3),
        (MAX_FILES_PER_TRIGGER, "10", 10),
        (MAX_BYTES_PER_TRIGGER, "1000", 1000),
        (MAX_BYTES_PER_TRIGGER, "64k", 64 * 1024),
        (MAX_BYTES_PER_TRIGGER, "500MB", 500 * 1024**2),
        (MAX_BYTES_PER_TRIGGER, "1 g", 1024**3),
        (MAX_BYTES_PER_TRIGGER, "2tb", 2 * 1024**4),
    ],
)
def test_a_setting_is_read_as_what_it_is(option, text, value):
    assert option.read({option.key: text}) == value
    assert check_option(option.key, {option.key: text}) is None


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (SAMPLES_SCALE, "big"),
        (SAMPLES_SCALE, "0"),
        (SAMPLES_SCALE, "nan"),
        (SAMPLES_SCALE, "inf"),
        (SAMPLES_SLICES, "1.5"),
        (SAMPLES_SLICES, "0"),
        (SAMPLES_SLICES, "101"),
        (MAX_FILES_PER_TRIGGER, "-1"),
        (MAX_FILES_PER_TRIGGER, ""),
        (MAX_BYTES_PER_TRIGGER, "0"),
        (MAX_BYTES_PER_TRIGGER, "1.5g"),
        (MAX_BYTES_PER_TRIGGER, "10 apples"),
    ],
)
def test_another_value_is_refused(option, text):
    with pytest.raises(InvalidOptionError) as caught:
        option.read({option.key: text})
    assert option.expected in caught.value.what


@pytest.mark.parametrize("key", ["millpond.scale", "millpond.maxfilespertrigger", "Millpond.x"])
def test_a_setting_that_does_not_exist_is_refused(key):
    assert isinstance(check_option(key, {key: "1"}), UnknownOptionError)


def test_settings_of_others_are_let_through():
    assert check_option("spark.sql.ansi.enabled", {"spark.sql.ansi.enabled": "true"}) is None
