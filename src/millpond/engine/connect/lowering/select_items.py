"""The expressions of a SELECT, one by one: what each computes, and what its column is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.engine.connect.lowering.spans import Span, inside, name_at
from millpond.engine.connect.lowering.texts import Texts
from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.parsing import parse_query
from millpond.engine.sqltext.source import Edit

WINDOWS = frozenset({"WINDOW", "SESSION_WINDOW"})


@dataclass(frozen=True)
class SelectItem:
    """One expression.

    Attributes:
        span: Its tokens, alias included.
        body: Its tokens without an alias.
        text: What it computes.
        alias: The name that it is given, or `None`.
        name: The name that the engine gives it, where that is plain: of a column or time window.
    """

    span: Span
    body: Span
    text: str
    alias: str | None
    name: str | None


def select_item(
    outline: Outline, texts: Texts, span: Span, *, edits: Sequence[Edit] = ()
) -> SelectItem:
    alias = _alias(texts.expression(span))
    body = span
    if alias is not None:
        end = span.end - 1
        body = Span(span.start, end - (outline.word(end - 1) == "AS"))
    text = texts.expression(body, edits=edits)
    return SelectItem(span, body, text, alias, window_name(outline, body) or plain_name(text))


def window_name(outline: Outline, span: Span) -> str | None:
    """The name of the column that a call of a time window is, where a span is one."""
    is_call = (
        outline.word(span.start) in WINDOWS
        and outline.word(span.start + 1) == "("
        and inside(outline, span.start + 1).end + 1 == span.end
    )
    return name_at(outline, span.start).lower() if is_call else None


def plain_name(text: str) -> str | None:
    """The name that a column, in parentheses or cast, is known by."""
    found = _parsed(text)
    while isinstance(found, exp.Paren | exp.Cast):
        found = found.this
    if isinstance(found, exp.Column | exp.Dot) and not found.is_star:
        parts = getattr(found, "parts", ())
        named = all(isinstance(part, exp.Identifier) for part in parts)
        return str(parts[-1].name) if parts and named else None
    return None


def _alias(text: str) -> str | None:
    found = _parsed(text)
    return str(found.alias) if isinstance(found, exp.Alias) else None


def _parsed(text: str) -> exp.Expr | None:
    tree = parse_query(f"SELECT {text}")
    if isinstance(tree, ParseError) or len(tree.expressions) != 1:
        return None
    return tree.expressions[0]
