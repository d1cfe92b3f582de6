"""Tests that share their updates: a rule of flows is a story, told on every engine.

A story is a generator. It writes source files, feeds tables, and yields; then an update runs, and
the story goes on with what came of it. All stories of a module are told at once, so that an update,
which takes seconds on Spark, serves all of them. They share one pipeline: a story's tables and
flows have names that no other story of the module uses.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.events import Event, FlowStatus
from millpond.runner import UpdateResult, run_update
from tests.pipeline_folder import PipelineFolder

# Each table is fed once for a batch.
SETTINGS = {"millpond.maxFilesPerTrigger": "1"}
# What stories call the counts of a batch.
_COUNTS = {
    "read": "rows_read",
    "out": "num_output_rows",
    "upserted": "num_upserted_rows",
    "deleted": "num_deleted_rows",
    "late": "num_late_rows",
    "dropped": "num_dropped_rows",
}


@dataclass(frozen=True)
class FullRefresh:
    """What a story yields to have some tables filled anew, and no others updated for it."""

    table: str


@dataclass(frozen=True)
class Ended:
    """What came of an update."""

    result: UpdateResult
    events: Sequence[Event]

    def status(self, flow: str) -> FlowStatus:
        return self._flow(flow).status

    def error(self, flow: str) -> Any:
        return self._flow(flow).error

    def batches(self, flow: str) -> list[Mapping[str, Any]]:
        """What the events tell of a flow's batches: their counts, and those of expectations."""
        return [
            _told(event)
            for event in self.events
            if event.origin.flow_name == f"main.sales.{flow}" and event.origin.batch_id is not None
        ]

    def _flow(self, name: str) -> Any:
        found = {flow.name.rpartition(".")[2]: flow for flow in self.result.flows}
        return found[name]


class StoryFolder(PipelineFolder):
    """The pipeline of all stories, as one of them sees it: its source files lie in a folder."""

    story: str = ""

    @property
    def engine(self) -> str:
        return "spark" if "millpond.engine" in self.settings else "embedded"

    def write(self, name: str, text: str) -> None:
        super().write(f"{self.story}/{name}", text)


Story = Callable[[StoryFolder], Generator[FullRefresh | None, Ended, None]]


def story(function: Story) -> Callable[..., None]:
    """Make a test of a generator function."""

    def test(told: Callable[[str], None]) -> None:
        told(function.__name__)

    test.__name__ = function.__name__
    test.__qualname__ = function.__qualname__
    test.__module__ = function.__module__
    test.__doc__ = function.__doc__
    test.story = function
    return test


def tell(
    root: Path, stories: Mapping[str, Story], settings: Mapping[str, str]
) -> dict[str, str | None]:
    """Tell all stories; for each `None`, or how it failed.

    Args:
        root: A folder that is not there yet.
        settings: Configuration of the pipeline.
    """
    telling = _Telling(PipelineFolder.made(root, {**SETTINGS, **settings}))
    telling.begin(stories)
    while telling.asks:
        telling.update()
    return telling.outcomes


@dataclass
class _Telling:
    folder: PipelineFolder
    outcomes: dict[str, str | None] = field(default_factory=dict)
    asks: dict[str, FullRefresh | None] = field(default_factory=dict)
    running: dict[str, Generator[FullRefresh | None, Ended, None]] = field(default_factory=dict)

    def begin(self, stories: Mapping[str, Story]) -> None:
        for name, function in stories.items():
            folder = StoryFolder(self.folder.root, self.folder.settings)
            object.__setattr__(folder, "story", name)
            self.running[name] = function(folder)
            self._go_on(name, None)

    def update(self) -> None:
        """Run what the stories ask for, and tell them on."""
        asked = dict(self.asks)
        anew = {name: ask.table for name, ask in asked.items() if ask is not None}
        if anew:
            ended = self._run(full_refresh=list(anew.values()))
            self._go_on_with(anew, ended)
        others = [name for name in asked if name not in anew]
        if others:
            self._go_on_with(others, self._run())

    def _run(self, **selection: Any) -> Ended:
        """Run an update, without the stories whose source files are refused."""
        while True:
            events: list[Event] = []
            result = run_update(self.folder.project(), listeners=[events.append], **selection)
            if not result.problems:
                return Ended(result, events)
            for problem in result.problems:
                assert problem.where is not None, problem
                name = Path(problem.where.file).parts[1]
                self._end(name, str(problem))

    def _go_on_with(self, names: Any, ended: Ended) -> None:
        for name in names:
            if name in self.running:
                self._go_on(name, ended)

    def _go_on(self, name: str, ended: Ended | None) -> None:
        try:
            # The first word of a generator must be None.
            self.asks[name] = self.running[name].send(ended)
        except StopIteration:
            self._end(name, None)
        except BaseException as error:  # noqa: BLE001 - told by the story's own test
            frames = error.__traceback__.tb_next if error.__traceback__ else None
            self._end(name, "".join(traceback.format_exception(error.with_traceback(frames))))

    def _end(self, name: str, outcome: str | None) -> None:
        self.outcomes.setdefault(name, outcome)
        self.running.pop(name, None)
        self.asks.pop(name, None)
        shutil.rmtree(self.folder.root / "transformations" / name, ignore_errors=True)


def _told(event: Event) -> Mapping[str, Any]:
    metrics = event.detail.get("metrics", {})
    quality = event.detail.get("data_quality")
    told = {"batch": event.origin.batch_id}
    told |= {name: metrics[key] for name, key in _COUNTS.items() if key in metrics}
    if quality is not None:
        told["expectations"] = {
            found["name"]: (found["passed_records"], found["failed_records"])
            for found in quality["expectations"]
        }
    return told
