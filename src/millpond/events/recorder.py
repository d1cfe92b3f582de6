"""Records what happens in one update: gives events their ids, order and words, and passes them on.

One recorder serves all threads of an update. Keeping the events is the log's work.
"""

from __future__ import annotations

import getpass
import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from millpond.definitions import Dataset, Flow, FlowKind
from millpond.errors.events import EventLogWriteError
from millpond.errors.file_reads import FILES_SHOWN, counted, listed
from millpond.events import wording
from millpond.events.event import (
    ErrorRecord,
    Event,
    EventType,
    ExpectationMetrics,
    FlowMetrics,
    FlowStatus,
    Level,
    Origin,
    UpdateState,
)
from millpond.events.failure import error_record, summary
from millpond.events.log import EventLog
from millpond.names import TableName
from millpond.profiling import phase
from millpond.redaction import Redactor

Listener = Callable[[Event], None]

_EVOLVING = frozenset(
    {
        EventType.FLOW_DEFINITION,
        EventType.DATASET_DEFINITION,
        EventType.MAINTENANCE_PROGRESS,
    }
)


class Recorder:
    """The one place through which an update says what it does. Safe to use from several threads.

    An update's work never fails because of its log: an event that can't be written is kept back,
    and `close` says so. A listener that raises is not called again.

    Args:
        configuration: The pipeline's; the values of keys that look like secrets are hidden
            wherever they turn up.
    """

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_id: str,
        update_id: str,
        log: EventLog,
        listeners: Sequence[Listener] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self._pipeline_name = pipeline_name
        self._pipeline_id = pipeline_id
        self._update_id = update_id
        self._log = log
        self._listeners = list(listeners)
        self._redactor = Redactor(configuration)
        self._lock = threading.Lock()
        self._recorded = 0
        self._write_error: OSError | None = None

    def create_update(
        self,
        cause: str = "USER_ACTION",
        *,
        run_as: str | None = None,
        refresh_selection: Sequence[str] = (),
        full_refresh_selection: Sequence[str] = (),
        full_refresh: bool = False,
    ) -> None:
        """Record that the update exists, why, and what it was asked to do."""
        user = run_as or _user_name()
        self._record(
            EventType.CREATE_UPDATE,
            f"Update {self._update_id} of pipeline {self._pipeline_name} was created by {user}.",
            {
                "run_as": user,
                "cause": cause,
                "refresh_selection": list(refresh_selection),
                "full_refresh_selection": list(full_refresh_selection),
                "full_refresh": full_refresh,
            },
        )

    def user_action(self, action: str, *, user_name: str | None = None) -> None:
        """Record what a user did, such as `START` or `STOP`."""
        user = user_name or _user_name()
        self._record(
            EventType.USER_ACTION,
            f"User {user} asked for {action} of pipeline {self._pipeline_name}.",
            {"user_name": user, "user_id": user, "action": action},
        )

    def update_progress(
        self,
        state: UpdateState,
        *,
        error: BaseException | None = None,
        cancellation_cause: str | None = None,
    ) -> None:
        """Record a new state of the update."""
        details: dict[str, Any] = {"state": str(state)}
        if cancellation_cause is not None:
            details["cancellation_cause"] = cancellation_cause
        reason = summary(error) if error is not None else cancellation_cause
        levels = {UpdateState.FAILED: Level.ERROR, UpdateState.CANCELED: Level.WARN}
        self._record(
            EventType.UPDATE_PROGRESS,
            wording.update_message(self._update_id, state, reason=reason),
            details,
            level=levels.get(state, Level.INFO),
            error=None if error is None else error_record(error, fatal=True),
        )

    def flow_progress(
        self,
        flow: str,
        dataset: TableName | str,
        status: FlowStatus,
        *,
        metrics: FlowMetrics | None = None,
        expectations: Sequence[ExpectationMetrics] = (),
        dropped_records: int | None = None,
        batch_id: int | None = None,
        flow_id: str | None = None,
        error: BaseException | None = None,
        reason: str | None = None,
    ) -> None:
        """Record a new status of a flow, or the counts of one of its micro-batches.

        Counts are of that micro-batch alone, and each row is counted in one event only, so that
        sums over the log are right.

        Args:
            reason: Why, for a status that has no error of its own, such as `SKIPPED`.
        """
        details: dict[str, Any] = {"status": str(status)}
        if metrics is not None:
            details["metrics"] = {k: v for k, v in asdict(metrics).items() if v is not None}
        if expectations or dropped_records is not None:
            details["data_quality"] = {
                "dropped_records": dropped_records or 0,
                "expectations": [asdict(expectation) for expectation in expectations],
            }
        if error is not None and reason is None:
            reason = summary(error)
        level = Level.METRICS if metrics is not None else Level.INFO
        levels = {FlowStatus.FAILED: Level.ERROR, FlowStatus.SKIPPED: Level.WARN}
        self._record(
            EventType.FLOW_PROGRESS,
            wording.flow_message(flow, status, metrics=metrics, batch_id=batch_id, reason=reason),
            details,
            level=levels.get(status, level),
            error=None if error is None else error_record(error, fatal=False),
            dataset_name=str(dataset),
            flow_id=flow_id,
            flow_name=flow,
            batch_id=batch_id,
        )

    def files_passed_over(
        self, flow: str, dataset: TableName | str, reasons: Mapping[str, str]
    ) -> None:
        """Warn of files that a flow could not read and will not try again.

        Args:
            reasons: Why, by location.
        """
        self._record(
            EventType.FLOW_PROGRESS,
            f"Flow {flow} passed over {counted(reasons)} that can't be read:\n{listed(reasons)}",
            {"status": str(FlowStatus.RUNNING), "passed_over": dict(reasons)},
            level=Level.WARN,
            dataset_name=str(dataset),
            flow_name=flow,
        )

    def files_without_values(
        self, flow: str, dataset: TableName | str, files: Sequence[str]
    ) -> None:
        """Warn of files that a flow read and found no value in, as where the format is another.

        Args:
            files: Their locations.
        """
        shown = "\n".join(f"  {uri}" for uri in files[:FILES_SHOWN])
        more = f"\n  and {len(files) - FILES_SHOWN} more" if len(files) > FILES_SHOWN else ""
        self._record(
            EventType.FLOW_PROGRESS,
            f"Flow {flow} read rows that are null in all columns; see that the columns and the "
            "format are those of the files, that they are not damaged or cut off, and that each "
            "record of JSON is in a line of its own or the option multiLine is set:\n"
            f"{shown}{more}",
            {"status": str(FlowStatus.RUNNING), "without_values": list(files)},
            level=Level.WARN,
            dataset_name=str(dataset),
            flow_name=flow,
        )

    def files_not_cleaned(
        self, flow: str, dataset: TableName | str, status: FlowStatus, error: BaseException
    ) -> None:
        """Warn of files that a flow has read and that could not be removed or moved.

        Args:
            status: How the flow ended.
        """
        self._record(
            EventType.FLOW_PROGRESS,
            f"Flow {flow} could not remove or move all files that it has read: {error}",
            {"status": str(status), "not_cleaned": str(error)},
            level=Level.WARN,
            dataset_name=str(dataset),
            flow_name=flow,
        )

    def batches_not_counted(
        self,
        flow: str,
        dataset: TableName | str,
        *,
        first: int,
        last: int,
        rows_are_counted: bool,
    ) -> None:
        """Warn of batches whose rows are in the table, and of which events don't tell all counts.

        Args:
            first: The number of the first one.
            last: That of the last.
            rows_are_counted: Whether they tell at least the rows that were written.
        """
        self._record(
            EventType.FLOW_PROGRESS,
            wording.not_counted_message(
                flow, first=first, last=last, rows_are_counted=rows_are_counted
            ),
            {
                "status": str(FlowStatus.RUNNING),
                "not_counted": {
                    "first_batch": first,
                    "last_batch": last,
                    "rows_are_counted": rows_are_counted,
                },
            },
            level=Level.WARN,
            dataset_name=str(dataset),
            flow_name=flow,
        )

    def flow_definition(
        self,
        flow: Flow,
        *,
        kind: FlowKind | None = None,
        inputs: Sequence[str] = (),
        schema_json: str | None = None,
    ) -> None:
        """Record how a flow is defined.

        Args:
            kind: What the flow turned out to be, where it differs from its definition.
            inputs: Names of the tables and views that it reads.
            schema_json: The query's columns, as the JSON text of a Spark `StructType`.
        """
        self._redactor.learn(flow.spark_conf)
        fields = json.loads(schema_json)["fields"] if schema_json else []
        self._record(
            EventType.FLOW_DEFINITION,
            f"Flow {flow.name} is defined as {_words(kind or flow.kind)} flow.",
            {
                "input_datasets": list(inputs),
                "output_dataset": str(flow.target),
                "flow_type": str(kind or flow.kind),
                "schema": [
                    {
                        "name": field["name"],
                        "data_type": field["type"],
                        "nullable": field["nullable"],
                    }
                    for field in fields
                ],
                "schema_json": schema_json,
                "comment": flow.comment,
                "spark_conf": self._redactor.configuration(flow.spark_conf),
                "language": str(flow.language),
                "once": flow.once,
            },
            dataset_name=str(flow.target),
            flow_name=flow.name,
        )

    def dataset_definition(
        self, dataset: Dataset, *, num_flows: int, left_out: Sequence[str] = ()
    ) -> None:
        """Record how a dataset is defined, with its expectations.

        Args:
            left_out: Table properties of the definition that its table does without; they make the
                event a warning.
        """
        warning = f" Its table does without {', '.join(left_out)}." if left_out else ""
        self._record(
            EventType.DATASET_DEFINITION,
            f"Dataset {dataset.name} is defined as {_words(dataset.kind)}.{warning}",
            {
                "dataset_type": str(dataset.kind),
                "num_flows": num_flows,
                "expectations": [
                    {
                        "name": expectation.name,
                        "constraint": expectation.constraint,
                        "action": str(expectation.action),
                    }
                    for expectation in dataset.expectations
                ],
            },
            level=Level.WARN if left_out else Level.INFO,
            dataset_name=str(dataset.name),
        )

    def maintenance_progress(
        self,
        dataset: TableName | str,
        counts: Mapping[str, int],
        *,
        error: BaseException | None = None,
    ) -> None:
        """Record what was done to look after a table, and what kept millpond from doing more.

        Args:
            dataset: Its name.
            counts: What was done, without zeros.
            error: A problem. The update goes on all the same, so the event is only a warning.
        """
        status = FlowStatus.COMPLETED if error is None else FlowStatus.FAILED
        reason = None if error is None else summary(error)
        is_warning = error is not None or bool(counts.get("given_up"))
        self._record(
            EventType.MAINTENANCE_PROGRESS,
            wording.maintenance_message(str(dataset), counts, reason=reason),
            {"status": str(status), "metrics": dict(counts)},
            level=Level.WARN if is_warning else Level.INFO,
            error=None if error is None else error_record(error, fatal=False),
            dataset_name=str(dataset),
        )

    @phase("write events")
    def close(self) -> None:
        """Move the events of this update, and of earlier ones that were killed, to the table.

        Raises:
            EventLogWriteError: Some events could not be written, now or earlier.
        """
        self._log.flush()
        if self._write_error is not None:
            error = self._write_error
            raise EventLogWriteError.from_error(str(self._log.folder), error) from error

    @phase("write events")
    def _record(
        self,
        event_type: EventType,
        message: str,
        detail: Mapping[str, Any],
        *,
        level: Level = Level.INFO,
        error: ErrorRecord | None = None,
        dataset_name: str | None = None,
        flow_id: str | None = None,
        flow_name: str | None = None,
        batch_id: int | None = None,
    ) -> None:
        clean = self._redactor
        # One lock over number, log and listeners: all of them see one order.
        with self._lock:
            self._recorded += 1
            event = Event(
                id=str(uuid.uuid4()),
                sequence_number=self._recorded,
                origin=Origin(
                    pipeline_id=self._pipeline_id,
                    pipeline_name=self._pipeline_name,
                    update_id=self._update_id,
                    dataset_name=dataset_name,
                    flow_id=flow_id,
                    flow_name=flow_name,
                    batch_id=batch_id,
                ),
                timestamp=datetime.now(UTC),
                message=clean.text(message),
                level=level,
                maturity_level="EVOLVING" if event_type in _EVOLVING else "STABLE",
                event_type=event_type,
                details=clean.value({str(event_type): detail}),
                error=None
                if error is None
                else ErrorRecord(
                    fatal=error.fatal, exceptions=tuple(clean.value(error.exceptions))
                ),
            )
            try:
                self._log.append(event)
            except OSError as write_error:
                self._write_error = self._write_error or write_error
            self._tell(event)

    def _tell(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:  # noqa: BLE001 whatever an onlooker does, the update goes on
                self._listeners.remove(listener)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def _words(kind: str) -> str:
    words = kind.lower().replace("_", " ")
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"
