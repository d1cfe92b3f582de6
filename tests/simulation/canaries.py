"""Ways to break the commit path, one rule each, all of which the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from millpond.flows import commits
from millpond.state import BatchState, FlowState
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, micro_batches


@contextmanager
def _replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, value in changes:
            stack.enter_context(mock.patch.object(target, name, value))
        yield


def content_is_not_synced() -> Any:
    """A file of the store gets its name before its content is durable."""

    def write_temporary(self: LocalStore, path: Path, data: bytes) -> Path:
        self.make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.tmp")
        self._disk.remove(temporary)
        self._disk.write_new(temporary, data)
        return temporary

    return _replaced((LocalStore, "_write_temporary", write_temporary))


def names_are_not_synced() -> Any:
    """A commit is over before its name is durable."""

    def put_if_absent(self: LocalStore, path: Path, data: bytes) -> None:
        temporary = self._write_temporary(path, data)
        try:
            self._disk.link(temporary, path)
        finally:
            self._disk.remove(temporary)

    return _replaced((LocalStore, "put_if_absent", put_if_absent))


def new_folders_are_not_synced() -> Any:
    """A new folder's name may be lost, and all that is in it."""

    def make_folder(self: LocalStore, folder: Path, *, mode: int = 0o777) -> None:
        if not self._disk.is_folder(folder):
            self.make_folder(folder.parent)
            self._disk.make_folder(folder, mode)

    return _replaced((LocalStore, "make_folder", make_folder))


def data_files_are_not_synced() -> Any:
    """A commit names files that a loss of power tears."""
    return _replaced((LocalStore, "sync", lambda _self, _paths: None))


def data_files_are_synced_after_the_commit() -> Any:
    """A commit is durable before the files that it names."""
    waiting: list[tuple[LocalStore, list[Path]]] = []
    sync, put_if_absent = LocalStore.sync, LocalStore.put_if_absent

    def put(self: LocalStore, path: Path, data: bytes) -> None:
        put_if_absent(self, path, data)
        late = [paths for store, paths in waiting if store is self]
        waiting.clear()
        for paths in late:
            sync(self, paths)

    def later(self: LocalStore, paths: Iterable[Path]) -> None:
        waiting.append((self, list(paths)))

    return _replaced((LocalStore, "sync", later), (LocalStore, "put_if_absent", put))


def commits_are_written_in_place() -> Any:
    """A commit has its name before its content."""

    def put_if_absent(self: LocalStore, path: Path, data: bytes) -> None:
        self.make_folder(path.parent)
        self._disk.write_new(path, data)
        self._disk.sync(path)
        self._disk.sync(path.parent)

    return _replaced((LocalStore, "put_if_absent", put_if_absent))


def commits_overwrite() -> Any:
    """A commit takes the place of another writer's of the same version."""
    return _replaced((LocalStore, "put_if_absent", LocalStore.put))


def batches_are_applied_again() -> Any:
    """After a restart the newest batch runs again though the table holds it."""
    resume = micro_batches._resume

    def again(checkpoint: Checkpoint, committed: int | None) -> Any:
        return resume(checkpoint, committed - 1 if committed else None)

    return _replaced(
        (micro_batches, "_resume", again),
        (commits, "holds_batch", lambda _snapshot, _context: False),
    )


def batches_are_planned_after_they_are_applied() -> Any:
    """What a batch reads is on record only once its rows are in the table."""
    plan, prune = Checkpoint.plan, Checkpoint.prune
    planned: dict[int, Any] = {}

    def later(self: Checkpoint, batch: Any) -> None:
        planned[id(self)] = batch

    def after(self: Checkpoint, *, committed: int, **options: Any) -> None:
        if id(self) in planned:
            plan(self, planned.pop(id(self)))
        prune(self, committed=committed, **options)

    return _replaced((Checkpoint, "plan", later), (Checkpoint, "prune", after))


def state_is_written_after_the_commit() -> Any:
    """What operators keep of a batch is durable only after its rows."""
    commit, prune = BatchState.commit, FlowState.prune
    waiting: list[tuple[BatchState, Any]] = []

    def later(self: BatchState, description: Any) -> None:
        waiting[:] = [(self, description)]

    def after(self: FlowState, *, committed: int) -> None:
        for state, description in waiting:
            commit(state, description)
        waiting.clear()
        prune(self, committed=committed)

    return _replaced((BatchState, "commit", later), (FlowState, "prune", after))


def plans_of_the_dead_are_not_synced() -> Any:
    """A batch is applied over a plan whose writer died before it was durable."""
    return _replaced((Checkpoint, "make_durable", lambda _self: None))


# Each with the first seed that noticed it when it was written.
CANARIES: dict[Callable[[], Any], int] = {
    content_is_not_synced: 0,
    names_are_not_synced: 0,
    new_folders_are_not_synced: 0,
    data_files_are_not_synced: 0,
    data_files_are_synced_after_the_commit: 0,
    commits_are_written_in_place: 6,
    commits_overwrite: 0,
    batches_are_applied_again: 0,
    batches_are_planned_after_they_are_applied: 1,
    state_is_written_after_the_commit: 46,
    plans_of_the_dead_are_not_synced: 7,
}
