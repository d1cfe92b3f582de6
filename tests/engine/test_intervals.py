"""Lengths of time read as Spark reads them. Expected values are what Spark 4.2 answers."""

import pytest

from millpond.engine.connect.intervals import duration_us, watermark_delay_us
from millpond.errors import SourceLocation
from millpond.errors.engine import InvalidIntervalError

WHERE = SourceLocation("transformations/a.py", 7)
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

LENGTHS = {
    "10 minutes": 10 * MINUTE,
    "10 minute": 10 * MINUTE,
    "  1 hour   30 minutes ": HOUR + 30 * MINUTE,
    "1\tday": DAY,
    "5 SECONDS": 5 * SECOND,
    "+1 day": DAY,
    "1 hour -30 minutes": 30 * MINUTE,
    "2 weeks": 14 * DAY,
    "1 days 1 days": 2 * DAY,
    "1.5 seconds": 1_500_000,
    ".5 seconds": 500_000,
    "1. seconds": SECOND,
    "1.123456789 seconds": 1_123_456,
    "10 milliseconds": 10_000,
    "1000 microseconds": 1000,
    "interval 5 minutes": 5 * MINUTE,
    "INTERVAL 10 MINUTES": 10 * MINUTE,
    "INTERVAL\n10 minutes": 10 * MINUTE,
    "INTERVAL /* c */ 10 MINUTES": 10 * MINUTE,
    "INTERVAL + 10 MINUTE": 10 * MINUTE,
    "INTERVAL '10' MINUTES": 10 * MINUTE,
    "INTERVAL '+10' MINUTE": 10 * MINUTE,
    "INTERVAL -'-10' MINUTE": 10 * MINUTE,
    "INTERVAL '1' WEEK": 7 * DAY,
    "INTERVAL '1' MILLISECOND": 1000,
    "INTERVAL '10 minutes'": 10 * MINUTE,
    "interval '1 day 2 hours'": DAY + 2 * HOUR,
    "interval 1 hour 2 minutes": HOUR + 2 * MINUTE,
    "interval '10' minutes '5' seconds": 10 * MINUTE + 5 * SECOND,
    "interval 1.50 second": 1_500_000,
    "interval '1.5' second": 1_500_000,
    "INTERVAL '1:30' HOUR TO MINUTE": HOUR + 30 * MINUTE,
    "INTERVAL '30:00' HOUR TO MINUTE": 30 * HOUR,
    "INTERVAL '1 2' DAY TO HOUR": DAY + 2 * HOUR,
    "INTERVAL '1 02:03:04.5' DAY TO SECOND": DAY + 2 * HOUR + 3 * MINUTE + 4_500_000,
    "INTERVAL '1:2' MINUTE TO SECOND": MINUTE + 2 * SECOND,
    "interval '90:00' minute to second": 90 * MINUTE,
}

UNREADABLE = [
    "",
    "  ",
    "interval",
    "10",
    "10 min",
    "1 s",
    "10minutes",
    "1 hours2 minutes",
    "1.5 minutes",
    ". seconds",
    "10 millis",
    "10 nanoseconds",
    "1.1234567891 seconds",
    "99999999999999 days",
    "- INTERVAL 10 minutes",
    "interval10 minutes",
    "interval 1 hour, 2 minutes",
    "INTERVAL 10 MINUTES 5",
    "INTERVAL -",
    "interval 1 quarter",
    "interval '1.5' minute",
    "interval 1 day 'x' hour",
    "INTERVAL 1e1 seconds",
    "INTERVAL ts minutes",
    "INTERVAL '1' DAY TO HOUR",
    "INTERVAL '1:60' HOUR TO MINUTE",
    "INTERVAL '1:30' MINUTE TO HOUR",
    "INTERVAL '1:30' HOUR TO MINUTE 5 SECONDS",
    "INTERVAL '1-12' YEAR TO MONTH",
    "interval '1:30'",
]


@pytest.mark.parametrize("text", LENGTHS)
def test_a_length_is_what_spark_takes_it_for(text):
    assert watermark_delay_us(text, where=WHERE) == LENGTHS[text] // 1000 * 1000
    assert duration_us(text, where=WHERE) == LENGTHS[text]


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize("read", [watermark_delay_us, duration_us])
def test_what_spark_can_not_read_is_refused(read, text):
    with pytest.raises(InvalidIntervalError, match="is no length of time"):
        read(text, where=WHERE)


@pytest.mark.parametrize("text", ["0 seconds", "0 months", "INTERVAL '0' DAY", "1 microsecond"])
def test_a_watermark_may_not_lag_behind_at_all(text):
    assert watermark_delay_us(text, where=WHERE) == 0


@pytest.mark.parametrize(
    "text",
    ["-5 seconds", "- 5 seconds", "1 month -40 days", "INTERVAL -'1:30' HOUR TO MINUTE"],
)
def test_a_negative_delay_is_refused(text):
    with pytest.raises(InvalidIntervalError, match="negative"):
        watermark_delay_us(text, where=WHERE)


@pytest.mark.parametrize(
    ("text", "days"),
    [("1 month", 31), ("1 year 2 months", 14 * 31), ("INTERVAL '2-1' YEAR TO MONTH", 25 * 31)],
)
def test_in_a_delay_a_month_counts_31_days(text, days):
    assert watermark_delay_us(text, where=WHERE) == days * DAY


@pytest.mark.parametrize("text", ["1 month", "interval 1 year", "1 second 5 months"])
def test_a_window_of_months_is_refused(text):
    with pytest.raises(InvalidIntervalError, match="months differ in length"):
        duration_us(text, where=WHERE)


@pytest.mark.parametrize("text", ["0 seconds", "-1 day", "interval -1 day"])
def test_a_window_lasts_longer_than_nothing(text):
    with pytest.raises(InvalidIntervalError, match="not above zero"):
        duration_us(text, where=WHERE)


def test_the_error_names_the_call_and_its_place():
    with pytest.raises(InvalidIntervalError) as caught:
        duration_us("soon", where=WHERE, call="session_window()")
    assert str(caught.value).splitlines() == [
        (
            "[INVALID_INTERVAL] session_window() is given 'soon', which is no length of time. "
            "(SQLSTATE 22006)"
        ),
        "  at transformations/a.py:7",
        "  hint: write numbers and units, such as '10 minutes' or '1 hour 30 minutes'",
    ]
    assert isinstance(caught.value, ValueError)
