"""Cuts SQL text into tokens by the rules of Spark's own lexer, comments and spaces left out.

Never fails: text that is no token, or never ends, becomes a token of a kind of its own with its
place. sqlglot's tokenizer gives up the whole file there without a place, and reads some things
unlike Spark: a `--` comment that a backslash continues, numbers with a type suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class TokenKind(Enum):
    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()
    VARIABLE = auto()
    HINT = auto()
    UNTERMINATED = auto()
    END = auto()


class Token(NamedTuple):
    """A token; `start` and `end` are offsets in the text it was cut from.

    Attributes:
        text: The token as written.
        word: For comparing: the text in upper case of a word, the text of a symbol, else empty.
    """

    kind: TokenKind
    text: str
    word: str
    start: int
    end: int


# Quantifiers are possessive: a string that never ends must fail at its first quote, in one pass.
_TOKEN = re.compile(
    r"""
    (?P<space>\s++|--(?:\\\n|[^\r\n])*+)
  | (?P<comment>/\*)
  | (?P<string>[rR]'[^']*+' | [rR]"[^"]*+"
      | '(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+")
  | (?P<quoted>`(?:[^`]++|``)*+`)
  | (?P<number>(?:\d++\.\d*+|\.\d++|\d++)(?:[eE][+-]?\d++)?(?:[bB][dD]|[lLsSyYfFdD])?(?!\w))
  | (?P<word>\w++)
  | (?P<variable>\$\{[^\s{}]++\})
  | (?P<open>['"`])
  | (?P<symbol>::|->|=>|==|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_KINDS = {
    "string": TokenKind.STRING,
    "quoted": TokenKind.QUOTED,
    "number": TokenKind.NUMBER,
    "variable": TokenKind.VARIABLE,
}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_LAST_CODE_POINT = 0x10FFFF


def scan(text: str, position: int = 0) -> Iterator[Token]:
    """The tokens of `text` from an offset on, in order."""
    while match := _TOKEN.match(text, position):
        group = match.lastgroup
        start, position = match.span()
        if group == "space":
            continue
        if group == "word":
            yield Token(TokenKind.WORD, match[0], match[0].upper(), start, position)
        elif group == "symbol":
            yield Token(TokenKind.SYMBOL, match[0], match[0], start, position)
        elif group in _KINDS:
            yield Token(_KINDS[group], match[0], "", start, position)
        elif group == "open":
            yield Token(TokenKind.UNTERMINATED, match[0], "", start, len(text))
            return
        else:
            hint = text.startswith("/*+", start)
            position = _comment_end(text, start, hint=hint)
            if position < 0:
                yield Token(TokenKind.UNTERMINATED, text[start : start + 2], "", start, len(text))
                return
            if hint:
                yield Token(TokenKind.HINT, text[start:position], "", start, position)


def _comment_end(text: str, start: int, *, hint: bool) -> int:
    """Where the comment at `start` ends, comments inside it counted, or -1. Hints don't nest."""
    if hint:
        end = text.find("*/", start + 3)
        return end + 2 if end >= 0 else -1
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return -1


def keywords(text: str) -> frozenset[str]:
    """A set of keywords, written as one text."""
    return frozenset(text.split())


def identifier_value(token: Token) -> str:
    """The name that a word or a quoted identifier stands for."""
    return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.QUOTED else token.text


def string_value(token: Token) -> str:
    r"""The value of a string literal, escapes resolved as Spark does.

    >>> string_value(next(scan(r"'it''s \u0041'")))
    "it's A"
    """
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    body = text[1:-1].replace(text[0] * 2, text[0])
    value = _ESCAPE.sub(_unescaped, body)
    # Spark's strings are UTF-16: two escapes may make one character, and half of one is lost.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if char is not None:
        # LIKE patterns need the backslash before their wildcards.
        return match[0] if char in "%_" else _ESCAPED.get(char, char)
    code = int(octal, 8) if octal else int(short or long, 16)
    return chr(code) if code <= _LAST_CODE_POINT else match[0]


def string_literal(value: str) -> str:
    r"""A Spark string literal of this value.

    >>> string_literal("it's")
    "'it\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
