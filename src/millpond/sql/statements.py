"""Splits a file into statements at `;`, and finds where a `;` was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from millpond.errors.sql import SqlSyntaxError
from millpond.sql.positions import ExpandedText, SourceText
from millpond.sql.tokens import Token, TokenKind, scan

_UNTERMINATED = {
    "'": "string",
    '"': "string",
    "`": "quoted name",
    "/*": "comment",
}
# How a definition starts. None stands for any token.
_STARTS: tuple[tuple[str | None, ...], ...] = (
    ("OR", "REFRESH", "STREAMING"),
    ("OR", "REFRESH", "MATERIALIZED"),
    ("OR", "REFRESH", "PRIVATE"),
    ("OR", "REFRESH", "TEMPORARY"),
    ("OR", "REFRESH", "LIVE"),
    ("STREAMING", "TABLE"),
    ("STREAMING", "LIVE"),
    ("PRIVATE", "STREAMING"),
    ("PRIVATE", "MATERIALIZED"),
    ("TEMPORARY", "STREAMING"),
    ("TEMPORARY", "VIEW"),
    ("TEMPORARY", "LIVE"),
    ("MATERIALIZED", "VIEW"),
    ("LIVE", "TABLE"),
    ("LIVE", "VIEW"),
    ("VIEW", None, "AS"),
    ("VIEW", None, ".", None, "AS"),
    ("VIEW", None, ".", None, ".", None, "AS"),
    ("FLOW", None, "AS", "INSERT"),
    ("FLOW", None, "AS", "AUTO"),
    ("FLOW", None, "COMMENT", None, "AS"),
)
_LONGEST_START = max(len(start) for start in _STARTS)


@dataclass(frozen=True)
class RawStatement:
    """The tokens of one statement, variables not yet replaced.

    Attributes:
        end: Offset of its `;`, or of the end of its last token where there is none.
    """

    tokens: tuple[Token, ...]
    end: int

    @property
    def span(self) -> tuple[int, int]:
        """Where the tokens start and end in the file."""
        return self.tokens[0].start, self.tokens[-1].end


@dataclass(frozen=True)
class Statement:
    """A statement ready to be parsed.

    Attributes:
        tokens: With offsets in `expanded.text`; the last is an END token.
    """

    expanded: ExpandedText
    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        return self.expanded.text


def split(source: SourceText) -> Iterator[RawStatement | SqlSyntaxError]:
    """The statements of a file in order, empty ones left out, and what is wrong between them.

    Only the tokens of one statement are held at a time.
    """
    tokens: list[Token] = []
    depth = 0
    for token in scan(source.text):
        word = token.word
        if word == ";":
            yield from _statement(tokens, token.start)
            tokens, depth = [], 0
            continue
        if token.kind is TokenKind.UNTERMINATED:
            kind = _UNTERMINATED[token.text]
            start = token.start
            yield SqlSyntaxError.from_unterminated(
                kind,
                where=source.location(start),
                detail=source.caret(start, start + len(token.text)),
            )
            return
        if word == "(":
            depth += 1
        elif word == ")":
            depth = max(0, depth - 1)
        elif word == "CREATE" and depth == 0 and tokens and _starts(source.text, token.end):
            yield SqlSyntaxError.from_missing_semicolon(
                token.text,
                where=source.location(token.start),
                detail=source.caret(token.start, token.end),
            )
            yield from _statement(tokens, tokens[-1].end)
            tokens = []
        tokens.append(token)
    if tokens:
        yield from _statement(tokens, tokens[-1].end)


def prepare(expanded: ExpandedText, raw: RawStatement) -> Statement:
    """Cut the statement's text into tokens again, now that its variables are replaced.

    Raises:
        SqlSyntaxError: A value ends the statement, or opens a string or comment that never ends.
    """
    if expanded.replacements:
        tokens = list(scan(expanded.text))
        _check_values(expanded, tokens)
    else:
        tokens = [
            token._replace(start=token.start - expanded.start, end=token.end - expanded.start)
            for token in raw.tokens
        ]
    end = len(expanded.text) + raw.end - expanded.end
    tokens.append(Token(TokenKind.END, "", "", end, end + 1))
    return Statement(expanded, tuple(tokens))


def _check_values(expanded: ExpandedText, tokens: Sequence[Token]) -> None:
    source = expanded.source
    for token in tokens:
        if token.word != ";" and token.kind is not TokenKind.UNTERMINATED:
            continue
        start = expanded.file_offset(token.start)
        replacement = expanded.replacement_at(token.start)
        where = source.location(start)
        detail = source.caret(start, replacement.end if replacement else start + 1)
        if token.word == ";":
            raise SqlSyntaxError.from_found(
                "; in the value of a variable",
                expected=["a value inside one statement"],
                where=where,
                detail=detail,
            )
        kind = _UNTERMINATED[token.text]
        raise SqlSyntaxError.from_unterminated(kind, where=where, detail=detail)


def _statement(tokens: list[Token], end: int) -> Iterator[RawStatement]:
    if tokens:
        yield RawStatement(tuple(tokens), end)


def _starts(text: str, position: int) -> bool:
    """Whether a definition starts with the CREATE that ends at `position`."""
    words = [token.word for token in islice(scan(text, position), _LONGEST_START)]
    return any(
        len(words) >= len(start)
        and all(wanted in {None, word} for wanted, word in zip(start, words, strict=False))
        for start in _STARTS
    )
