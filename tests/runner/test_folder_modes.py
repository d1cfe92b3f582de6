"""What millpond writes is its owner's alone, unless the owner says otherwise."""

import os
import stat
from contextlib import closing

import pytest

from millpond.definitions import SqlQuery
from millpond.engine.embedded import EmbeddedEngine
from millpond.engine.protocol import DeltaInput
from millpond.errors import SourceLocation
from millpond.runner import dry_run, run_query
from tests.pipeline_folder import PipelineFolder

FLOW = "CREATE STREAMING TABLE copy AS SELECT * FROM STREAM samples.wanderbricks.countries"


@pytest.fixture(autouse=True)
def usual_umask():
    """Files for everybody to read, as on most systems."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path):
    folder = PipelineFolder.made(tmp_path / "project")
    folder.write("flow.sql", FLOW)
    return folder


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "work",
    [
        lambda folder: folder.run(),
        lambda folder: dry_run(folder.project()),
        lambda folder: run_query(folder.project(), "SELECT * FROM samples.wanderbricks.countries"),
    ],
    ids=["run", "dry-run", "query"],
)
def test_a_storage_folder_that_millpond_makes_is_for_its_owner_only(folder, work):
    work(folder)
    assert mode(folder.layout.root) == 0o700


def test_what_is_below_a_storage_folder_is_as_the_umask_says(folder):
    assert folder.run().problems == ()
    assert mode(folder.table("copy")) == 0o755
    files = [path for path in folder.table("copy").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".json", ".parquet"}
    assert {mode(path) for path in files} == {0o644}


def test_a_storage_folder_that_is_there_keeps_its_mode(folder):
    folder.layout.root.mkdir(mode=0o755)
    folder.layout.root.chmod(0o775)
    assert folder.run().problems == ()
    assert mode(folder.layout.root) == 0o775


def test_temporary_folders_are_for_their_owner_only(folder, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    seen: dict[str, int] = {}

    def look(_event):
        folders = [path for path in scratch.rglob("*") if path.is_dir() and not path.is_symlink()]
        seen.update({path.name: mode(path) for path in folders})

    folder.run(listeners=[look])
    # A table below a folder with an unusual name is read by way of another.
    odd = folder.root / "it's odd"
    odd.symlink_to(folder.table("copy"))
    query = SqlQuery("SELECT count(*) AS n FROM t", SourceLocation("a.sql", 1, 1))
    with closing(EmbeddedEngine()) as engine:
        assert engine.query(query.text, lambda _: DeltaInput(str(odd))).num_rows == 1
        look(None)
    assert any(name.startswith("sail-") for name in seen)
    assert {seen[path.name] for path in scratch.iterdir()} == {0o700}
