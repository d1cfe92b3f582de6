"""The rough shape of a query, from its tokens alone: SELECT blocks, and where each names tables.

Tells what a syntax tree does not: the place of each clause. What the words mean is for others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from millpond.sql.tokens import Token, TokenKind, keywords, scan

QUERY_STARTS = keywords("SELECT WITH FROM VALUES TABLE")
SET_OPERATIONS = keywords("UNION EXCEPT MINUS INTERSECT")
# Clauses after FROM; a comma behind them separates no tables.
_AFTER_FROM = keywords(
    "WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET LATERAL"
)
_QUANTIFIERS = keywords("ANY SOME ALL")
_MATCHING = keywords("LIKE ILIKE RLIKE")
_CLAUSES = _AFTER_FROM | SET_OPERATIONS | keywords("DISTINCT JOIN PIVOT UNPIVOT OVER TABLESAMPLE")


@dataclass
class Block:
    """One SELECT with its clauses.

    Attributes:
        words: First token of each clause keyword that stands in the block.
        calls: Tokens of names that are followed by a parenthesis.
    """

    parent: Block | None = None
    words: dict[str, int] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)


@dataclass
class _Level:
    """What is open between two parentheses."""

    block: Block
    clause: str = ""
    is_query: bool = False
    in_tables: bool = False


@dataclass(frozen=True)
class Outline:
    """A text's tokens and blocks.

    Attributes:
        tokens: Hints are left out.
        owner: The block of each token.
        table_positions: Indexes of tokens at which a table can be named.
    """

    tokens: Sequence[Token]
    owner: Sequence[Block]
    table_positions: Sequence[int]

    def index_at(self, offset: int) -> int:
        """The first token that ends behind an offset; the number of tokens where none does."""
        return bisect_right(self.tokens, offset, key=lambda token: token.end)

    def word(self, index: int) -> str:
        """The word or symbol at an index, in upper case; empty outside the text."""
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""

    def kind(self, index: int) -> TokenKind:
        """The kind of the token at an index; `END` outside the text."""
        return self.tokens[index].kind if 0 <= index < len(self.tokens) else TokenKind.END

    def is_quantifier(self, index: int) -> bool:
        """Tell `LIKE ANY ('a', 'b')` from the aggregate function `any(c)`."""
        return self.word(index) in _QUANTIFIERS and self.word(index - 1) in _MATCHING

    def closing(self, index: int) -> int:
        """The index of the parenthesis that closes the one at `index`, or of the last token."""
        depth = 0
        for at in range(index, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[at].word, 0)
            if depth == 0:
                return at
        return len(self.tokens) - 1

    def next_inside_same(self, index: int, words: Collection[str]) -> int | None:
        """The next of some words that is inside of just what the token at `index` is inside of."""
        depth = 0
        for at in range(index, len(self.tokens)):
            word = self.word(at)
            is_name = self.word(at - 1) == "."
            is_operator = word == "FROM" and self.word(at - 1) == "DISTINCT"
            if depth == 0 and word in words and not is_name and not is_operator:
                return at
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth < 0:
                return None
        return None


def outline(text: str) -> Outline:
    """Find the blocks of a query. Text that is no query gives some outline as well."""
    tokens = [token for token in scan(text) if token.kind is not TokenKind.HINT]
    return _Scanner(tokens).run()


class _Scanner:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._owner: list[Block] = []
        self._positions: list[int] = []
        self._levels = [_Level(Block(), is_query=True)]
        self._expects_table = False

    def run(self) -> Outline:
        for index, token in enumerate(self._tokens):
            if token.word == "(":
                self._open(index)
            elif token.word == ")":
                self._close()
            else:
                self._read(index, token)
        return Outline(self._tokens, self._owner, self._positions)

    @property
    def _level(self) -> _Level:
        return self._levels[-1]

    def _word(self, index: int) -> str:
        return self._tokens[index].word if 0 <= index < len(self._tokens) else ""

    def _open(self, index: int) -> None:
        level = self._level
        self._owner.append(level.block)
        if index and self._tokens[index - 1].kind in {TokenKind.WORD, TokenKind.QUOTED}:
            level.block.calls.append(index - 1)
        starts_query = self._word(index + 1) in QUERY_STARTS
        at_table = self._expects_table
        self._levels.append(
            _Level(
                Block(level.block) if starts_query else level.block,
                is_query=starts_query,
                in_tables=at_table,
            )
        )
        self._expects_table = at_table and not starts_query

    def _close(self) -> None:
        if len(self._levels) > 1:
            self._levels.pop()
        self._owner.append(self._level.block)
        self._expects_table = False

    def _read(self, index: int, token: Token) -> None:
        level, word = self._level, token.word
        if word in SET_OPERATIONS and self._is_set_operation(index):
            level.block = Block(level.block.parent)
            level.is_query, level.clause = True, ""
        self._owner.append(level.block)
        if self._expects_table and (token.kind is TokenKind.QUOTED or word):
            self._positions.append(index)
        self._expects_table = False
        if word in _CLAUSES:
            level.block.words.setdefault(word, index)
        if word == "SELECT":
            level.is_query, level.clause = True, "SELECT"
        elif word == "FROM" and level.is_query and self._word(index - 1) != "DISTINCT":
            level.clause = "FROM"
            self._expects_table = True
        elif word == "JOIN" or self._is_lateral_relation(index) or self._separates_tables(word):
            self._expects_table = True
        elif word in _AFTER_FROM:
            level.clause = word

    def _separates_tables(self, word: str) -> bool:
        return word == "," and (self._level.clause == "FROM" or self._level.in_tables)

    def _is_set_operation(self, index: int) -> bool:
        """Tell `EXCEPT SELECT` from `* EXCEPT (a)`."""
        after = index + 1
        while self._word(after) in {"ALL", "DISTINCT", "BY", "NAME", "("}:
            after += 1
        return self._word(after) in QUERY_STARTS

    def _is_lateral_relation(self, index: int) -> bool:
        """Tell `, LATERAL explode(x)` from `LATERAL VIEW explode(x)`."""
        return self._word(index) == "LATERAL" and self._word(index + 1) != "VIEW"
