"""`read_files(...)` and `read_kafka(...)` where a table can stand, found by their tokens.

Their arguments are blanked out before a text is parsed, so that the bare name stands there like
that of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from millpond.engine.protocol import TableRead
from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.source import QueryText
from millpond.errors.engine import InvalidReadOptionError, UnsupportedReadError
from millpond.sql.tokens import Token, TokenKind, identifier_value, keywords, string_value

READ_FILES = "read_files"
# By name of a function, the format of the read that it is.
_FORMATS = {READ_FILES: READ_FILES, "read_kafka": "kafka"}
# What `read_files` was called before.
_CLOUD_FILES = "cloud_files"
_WORDS = keywords("TRUE FALSE")


@dataclass(frozen=True)
class FunctionRead:
    """One call.

    Attributes:
        read: What it reads; as a batch, since STREAM stands before the call.
        name_start: Where its name starts.
        opening: Where the parenthesis behind the name stands.
        end: Behind the parenthesis that closes the call.
    """

    read: TableRead
    name_start: int
    opening: int
    end: int


def find_function_reads(outline: Outline, source: QueryText) -> list[FunctionRead]:
    """Every call in a text, in order.

    Raises:
        InvalidReadOptionError: An argument is no literal value.
        UnsupportedReadError: It stands behind LATERAL, names no path, or is `cloud_files`.
    """
    return [
        _read(outline, source, index)
        for position in outline.table_positions
        if (index := _call_at(outline, position)) is not None
    ]


def _call_at(outline: Outline, position: int) -> int | None:
    """The token of the function's name, if one is called where a table can be named."""
    for index in (position, position + 1, position + 2):
        if index > position and outline.word(position) != "STREAM":
            return None
        token = outline.tokens[index] if index < len(outline.tokens) else None
        if (
            token is not None
            and token.kind is TokenKind.WORD
            and token.text.lower() in {*_FORMATS, _CLOUD_FILES}
            and outline.word(index + 1) == "("
        ):
            return index
        if index > position and outline.word(index) != "(":
            return None
    return None


def _read(outline: Outline, source: QueryText, index: int) -> FunctionRead:
    name = outline.tokens[index]
    closing = outline.closing(index + 1)
    if outline.word(index - 1) == "LATERAL":
        raise UnsupportedReadError.of(
            f"{name.text} behind LATERAL",
            where=source.locate(name.start),
            instead="read the files of one path, without values of other tables",
            detail=source.caret(name.start, name.end),
        )
    if name.text.lower() == _CLOUD_FILES:
        raise UnsupportedReadError.of(
            "The older function cloud_files",
            where=source.locate(name.start),
            instead="write STREAM read_files('/data/folder', format => 'json'): the options of "
            "map(..) become arguments, without the prefix cloudFiles",
            detail=source.caret(name.start, name.end),
        )
    path, options, names = _arguments(source, list(_separated(outline, index + 2, closing)))
    files = name.text.lower() == READ_FILES
    if files and not path:
        raise UnsupportedReadError.of(
            "A read_files without a path",
            where=source.locate(name.start),
            instead="write read_files('/data/folder', format => 'csv')",
            detail=source.caret(name.start, outline.tokens[closing].end),
        )
    read = TableRead(
        format=_FORMATS[name.text.lower()],
        paths=(path,) if path else (),
        columns=options.pop("schema", None) if files else None,
        options=options,
        option_names=names,
        location=source.locate(name.start),
        catalog=source.catalog,
        schema=source.schema,
    )
    opening = outline.tokens[index + 1].start
    return FunctionRead(read, name.start, opening, outline.tokens[closing].end)


def _arguments(
    source: QueryText, arguments: Sequence[list[Token]]
) -> tuple[str, dict[str, str], dict[str, str]]:
    """The path, which may stand first without its name, and the other arguments by name.

    Returns:
        Also the names of those as they are written, by those in lower case.
    """
    path = ""
    options: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, tokens in enumerate(arguments):
        arrow = next((at for at, token in enumerate(tokens) if token.word == "=>"), None)
        if arrow is None and number == 0:
            path = _value(source, tokens)
            continue
        if not arrow:
            raise _invalid(source, tokens, "behind the path, each argument is name => value")
        name = _key(source, tokens[:arrow])
        key = name.lower()
        if not tokens[arrow + 1 :]:
            raise _invalid(source, tokens, f"{key} has no value")
        value = _value(source, tokens[arrow + 1 :])
        if key in options or (key == "path" and path):
            raise _invalid(source, tokens, f"{key} is given twice")
        if key == "path":
            path = value
        else:
            options[key] = value
            names[key] = name
    return path, options, names


def _key(source: QueryText, tokens: Sequence[Token]) -> str:
    is_name = all(
        token.word == "." if at % 2 else token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        for at, token in enumerate(tokens)
    )
    if not is_name:
        raise _invalid(source, tokens, "before => stands the name of an option")
    return "".join(identifier_value(token) for token in tokens)


def _value(source: QueryText, tokens: Sequence[Token]) -> str:
    """The text of a literal; strings next to each other are one, as everywhere in Spark."""
    if tokens and all(token.kind is TokenKind.STRING for token in tokens):
        return "".join(map(string_value, tokens))
    if len(tokens) == 1 and tokens[0].word in _WORDS:
        return tokens[0].word.lower()
    signed = len(tokens) == 2 and tokens[0].word in {"-", "+"}
    if tokens and tokens[-1].kind is TokenKind.NUMBER and (signed or len(tokens) == 1):
        sign = "-" if tokens[0].word == "-" else ""
        return sign + tokens[-1].text.rstrip("lLsSyY")
    raise _invalid(source, tokens, "each value is a string, a number, true or false")


def _separated(outline: Outline, start: int, end: int) -> Iterator[list[Token]]:
    """The tokens between the commas of a list that is not empty."""
    if start >= end:
        return
    depth, argument = 0, list[Token]()
    for token in outline.tokens[start:end]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.word, 0)
        if token.word == "," and depth == 0:
            yield argument or [token]
            argument = []
        else:
            argument.append(token)
    yield argument or [outline.tokens[end]]


def _invalid(source: QueryText, tokens: Sequence[Token], problem: str) -> InvalidReadOptionError:
    return InvalidReadOptionError.of_function(
        problem,
        where=source.locate(tokens[0].start),
        detail=source.caret(tokens[0].start, tokens[-1].end),
    )


def by_name_start(reads: Sequence[FunctionRead]) -> Mapping[int, TableRead]:
    """What is read, by where the name of the function starts."""
    return {each.name_start: each.read for each in reads}
