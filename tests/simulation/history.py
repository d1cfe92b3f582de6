"""One seed: deliveries, updates that fail or die, losses of power; and what must be true all along."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb

from millpond.delta import Table, data_files, live_rows, shared_connection
from millpond.delta.log import LOG_FOLDER, entry_path
from millpond.engine.embedded import EmbeddedEngine
from millpond.errors import MillpondError
from millpond.events import EventLog, UpdateState
from millpond.events import table as events_table
from millpond.graph import FolderTables
from millpond.runner import UpdateResult, lock, run_update, schedule, update
from millpond.runner.project import LoadedProject, load
from millpond.storage import LocalStore
from millpond.streaming.delta_offset import DeltaOffset
from tests.files.shared_engine import on_engine
from tests.pipeline_folder import PipelineFolder
from tests.simulation.deliveries import Deliveries, Multiset
from tests.simulation.durability import Durability
from tests.simulation.faulty_disk import Died, FaultyDisk, Life
from tests.simulation.other_writers import OtherWriters
from tests.simulation.promises import Promises, PromisingStore, broken
from tests.simulation.table_versions import TableVersion, TableVersions

BRONZE = """
CREATE STREAMING TABLE bronze (CONSTRAINT good EXPECT (w >= 0) ON VIOLATION DROP ROW)
TBLPROPERTIES (delta.checkpointInterval = 3) AS SELECT * FROM STREAM(delta.`LANDING`);
"""
PIPELINES = {
    "vectors and state": BRONZE
    + """
CREATE STREAMING TABLE silver TBLPROPERTIES (delta.checkpointInterval = 4)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE STREAMING TABLE seen AS SELECT DISTINCT k FROM STREAM(bronze);
""",
    "copies and a view": BRONZE
    + """
CREATE STREAMING TABLE copied TBLPROPERTIES (delta.enableDeletionVectors = false)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n, sum(v) AS total FROM copied;
""",
}
COLUMNS = {
    "bronze": ("k", "s", "v", "w"),
    "silver": ("k", "v", "s"),
    "copied": ("k", "v", "s"),
    "seen": ("k",),
    "gold": ("n", "total"),
}
TABLES = {
    "vectors and state": ("bronze", "silver", "seen"),
    "copies and a view": ("bronze", "copied", "gold"),
}
# An update of three flows writes about so often.
WRITES = 150
# And gives so many files their names.
NAMES = 15


class Unsound(BaseException):
    """Something is done that must not be; no pipeline catches it."""


class SimulationError(AssertionError):
    """Something that must be true is not."""


@dataclass
class Stage:
    """What all seeds share: the engine.

    Each has a folder of its own, since the engine remembers log entries that it has read by path.
    """

    engine: EmbeddedEngine
    root: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def folder(self) -> Path:
        """A new folder; those of earlier seeds are gone."""
        for old in self.root.iterdir():
            shutil.rmtree(old)
        folder = self.root / str(next(self._numbers))
        folder.mkdir()
        return folder


@dataclass
class Counts:
    """What seeds came to."""

    seeds: int = 0
    updates: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    versions: int = 0


class History:
    """The history of one seed."""

    def __init__(self, stage: Stage, seed: int, counts: Counts) -> None:
        self.choices = random.Random(seed)
        self.counts = counts
        self.engine = stage.engine
        self.name = self.choices.choice(list(PIPELINES))
        self.story: list[str] = []
        place = stage.folder()
        self.folder = PipelineFolder.made(place / "pipeline")
        self.deliveries = Deliveries(self.folder.root / "landing", self.choices)
        self.deliveries.create()
        self.loaded = self._load()
        (place / "vault").mkdir()
        self.durability = Durability(self.folder.root, place / "vault")
        self.promises: Promises = {}
        self.others = OtherWriters(
            PromisingStore(FaultyDisk(self.durability), self.promises), self.choices
        )
        self.events = TableVersions(self.folder.layout.events, ("id",))
        self.event_ids: set[str] = set()
        self._prefixes: dict[str, int] = {}
        self.readers = {
            name: TableVersions(self.folder.table(name), COLUMNS[name])
            for name in TABLES[self.name]
        }

    def _load(self) -> LoadedProject:
        """The pipeline as all updates have it; what it is does not change."""
        max_files = self.choices.choice(["1", "2", "1000"])
        self.folder.configure({"millpond.maxFilesPerTrigger": max_files})
        text = PIPELINES[self.name].replace("LANDING", str(self.deliveries.table))
        self.folder.write("pipeline.sql", text)
        project = on_engine(self.folder.project(), self.engine)
        runtime = project.start_runtime()
        loaded = load(project, runtime, for_update=True)
        assert not loaded.problems
        assert isinstance(runtime.tables, FolderTables)
        self.tables = [found.table for found in runtime.tables._known.values()]
        return loaded

    def run(self) -> None:
        """Live through it.

        Raises:
            SimulationError: Something that must be true is not.
        """
        self.counts.seeds += 1
        try:
            for _ in range(self.choices.randint(3, 5)):
                self._deliver(self.choices.randint(0, 2))
                self._update(self._life())
                if self.choices.random() < 0.4:
                    self._lose_power()
            self._deliver(1)
            self._finish()
        except SimulationError:
            raise
        except Exception as error:
            raise SimulationError(f"{type(error).__name__}: {error}") from error

    def _finish(self) -> None:
        """At last all goes well: everything is there, stays there, and comes no second time."""
        for _ in range(2):
            self._update(Life(self.choices))
            self._lose_power()
        self._compare_with_other_readers()

    def _deliver(self, count: int) -> None:
        for _ in range(count):
            self.deliveries.send()
        self.story.append(f"{count} deliveries, {self.deliveries.count} in all")
        # Its writer is trusted to have synced what it says is there.
        self.durability.settle(self.deliveries.table)

    def _life(self) -> Life:
        """A process, and what will befall it."""
        kind = self.choices.choice(["calm", "dies", "dies at a name", "errors", "errors", "both"])
        life = Life(self.choices)
        if kind in {"dies", "both"}:
            life.dies_at = 1 + int(self.choices.random() * WRITES)
        if kind == "dies at a name":
            life.dies_at_name = 1 + int(self.choices.random() * NAMES)
        if kind in {"errors", "both"}:
            life.error_rate = self.choices.choice([0.003, 0.01, 0.05])
        if self.choices.random() < 0.5:
            life.intrusions = self.choices.choice([0.2, 0.5])
            life.intrude = self.others.commit
        return life

    def _update(self, life: Life) -> None:
        """One process that runs an update."""
        may_be_hurt = life.dies_at or life.dies_at_name or life.error_rate
        reset = self._reset() if may_be_hurt else []
        others = [name for name in self.readers if name not in reset] if reset else []
        self.story.append(f"update, resets {reset}")
        heard: list[str] = []
        disk = FaultyDisk(self.durability, life)
        store = PromisingStore(disk, self.promises, self._look)
        project = replace(on_engine(self.folder.project(), self.engine), store=store)
        # A new process knows nothing.
        live_rows._known_columns.clear()
        for table in self.tables:
            Table.__init__(table, table.path, store)
        result: UpdateResult | None = None
        ended = "died"
        try:
            with self._patched(disk):
                result = run_update(
                    project,
                    refresh=others,
                    full_refresh=reset,
                    listeners=[lambda event: heard.append(event.id)],
                )
            ended = str(result.state)
        except Died:
            pass
        except Unsound as error:
            raise SimulationError(str(error)) from error
        except MillpondError as error:
            ended = f"raised {error.error_class}"
        finally:
            self.story += [f"  {line}" for line in life.story]
            self.story.append(f"  {ended}")
        self.counts.updates[ended] += 1
        self.counts.injected += life.injected
        self._check()
        self._check_result(result, heard)
        if not life.is_hurt and (result is None or result.problems or ended != "COMPLETED"):
            errors = [flow.error for flow in result.flows] if result else []
            raise SimulationError(f"{ended}, though nothing failed: {errors}")

    def _reset(self) -> list[str]:
        tables = TABLES[self.name]
        if self.choices.random() < 0.85:
            return []
        return self.choices.choice([list(tables), list(tables[1:])])

    def _patched(self, disk: FaultyDisk) -> ExitStack:
        """Flows take turns, so that a seed does the same each time; DuckDB's writes can fail."""
        real = data_files.copy_to_files

        def copy(connection: Any, select: str, folder: Path, **options: Any) -> Any:
            return disk.copy(
                folder, lambda: real(connection, select, folder, **options), duckdb.IOException
            )

        stack = ExitStack()
        for target, attribute, value in (
            (schedule, "MAX_FLOWS_AT_ONCE", 1),
            (data_files, "copy_to_files", copy),
            # Starting a DuckDB takes longer than all else that is done for the event log.
            (events_table, "connect", shared_connection.cursor),
            (lock, "LocalStore", lambda: LocalStore(disk)),
            (update, "load", lambda *_args, **_options: self.loaded),
        ):
            stack.enter_context(mock.patch.object(target, attribute, value))
        return stack

    def _check_result(self, result: UpdateResult | None, heard: list[str]) -> None:
        if result is None:
            return
        for flow in result.flows:
            if isinstance(flow.error, Unsound):
                raise SimulationError(str(flow.error)) from flow.error
            if flow.error is not None and not isinstance(flow.error, MillpondError):
                raise SimulationError(f"{flow.name} failed without words: {flow.error!r}") from (
                    flow.error
                )
        if not result.problems:
            self.event_ids |= set(heard)
        if result.state is UpdateState.COMPLETED:
            for name, wanted in self.deliveries.wanted.items():
                if name in self.readers and wanted[self._prefixes[name]] != wanted[-1]:
                    raise SimulationError(f"{name} is not up to date after an update")

    def _look(self, path: Path, data: bytes) -> None:
        """Nothing may be written that rests on what a loss of power can still take."""
        if path.parent.name == "offsets":
            grounds = self._grounds_of_plan(json.loads(data))
        elif path.parent.name == LOG_FOLDER and path.suffix == ".json":
            grounds = self._grounds_of_commit(
                path.parent.parent, map(json.loads, data.splitlines())
            )
        else:
            return
        for ground in grounds:
            if ground.exists() and not self.durability.is_durable(ground):
                raise Unsound(f"{path} rests on {ground}, which is not durable")

    def _grounds_of_plan(self, plan: dict[str, Any]) -> Iterator[Path]:
        """The commits of the pipeline's own tables that a batch is planned over."""
        for name, source in plan["sources"].items():
            for place in map(DeltaOffset.from_json, (source["start"], source["end"])):
                version = place.version if place.initial_snapshot else place.last_version
                yield entry_path(self.folder.table(name.split(".")[-1]), version)

    def _grounds_of_commit(self, table: Path, actions: Iterable[dict[str, Any]]) -> Iterator[Path]:
        """The files that a commit adds, and the plan of the batch that it is of."""
        for action in actions:
            match action:
                case {"add": {"path": path}}:
                    yield table / path
                case {"txn": {"appId": app_id, "version": batch}} if "/" in app_id:
                    flow, checkpoint = app_id.rsplit("/", 1)
                    yield self.folder.layout.checkpoint(flow, checkpoint) / "offsets" / str(batch)

    def _lose_power(self) -> None:
        self.story.append("power lost")
        self.counts.injected["power lost"] += 1
        self.durability.lose_power(self.choices)
        lost = broken(self.promises)
        if lost:
            raise SimulationError(f"not durable: {', '.join(map(str, lost))}")
        self._check()

    def _check(self) -> None:
        """Each version of each table is right, and the event log is whole."""
        for name, reader in self.readers.items():
            try:
                self._check_table(name, reader)
            except (OSError, ValueError, KeyError) as error:
                raise SimulationError(f"{name} can't be read: {error!r}") from error
        self._check_events()

    def _check_events(self) -> None:
        """Events of updates that ended are there for good, and none is in the table twice."""
        versions = list(self.events.read())
        found = versions[-1].rows if versions else Counter()
        if found and max(found.values()) > 1:
            raise SimulationError("an event is in the table twice")
        lost = self.event_ids - {event_id for (event_id,) in found}
        if lost:
            raise SimulationError(f"{len(lost)} events of updates that ended are gone")

    def _check_table(self, name: str, reader: TableVersions) -> None:
        """Each version holds what some prefix of the deliveries comes to, never less than before."""
        wanted = self.deliveries.wanted[name]
        prefix = since = 0
        for version in reader.read():
            self.counts.versions += 1
            if version.operation == "FULL REFRESH":
                prefix, since = 0, version.number
            rows = self._own_rows(name, version, since)
            if name == "gold" and not rows:
                continue
            found = [at for at in range(prefix, len(wanted)) if wanted[at] == rows]
            if not found:
                raise SimulationError(
                    f"version {version.number} of {name} holds {dict(rows)}, which no prefix of "
                    f"the deliveries from {prefix} on comes to; {prefix}: {dict(wanted[prefix])}"
                )
            prefix = found[0]
        self._prefixes[name] = prefix

    def _own_rows(self, name: str, version: TableVersion, since: int) -> Multiset:
        """The rows of a version less those of other writers, all of which must be there."""
        rows = Counter(version.rows)
        rows.subtract(self.others.rows(self.folder.table(name), since=since, until=version.number))
        if min(rows.values(), default=0) < 0:
            raise SimulationError(f"version {version.number} of {name} lost another writer's rows")
        return +rows

    def _compare_with_other_readers(self) -> None:
        known = {event.id for event in EventLog(self.folder.layout.events, LocalStore()).read()}
        if self.event_ids - known:
            raise SimulationError("the event log does not show all events")
        for name, reader in self.readers.items():
            last = list(reader.read())[-1]
            rows = Counter(self.folder.rows(name))
            if rows != last.rows:
                raise SimulationError(f"delta-rs reads {name} otherwise: {rows}")
