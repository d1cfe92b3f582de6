"""Updates told as events, for what shows their progress."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from millpond.events import Event, EventType, FlowStatus, Level, Origin, UpdateState

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Story:
    """Makes the events of an update, at times given in seconds from its start."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def update(self, state: UpdateState, at: float = 0) -> Event:
        return self._event(
            EventType.UPDATE_PROGRESS, {"update_progress": {"state": str(state)}}, at=at
        )

    def dataset(self, name: str, expectations: dict[str, str]) -> Event:
        """A definition, with the action of each expectation by its name."""
        told = [{"name": each, "action": action} for each, action in expectations.items()]
        return self._event(
            EventType.DATASET_DEFINITION,
            {"dataset_definition": {"expectations": told}},
            at=0,
            dataset=name,
        )

    def flow(
        self,
        name: str,
        status: FlowStatus,
        at: float = 0,
        *,
        message: str = "",
        failed_records: dict[str, int] | None = None,
        **metrics: int,
    ) -> Event:
        detail = {"status": str(status)} | ({"metrics": metrics} if metrics else {})
        if failed_records is not None:
            told = [{"name": each, "failed_records": n} for each, n in failed_records.items()]
            detail["data_quality"] = {"expectations": told}
        return self._event(
            EventType.FLOW_PROGRESS, {"flow_progress": detail}, at=at, flow=name, message=message
        )

    def _event(self, kind, details, *, at, flow=None, dataset=None, message=""):
        number = next(self._numbers)
        return Event(
            id=f"event-{number}",
            sequence_number=number,
            origin=Origin(
                pipeline_id="p",
                pipeline_name="shop",
                update_id="3f2a9c1e-0000",
                flow_name=flow,
                dataset_name=(dataset or flow) and f"main.shop.{dataset or flow}",
            ),
            timestamp=START + timedelta(seconds=at),
            message=message,
            level=Level.INFO,
            maturity_level="STABLE",
            event_type=kind,
            details=details,
        )


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def failed_update(story: Story) -> Callable[[], list[Event]]:
    """One flow completes in two batches, one fails, and one is skipped for it."""

    def tell() -> list[Event]:
        running = FlowStatus.RUNNING
        return [
            story.update(UpdateState.INITIALIZING),
            story.update(UpdateState.RUNNING, 1),
            story.flow("orders", FlowStatus.QUEUED, 1),
            story.flow("refunds", FlowStatus.QUEUED, 1),
            story.flow("summary", FlowStatus.QUEUED, 1),
            story.flow("orders", FlowStatus.STARTING, 1),
            story.flow(
                "orders",
                running,
                2,
                rows_read=1200,
                num_upserted_rows=1000,
                num_deleted_rows=300,
                num_late_rows=12,
                num_dropped_rows=2,
            ),
            story.flow("refunds", FlowStatus.STARTING, 2),
            story.flow("orders", running, 3, rows_read=34, num_upserted_rows=34),
            story.flow("orders", FlowStatus.COMPLETED, 3.2),
            story.flow(
                "refunds",
                FlowStatus.FAILED,
                4,
                message="Flow refunds failed: [BROKEN_RULE] A rule was broken.",
            ),
            story.flow(
                "summary",
                FlowStatus.SKIPPED,
                4,
                message="Flow summary was skipped: refunds, which it reads, failed.",
            ),
            story.update(UpdateState.FAILED, 4.1),
        ]

    return tell
