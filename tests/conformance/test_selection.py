"""Which tables an update fills, and what is told of them between updates."""

from __future__ import annotations

import pytest

from millpond.events import FlowStatus, UpdateState
from millpond.runner import list_tables, run_query

pytestmark = pytest.mark.timeout(1800)

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);

CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);

CREATE TEMPORARY VIEW v AS SELECT k FROM silver;
"""


def statuses(result):
    return {flow.name.rpartition(".")[2]: flow.status for flow in result.flows}


def test_a_selected_table_runs_alone(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    before, problems = list_tables(folder.project())
    assert not problems
    assert [(t.name, t.kind, t.flow, t.rows, t.version) for t in before] == [
        ("main.sales.bronze", "STREAMING_TABLE", "APPEND", None, None),
        ("main.sales.silver", "STREAMING_TABLE", "REPLACE_USING", None, None),
        ("main.sales.v", "TEMPORARY_VIEW", "VIEW", None, None),
    ]

    # What it reads was never made.
    result = folder.run(refresh=["silver"])
    assert statuses(result) == {"bronze": FlowStatus.EXCLUDED, "silver": FlowStatus.FAILED}
    error = next(flow.error for flow in result.flows if flow.error)
    assert "refresh main.sales.bronze first" in str(error)

    result = folder.run(refresh=["bronze"])
    assert result.state is UpdateState.COMPLETED
    assert statuses(result) == {"bronze": FlowStatus.COMPLETED, "silver": FlowStatus.EXCLUDED}
    after, _ = list_tables(folder.project())
    assert [(t.rows, t.version) for t in after] == [(1, 1), (0, 0), (None, None)]

    folder.feed("landing", [{"k": "a", "v": 2, "s": 2}])
    assert folder.run().state is UpdateState.COMPLETED
    assert folder.rows("silver") == [("a", 2, 2)]
    text = "SELECT v.k, l.v, m.s FROM v JOIN sales.landing l ON v.k = l.k JOIN main.sales.silver m ON m.k = v.k WHERE l.s > 1"
    assert run_query(folder.project(), text).to_pylist() == [{"k": "a", "v": 2, "s": 2}]
    found = run_query(
        folder.project(),
        "SELECT DISTINCT origin.dataset_name AS name FROM event_log "
        "WHERE event_type = 'flow_progress' ORDER BY 1",
    )
    assert found.to_pylist() == [{"name": "main.sales.bronze"}, {"name": "main.sales.silver"}]
