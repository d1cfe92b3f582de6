"""Runs updates in child processes, each of which dies one step later than the one before.

Prints the point at which an update first got to its end. A program of its own, since only a
process without threads may fork.
"""

import os
import sys
from pathlib import Path

from millpond.events import EventLog, Recorder, UpdateState
from millpond.storage import LocalStore


class DyingStore(LocalStore):
    """Kills the process at the n-th point: before each change, and after each commit."""

    def __init__(self, points_left: int) -> None:
        self.points_left = points_left

    def _point(self) -> None:
        self.points_left -= 1
        if self.points_left < 0:
            os.kill(os.getpid(), 9)

    def append(self, path, data):
        self._point()
        super().append(path, data)

    def put_if_absent(self, path, data):
        self._point()
        super().put_if_absent(path, data)
        self._point()

    def put(self, path, data):
        self._point()
        super().put(path, data)

    def sync(self, paths):
        self._point()
        super().sync(paths)

    def remove(self, path):
        self._point()
        super().remove(path)


def one_update(log: EventLog, update_id: str) -> None:
    recorder = Recorder(pipeline_name="shop", pipeline_id="p", update_id=update_id, log=log)
    recorder.update_progress(UpdateState.RUNNING)
    recorder.update_progress(UpdateState.COMPLETED)
    recorder.close()


def main(folder: Path) -> None:
    for point in range(100):
        process = os.fork()
        if process == 0:
            one_update(EventLog(folder, DyingStore(point)), f"update-{point:02}")
            os._exit(0)
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            print(point)  # noqa: T201 the program's result
            return
        if code != -9:
            sys.exit(f"the update died of {code}, not of the kill")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
