"""Calls of `window` and `session_window` in expressions, as functions and in SQL text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.expressions import fingerprint, plain_token, text_expression
from millpond.engine.connect.messages import own_expressions
from millpond.engine.sqltext.source import Edit, apply_edits
from millpond.names import quote_identifier
from millpond.sql.tokens import Token, TokenKind, identifier_value, scan, string_value

SESSION_WINDOW = "session_window"
_NAMES = frozenset({"window", SESSION_WINDOW})
_NAME_KINDS = frozenset({TokenKind.WORD, TokenKind.QUOTED})


@dataclass(frozen=True)
class TimeWindow:
    """One call.

    Attributes:
        function: `window` or `session_window`.
        call: The expression that calls it, without an alias.
        arguments: The time first; then durations.
        form: The call in a form that is the same for functions and text.
    """

    function: str
    call: Any
    arguments: tuple[Any, ...]
    form: tuple[str, ...]

    @property
    def is_session(self) -> bool:
        return self.function == SESSION_WINDOW


def window_of(expression: Any) -> TimeWindow | None:
    """The call that an expression is, whatever name it is given, or `None`."""
    match expression.WhichOneof("expr_type"):
        case "alias":
            return window_of(expression.alias.expr)
        case "unresolved_function" | "call_function" as kind:
            return _called(expression, getattr(expression, kind))
        case "expression_string":
            text = expression.expression_string.expression
            found = list(_calls(text))
            last = len(list(scan(text))) - 1
            return found[0].window if found and found[0].covers(0, last) else None
    return None


def named_time(text: str) -> tuple[TimeWindow, str | None] | None:
    """The call of `window` or `window_time` that a text is, and the name that it gives."""
    tokens = list(scan(text))
    found = next(_calls(text, frozenset({"window", "window_time"})), None)
    if found is None or found.first != 0:
        return None
    named, name = _name_behind(tokens[found.last + 1 :])
    return (found.window, name) if named else None


def named_column(text: str) -> tuple[str, str] | None:
    """The column that a text is, without a table's name, and what it is called."""
    tokens = list(scan(text))
    if not tokens or tokens[0].kind not in _NAME_KINDS:
        return None
    named, name = _name_behind(tokens[1:])
    column = identifier_value(tokens[0])
    return (column, name or column) if named else None


def _name_behind(tokens: Sequence[Token]) -> tuple[bool, str | None]:
    """Whether tokens are a name, with or without AS, or nothing; and the name."""
    if tokens and tokens[0].word == "AS":
        tokens = tokens[1:]
        if not tokens:
            return False, None
    if not tokens:
        return True, None
    if len(tokens) > 1 or tokens[0].kind not in _NAME_KINDS:
        return False, None
    return True, identifier_value(tokens[0])


def replace_windows(expression: Any, window: TimeWindow, column: str) -> None:
    """Put a column in the place of every call of a window in an expression, in place."""
    for part in [expression, *own_expressions(expression)]:
        kind = part.WhichOneof("expr_type")
        if kind == "expression_string":
            text = part.expression_string.expression
            name = quote_identifier(column)
            edits = [
                Edit(call.start, call.end, name)
                for call in _calls(text)
                if call.window.form == window.form
            ]
            part.expression_string.expression = apply_edits(text, edits)
        elif kind in {"unresolved_function", "call_function"}:
            found = window_of(part)
            if found is not None and found.form == window.form:
                part.unresolved_attribute.unparsed_identifier = quote_identifier(column)


def _called(expression: Any, node: Any) -> TimeWindow | None:
    name = node.function_name.lower()
    if name not in _NAMES:
        return None
    arguments = tuple(node.arguments)
    parts = [part for argument in arguments for part in (*_form(argument), ",")]
    return TimeWindow(name, expression, arguments, (name, *parts[:-1]))


def _form(argument: Any) -> tuple[str, ...]:
    match argument.WhichOneof("expr_type"):
        case "unresolved_attribute":
            text = argument.unresolved_attribute.unparsed_identifier
        case "expression_string":
            text = argument.expression_string.expression
        case "literal" if argument.literal.HasField("string"):
            return ("'" + argument.literal.string + "'",)
        case _:
            return (json.dumps(fingerprint(argument), sort_keys=True),)
    return tuple(plain_token(token) for token in scan(text))


@dataclass(frozen=True)
class _Call:
    """A call in a text: its characters, and its tokens from first to last."""

    window: TimeWindow
    start: int
    end: int
    first: int
    last: int

    def covers(self, first: int, last: int) -> bool:
        return (self.first, self.last) == (first, last)


def _calls(text: str, names: Collection[str] = _NAMES) -> Iterator[_Call]:
    tokens = list(scan(text))
    for index, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if token.kind is not TokenKind.WORD or name not in names:
            continue
        if tokens[index + 1].word != "(":
            continue
        closing, arguments = _arguments(text, tokens, index + 1)
        end = tokens[closing].end
        parts = tuple(plain_token(part) for part in tokens[index + 2 : closing])
        window = TimeWindow(
            name, text_expression(text[token.start : end]), arguments, (name, *parts)
        )
        yield _Call(window, token.start, end, index, closing)


def _arguments(text: str, tokens: list[Token], opening: int) -> tuple[int, tuple[Any, ...]]:
    """The index of the closing parenthesis, and what stands between the commas."""
    depth, start = 0, tokens[opening].end
    found: list[Any] = []
    for index in range(opening, len(tokens)):
        token = tokens[index]
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth == 0 or (depth == 1 and token.word == ","):
            found.append(_argument(text[start : token.start]))
            start = token.end
        if depth == 0:
            return index, tuple(found)
    return len(tokens) - 1, tuple(found)


def _argument(text: str) -> Any:
    tokens = list(scan(text))
    if len(tokens) == 1 and tokens[0].kind is TokenKind.STRING:
        expression = proto.Expression()
        expression.literal.string = string_value(tokens[0])
        return expression
    return text_expression(text)
