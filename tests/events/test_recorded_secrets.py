"""Secrets of the configuration and of flows never reach the event log."""

import pytest

from millpond.definitions import Flow, FlowKind, Language, SqlQuery
from millpond.errors import SourceLocation
from millpond.events import FlowStatus, UpdateState
from millpond.names import TableName


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("db.password", "hunter2"),
        ("fs.s3a.secret.key", "hunter2"),
        ("millpond.engine", "sc://spark/;token=hunter2"),
        ("kafka.sasl.jaas.config", 'X required password="hunter2";'),
    ],
)
def test_secrets_of_the_configuration_are_hidden_in_every_text(record, heard, key, value):
    recorder = record(configuration={key: value, "region": "north"})
    error = ValueError("can't log in as north with hunter2")
    recorder.flow_progress("f", "t", FlowStatus.FAILED, error=error)
    recorder.update_progress(UpdateState.CANCELED, cancellation_cause="hunter2 expired")
    for event in heard:
        assert "hunter2" not in str(event.to_record())
    assert "as north with [REDACTED]" in heard[0].message


def test_secrets_of_a_flow_are_hidden_from_its_definition_on(record, heard):
    place = SourceLocation("a.sql", 1, 1)
    flow = Flow(
        name="f",
        target=TableName("main", "shop", "t"),
        kind=FlowKind.APPEND,
        query=SqlQuery("SELECT 1", place),
        location=place,
        language=Language.SQL,
        spark_conf={"store.secret": "hunter2"},
    )
    recorder = record()
    recorder.flow_definition(flow)
    recorder.flow_progress("f", "t", FlowStatus.FAILED, error=ValueError("hunter2 is refused"))
    for event in heard:
        assert "hunter2" not in str(event.to_record())
