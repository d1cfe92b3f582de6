"""Takes the condition of a join apart: what must all hold, and which of that are comparisons.

A condition is a call of PySpark's operators, SQL text, or both mixed. What is not understood is
handed on whole: the engine evaluates the condition as it is, so leaving a part out costs time and
never rows, while a wrong part would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from millpond.engine.connect.expressions import text_expression
from millpond.engine.sqltext.blocks import QUERY_STARTS
from millpond.sql.tokens import Token, TokenKind, keywords, scan

Comparator = Literal["=", "<=>", "<", "<=", ">", ">="]

_COMPARATORS: dict[str, Comparator] = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_FLIPPED: dict[Comparator, Comparator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARING_SYMBOLS = frozenset({"<", ">", "=", "==", "=>", "!"})
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_CLOSED_BY.values())
_NULL_SAFE_WORDS = ("IS", "NOT", "DISTINCT", "FROM")
# Words that make something else of a part than one comparison.
_NO_COMPARISON = keywords("NOT IN LIKE ILIKE RLIKE REGEXP IS EXISTS AS OR SYMMETRIC ASYMMETRIC ,")


@dataclass(frozen=True)
class Comparison:
    """`left operator right`, where both sides are expressions of Spark Connect."""

    operator: Comparator
    left: Any
    right: Any

    def flipped(self) -> Comparison:
        """The same with its sides exchanged."""
        return Comparison(_FLIPPED.get(self.operator, self.operator), self.right, self.left)


def conjuncts(condition: Any) -> Iterator[Any]:
    """The parts of a condition that must all be true."""
    called = _call(condition)
    if called is not None and called[0] == "and":
        for argument in called[1]:
            yield from conjuncts(argument)
    elif condition.WhichOneof("expr_type") == "expression_string":
        text = _Text.of(condition.expression_string.expression)
        if text is None:
            yield condition
        else:
            yield from (text_expression(part.text) for part in text.conjuncts())
    else:
        yield condition


def comparisons(condition: Any) -> list[Comparison]:
    """The comparisons among the parts of a condition that must all be true.

    `a BETWEEN b AND c` gives two.
    """
    return [found for part in conjuncts(condition) for found in _comparisons(part)]


def _comparisons(part: Any) -> list[Comparison]:
    if part.WhichOneof("expr_type") == "expression_string":
        text = _Text.of(part.expression_string.expression)
        return [] if text is None else text.comparisons()
    called = _call(part)
    if called is None or called[0] not in _COMPARATORS:
        return []
    return [Comparison(_COMPARATORS[called[0]], *called[1])]


def _call(expression: Any) -> tuple[str, Sequence[Any]] | None:
    """Name and arguments of a built-in operator of two operands."""
    kind = expression.WhichOneof("expr_type")
    if kind not in {"unresolved_function", "call_function"}:
        return None
    function = getattr(expression, kind)
    if len(function.arguments) != 2:
        return None
    return function.function_name.lower(), function.arguments


@dataclass(frozen=True)
class _Text:
    """A stretch of SQL text.

    Attributes:
        tokens: Its tokens, hints left out.
        depths: For each token, in how many parentheses and CASEs it stands; what opens and closes
            one counts as inside.
        depth: In how many the whole stretch stands.
    """

    whole: str
    tokens: Sequence[Token]
    depths: Sequence[int]
    depth: int = 0

    @classmethod
    def of(cls, text: str) -> _Text | None:
        """The text, or `None` where it can't be told what is inside of what."""
        tokens = [token for token in scan(text) if token.kind is not TokenKind.HINT]
        unclear = {TokenKind.UNTERMINATED, TokenKind.VARIABLE}
        if not tokens or any(token.kind in unclear or token.word == ";" for token in tokens):
            return None
        depths = _depths(tokens)
        return None if depths is None else cls(text, tokens, depths)

    @property
    def text(self) -> str:
        return self.whole[self.tokens[0].start : self.tokens[-1].end]

    def conjuncts(self) -> Iterator[_Text]:
        """The parts that must all be true, without parentheses around them."""
        inside = self._inside_parentheses()
        if inside is not None:
            yield from inside.conjuncts()
            return
        edges = [-1, *self._ands(), len(self.tokens)]
        parts = [self._part(start + 1, end) for start, end in pairwise(edges)]
        if len(parts) == 1 or not all(part.tokens for part in parts):
            yield self
            return
        for part in parts:
            yield from part.conjuncts()

    def comparisons(self) -> list[Comparison]:
        operators = self._operators()
        inside = {index for start, end, _ in operators for index in range(start, end)}
        words = {word for index, word in self._outer() if index not in inside}
        if _NO_COMPARISON & words or self._ands():
            return []
        if "BETWEEN" in words:
            return [] if operators else self._between()
        if len(operators) != 1 or operators[0][2] not in _COMPARATORS:
            return []
        start, end, operator = operators[0]
        return self._compared(_COMPARATORS[operator], (0, start), (end, len(self.tokens)))

    def _between(self) -> list[Comparison]:
        places = [index for index, word in self._outer() if word in {"BETWEEN", "AND"}]
        if len(places) != 2:
            return []
        between, end = places
        value = (0, between)
        lower = self._compared(">=", value, (between + 1, end))
        upper = self._compared("<=", value, (end + 1, len(self.tokens)))
        return [*lower, *upper] if lower and upper else []

    def _compared(
        self, operator: Comparator, left: tuple[int, int], right: tuple[int, int]
    ) -> list[Comparison]:
        sides = [self._part(*left), self._part(*right)]
        if not all(side.tokens for side in sides):
            return []
        return [Comparison(operator, *(text_expression(side.text) for side in sides))]

    def _part(self, start: int, end: int) -> _Text:
        return _Text(self.whole, self.tokens[start:end], self.depths[start:end], self.depth)

    def _outer(self) -> Iterator[tuple[int, str]]:
        """The words and symbols that are not inside of anything, with their indexes."""
        for index, token in enumerate(self.tokens):
            if self.depths[index] == self.depth and not _is_part_of_name(self.tokens, index):
                yield index, token.word

    def _ands(self) -> list[int]:
        """The indexes of the ANDs that join this text's parts, not those of a BETWEEN."""
        found: list[int] = []
        open_betweens = 0
        for index, word in self._outer():
            if word == "OR":
                return []
            if word == "BETWEEN":
                open_betweens += 1
            elif word == "AND" and open_betweens:
                open_betweens -= 1
            elif word == "AND":
                found.append(index)
        return [] if open_betweens else found

    def _operators(self) -> list[tuple[int, int, str]]:
        """The operators that compare, with their places."""
        found: list[tuple[int, int, str]] = []
        outer = [*self._outer()]
        for position, (index, word) in enumerate(outer):
            words = tuple(word for _, word in outer[position : position + 4])
            if words == _NULL_SAFE_WORDS:
                found.append((index, outer[position + 3][0] + 1, "<=>"))
            elif word in _COMPARING_SYMBOLS and self._continues(found, index):
                start, _, symbols = found.pop()
                found.append((start, index + 1, symbols + word))
            elif word in _COMPARING_SYMBOLS:
                found.append((index, index + 1, word))
        return found

    def _continues(self, found: Sequence[tuple[int, int, str]], index: int) -> bool:
        """Whether a symbol stands right behind the last one found, as `=>` behind `<`."""
        touches = self.tokens[index - 1].end == self.tokens[index].start
        return bool(found) and found[-1][1] == index and touches

    def _inside_parentheses(self) -> _Text | None:
        """What stands inside parentheses around all of the text, or `None` without those."""
        if (
            len(self.tokens) < 3
            or (self.tokens[0].word, self.tokens[-1].word) != ("(", ")")
            or self.tokens[1].word in QUERY_STARTS
        ):
            return None
        depth = self.depth + 1
        closing = next(
            index
            for index, token in enumerate(self.tokens)
            if token.word == ")" and self.depths[index] == depth
        )
        if closing != len(self.tokens) - 1:
            return None
        return _Text(self.whole, self.tokens[1:-1], self.depths[1:-1], depth)


def _depths(tokens: Sequence[Token]) -> list[int] | None:
    """How deep each token stands, or `None` where what is opened and closed does not match."""
    # Without a CASE, END is a name.
    has_cases = any(_is_keyword(tokens, index, "CASE") for index in range(len(tokens)))
    depths: list[int] = []
    opened: list[str] = []
    for index, token in enumerate(tokens):
        depths.append(len(opened))
        if token.word in _CLOSED_BY or (has_cases and _is_keyword(tokens, index, "CASE")):
            opened.append(_CLOSED_BY.get(token.word, "END"))
            depths[-1] = len(opened)
            continue
        closes = token.word in _CLOSING or (has_cases and _is_keyword(tokens, index, "END"))
        if closes and (not opened or opened.pop() != token.word):
            return None
    return None if opened else depths


def _is_keyword(tokens: Sequence[Token], index: int, word: str) -> bool:
    return tokens[index].word == word and not _is_part_of_name(tokens, index)


def _is_part_of_name(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word stands behind a dot, as `end` in `w.end`."""
    return index > 0 and tokens[index].kind is TokenKind.WORD and tokens[index - 1].word == "."
