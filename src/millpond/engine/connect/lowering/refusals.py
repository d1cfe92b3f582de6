"""The error for what can't be made a relation."""

from __future__ import annotations

from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.errors.engine import UnsupportedStreamingOperationError

SUBQUERY_INSTEAD = (
    "put the part with the join, DISTINCT, LIMIT, WATERMARK or GROUP BY in a subquery in FROM, and "
    "the rest around it"
)


def refused(
    analysis: TextAnalysis,
    index: int,
    what: str,
    *,
    reason: str,
    instead: str = SUBQUERY_INSTEAD,
) -> UnsupportedStreamingOperationError:
    """The error for what the token at an index stands for."""
    tokens = analysis.outline.tokens
    token = tokens[min(index, len(tokens) - 1)]
    return UnsupportedStreamingOperationError.of(
        what,
        reason=reason,
        instead=instead,
        where=analysis.source.locate(token.start),
        detail=analysis.source.caret(token.start, token.end),
    )
