"""Options of a streaming read: names without letter case, values checked, the rest refused."""

import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from millpond.errors import SourceLocation
from millpond.errors.streaming import (
    InvalidStreamOptionError,
    UnknownStreamOptionError,
    UnsupportedStreamOptionError,
)
from millpond.streaming import DeltaReadOptions

HERE = SourceLocation("transformations/a.py", 7)


def test_defaults_bound_a_batch_by_files_and_bytes():
    options = DeltaReadOptions.parse({})
    assert options.max_files == 1000
    assert options.max_bytes == 1024**3
    assert not options.starts_midway


@pytest.mark.parametrize("name", ["skipChangeCommits", "skipchangecommits", "SKIPCHANGECOMMITS"])
@pytest.mark.parametrize("value", ["true", "True", " TRUE "])
def test_names_and_booleans_count_without_their_case(name, value):
    assert DeltaReadOptions.parse({name: value}).skip_change_commits


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("512b", 512),
        ("3k", 3072),
        ("2MB", 2 * 1024**2),
        ("10g", 10 * 1024**3),
        ("1 GiB", 1024**3),
    ],
)
def test_sizes_have_units_of_1024(text, size):
    assert DeltaReadOptions.parse({"maxBytesPerTrigger": text}).max_bytes == size


def test_a_limit_by_size_alone_lifts_the_limit_by_number():
    assert DeltaReadOptions.parse({"maxBytesPerTrigger": "1g"}).max_files == sys.maxsize
    both = DeltaReadOptions.parse({"maxBytesPerTrigger": "1g", "maxFilesPerTrigger": "5"})
    assert (both.max_files, both.max_bytes) == (5, 1024**3)
    assert DeltaReadOptions.parse({"maxFilesPerTrigger": "5"}).max_bytes == 1024**3


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31 12:30:00", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        ("2026-01-31T12:30:00Z", datetime(2026, 1, 31, 12, 30, tzinfo=UTC)),
        (
            "2026-01-31T12:30:00+02:00",
            datetime(2026, 1, 31, 12, 30, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_a_time_without_a_zone_is_utc(text, time):
    assert DeltaReadOptions.parse({"startingTimestamp": text}).starting_timestamp == time


def test_starting_version_is_a_number_or_latest():
    assert DeltaReadOptions.parse({"startingVersion": "0"}).starting_version == 0
    assert DeltaReadOptions.parse({"startingVersion": "Latest"}).starting_version == "latest"


@pytest.mark.parametrize(
    "options",
    [
        {"skipChangeCommits": "yes"},
        {"ignoreDeletes": ""},
        {"maxFilesPerTrigger": "0"},
        {"maxFilesPerTrigger": "-1"},
        {"maxFilesPerTrigger": "1.5"},
        {"maxFilesPerTrigger": "\u0663"},
        {"maxBytesPerTrigger": "0"},
        {"maxBytesPerTrigger": "many"},
        {"maxBytesPerTrigger": "-1g"},
        {"startingVersion": "-1"},
        {"startingVersion": "first"},
        {"startingVersion": "9" * 40},
        {"startingTimestamp": "yesterday"},
        {"startingVersion": "1", "startingTimestamp": "2026-01-01"},
    ],
)
def test_a_value_that_does_not_fit_is_refused(options):
    with pytest.raises(InvalidStreamOptionError) as refused:
        DeltaReadOptions.parse(options, where=HERE)
    assert refused.value.where == HERE
    assert refused.value.hint


@pytest.mark.parametrize(
    "option",
    [
        "readChangeFeed",
        "readChangeData",
        "withEventTimeOrder",
        "excludeRegex",
        "versionAsOf",
        "timestampAsOf",
        "ignoreFileDeletion",
        "schemaTrackingLocation",
        "endingVersion",
        "checkpointLocation",
    ],
)
def test_options_of_delta_that_are_not_offered_say_what_to_do_instead(option):
    with pytest.raises(UnsupportedStreamOptionError, match=option) as refused:
        DeltaReadOptions.parse({option.upper(): "true"}, where=HERE)
    assert refused.value.hint


def test_an_option_that_asks_for_what_holds_anyway_is_accepted():
    options = {"readChangeFeed": "false", "failOnDataLoss": "true", "withEventTimeOrder": "False"}
    assert DeltaReadOptions.parse(options) == DeltaReadOptions()


def test_an_unknown_option_is_refused_with_the_likely_meant_one():
    with pytest.raises(UnknownStreamOptionError) as refused:
        DeltaReadOptions.parse({"skipChangeCommit": "true"}, where=HERE)
    assert "did you mean skipChangeCommits?" in str(refused.value)
    with pytest.raises(UnknownStreamOptionError, match="colour") as unlike:
        DeltaReadOptions.parse({"colour": "blue"})
    assert "maxFilesPerTrigger" in (unlike.value.hint or "")
