"""From a name to a Delta table on disk."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millpond.errors import SourceLocation
from millpond.errors.options import InvalidOptionError
from millpond.errors.samples import SampleTableNotFoundError
from millpond.samples import locate
from millpond.samples.wanderbricks.tables import TABLES
from millpond.storage import Layout

SMALL = {"millpond.samples.scale": "0.05"}


def find(table: str, root: Path, **options: str) -> Path:
    configuration = SMALL | {f"millpond.samples.{name}": value for name, value in options.items()}
    folder = locate(
        ("samples", "wanderbricks", table), layout=Layout(root), configuration=configuration
    )
    assert folder is not None
    return folder


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_made_on_first_use(table: str, tmp_path: Path) -> None:
    folder = find(table, tmp_path)
    assert folder.is_relative_to(tmp_path / "samples")
    assert DeltaTable(folder).version() == 0
    assert DeltaTable(folder).to_pyarrow_table().num_rows > 0


def test_names_compare_without_case(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    folder = locate(("SAMPLES", "WanderBricks", "Users"), layout=layout, configuration=SMALL)
    assert folder == find("users", tmp_path)


@pytest.mark.parametrize(
    "parts",
    [
        ("main", "wanderbricks", "users"),
        ("samples", "nyctaxi", "trips"),
        ("wanderbricks", "users"),
        ("users",),
    ],
)
def test_a_name_outside_the_sample_schema_is_none_of_ours(
    parts: tuple[str, ...], tmp_path: Path
) -> None:
    assert locate(parts, layout=Layout(tmp_path), configuration={}) is None
    assert not list(tmp_path.iterdir())


def test_an_unknown_table_is_refused_with_the_list_of_tables(tmp_path: Path) -> None:
    with pytest.raises(SampleTableNotFoundError, match="no table 'xyz'") as caught:
        locate(
            ("samples", "wanderbricks", "xyz"),
            layout=Layout(tmp_path),
            configuration={},
            where=SourceLocation("a.sql", 3),
        )
    assert caught.value.where == SourceLocation("a.sql", 3)
    assert caught.value.hint is not None
    assert all(table in caught.value.hint for table in TABLES)
    assert isinstance(caught.value, LookupError)


def test_a_name_like_that_of_a_table_is_refused_with_that_table(tmp_path: Path) -> None:
    with pytest.raises(SampleTableNotFoundError, match="did you mean booking_updates"):
        locate(
            ("samples", "wanderbricks", "bookingupdate"), layout=Layout(tmp_path), configuration={}
        )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("scale", "big"),
        ("scale", "0"),
        ("scale", "nan"),
        ("scale", "1e9"),
        ("slices", "0"),
        ("slices", "1.5"),
        ("slices", "inf"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(option: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=f"millpond.samples.{option} must be .*{value}"):
        find("bookings", tmp_path, **{option: value})


def test_another_scale_is_another_table(tmp_path: Path) -> None:
    small, large = find("bookings", tmp_path), find("bookings", tmp_path, scale="0.1")
    assert small != large
    assert DeltaTable(small).count() == 100
    assert DeltaTable(large).count() == 200
    assert DeltaTable(small).metadata().id != DeltaTable(large).metadata().id


@pytest.mark.parametrize("table", ["booking_updates", "payments"])
def test_each_slice_is_one_commit_more_and_the_rows_before_it_stay(
    table: str, tmp_path: Path
) -> None:
    before = DeltaTable(find(table, tmp_path))
    files_before = set(before.file_uris())
    after = DeltaTable(find(table, tmp_path, slices="3"))
    assert (before.version(), after.version()) == (0, 2)
    assert files_before < set(after.file_uris())
    assert after.count() > before.count()


def test_slices_asked_for_at_once_or_one_by_one_give_the_same_rows(tmp_path: Path) -> None:
    find("payments", tmp_path / "steps")
    find("payments", tmp_path / "steps", slices="2")
    steps = DeltaTable(find("payments", tmp_path / "steps", slices="3"))
    at_once = DeltaTable(find("payments", tmp_path / "at_once", slices="3"))
    by_row = [("payment_date", "ascending"), ("booking_id", "ascending")]
    assert steps.to_pyarrow_table().sort_by(by_row) == at_once.to_pyarrow_table().sort_by(by_row)


def test_asking_again_or_for_fewer_slices_changes_nothing(tmp_path: Path) -> None:
    find("booking_updates", tmp_path, slices="3")
    assert DeltaTable(find("booking_updates", tmp_path, slices="3")).version() == 2
    assert DeltaTable(find("booking_updates", tmp_path, slices="1")).version() == 2


def test_tables_that_have_no_later_rows_stay_at_their_base(tmp_path: Path) -> None:
    assert DeltaTable(find("bookings", tmp_path, slices="3")).version() == 0


def test_processes_at_once_make_one_table(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from millpond.samples import locate; from millpond.storage import Layout\n"
        "print(locate(('samples', 'wanderbricks', 'booking_updates'),"
        " layout=Layout(Path(sys.argv[1])),"
        f" configuration={SMALL | {'millpond.samples.slices': '4'}!r}))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    folders = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(folders) == 1
    table = DeltaTable(folders.pop())
    alone = DeltaTable(find("booking_updates", tmp_path / "alone", slices="4"))
    assert table.version() == alone.version() == 3
    assert table.count() == alone.count()


def test_a_process_killed_while_it_writes_leaves_no_half_table(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import millpond.samples.folder as folder\n"
        "from millpond.samples import locate; from millpond.storage import Layout, LocalStore\n"
        "def stop(self, paths):\n"
        "    print('written', flush=True); import time; time.sleep(60)\n"
        "LocalStore.sync = stop\n"
        "locate(('samples', 'wanderbricks', 'users'), layout=Layout(Path(sys.argv[1])),"
        f" configuration={SMALL!r})\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    written = [path for path in tmp_path.rglob("*") if path.is_dir() and "users" in path.name]
    assert [path.suffix for path in written] == [".tmp"]
    folder = find("users", tmp_path)
    assert DeltaTable(folder).count() == 25
    assert [path.name for path in folder.parent.iterdir()] == ["users"]


def test_a_table_that_is_there_is_found_without_heavy_imports(tmp_path: Path) -> None:
    find("booking_updates", tmp_path)
    script = (
        "import sys; from pathlib import Path\n"
        "from millpond.samples import locate; from millpond.storage import Layout\n"
        "locate(('samples', 'wanderbricks', 'booking_updates'), layout=Layout(Path(sys.argv[1])),"
        f" configuration={SMALL!r})\n"
        "print(sorted({'numpy', 'pyarrow', 'deltalake', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_default_tables_of_the_demo_are_made_in_a_moment(tmp_path: Path) -> None:
    started = time.monotonic()
    for table in ("bookings", "booking_updates", "payments"):
        locate(("samples", "wanderbricks", table), layout=Layout(tmp_path), configuration={})
    assert time.monotonic() - started < 5
