"""What people do and say: `page_views`, `clickstream`, `reviews`, `customer_support_logs`."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from millpond.samples import draws
from millpond.samples.draws import Ints
from millpond.samples.wanderbricks import columns, lives, sizes

PAGE_VIEWS = pa.schema(
    [
        ("device_type", pa.string()),
        ("page_url", pa.string()),
        ("property_id", pa.int64()),
        ("referrer", pa.string()),
        ("timestamp", columns.TIMESTAMP),
        ("user_id", pa.int64()),
        ("view_id", pa.int64()),
    ]
)
CLICKSTREAM = pa.schema(
    [
        ("event", pa.string()),
        ("metadata", pa.struct([("device", pa.string()), ("referrer", pa.string())])),
        ("property_id", pa.int64()),
        ("timestamp", columns.TIMESTAMP),
        ("user_id", pa.int64()),
    ]
)
REVIEWS = pa.schema(
    [
        ("booking_id", pa.int64()),
        ("comment", pa.string()),
        ("created_at", columns.TIMESTAMP),
        ("is_deleted", pa.bool_()),
        ("property_id", pa.int64()),
        ("rating", pa.float64()),
        ("review_id", pa.int64()),
        ("updated_at", columns.TIMESTAMP),
        ("user_id", pa.int64()),
    ]
)
_MESSAGE = pa.struct(
    [
        ("message", pa.string()),
        ("sender", pa.string()),
        ("sentiment", pa.string()),
        ("timestamp", pa.string()),
    ]
)
CUSTOMER_SUPPORT_LOGS = pa.schema(
    [
        ("created_at", pa.string()),
        ("messages", pa.list_(_MESSAGE)),
        ("support_agent_id", pa.string()),
        ("ticket_id", pa.string()),
        ("user_id", pa.int64()),
    ]
)

DEVICES = {"desktop": 4, "mobile": 5, "tablet": 1}
REFERRERS = {"google": 4, "direct": 3, "email": 2, "ad": 1}
EVENTS = {"view": 6, "click": 3, "search": 3, "filter": 1}
_COMMENTS = (
    "We would come again.",
    "Just as described.",
    "Friendly host, easy to find.",
    "Cold in the mornings.",
    "The kitchen could be cleaner.",
    "Louder than we had hoped.",
)
_COMPLAINTS = {
    "I can't find the door code.": "neutral",
    "The heating does not work.": "negative",
    "Could we stay a night longer?": "positive",
    "I was charged twice.": "negative",
}
_ANSWERS = ("I am looking into it.", "That is settled now.", "The host will call you.")
_RECORDS_PER_REVIEW_ID = 25
_START, _SPAN = 1_735_689_600, 180 * 86_400  # 2025-01-01T00:00:00Z, half a year


def page_views_table(bookings: int) -> pa.Table:
    ids = _ids(sizes.page_views(bookings))
    property_id = _property("page_views", ids, bookings)
    return columns.table(
        PAGE_VIEWS,
        device_type=draws.pick_weighted("page_views.device", ids, DEVICES),
        page_url=[f"/properties/{number}" for number in property_id.tolist()],
        property_id=property_id,
        referrer=draws.pick_weighted("page_views.referrer", ids, REFERRERS),
        timestamp=columns.moments(_moments("page_views", ids)),
        user_id=_user("page_views", ids, bookings),
        view_id=ids,
    )


def clickstream_table(bookings: int) -> pa.Table:
    ids = _ids(sizes.clicks(bookings))
    devices = draws.pick_weighted("clickstream.device", ids, DEVICES)
    referrers = draws.pick_weighted("clickstream.referrer", ids, REFERRERS)
    return columns.table(
        CLICKSTREAM,
        event=draws.pick_weighted("clickstream.event", ids, EVENTS),
        metadata=pa.StructArray.from_arrays([devices, referrers], names=["device", "referrer"]),
        property_id=_property("clickstream", ids, bookings),
        timestamp=columns.moments(_moments("clickstream", ids)),
        user_id=_user("clickstream", ids, bookings),
    )


def reviews_table(bookings: int) -> pa.Table:
    """Reviews of stays; about 25 records share each `review_id`."""
    ids = _ids(sizes.reviews(bookings))
    stays, _ = lives.base(bookings)
    completed = np.flatnonzero(stays.status == lives.COMPLETED)
    stay = completed[draws.order("reviews.stay", completed.size)][
        np.arange(ids.size) % completed.size
    ]
    written = (stays.check_in[stay] + stays.nights[stay]) * lives.DAY
    written += draws.below("reviews.written", ids, 10 * lives.DAY)
    return columns.table(
        REVIEWS,
        booking_id=stay + 1,
        comment=draws.pick("reviews.comment", ids, _COMMENTS),
        created_at=columns.moments(written),
        is_deleted=draws.chance("reviews.deleted", ids, percent=4),
        property_id=lives.property_of(stay + 1, bookings),
        rating=draws.between("reviews.rating", ids, 10, 50) / 10,
        review_id=1 + (ids - 1) // _RECORDS_PER_REVIEW_ID,
        updated_at=columns.moments(written + draws.below("reviews.edited", ids, 5 * lives.DAY)),
        user_id=lives.user_of(stay + 1, bookings),
    )


def customer_support_logs_table(bookings: int) -> pa.Table:
    ids = _ids(sizes.support_tickets(bookings))
    opened = _moments("tickets", ids).tolist()
    complaints = draws.pick("tickets.complaint", ids, tuple(_COMPLAINTS))
    answers = draws.pick("tickets.answer", ids, _ANSWERS)
    return columns.table(
        CUSTOMER_SUPPORT_LOGS,
        created_at=[_text(moment) for moment in opened],
        messages=[
            [
                _message(complaint, "user", _COMPLAINTS[complaint], moment),
                _message(answer, "agent", "neutral", moment + 900),
            ]
            for complaint, answer, moment in zip(complaints, answers, opened, strict=True)
        ],
        support_agent_id=[f"AG-{1 + agent:03}" for agent in draws.below("tickets.agent", ids, 40)],
        ticket_id=[f"TCK-{number:06}" for number in ids.tolist()],
        user_id=_user("tickets", ids, bookings),
    )


def _message(message: str, sender: str, sentiment: str, moment: int) -> dict[str, str]:
    return {
        "message": message,
        "sender": sender,
        "sentiment": sentiment,
        "timestamp": _text(moment),
    }


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ids(count: int) -> Ints:
    return np.arange(1, count + 1, dtype=np.int64)


def _moments(kind: str, ids: Ints) -> Ints:
    return np.sort(_START + draws.below(f"{kind}.moment", ids, _SPAN))


def _property(kind: str, ids: Ints, bookings: int) -> Ints:
    return 1 + draws.below(f"{kind}.property", ids, sizes.properties(bookings))


def _user(kind: str, ids: Ints, bookings: int) -> Ints:
    return 1 + draws.below(f"{kind}.user", ids, sizes.users(bookings))
