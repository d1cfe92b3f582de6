"""`WATERMARK expression DELAY OF INTERVAL ..` behind a table or subquery."""

from __future__ import annotations

from dataclasses import dataclass

from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.spans import Span, is_name, name_at
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.binding import quoted
from millpond.sql.tokens import TokenKind


@dataclass(frozen=True)
class Watermark:
    """What a clause says.

    Attributes:
        column: The column of event time, quoted.
        expression: What the column is computed by, or `None` where it is one of the table's own.
        delay: As it is written: `INTERVAL 10 MINUTES`.
    """

    column: str
    expression: Span | None
    delay: str


def watermark(analysis: TextAnalysis, span: Span, *, names: tuple[str, ...]) -> Watermark:
    """Read a clause.

    Args:
        names: Parts of the name of the table that it follows, where it follows one.

    Raises:
        UnsupportedStreamingOperationError: It is none that can be followed.
    """
    outline = analysis.outline
    delay_at = next(i for i in range(span.start, span.end) if outline.word(i) == "DELAY")
    tokens = outline.tokens
    # Behind DELAY OF. What it says is read where `withWatermark` is read.
    delay = analysis.source.text[tokens[delay_at + 2].start : tokens[span.end - 1].end]
    given = Span(span.start + 1, delay_at)
    parts = _dotted(analysis, given)
    if parts is not None:
        qualifier = tuple(part.lower() for part in parts[:-1])
        written = tuple(name.lower() for name in names)
        if qualifier and written[-len(qualifier) :] != qualifier:
            raise _unnamed(analysis, given)
        return Watermark(quoted(parts[-1]), None, delay)
    end = given.end - 1
    named = is_name(outline, end) and (
        outline.word(end - 1) == "AS" or _ends_operand(analysis, end - 1)
    )
    if not named or end - 1 <= given.start:
        raise _unnamed(analysis, given)
    expression = Span(given.start, end - 1 if outline.word(end - 1) == "AS" else end)
    return Watermark(quoted(name_at(outline, end)), expression, delay)


def _unnamed(analysis: TextAnalysis, given: Span) -> Exception:
    return refused(
        analysis,
        given.start,
        "A WATERMARK on an expression without a name",
        reason="the event time is a column that the query can name",
        instead="name it: WATERMARK to_timestamp(s) AS ts DELAY OF INTERVAL 10 MINUTES",
    )


def _dotted(analysis: TextAnalysis, span: Span) -> list[str] | None:
    """The parts of a name, where a span is one."""
    outline = analysis.outline
    if (span.end - span.start) % 2 == 0:
        return None
    for offset, index in enumerate(range(span.start, span.end)):
        if offset % 2 == 0 and not is_name(outline, index):
            return None
        if offset % 2 == 1 and outline.word(index) != ".":
            return None
    return [name_at(outline, index) for index in range(span.start, span.end, 2)]


def _ends_operand(analysis: TextAnalysis, index: int) -> bool:
    token = analysis.outline.tokens[index]
    return token.word in {")", "]"} or token.kind in {
        TokenKind.QUOTED,
        TokenKind.STRING,
        TokenKind.NUMBER,
    }
