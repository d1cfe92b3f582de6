"""Runs updates that kill themselves at each call of the store in turn. A program, not a test.

Forks a child for each point; prints one line of JSON: the number of points, and for each point at
which the rows came out wrong, what came out.
"""

import json
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - so that no child has to
import pyspark.sql.types  # noqa: F401 - likewise

from tests.deadly_store import DeadlyStore, in_child
from tests.streaming.toy_flow import Stream


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
