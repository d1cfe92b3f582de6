"""Files that are gone, or seem to be, beside others that can't be read."""

from __future__ import annotations

import pytest

from tests.files.test_empty_files import KEYED, csv, found, table


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("cut_first", [True, False])
def test_what_a_damaged_file_brought_stays_when_one_of_its_name_is_gone(suppliers, most, cut_first):
    table(
        suppliers,
        KEYED.replace("allowOverwrites", f"maxFilesPerTrigger => {most}, allowOverwrites"),
        setting="replaceAndRemove",
    )
    gone = suppliers.send("a/x.csv", csv(1))
    suppliers.send("b/x.csv", csv(2), at_s=10)
    suppliers.updated()
    suppliers.send("b/x.csv", "v,", at_s=20)
    suppliers.send("c/x.csv", csv(3), at_s=5)
    if cut_first:
        suppliers.error()
    gone.unlink()
    suppliers.error()
    assert found(suppliers) == [("x.csv", 2)]
    suppliers.send("b/x.csv", csv(4), at_s=30)
    suppliers.updated()
    assert found(suppliers) == [("x.csv", 4)]


def test_a_file_behind_a_link_that_leads_nowhere_is_not_gone(suppliers, tmp_path):
    table(suppliers, setting="replaceAndRemove")
    disk = tmp_path / "disk"
    disk.mkdir()
    (suppliers.sent / "mounted").symlink_to(disk)
    suppliers.send("mounted/a.csv", csv(1))
    suppliers.send("b.csv", csv(2))
    suppliers.updated()
    disk.rename(tmp_path / "elsewhere")
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 1), ("b.csv", 2)]
    (tmp_path / "elsewhere").rename(disk)
    (disk / "a.csv").unlink()
    suppliers.updated()
    assert found(suppliers) == [("b.csv", 2)]


def test_nothing_comes_twice_where_a_file_of_the_name_can_not_be_read_yet(suppliers):
    table(suppliers, setting="replaceAndRemove")
    gone = suppliers.send("x/a.csv", csv(1))
    suppliers.send("y/a.csv", csv(2), at_s=10)
    suppliers.updated()
    gone.unlink()
    suppliers.send("z/a.csv", "v,", at_s=5)
    suppliers.error()
    assert found(suppliers) == [("a.csv", 2)]
    suppliers.send("z/a.csv", csv(3), at_s=6)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]


def test_a_newer_file_that_is_gone_goes_once_the_others_of_its_name_can_be_read(suppliers):
    table(suppliers, setting="replaceAndRemove")
    gone = suppliers.send("x/a.csv", csv(1), at_s=5)
    suppliers.updated()
    gone.unlink()
    suppliers.send("y/a.csv", "v,")
    suppliers.error()
    assert found(suppliers) == [("a.csv", 1)]
    suppliers.send("y/a.csv", csv(2), at_s=3)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]


def test_rows_of_a_file_behind_a_dead_link_stay_when_another_of_its_name_is_gone(
    suppliers, tmp_path
):
    table(suppliers, setting="replaceAndRemove")
    disk = tmp_path / "disk"
    disk.mkdir()
    (suppliers.sent / "mounted").symlink_to(disk)
    gone = suppliers.send("x/a.csv", csv(1), at_s=1)
    suppliers.send("mounted/a.csv", csv(2), at_s=2)
    suppliers.updated()
    disk.rename(tmp_path / "elsewhere")
    gone.unlink()
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
    (tmp_path / "elsewhere").rename(disk)
    suppliers.updated()
    assert found(suppliers) == [("a.csv", 2)]
