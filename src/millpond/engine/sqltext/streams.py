"""`STREAM t`, `STREAM(t)` and `WITH (...)` options, found by their tokens.

A syntax tree of standard SQL has no room for them, so they are found and blanked out before the
text is parsed; the table's name between them stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.source import QueryText
from millpond.errors.engine import InvalidReadOptionError, UnsupportedStreamingSourceError
from millpond.sql.tokens import Token, TokenKind, keywords, string_value

_SIGNS = frozenset({"+", "-"})
# Words that may follow a table and are no alias of it, nor the source of a table named "stream".
AFTER_TABLE = keywords(
    "AS ON USING WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET "
    "LATERAL JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI UNION EXCEPT MINUS INTERSECT "
    "PIVOT UNPIVOT TABLESAMPLE VERSION TIMESTAMP SELECT WITH"
)


@dataclass(frozen=True)
class Stream:
    """A stream read: from `start` to `end` stands `STREAM(name)` or `STREAM name`.

    Attributes:
        name_start: Offset of the name's first part.
    """

    start: int
    end: int
    name_start: int
    name_end: int


@dataclass(frozen=True)
class Options:
    """The options of a read, `WITH (...)`, from `start` to `end`.

    Attributes:
        values: By names in lower case.
        names: By those, the names as they are written.
    """

    start: int
    end: int
    values: Mapping[str, str]
    names: Mapping[str, str]


def find_streams(outline: Outline, source: QueryText) -> list[Stream]:
    """Every stream read, in order.

    Raises:
        UnsupportedStreamingSourceError: What follows STREAM is not the name of a table.
    """
    return [
        _stream(outline, source, index)
        for index in outline.table_positions
        if outline.word(index) == "STREAM" and _begins_stream(outline, index)
    ]


def find_options(outline: Outline, source: QueryText) -> list[Options]:
    """Every `WITH (...)` of a read, in order.

    Raises:
        InvalidReadOptionError: It can't be read.
    """
    return [
        _options(outline, source, index)
        for index, token in enumerate(outline.tokens)
        if index > 0 and token.word == "WITH" and outline.word(index + 1) == "("
    ]


def find_watermarks(outline: Outline) -> list[tuple[int, int]]:
    """Start and end of every `WATERMARK column DELAY OF INTERVAL ...`."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for index, token in enumerate(outline.tokens):
        if token.word == "WATERMARK":
            start = token.start
        elif start is not None and token.word == "DELAY" and outline.word(index + 1) == "OF":
            found.append((start, _interval_end(outline, index + 2)))
            start = None
    return found


def _interval_end(outline: Outline, index: int) -> int:
    """The offset behind an interval: `INTERVAL 1 HOUR 30 MINUTES` or `INTERVAL '10 minutes'`."""
    at = _behind_quantity(outline, index + 1)
    while outline.word(at) in _SIGNS or outline.kind(at) in {TokenKind.NUMBER, TokenKind.STRING}:
        at = _behind_quantity(outline, at)
    return outline.tokens[min(at, len(outline.tokens)) - 1].end


def _behind_quantity(outline: Outline, index: int) -> int:
    """The index behind a value with its unit: `10 MINUTES`, `'1:30' HOUR TO MINUTE`."""
    at = index + 1 if outline.word(index) in _SIGNS else index
    value = outline.tokens[min(at, len(outline.tokens) - 1)]
    if value.kind is TokenKind.STRING and string_value(value)[-1:].isalpha():
        return at + 1
    return at + 4 if outline.word(at + 2) == "TO" else at + 2


def name_end(outline: Outline, index: int) -> int:
    """The index behind a dotted name that starts at `index`."""
    at = index + 1
    while outline.word(at) == "." and at + 1 < len(outline.tokens):
        at += 2
    return at


def _begins_stream(outline: Outline, index: int) -> bool:
    following = outline.tokens[index + 1] if index + 1 < len(outline.tokens) else None
    if following is None:
        return False
    if following.word == "(" or following.kind is TokenKind.QUOTED:
        return True
    return following.kind is TokenKind.WORD and following.word not in AFTER_TABLE


def _stream(outline: Outline, source: QueryText, index: int) -> Stream:
    tokens = outline.tokens
    in_parentheses = outline.word(index + 1) == "("
    first = index + 2 if in_parentheses else index + 1
    if first >= len(tokens) or not _is_name(tokens[first]):
        raise _not_a_table(source, tokens[min(first, len(tokens) - 1)], "What STREAM is given")
    behind = name_end(outline, first)
    last = tokens[behind - 1]
    if outline.word(behind) == "(":
        raise _not_a_table(source, tokens[first], f"The function {tokens[first].text}")
    if in_parentheses:
        if outline.word(behind) != ")":
            raise _not_a_table(source, tokens[first], "What STREAM is given")
        return Stream(tokens[index].start, tokens[behind].end, tokens[first].start, last.end)
    return Stream(tokens[index].start, last.end, tokens[first].start, last.end)


def _is_name(token: Token) -> bool:
    is_word = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
    return is_word and token.word not in {"SELECT", "WITH", "VALUES"}


def _not_a_table(source: QueryText, token: Token, what: str) -> UnsupportedStreamingSourceError:
    return UnsupportedStreamingSourceError.of(
        what, where=source.locate(token.start), detail=source.caret(token.start, token.end)
    )


def _options(outline: Outline, source: QueryText, index: int) -> Options:
    closing = outline.closing(index + 1)
    values: dict[str, str] = {}
    names: dict[str, str] = {}
    for item in _items(outline, index + 2, closing):
        key, _, rest = _split(item)
        if not key:
            raise _bad_option(source, item[0] if item else outline.tokens[closing])
        values[key.lower()] = _value(source, rest) if rest else "true"
        names[key.lower()] = key
    if not values:
        raise _bad_option(source, outline.tokens[closing])
    return Options(outline.tokens[index].start, outline.tokens[closing].end, values, names)


def _items(outline: Outline, start: int, end: int) -> Iterator[list[Token]]:
    item: list[Token] = []
    for token in outline.tokens[start:end]:
        if token.word == ",":
            yield item
            item = []
        else:
            item.append(token)
    if item:
        yield item


def _split(item: list[Token]) -> tuple[str, str, list[Token]]:
    for at, token in enumerate(item):
        if token.word in {"=", "=>", "=="}:
            return _key(item[:at]), token.word, item[at + 1 :] or [token]
    return _key(item), "", []


def _key(tokens: list[Token]) -> str:
    if len(tokens) == 1 and tokens[0].kind is TokenKind.STRING:
        return string_value(tokens[0])
    if all(token.kind is TokenKind.WORD or token.word == "." for token in tokens):
        return "".join(token.text for token in tokens)
    return ""


def _value(source: QueryText, tokens: list[Token]) -> str:
    if len(tokens) == 1 and tokens[0].kind is TokenKind.STRING:
        return string_value(tokens[0])
    negative = len(tokens) == 2 and tokens[0].word == "-"
    if tokens[-1].kind is TokenKind.NUMBER and (negative or len(tokens) == 1):
        return ("-" if negative else "") + tokens[-1].text.rstrip("lL")
    if len(tokens) == 1 and tokens[0].kind is TokenKind.WORD:
        return tokens[0].text
    raise _bad_option(source, tokens[0])


def _bad_option(source: QueryText, token: Token) -> InvalidReadOptionError:
    return InvalidReadOptionError.at(
        "each option is a name, or a name with = and a literal value",
        where=source.locate(token.start),
        detail=source.caret(token.start, token.end),
    )
