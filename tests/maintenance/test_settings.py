"""Properties of a table that say how it is looked after: the field's own names and values."""

import pytest

from millpond.errors.maintenance import InvalidTablePropertyError
from millpond.maintenance import Settings
from millpond.maintenance.settings import DAY_MS, HOUR_MS, parse_interval


def test_without_properties_a_table_is_looked_after_as_elsewhere():
    settings = Settings.of({})
    assert settings.compacts
    assert settings.is_managed
    assert settings.cleans_log
    assert settings.target_bytes == 128 * 1024 * 1024
    assert settings.file_retention_ms == 7 * DAY_MS
    assert settings.log_retention_ms == 30 * DAY_MS


def test_names_match_without_regard_to_case():
    settings = Settings.of(
        {"delta.deletedFileretentionDuration": "30 days", "PIPELINES.autooptimize.managed": "FALSE"}
    )
    assert settings.file_retention_ms == 30 * DAY_MS
    assert not settings.is_managed


@pytest.mark.parametrize("value", ["auto", "true", "legacy", "True"])
def test_auto_compaction_is_on(value):
    assert Settings.of({"delta.autoOptimize.autoCompact": value}).compacts


def test_auto_compaction_can_be_turned_off():
    assert not Settings.of({"delta.autoOptimize.autoCompact": "false"}).compacts


@pytest.mark.parametrize(("text", "size"), [("104857600", 100 << 20), ("100mb", 100 << 20)])
def test_the_target_size_is_bytes_or_has_a_unit(text, size):
    assert Settings.of({"delta.targetFileSize": text}).target_bytes == size


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("interval 30 days", 30 * DAY_MS),
        ("INTERVAL 168 HOURS", 7 * DAY_MS),
        ("7 days", 7 * DAY_MS),
        ("interval 1 day 12 hours", 36 * HOUR_MS),
        ("interval 0 seconds", 0),
    ],
)
def test_intervals_are_read_as_delta_writes_them(text, time_ms):
    assert parse_interval(text) == time_ms


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.deletedFileRetentionDuration", "interval 1 month"),
        ("delta.deletedFileRetentionDuration", "a week"),
        ("delta.logRetentionDuration", "interval"),
        ("delta.targetFileSize", "0"),
        ("delta.autoOptimize.autoCompact", "yes"),
        ("delta.enableExpiredLogCleanup", "1"),
    ],
)
def test_other_values_are_refused_by_the_name_of_the_property(key, value):
    with pytest.raises(InvalidTablePropertyError, match=key):
        Settings.of({key: value})
