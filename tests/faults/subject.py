"""A real pipeline with sources that grow, and the oracle for every version of each of its tables."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from millpond.events import EventLog
from millpond.names import TableName
from millpond.storage import Layout
from tests.faults.program import Ended, Run
from tests.faults.sent_files import SentFiles
from tests.pipeline_folder import PipelineFolder
from tests.readers import READERS
from tests.simulation.deliveries import Deliveries
from tests.simulation.table_versions import TableVersions

PIPELINE = """
CREATE STREAMING TABLE bronze (CONSTRAINT good EXPECT (w >= 0) ON VIOLATION DROP ROW)
TBLPROPERTIES (delta.checkpointInterval = 3) AS SELECT * FROM STREAM(delta.`LANDING`);
CREATE STREAMING TABLE silver TBLPROPERTIES (delta.checkpointInterval = 4)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE STREAMING TABLE copied TBLPROPERTIES (
  delta.enableDeletionVectors = false, delta.deletedFileRetentionDuration = 'interval 0 seconds'
) FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE STREAMING TABLE seen AS SELECT DISTINCT k FROM STREAM(bronze);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n, sum(v) AS total FROM silver;
CREATE STREAMING TABLE prices FLOW REPLACE USING (file) SEQUENCE BY at BY NAME
SELECT v, _metadata.file_name AS file, _metadata.file_modification_time AS at FROM STREAM read_files(
  'SENT', format => 'csv', header => true, schema => 'v INT', allowOverwrites => true);
"""
COLUMNS = {
    "bronze": ("k", "s", "v", "w"),
    "silver": ("k", "v", "s"),
    "seen": ("k",),
    "gold": ("n", "total"),
    "prices": ("v", "file"),
}
# Files of its older versions go at once, so only its newest can be read.
BRIEF = {"copied": ("k", "v", "s")}


@dataclass
class Subject:
    """The pipeline, what came in, and what was seen of its tables so far.

    Attributes:
        storage: Where its storage can be read.
        inside: A command that runs the program in a place of its own.
        prefixes: By table, after how many deliveries the version seen last is.
        events: Ids of events that were on disk.
        versions: How many versions of tables were compared.
    """

    folder: PipelineFolder
    deliveries: Deliveries
    files: SentFiles
    storage: Path
    inside: Sequence[str] = ()
    prefixes: dict[str, int] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    versions: int = 0
    _readers: dict[str, TableVersions] = field(default_factory=dict)
    _read: dict[str, int] = field(default_factory=dict)

    @classmethod
    def made(cls, root: Path, seed: int, *, pipeline: str = PIPELINE, **conf: str) -> Subject:
        """Make one in a folder that is not there yet, with nothing in its sources."""
        choices = random.Random(seed)
        folder = PipelineFolder.made(root)
        folder.configure({f"millpond.{name}": value for name, value in conf.items()})
        deliveries = Deliveries(root / "landing", choices)
        deliveries.create()
        files = SentFiles(root / "sent", choices)
        files.folder.mkdir()
        text = pipeline.replace("LANDING", str(deliveries.table)).replace("SENT", str(files.folder))
        folder.write("pipeline.sql", text)
        return cls(folder, deliveries, files, root / "storage")

    @property
    def layout(self) -> Layout:
        return Layout(self.storage)

    def table(self, name: str) -> Path:
        return self.layout.table(TableName("main", "sales", name))

    def deliver(self, count: int = 1) -> None:
        for _ in range(count):
            self.deliveries.send()
            self.files.send()

    def start(self, *arguments: str, inside: Sequence[str] = (), **options: Any) -> Run:
        inside = (*self.inside, *inside)
        return Run(self.folder.root, *arguments, inside=inside, **options)

    def run(self, *arguments: str, **options: Any) -> Ended:
        """A whole run, with all that must be true after any."""
        ended = self.start(*arguments, **options).ended()
        self.check()
        return ended

    def complete(self, **options: Any) -> Ended:
        """A run to which nothing happens, with all that must be true after it."""
        ended = self.start(**options).ended()
        self.check_complete(ended)
        return ended

    def check_complete(self, ended: Ended) -> None:
        """All is there, once."""
        assert (ended.code, ended.err) == (0, ""), f"{ended.code}: {ended.err}\n{ended.out}"
        self.check()
        self.check_whole()
        self.check_events_of(ended)

    def check(self) -> None:
        """Each version of each table is right, and no event is gone."""
        for name, columns in (COLUMNS | BRIEF).items():
            if any((self.table(name) / "_delta_log").glob("*.json")):
                reader = self._readers.setdefault(name, TableVersions(self.table(name), columns))
                for number, rows in self._new_versions(name, reader):
                    self._check_version(name, number, rows)
        self._check_events()

    def _new_versions(
        self, name: str, reader: TableVersions
    ) -> Iterator[tuple[int, Counter[tuple[Any, ...]]]]:
        if name in BRIEF:
            yield -1, self._newest_rows(name, BRIEF[name])
            return
        for version in reader.read():
            if version.number >= self._read.get(name, 0):
                self._read[name] = version.number
                yield version.number, version.rows

    def _check_version(self, name: str, number: int, rows: Counter[tuple[Any, ...]]) -> None:
        self.versions += 1
        if name == "prices":
            self.files.check(rows)
            return
        if name == "gold" and not rows:
            return  # It was made, and not computed yet.
        wanted = self.deliveries.wanted[name]
        first = self.prefixes.get(name, 0)
        found = [at for at in range(first, len(wanted)) if wanted[at] == rows]
        assert found, (
            f"version {number} of {name} holds {dict(rows)}, which no first part of the deliveries "
            f"from {first} on comes to; {first}: {dict(wanted[first])}"
        )
        self.prefixes[name] = found[0]

    def check_whole(self) -> None:
        """Every row of every delivery is where it belongs, as another reader sees it."""
        for name, columns in (COLUMNS | BRIEF).items():
            rows = self._newest_rows(name, columns)
            if name == "prices":
                self.files.check(rows)
                self.files.check_all()
            else:
                assert rows == self.deliveries.wanted[name][-1], name

    def _newest_rows(self, name: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """As delta-rs reads them, from a copy: it can't be led to where only the program is."""
        with TemporaryDirectory() as copy:
            shutil.copytree(self.table(name), copy, dirs_exist_ok=True)
            rows = READERS["delta-rs"](Path(copy))
        return Counter(tuple(row[column] for column in columns) for row in rows)

    def pending_events(self) -> list[dict[str, Any]]:
        """The events that are still in files, in their order."""
        found = []
        for path in sorted((self.layout.events / "_pending").glob("*.jsonl")):
            for line in path.read_bytes().split(b"\n"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue  # A kill cut it short.
        return found

    def _check_events(self) -> None:
        moved: Counter[str] = Counter()
        if any((self.layout.events / "_delta_log").glob("*.json")):
            reader = self._readers.setdefault("events", TableVersions(self.layout.events, ("id",)))
            for version in reader.read():
                moved = Counter({event_id: n for (event_id,), n in version.rows.items()})
        assert max(moved.values(), default=1) == 1, "an event is in the table twice"
        now = moved.keys() | {event["id"] for event in self.pending_events()}
        assert not self.events - now, f"{len(self.events - now)} events are gone"
        self.events = now

    def check_events_of(self, ended: Ended) -> None:
        """The log shows an update that came to its end from its first event to its last."""
        assert ended.update is not None
        events = [
            event
            for event in EventLog(self.layout.events).read()
            if event.origin.update_id.startswith(ended.update)
        ]
        numbers = [event.sequence_number for event in events]
        assert numbers == list(range(1, len(events) + 1))
        assert "update_progress" in events[-1].details
