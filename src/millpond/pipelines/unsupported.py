"""Names that other runtimes' pipeline modules have and millpond's has not.

They can be imported, so that a file fails where it uses one, with a message that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from millpond.errors.pipelines import FeatureNotSupportedError
from millpond.pipelines.registry import caller_location

_AUTO_CDC = ("AUTO CDC flows", "where whole groups of rows are sent again, use dp.replace_flow")
_SINK = ("sinks", "write to a streaming table, which is a Delta table that any reader can open")
_OLD_TABLE = ("function of that old name", "use dp.create_streaming_table")

# What is missing, and what to do instead.
UNSUPPORTED: dict[str, tuple[str, str]] = {
    "apply_changes": _AUTO_CDC,
    "apply_changes_from_snapshot": _AUTO_CDC,
    "create_auto_cdc_flow": _AUTO_CDC,
    "create_auto_cdc_from_snapshot_flow": _AUTO_CDC,
    "create_sink": _SINK,
    "foreach_batch_sink": _SINK,
    "update_flow": ("flows in update mode", "use dp.append_flow or dp.replace_flow"),
    "create_table": (
        "managed tables that are declared without a query",
        "use dp.create_streaming_table",
    ),
    "create_streaming_live_table": _OLD_TABLE,
    "create_target_table": _OLD_TABLE,
    "on_event_hook": ("event hooks", "read the event log afterwards: millpond events"),
}


def unsupported(name: str) -> Callable[..., NoReturn]:
    """A stand-in for a function of `UNSUPPORTED`; it fails when it is called."""
    missing, hint = UNSUPPORTED[name]

    def refuse(*_arguments: object, **_named: object) -> NoReturn:
        raise FeatureNotSupportedError.from_function(
            name, missing=missing, hint=hint, where=caller_location()
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse
