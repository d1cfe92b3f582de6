"""Runs updates that kill themselves at each call of the store in turn. A program, not a test.

Forks a child for each point; prints one line of JSON: the number of points, and for each point at
which the rows came out wrong, what came out.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - so that no child has to
import pyspark.sql.types  # noqa: F401 - likewise

from millpond.storage import LocalStore
from tests.streaming.toy_flow import Stream


class DeadlyStore(LocalStore):
    """Kills the process at the n-th moment: each call has one before and one after its work."""

    def __init__(self, moments):
        self.moments_left = moments

    def pass_moment(self):
        self.moments_left -= 1
        if self.moments_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _step(self, method, *arguments):
        self.pass_moment()
        result = getattr(LocalStore, method)(self, *arguments)
        self.pass_moment()
        return result

    def read(self, path):
        return self._step("read", path)

    def exists(self, path):
        return self._step("exists", path)

    def list(self, folder):
        return self._step("list", folder)

    def put_if_absent(self, path, data):
        return self._step("put_if_absent", path, data)

    def remove(self, path):
        return self._step("remove", path)


class DeadlyStream(Stream):
    """Passes a moment before and after each batch is committed, too."""

    def __init__(self, folder, tables, store):
        super().__init__(folder, tables, store)
        commit = self.target.commit

        def commit_between_moments(number, rows):
            store.pass_moment()
            commit(number, rows)
            store.pass_moment()

        self.target.commit = commit_between_moments


def in_child(work):
    """Run `work` in a child process; return whether it lived to the end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in {0, -signal.SIGKILL}:
        raise SystemExit(f"a child ended with {status}")
    return status == 0


def main(table, folder, rows_expected):
    wrong = {}
    moment = 0
    lived = False
    while not lived:
        moment += 1
        flow = folder / str(moment)

        def first(flow=flow, moment=moment):
            store = DeadlyStore(moment)
            DeadlyStream(flow, {"s": table}, store).run(maxFilesPerTrigger="2")

        def second(flow=flow):
            Stream(flow, {"s": table}).run(maxFilesPerTrigger="2")

        lived = in_child(first)
        in_child(second)
        rows = Stream(flow, {"s": table}).target.rows()
        if [row[0] for row in rows] != rows_expected:
            wrong[moment] = rows
    print(json.dumps({"moments": moment, "wrong": wrong}))  # noqa: T201 - the program's result


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
