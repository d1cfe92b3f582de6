"""What a process keeps for itself goes with it, or with the next process where it was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millpond.storage import scratch_folder, without_scratch
from millpond.storage.scratch import PREFIX

KEEP = """
import sys
from millpond.storage import new_scratch_folder
folder = new_scratch_folder("spill")
(folder / "large").write_bytes(b"0" * 100_000)
print(folder.parent.name, flush=True)
"""
WAIT = "sys.stdin.read()"
FORK = """
import os
if os.fork() == 0:
    new_scratch_folder("child")
    raise SystemExit
os.wait()
print(folder.exists(), flush=True)
"""


@pytest.fixture
def started(tmp_path):
    """Start a process that keeps a folder below `tmp_path`, and tell the folder's name."""
    processes = []

    def start(program):
        process = subprocess.Popen(
            [sys.executable, "-c", KEEP + program],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_it_is_gone_when_the_process_ends(started, tmp_path):
    process, name = started(WAIT)
    assert names(tmp_path) == {name}
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    process.communicate()
    assert names(tmp_path) == set()


def test_that_of_a_killed_process_goes_with_the_next_and_those_of_living_ones_stay(
    started, tmp_path
):
    _, living = started(WAIT)
    killed, left_behind = started(WAIT)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert names(tmp_path) == {living, left_behind}
    _, following = started(WAIT)
    assert names(tmp_path) == {living, following}
    assert len(list((tmp_path / living).rglob("large"))) == 1


def test_it_is_removed_also_below_a_folder_that_hands_its_group_on(started, tmp_path):
    tmp_path.chmod(0o2777)
    killed, left_behind = started(WAIT)
    assert (tmp_path / left_behind).stat().st_mode & 0o777 == 0o700
    killed.kill()
    killed.wait()
    _, following = started(WAIT)
    assert names(tmp_path) == {following}


def test_one_that_another_process_takes_for_left_behind_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make, taken = tempfile.mkdtemp, []

    def made_and_taken(**arguments):
        path = make(**arguments)
        if not taken:
            taken.append(path)
            Path(path).rmdir()
        return path

    monkeypatch.setattr("tempfile.mkdtemp", made_and_taken)
    with scratch_folder("spill") as folder:
        assert folder.is_dir()
    assert len(taken) == 1


def test_messages_name_what_links_in_it_lead_to(tmp_path):
    with scratch_folder("tables") as folder:
        (folder / "t").symlink_to(tmp_path)
        named = str(folder / "t" / "part-1.parquet")
        expected = f"can't read {tmp_path / 'part-1.parquet'}: it is gone"
        for path in (named, named.lstrip("/")):
            assert without_scratch(f"can't read {path}: it is gone") == expected
    assert without_scratch("a message") == "a message"


def test_nothing_else_is_removed(started, tmp_path):
    for name in ("millpond-project", f"{PREFIX}mine", f"{PREFIX}12345678.bak"):
        (tmp_path / name).mkdir(mode=0o700)
    # As a user's own folder has it, not as one that was made for the owner only.
    (tmp_path / f"{PREFIX}abcdefgh").mkdir(mode=0o755)
    (tmp_path / f"{PREFIX}file0000").touch(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / f"{PREFIX}link0000").symlink_to(elsewhere)
    before = names(tmp_path)
    process, _ = started("")
    process.communicate()
    assert names(tmp_path) == before


def test_a_child_that_was_forked_leaves_that_of_its_parent(started, tmp_path):
    process, _ = started(FORK)
    assert process.communicate()[0].strip() == "True"
    assert names(tmp_path) == set()
