"""`millpond maintain` says what it did for each table, and a dry run what it would do."""

import json

import pytest

from tests.cli.test_pipeline import TABLES, call, make_project


@pytest.fixture
def shop(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    for slices in ("1", "2", "3"):
        done = call("run", "--conf", f"millpond.samples.slices={slices}", cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def maintained(folder, *arguments):
    done = call("maintain", "--format", "json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {table["name"]: table for table in json.loads(done.stdout)}


def test_maintain_previews_tidies_and_then_finds_nothing_to_do(shop):
    name = "main.shop.current_bookings"
    rows = call("query", "SELECT count(*) AS n FROM current_bookings", cwd=shop).stdout
    preview = maintained(shop, "--dry-run")
    assert set(preview) == {name, "main.shop.by_status", "event_log"}
    assert preview[name]["files_before"] == 3
    assert preview[name]["files_after"] == 1

    shown = call("maintain", cwd=shop)
    # A narrow terminal cuts names short.
    assert "3 -> 1" in shown.stdout
    again = maintained(shop, "--tables", "current_bookings")[name]
    assert (again["files_before"], again["files_after"]) == (1, 1)
    assert call("query", "SELECT count(*) AS n FROM current_bookings", cwd=shop).stdout == rows


def test_a_name_that_is_no_table_is_a_wrong_call(shop):
    done = call("maintain", "--tables", "current_bookings,by_statu", cwd=shop)
    assert done.returncode == 2
    assert "UNKNOWN_DATASET" in done.stderr
    assert "by_status" in done.stderr


def test_without_tables_there_is_nothing_to_do(tmp_path):
    folder = make_project(tmp_path / "shop", tables_sql=TABLES)
    done = call("maintain", cwd=folder)
    assert done.returncode == 0
    assert done.stdout == "There are no tables yet.\n"
