"""Runs a flow with state that kills itself at each call of the store in turn. A program, not a test.

Forks a child for each point; prints one line of JSON: the number of points, and for each point at
which the wrong rows came out, what came out.
"""

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import duckdb  # noqa: F401 - so that no child has to

from millpond.delta import connect
from millpond.state import FlowState, compaction, flow_state
from millpond.storage import LocalStore
from tests.deadly_store import DeadlyStore, in_child

BATCHES = 3


def run_flow(folder, store):
    """Each batch brings a row of its own, one of all batches, and finds those before it."""
    state = FlowState(folder / "state", store)
    target = folder / "target"
    batches = json.loads(target.read_bytes()) if target.exists() else []
    with closing(connect()) as connection:
        for number in range(len(batches), BATCHES):
            batch = state.begin(number)
            stored = batch.rows("o")
            rows = f"SELECT unnest(['all', 'b{number}']) AS k, {number}::BIGINT AS d"
            stored.declare(connection, rows, keys=["k"], due="d")
            matching = stored.matching(connection, rows, keys=["k"])
            found = connection.execute(f"SELECT list(d ORDER BY d) FROM ({matching})").fetchone()
            stored.add(connection, rows, keys=["k"], due="d")
            stored.expire(number - 1)
            batch.numbers("o")["rows"] = batch.numbers("o").get("rows", 0) + 2
            batch.commit({})
            batches.append([batch.numbers("o")["rows"], found[0]])
            LocalStore().put(target, json.dumps(batches).encode())
            store.pass_moment()
            state.prune(committed=number)
    return batches


def main(folder):
    # A killed process loses nothing of what it wrote; only a loss of power does.
    os.fsync = lambda _descriptor: None
    # So that few batches merge files, and remove some.
    compaction.RUNS_MERGED = 2
    flow_state.VERSIONS_KEPT = 2
    expected = [[2, None], [4, [0]], [6, [1]]]
    wrong = {}
    left = {}
    moment = 0
    lived = False
    while not lived:
        moment += 1
        flow = folder / str(moment)
        lived = in_child(lambda: run_flow(flow, DeadlyStore(moment)))  # noqa: B023 - runs at once
        in_child(lambda: run_flow(flow, DeadlyStore(0)))  # noqa: B023 - likewise
        batches = json.loads((flow / "target").read_bytes())
        if batches != expected:
            wrong[moment] = batches
        state = FlowState(flow / "state", LocalStore())
        state.prune(committed=BATCHES - 1)
        left[moment] = sorted(len(list(at.iterdir())) for at in (flow / "state").glob("*/**"))
    # A flow that was killed leaves no more files than one that was not.
    wrong |= {number: files for number, files in left.items() if files != left[moment]}
    print(json.dumps({"moments": moment, "wrong": wrong}))  # noqa: T201 - the program's result


if __name__ == "__main__":
    main(Path(sys.argv[1]))
