"""Joins of two streams: which rows the engine has to join in a batch, and which never find a match.

The engine evaluates the join's whole condition. Here its equalities alone decide which stored rows
it has to look at: those that could match a row of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from millpond.state.batch_rows import Files, working_in
from millpond.state.flow_state import BatchState
from millpond.state.join_side import JoinSide, Side

SideName = Literal["left", "right"]


class StreamJoin:
    """One batch of a join of two streams.

    Every pair of rows that could match is in just one term of one batch, whichever row came first.
    Both sides' rows are kept until they are due, or for ever.

    Args:
        state: The batch's.
        operator: Whose rows they are.
        left: The rows of one side.
        right: The rows of the other. Its keys have the types of the left's.
        outer: The sides whose rows come out without a partner in the end.
        folder: For files that live as long as the batch.
    """

    def __init__(
        self,
        state: BatchState,
        operator: str,
        left: Side,
        right: Side,
        *,
        outer: frozenset[SideName] = frozenset(),
        folder: Path,
    ) -> None:
        self._folder = folder
        with working_in(folder, left.rows + right.rows) as connection:
            self._left, self._right = (
                JoinSide(
                    connection,
                    state,
                    operator,
                    side,
                    name=name,
                    is_outer=name in outer,
                    folder=folder,
                )
                for name, side in (("left", left), ("right", right))
            )
            # Before the new rows are stored: what is found is what earlier batches left.
            self._left.look_up(connection, self._right)
            self._right.look_up(connection, self._left)
            self._left.store(connection)
            self._right.store(connection)

    @property
    def terms(self) -> tuple[tuple[Files, Files], tuple[Files, Files]]:
        """Left and right files, twice, to be joined and put together.

        They have the columns of their side and, last, `row_id`, a BIGINT. Where a side has no
        files there is nothing to join.
        """
        left, right = self._left, self._right
        return (left.new, right.old + right.new), (left.old, right.new)

    def unmatched(self, met: Sequence[Path], *, left_id: str, right_id: str) -> tuple[Files, Files]:
        """The rows of the outer sides that never met a partner and never will, each once.

        To be called once a batch where a side is outer, after the terms were joined.

        Args:
            met: Files with a row for each pair that the terms gave.
            left_id: The column of these files with the `row_id` of the left row.
            right_id: That of the right row.

        Returns:
            Files of left rows and of right rows, with the columns of their side and, last,
            `row_id`, another number in each row, below zero in rows that were not kept.
        """
        with working_in(self._folder, met) as connection:
            return (
                self._left.unmatched(connection, met, id_column=left_id),
                self._right.unmatched(connection, met, id_column=right_id),
            )
