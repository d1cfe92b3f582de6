"""Walks over the tokens of one statement, and says what is wrong at a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from millpond.errors import SourceLocation
from millpond.errors.sql import SqlSyntaxError
from millpond.sql.statements import Statement
from millpond.sql.tokens import Token, TokenKind

FOUND_LENGTH = 40


class Place(TypedDict):
    """Keyword arguments that every error class takes."""

    where: SourceLocation
    detail: str


class Cursor:
    """A place among the tokens of a statement.

    Keywords are compared with unquoted words in any letter case; a quoted name is never one.
    """

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._tokens = statement.tokens
        self._index = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    def ahead(self, count: int) -> Token:
        """The token `count` further on, or the END."""
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words, one after the other."""
        return all(self.ahead(index).word == word for index, word in enumerate(words))

    def at_any(self, words: frozenset[str]) -> bool:
        return self.token.word in words

    @property
    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def advance(self) -> Token:
        """Step over the next token, never past the END, and return it."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Step over these words if all are there."""
        if not self.at(*words):
            return False
        self._index += len(words)
        return True

    def expect(self, *words: str, hint: str | None = None) -> None:
        """Step over these words.

        Raises:
            SqlSyntaxError: Something else is there.
        """
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word, hint=hint)

    def expect_kind(self, kind: TokenKind, expected: str, *, hint: str | None = None) -> Token:
        """Step over a token of this kind and return it."""
        if self.token.kind is not kind:
            raise self.unexpected(expected, hint=hint)
        return self.advance()

    def unexpected(
        self, *expected: str, hint: str | None = None, at: Token | None = None
    ) -> SqlSyntaxError:
        """The error that the next token is none of these."""
        token = at or self.token
        return SqlSyntaxError.from_found(
            self._found(token), expected=expected, hint=hint, **self.place(token)
        )

    def place(self, token: Token | None = None) -> Place:
        """Where an error at this token is, in the user's file."""
        token = token or self.token
        expanded = self._statement.expanded
        source = expanded.source
        start = expanded.file_offset(token.start)
        replacement = expanded.replacement_at(token.start)
        end = replacement.end if replacement else expanded.file_offset(token.end)
        return {"where": source.location(start), "detail": source.caret(start, max(end, start + 1))}

    def where(self, token: Token) -> SourceLocation:
        """The place of a token in the user's file."""
        expanded = self._statement.expanded
        return expanded.source.location(expanded.file_offset(token.start))

    @property
    def mark(self) -> int:
        """Where the cursor is, for `text_from` and `squeezed_from`."""
        return self._index

    def text_from(self, mark: int) -> str:
        """The text as written from the mark up to the token before the next one."""
        return self._statement.text[self._tokens[mark].start : self._tokens[self._index - 1].end]

    def squeezed_from(self, mark: int) -> str:
        """Like `text_from`, with one space for each gap, so without comments and line ends."""
        parts: list[str] = []
        end = self._tokens[mark].start
        for token in self._tokens[mark : self._index]:
            parts += (" " if token.start > end else "", token.text)
            end = token.end
        return "".join(parts)

    def rest(self) -> tuple[str, Token, tuple[tuple[int, int, int], ...], str]:
        """Step over the rest of the statement.

        Returns:
            Its text, its first token, what was replaced in it, and the text of the whole file.
        """
        first, last = self.token, self._tokens[-2]
        self._index = len(self._tokens) - 1
        expanded = self._statement.expanded
        replaced = expanded.replaced_in(first.start, last.end)
        return expanded.text[first.start : last.end], first, replaced, expanded.source.text

    def remaining(self) -> Sequence[Token]:
        """The tokens from the next one on, without the END."""
        return self._tokens[self._index : -1]

    def _found(self, token: Token) -> str:
        if token.kind is TokenKind.END:
            return "the end of the statement"
        text = token.text if len(token.text) <= FOUND_LENGTH else token.text[:FOUND_LENGTH] + "..."
        replacement = self._statement.expanded.replacement_at(token.start)
        if replacement is None:
            return text
        source = self._statement.expanded.source.text
        return f"{text} (from {source[replacement.start : replacement.end]})"
