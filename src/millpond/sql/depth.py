"""How deep the tree is that an engine makes of a text, told from the text's tokens alone.

Engines walk that tree by recursion: one that is too deep ends the process. So it must be known
before anything else reads the text. Never less than the depth of an expression; a little more
where operators of several precedences are mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from millpond.sql.tokens import Token, TokenKind, keywords

# Operators one after the other, as in `a + b + c`; each is an operand of the next.
MAX_DEPTH = 2_000
# Parentheses and the like inside of each other: engines take far longer for them.
MAX_NESTED = 100


class _Binding(IntEnum):
    """What binds the parts of a text, from the weakest on."""

    RELATION = 0
    ITEM = 1
    OR = 2
    AND = 3
    OPERATOR = 4
    FIELD = 5


_RELATIONS = keywords("UNION EXCEPT MINUS INTERSECT JOIN LATERAL PIVOT UNPIVOT")
# What ends an expression, so that another begins.
_SEPARATORS = keywords(
    "SELECT FROM WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET ON "
    "WITH VALUES WHEN THEN ELSE ,"
)
# Behind these, each item is read by the next, up to a separator that is none of them.
_CHAINING = keywords("FROM WITH")
_ITEMS_GO_ON = keywords("ON ,")
_OPERATORS = keywords("NOT IS LIKE ILIKE RLIKE REGEXP IN BETWEEN DIV COLLATE")
_BEGIN_OPERANDS = _OPERATORS | keywords("CASE")
_OF_CASE = keywords("WHEN THEN ELSE")
# Behind these a `*` is no operator.
_STARRED = keywords("SELECT DISTINCT ALL , . (")
_LOGICAL = {"OR": _Binding.OR, "AND": _Binding.AND}
_NO_OPERATORS = frozenset(")]{}:;@?\\")
# Two symbols that are one operator.
_PAIRS = frozenset({"||", "<=", ">=", "<>", "!=", "&&", "<<", ">>", "=>"})
_CLOSED_BY = {")": "(", "]": "[", "END": "CASE", ">": "<"}
_NESTED_TYPES = keywords("ARRAY MAP STRUCT")


@dataclass
class _Level:
    """What is open between two parentheses.

    Attributes:
        counts: By binding, how many operators of it join the parts of what is being read.
        widest: By binding, the depth of the deepest of those parts that are read already.
    """

    opening: str = ""
    chains: bool = False
    counts: list[int] = field(default_factory=lambda: [0] * len(_Binding))
    widest: list[int] = field(default_factory=lambda: [0] * len(_Binding))

    def depth(self, down_to: _Binding = _Binding.RELATION) -> int:
        """The depth of what is read, as far as it is bound no weaker than this."""
        found = 0
        for binding in range(_Binding.FIELD, down_to - 1, -1):
            found = self.counts[binding] + max(self.widest[binding], found)
        return found

    def end_part(self, binding: _Binding) -> None:
        """A part ends at something that binds this strongly."""
        if binding < _Binding.FIELD:
            stronger = _Binding(binding + 1)
            self.widest[binding] = max(self.widest[binding], self.depth(stronger))
            for index in range(stronger, len(_Binding)):
                self.counts[index] = self.widest[index] = 0

    def join(self, binding: _Binding) -> None:
        self.end_part(binding)
        self.counts[binding] += 1

    def hold(self, inner: _Level) -> None:
        """Take in what stood between parentheses."""
        tightest = _Binding.FIELD
        self.widest[tightest] = max(self.widest[tightest], 1 + inner.depth())


def too_deep(tokens: Sequence[Token]) -> Token | None:
    """The first token at which a text is deeper than an engine can read, or `None`."""
    levels = [_Level()]
    before: Token | None = None
    awaits_operand = False
    for token in tokens:
        if token.kind is TokenKind.HINT:
            continue
        if token.kind in {TokenKind.WORD, TokenKind.SYMBOL}:
            awaits_operand = _read(token, before, levels, awaits_operand=awaits_operand)
            if len(levels) > MAX_NESTED + 1 or levels[-1].depth() > MAX_DEPTH:
                return token
        else:
            awaits_operand = False
        before = token
    while len(levels) > 1:
        _close(levels)
    return tokens[-1] if levels[0].depth() > MAX_DEPTH else None


def _read(
    token: Token, before: Token | None, levels: list[_Level], *, awaits_operand: bool
) -> bool:
    """Take in a token, and tell whether an operand must follow it.

    Args:
        awaits_operand: Whether one must follow the token before. Words that begin a clause
            elsewhere are names there, such as `offset` and `values`.
    """
    is_name = awaits_operand and token.word not in _BEGIN_OPERANDS
    if token.kind is TokenKind.WORD and (is_name or _is(before, ".")):
        return False
    if token.word in _CLOSED_BY and _closes(_CLOSED_BY[token.word], levels):
        return False
    if _opens(token.word, before):
        if token.word == "[":
            levels[-1].join(_Binding.OPERATOR)
        levels.append(_Level(token.word))
        return False
    is_star = token.word == "*" and (awaits_operand or before is None or _is(before, *_STARRED))
    return _count(token, before, levels[-1]) and not is_star


def _count(token: Token, before: Token | None, level: _Level) -> bool:
    """Count what joins parts, or ends one; tell whether it awaits an operand."""
    word = token.word
    if word in _RELATIONS or _ends_with(token, before, "|>"):
        level.join(_Binding.RELATION)
        return False
    if word in _SEPARATORS and not (word == "FROM" and _is(before, "DISTINCT")):
        level.chains = word in _CHAINING or (level.chains and word in _ITEMS_GO_ON)
        if level.chains and word == ",":
            level.join(_Binding.RELATION)
        level.end_part(_Binding.ITEM)
        return word in _OF_CASE
    if word in _LOGICAL:
        level.join(_LOGICAL[word])
    elif word in _OPERATORS or _is_operator(token, before):
        level.join(_Binding.FIELD if word == "." else _Binding.OPERATOR)
    else:
        # Behind IS DISTINCT, which is an operator with it.
        return word == "FROM"
    return True


def _is(token: Token | None, *words: str) -> bool:
    return token is not None and token.word in words


def _opens(word: str, before: Token | None) -> bool:
    is_type = word == "<" and _is(before, *_NESTED_TYPES)
    return word in {"(", "[", "CASE"} or is_type


def _closes(opening: str, levels: list[_Level]) -> bool:
    """Close the level that was opened so, with those in it that were never closed.

    Returns:
        Whether there is one. Between parentheses, nothing outside of them is closed.
    """
    at = len(levels) - 1
    while at > 0 and levels[at].opening != opening:
        # A `<` that nothing closes was behind a column that is called like a type.
        is_passed = levels[at].opening == "<" or opening in {"(", "["}
        if levels[at].opening == "(" or not is_passed:
            return False
        at -= 1
    if at == 0:
        return False
    while len(levels) > at:
        _close(levels)
    return True


def _close(levels: list[_Level]) -> None:
    inner = levels.pop()
    levels[-1].hold(inner)


def _is_operator(token: Token, before: Token | None) -> bool:
    if token.kind is not TokenKind.SYMBOL or token.word in _NO_OPERATORS:
        return False
    return not any(_ends_with(token, before, pair) for pair in _PAIRS)


def _ends_with(token: Token, before: Token | None, pair: str) -> bool:
    return before is not None and before.end == token.start and before.word + token.word == pair
