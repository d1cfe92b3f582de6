"""JSON as Jackson reads it for Spark: with the departures from the standard that are allowed.

It is slow beside DuckDB's reader, and only meant for records which that one refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Deeper records are refused, as by Jackson; Python and DuckDB would take them for a while.
MAX_DEPTH = 500
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>/\*.*?\*/|//[^\n]*)
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<single>'(?:[^'\\]|\\.)*')
    |(?P<number>[+-]?[0-9][0-9.eE+-]*)
    |(?P<infinity>[+-](?:INF|Infinity)\b)
    |(?P<word>[^\W\d][\w$-]*|\$[\w$-]*)
    |(?P<mark>[{}\[\],:])""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_WORDS = frozenset({"true", "false", "null"})
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_STANDARD_ESCAPES = frozenset('"\\/bfnrt')


class Raw(str):
    """A number as it is written, or another part of JSON that is no text."""

    __slots__ = ()


class Word(str):
    """What stands in place of a number that is none, or is infinite."""

    __slots__ = ()


_COMMA, _COLON = Raw(","), Raw(":")


class Repeating(dict[str, Any]):
    """An object in which a key is there twice, or in which there is such an object.

    Attributes:
        others: The values that do not count, under their keys. Those within another object or an
            array are in an object or an array again, with null for the items that have none.
    """

    others: dict[str, Any]


@dataclass
class Record:
    """A record that could be read.

    Attributes:
        value: Its value; of keys that are there twice, the last one's.
        is_standard: Whether the text is plain JSON that any reader takes the same way.
        has_repeats: Whether a key is there twice in some object.
        is_damaged: Whether characters are in it that are none, and were replaced.
        has_words: Whether a `Word` is in it.
    """

    value: Any
    is_standard: bool = True
    has_repeats: bool = False
    is_damaged: bool = False
    has_words: bool = False


def read_record(text: str, lenient: frozenset[str], *, takes_several: bool = False) -> Record:
    """Read a JSON value.

    Args:
        takes_several: Whether there may be several values, one behind the other. They are read as
            an array of them, and of the items of those that are arrays.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    record = Record(None)
    try:
        try:
            values = _loads(text, record, lenient)
        except ValueError:
            record = Record(None, is_standard=False)
            values = _loads("".join(_strict(text, lenient)), record, lenient)
        is_too_deep = max(map(depth_of, values)) > MAX_DEPTH
    except RecursionError:
        is_too_deep = True
    if is_too_deep:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    record.value = values[0]
    if len(values) > 1:
        if not takes_several:
            raise ValueError("there is more behind its first value")
        record.is_standard = False
        record.value = [item for of in values for item in (of if isinstance(of, list) else [of])]
    return record


def _loads(text: str, record: Record, lenient: frozenset[str]) -> list[Any]:
    """The values of a text; one at least."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(found)
        if len(values) < len(found):
            record.is_standard = False
            record.has_repeats = True
        if not record.has_repeats:
            return values
        others = _others_within(found)
        if not others:
            return values
        repeating = Repeating(values)
        repeating.others = others
        return repeating

    def constant(name: str) -> str:
        record.is_standard = False
        if "allownonnumericnumbers" not in lenient:
            raise ValueError(f"{name} is no number")
        record.has_words = True
        return Word(name)

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs,
        parse_int=Raw,
        parse_float=Raw,
        parse_constant=constant,
    )
    values: list[Any] = []
    position = _behind_blanks(text, 0)
    while position < len(text) or not values:
        value, position = decoder.raw_decode(text, position)
        values.append(value)
        position = _behind_blanks(text, position)
    return values


def _behind_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return position if blanks is None else blanks.end()


def _others_within(found: list[tuple[str, Any]]) -> dict[str, Any]:
    """The values of an object that do not count, with those within its other ones."""
    last = {key: index for index, (key, _) in enumerate(found)}
    others: dict[str, Any] = {}
    for index, (key, value) in enumerate(found):
        if last[key] != index:
            others[key] = value
        elif key not in others and (within := others_of(value)):
            others[key] = within
    return others


def others_of(value: Any) -> Any:
    """What of a value does not count, as in `Repeating`; nothing for one that counts throughout."""
    if isinstance(value, Repeating):
        return value.others
    if not isinstance(value, list):
        return {}
    # Without recursion: arrays may be nested as deeply as records.
    arrays = [value]
    for array in arrays:
        arrays.extend(item for item in array if isinstance(item, list))
    others: dict[int, list[Any]] = {}
    for array in reversed(arrays):
        items = [
            item.others if isinstance(item, Repeating) else others.get(id(item)) for item in array
        ]
        if any(items):
            others[id(array)] = items
    return others.get(id(value), [])


def _strict(text: str, lenient: frozenset[str]) -> Iterator[str]:
    """The same value as standard JSON."""
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or token.lastgroup is None:
            raise ValueError(f"there is something unexpected at character {position + 1}")
        yield _strict_token(token.lastgroup, token.group(), lenient)
        position = token.end()


def _strict_token(kind: str, text: str, lenient: frozenset[str]) -> str:  # noqa: PLR0911 - a table
    if kind == "double":
        return _strict_text(text, lenient)
    if kind == "single" and "allowsinglequotes" in lenient:
        return _strict_text(text, lenient)
    if kind == "comment" and "allowcomments" in lenient:
        return " "
    if kind == "number" and "allownumericleadingzeros" in lenient:
        return re.sub(r"^(-?)0+(?=[0-9])", r"\1", text)
    if kind == "infinity" and "allownonnumericnumbers" in lenient:
        return "-Infinity" if text.startswith("-") else "Infinity"
    if kind == "word" and text not in _WORDS:
        if text in {"NaN", "Infinity", "INF"} and "allownonnumericnumbers" in lenient:
            return "NaN" if text == "NaN" else "Infinity"
        if "allowunquotedfieldnames" in lenient:
            return json.dumps(text)
    if kind in {"single", "comment", "infinity"}:
        raise ValueError(f"{text[:20]} is not allowed")
    return text


def _strict_text(quoted: str, lenient: frozenset[str]) -> str:
    inner = quoted[1:-1]

    def escape(match: re.Match[str]) -> str:
        what = match.group(1)
        if len(what) > 1 or (what in _STANDARD_ESCAPES):
            return match.group()
        if what == "'" and "allowsinglequotes" in lenient:
            return what
        if "allowbackslashescapinganycharacter" in lenient:
            return what
        raise ValueError(f"\\{what} is no escape")

    inner = _ESCAPE.sub(escape, inner)
    if quoted[0] == "'":
        # Double quotes stand for themselves there.
        inner = re.sub(r'(\\.)|"', lambda match: match.group(1) or '\\"', inner, flags=re.DOTALL)
    if "allowunquotedcontrolchars" in lenient:
        inner = _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", inner)
    return f'"{inner}"'


def depth_of(value: Any) -> int:
    """How deeply a value is nested, without recursion."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = inner
    return depth


def written(value: Any, record: Record) -> str:
    """A value as standard JSON, with its numbers as they were written; without recursion."""
    parts: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Raw):
            parts.append(item)
        elif isinstance(item, dict):
            members = [part for key, v in item.items() for part in (_COMMA, key, _COLON, v)]
            waiting += [Raw("}"), *reversed(members[1:]), Raw("{")]
        elif isinstance(item, list):
            items = [part for inner in item for part in (_COMMA, inner)]
            waiting += [Raw("]"), *reversed(items[1:]), Raw("[")]
        else:
            if isinstance(item, str) and _SURROGATE.search(item):
                record.is_damaged = True
                item = _SURROGATE.sub("\ufffd", item)
            parts.append(json.dumps(item))
    return "".join(parts)
