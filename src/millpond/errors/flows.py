"""Why a batch could not be applied to its target, beside the causes of REPLACE USING alone."""

from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short

_MEND_ROWS = (
    "mend the rows at their source, or let the expectation drop them (ON VIOLATION DROP ROW, "
    "expect_or_drop) or only count them (no ON VIOLATION, expect)"
)
# As much of a row as a message shows.
_SHOWN_SIGNS = 1000


class ExpectationViolationError(MillpondError, ValueError):
    """A row does not meet an expectation that fails the update; nothing of the batch was applied.

    Attributes:
        expectation: The name of the expectation.
        flow: The flow whose row it is; like what follows, `None` for a row of a view.
        failed_rows: How many rows of the batch don't meet it.
        row_json: One of these rows as JSON.
    """

    error_class = "EXPECTATION_VIOLATION"
    sqlstate = "22000"

    expectation: str
    flow: str | None = None
    failed_rows: int | None = None
    row_json: str | None = None

    @classmethod
    def from_batch(
        cls,
        flow: str,
        *,
        target: str,
        batch_id: int,
        expectation: str,
        constraint: str,
        failed_rows: int,
        row_json: str,
    ) -> Self:
        rows = "1 row" if failed_rows == 1 else f"{failed_rows:,} rows"
        error = cls(
            f"{rows} of batch {batch_id} of flow {flow} into {target} "
            f"{'does' if failed_rows == 1 else 'do'} not meet the expectation {expectation!r}: "
            f"{constraint}. Nothing of the batch was applied.",
            detail=f"one of them: {cut_short(row_json, limit=_SHOWN_SIGNS)}",
            hint=_MEND_ROWS,
        )
        error.expectation = expectation
        error.flow = flow
        error.failed_rows = failed_rows
        error.row_json = row_json
        return error

    @classmethod
    def from_row(
        cls, flow: str, *, target: str, expectation: str, constraint: str, row_json: str
    ) -> Self:
        error = cls(
            f"A row of flow {flow} into {target} does not meet the expectation {expectation!r}: "
            f"{constraint}. Nothing of its batch was applied.",
            detail=f"it is: {cut_short(row_json, limit=_SHOWN_SIGNS)}",
            hint=_MEND_ROWS,
        )
        error.expectation = expectation
        error.flow = flow
        error.row_json = row_json
        return error

    @classmethod
    def from_view(
        cls, view: str, *, expectation: str, constraint: str, where: SourceLocation | None
    ) -> Self:
        error = cls(
            f"A row of the view {view} does not meet the expectation {expectation!r}: "
            f"{constraint}.",
            where=where,
            hint=_MEND_ROWS,
        )
        error.expectation = expectation
        return error


class TooManyCommitConflictsError(MillpondError, RuntimeError):
    """Other writers kept taking the next version of the target."""

    error_class = "TOO_MANY_COMMIT_CONFLICTS"
    sqlstate = "40001"

    @classmethod
    def from_batch(cls, flow: str, *, target: str, batch_id: int, attempts: int) -> Self:
        return cls(
            f"Batch {batch_id} of flow {flow} lost the race for the next version of {target} "
            f"{attempts} times in a row. Nothing of the batch was applied.",
            hint="run again when the other writers of the table are done",
        )
