"""What a recorder says of an update, field by field as Lakeflow's event log has it."""

import json
import re
import threading
from datetime import UTC, datetime

import pytest

from millpond.definitions import (
    Dataset,
    DatasetKind,
    Expectation,
    ExpectationAction,
    Flow,
    FlowKind,
    Language,
    SqlQuery,
)
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.events import EventLogWriteError
from millpond.events import (
    EventLog,
    ExpectationMetrics,
    FlowMetrics,
    FlowStatus,
    Recorder,
    UpdateState,
)
from millpond.names import TableName
from millpond.storage import LocalStore

ORDERS = TableName("main", "shop", "orders")
WHERE = SourceLocation("orders.sql", 3)


class BrokenRuleError(MillpondError):
    error_class = "BROKEN_RULE"


def test_a_record_has_the_documented_fields_in_order(record, heard):
    record().update_progress(UpdateState.RUNNING)
    (event,) = heard
    made = event.to_record()
    assert list(made) == [
        "id",
        "sequence",
        "origin",
        "timestamp",
        "message",
        "level",
        "maturity_level",
        "error",
        "details",
        "event_type",
    ]
    assert re.fullmatch(r"[0-9a-f-]{36}", made["id"])
    assert made["sequence"] == {"data_plane_id": {"instance": "update-1", "seq_no": 1}}
    assert made["origin"] == {
        "pipeline_id": "pipeline-1",
        "pipeline_name": "shop",
        "update_id": "update-1",
        "dataset_name": None,
        "flow_id": None,
        "flow_name": None,
        "batch_id": None,
    }
    assert abs(datetime.fromisoformat(made["timestamp"]) - datetime.now(UTC)).total_seconds() < 5
    assert made["timestamp"].endswith("Z")
    assert made["message"] == "Update update-1 is running."
    assert (made["level"], made["maturity_level"]) == ("INFO", "STABLE")
    assert made["error"] is None
    assert json.loads(made["details"]) == {"update_progress": {"state": "RUNNING"}}
    assert made["event_type"] == "update_progress"


def test_a_batch_is_recorded_with_its_counts_and_its_data_quality(record, heard):
    record().flow_progress(
        "orders",
        ORDERS,
        FlowStatus.RUNNING,
        metrics=FlowMetrics(
            rows_read=1200,
            num_upserted_rows=1000,
            num_deleted_rows=300,
            num_late_rows=12,
            num_dropped_rows=2,
            num_output_bytes=4096,
        ),
        expectations=[
            ExpectationMetrics(
                name="has id", dataset=str(ORDERS), passed_records=1198, failed_records=2
            )
        ],
        dropped_records=2,
        batch_id=7,
        flow_id="checkpoint-1",
    )
    (event,) = heard
    assert event.level == "METRICS"
    assert event.origin.flow_name == "orders"
    assert event.origin.dataset_name == "main.shop.orders"
    assert (event.origin.batch_id, event.origin.flow_id) == (7, "checkpoint-1")
    assert event.message == (
        "Flow orders applied batch 7: 1,200 rows in, 300 replaced, 1,000 inserted, 12 late, "
        "2 dropped."
    )
    assert event.details == {
        "flow_progress": {
            "status": "RUNNING",
            "metrics": {
                "rows_read": 1200,
                "num_upserted_rows": 1000,
                "num_deleted_rows": 300,
                "num_late_rows": 12,
                "num_dropped_rows": 2,
                "num_output_bytes": 4096,
            },
            "data_quality": {
                "dropped_records": 2,
                "expectations": [
                    {
                        "name": "has id",
                        "dataset": "main.shop.orders",
                        "passed_records": 1198,
                        "failed_records": 2,
                    }
                ],
            },
        }
    }


def test_an_expected_error_is_recorded_with_its_class_and_hint_and_no_stack(record, heard):
    error = BrokenRuleError("A rule was broken.", hint="mend it", where=WHERE)
    record().flow_progress("orders", ORDERS, FlowStatus.FAILED, error=error)
    (event,) = heard
    assert event.level == "ERROR"
    assert event.message == "Flow orders failed: [BROKEN_RULE] A rule was broken."
    assert event.to_record()["error"] == {
        "fatal": False,
        "exceptions": [
            {
                "class_name": f"{__name__}.BrokenRuleError",
                "error_class": "BROKEN_RULE",
                "message": "[BROKEN_RULE] A rule was broken.\n  at orders.sql:3\n  hint: mend it",
                "stack": [],
            }
        ],
    }


def test_an_unexpected_error_is_recorded_with_its_causes_and_where_each_came_from(record, heard):
    def fail():
        try:
            {}["lost"]
        except KeyError as cause:
            raise RuntimeError("no such thing") from cause

    with pytest.raises(RuntimeError) as caught:
        fail()
    record().update_progress(UpdateState.FAILED, error=caught.value)
    (event,) = heard
    assert event.message == "Update update-1 failed: RuntimeError: no such thing."
    assert event.error is not None
    assert event.error.fatal
    outer, inner = event.error.exceptions
    assert (outer["class_name"], outer["error_class"]) == ("RuntimeError", None)
    assert (inner["class_name"], inner["message"]) == ("KeyError", "'lost'")
    frame = outer["stack"][0]
    assert (frame["method_name"], frame["file_name"]) == ("fail", __file__)
    assert frame["line_number"] > 0


def test_a_skipped_flow_is_a_warning_with_its_reason(record, heard):
    record().flow_progress(
        "summary", ORDERS, FlowStatus.SKIPPED, reason="main.shop.orders, which it reads, failed"
    )
    (event,) = heard
    assert event.level == "WARN"
    assert event.message == ("Flow summary was skipped: main.shop.orders, which it reads, failed.")


def test_a_cancelled_update_says_why(record, heard):
    record().update_progress(UpdateState.CANCELED, cancellation_cause="Ctrl-C")
    (event,) = heard
    assert event.level == "WARN"
    assert event.details["update_progress"] == {"state": "CANCELED", "cancellation_cause": "Ctrl-C"}


def test_the_request_is_recorded(record, heard):
    record().create_update("API_CALL", run_as="ada", full_refresh_selection=["orders"])
    (event,) = heard
    assert event.details == {
        "create_update": {
            "run_as": "ada",
            "cause": "API_CALL",
            "refresh_selection": [],
            "full_refresh_selection": ["orders"],
            "full_refresh": False,
        }
    }


def test_a_user_action_is_recorded(record, heard):
    record().user_action("START", user_name="ada")
    (event,) = heard
    assert event.details == {
        "user_action": {"user_name": "ada", "user_id": "ada", "action": "START"}
    }


def test_definitions_are_recorded(record, heard):
    flow = Flow(
        name="orders",
        target=ORDERS,
        kind=FlowKind.REPLACE_USING,
        query=SqlQuery("SELECT 1 AS id", WHERE),
        language=Language.SQL,
        location=WHERE,
        comment="all orders",
        spark_conf={"spark.sql.ansi.enabled": "true", "store.password": "hunter2"},
        replace_using=("id",),
        sequence_by="id",
    )
    dataset = Dataset(
        ORDERS,
        DatasetKind.STREAMING_TABLE,
        WHERE,
        expectations=(Expectation("has id", "id IS NOT NULL", ExpectationAction.DROP),),
    )
    schema_json = json.dumps(
        {
            "type": "struct",
            "fields": [{"name": "id", "type": "integer", "nullable": False, "metadata": {}}],
        }
    )
    recorder = record()
    recorder.dataset_definition(dataset, num_flows=1)
    recorder.flow_definition(flow, inputs=["raw"], schema_json=schema_json)
    recorder.flow_definition(flow, kind=FlowKind.APPEND)
    defined, flow_event, append_event = heard
    assert flow_event.message.endswith("is defined as a replace using flow.")
    assert append_event.message.endswith("is defined as an append flow.")
    assert defined.maturity_level == flow_event.maturity_level == "EVOLVING"
    assert defined.details == {
        "dataset_definition": {
            "dataset_type": "STREAMING_TABLE",
            "num_flows": 1,
            "expectations": [{"name": "has id", "constraint": "id IS NOT NULL", "action": "DROP"}],
        }
    }
    assert flow_event.details == {
        "flow_definition": {
            "input_datasets": ["raw"],
            "output_dataset": "main.shop.orders",
            "flow_type": "REPLACE_USING",
            "schema": [{"name": "id", "data_type": "integer", "nullable": False}],
            "schema_json": schema_json,
            "comment": "all orders",
            "spark_conf": {"spark.sql.ansi.enabled": "true", "store.password": "[REDACTED]"},
            "language": "SQL",
            "once": False,
        }
    }


def test_events_of_many_threads_have_one_order_for_all(record, heard):
    recorder = record()
    threads = [
        threading.Thread(
            target=lambda: [
                recorder.flow_progress("orders", ORDERS, FlowStatus.RUNNING) for _ in range(50)
            ]
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.sequence_number for event in heard] == list(range(1, 401))
    assert len({event.id for event in heard}) == 400


def test_a_listener_that_fails_is_left_alone_and_the_update_goes_on(record, heard):
    calls = []

    def fail(event):
        calls.append(event)
        raise RuntimeError("no terminal")

    recorder = record(listeners=[fail])
    recorder.update_progress(UpdateState.RUNNING)
    recorder.update_progress(UpdateState.COMPLETED)
    assert len(calls) == 1
    assert len(heard) == 2


def test_an_event_log_that_cannot_be_written_fails_the_end_of_the_update_only(tmp_path, heard):
    (tmp_path / "events").write_text("in the way")
    recorder = Recorder(
        pipeline_name="shop",
        pipeline_id="pipeline-1",
        update_id="update-1",
        log=EventLog(tmp_path / "events", LocalStore()),
        listeners=[heard.append],
    )
    recorder.update_progress(UpdateState.RUNNING)
    recorder.update_progress(UpdateState.COMPLETED)
    assert [event.details["update_progress"]["state"] for event in heard] == [
        "RUNNING",
        "COMPLETED",
    ]
    with pytest.raises(EventLogWriteError, match=re.escape(str(tmp_path / "events"))):
        recorder.close()
