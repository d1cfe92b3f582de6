"""What must be true of whatever a person is told when something goes wrong."""

from __future__ import annotations

import re

from tests.faults.program import Ended

# An error is `[CLASS] what`, then `  at where` and `  hint: what to do`.
ERROR = re.compile(r"^\[([A-Z][A-Z0-9_]+)\] .+$", re.MULTILINE)


def error_classes(ended: Ended) -> set[str]:
    """The classes of the errors that a run told of, each in words and with what to do.

    Raises:
        AssertionError: Something was said that is no help.
    """
    err = ended.err
    for sign in ("Traceback", "bug in millpond", "Exception ignored", "RAW:", "panicked"):
        assert sign not in err, err
    classes = ERROR.findall(err)
    assert len(classes) == err.count("\n  hint: "), err
    assert (ended.code == 0) <= (set(classes) <= {"EVENT_LOG_NOT_WRITABLE"}), f"{ended.code}: {err}"
    return set(classes)
