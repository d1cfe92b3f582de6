"""Writes files of JSON anew where DuckDB's reader does not take all of their records.

In the new file each line is a record in standard JSON. What can't be read of it, or does not count,
stands in it under keys of millpond's own.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from millpond.errors.file_formats import FileUnreadableError, MalformedRecordError
from millpond.files.formats.base import LocalFile
from millpond.files.formats.json_lenient import (
    Record,
    Word,
    others_of,
    read_record,
    written,
)
from millpond.files.formats.json_options import JsonOptions
from millpond.files.options import ParseMode

# A record can't be longer; DuckDB needs several times its length.
MAX_RECORD_BYTES = 16 << 20
# A longer text is not kept beside the record: DuckDB would need many times its length.
MAX_TEXT_CHARACTERS = 1 << 20
# A file that is one value is read whole, and only where DuckDB could not read it.
MAX_VALUE_BYTES = 64 << 20
# What is rescued of a record whatever the columns are, as an object: values that do not count.
REST_KEY = "__millpond_rescued"
# The text of a record that could not be read, at all or in some character.
CORRUPT_KEY = "__millpond_corrupt"
# The text of a record: as it is in its file, but of one in an array as it is written anew.
TEXT_KEY = "__millpond_text"
# Where a file has such keys itself, they are among what is under `REST_KEY`.
OWN_KEYS = frozenset({REST_KEY, CORRUPT_KEY, TEXT_KEY})

# The keys of objects, one within the other, and `None` for the items of an array.
Place = tuple[str | None, ...]

_CHUNK_BYTES = 1 << 20
# What stands in a line in the place of bytes that are no characters, and of half a character.
_UNREADABLE = r"\ufffd"
# Puts the bytes themselves there, as a string of JSON can hold them.
_BYTES_IN_STRINGS = "millpond.bytes-in-json-strings"
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n|\Z)")


class _Told:
    """Texts of records, from which bytes can be told that are no characters.

    Args:
        raw: What the records are in.
        record: The same as it was read: a record, or an array of them.
        options: How it was read.
    """

    def __init__(self, raw: bytes, record: Record, options: JsonOptions) -> None:
        self._raw = raw
        self._is_array = isinstance(record.value, list)
        self._options = options

    def text(self, place: int) -> str:
        """The text of the record at a place in its array, or of the only one."""
        if not self._is_array:
            return _shown(self._raw)
        return written(self._array.value[place], self._array)

    @cached_property
    def _array(self) -> Record:
        return _read(
            self._raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", _BYTES_IN_STRINGS),
            self._options,
        )


@dataclass(frozen=True)
class Rewriting:
    """How files are written anew.

    Attributes:
        keeps_text: Whether a record that is not written as it is has its text, too, unless that
            is long.
        has_own_keys: Whether the files were written by millpond, and `OWN_KEYS` are its own.
        words: The places where `Word`s were; `None` stands for the items of an array.
    """

    options: JsonOptions
    mode: ParseMode
    keeps_text: bool = False
    has_own_keys: bool = False
    words: set[Place] = field(default_factory=set)

    def write(self, file: LocalFile, target: Path) -> None:
        """Write the records of a file, one a line.

        Raises:
            FileUnreadableError: A record is too long.
            MalformedRecordError: A record can't be read, and the mode is FAILFAST.
        """
        with file.path.open("rb") as source, target.open("w", encoding="utf-8") as output:
            for number, raw in enumerate(self._texts(source, file), start=1):
                for line in self._lines(raw, number, file):
                    output.write(line + "\n")

    def _texts(self, source: IO[bytes], file: LocalFile) -> Iterator[bytes]:
        if not self.options.multi_line:
            yield from _split(source, self.options.line_separator, file.uri)
            return
        content = source.read(MAX_VALUE_BYTES + 1)
        if len(content) > MAX_VALUE_BYTES:
            raise FileUnreadableError.too_long(file.uri, what="value", limit_bytes=MAX_VALUE_BYTES)
        yield content

    def _lines(self, raw: bytes, number: int, file: LocalFile) -> Iterator[str]:
        text, is_damaged = _decoded(raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw)
        if not text or text.isspace():
            return
        try:
            record = _read(text, self.options)
            records = _objects(record.value)
        except ValueError as error:
            reason = str(error)
        else:
            is_plain = record.is_standard and not is_damaged and records == [record.value]
            is_plain = is_plain and (self.has_own_keys or OWN_KEYS.isdisjoint(record.value))
            # An escape may be half of a character, which DuckDB refuses.
            if is_plain and r"\ud" not in text.lower():
                yield _one_line(text)
                return
            told = _Told(raw, record, self.options)
            for place, value in enumerate(records):
                if record.has_words:
                    self.words.update(_places_of_words(value))
                line = self._record_line(value, record, told, place, is_damaged=is_damaged)
                yield self._with_text(line, value, record, raw) if self.keeps_text else line
            return
        if self.mode is ParseMode.FAIL_FAST:
            raise MalformedRecordError.in_file(file.uri, record=number, text=text, reason=reason)
        if self.mode is ParseMode.PERMISSIVE:
            yield json.dumps({CORRUPT_KEY: _shown(raw)})

    def _record_line(
        self, value: dict[str, Any], record: Record, told: _Told, place: int, *, is_damaged: bool
    ) -> str:
        moved = frozenset() if self.has_own_keys else OWN_KEYS & value.keys()
        line = written({key: value[key] for key in value if key not in moved}, record)
        rest = dict(others_of(value))
        rest |= {key: value[key] for key in moved if value[key] is not None}
        is_unread = (is_damaged or record.is_damaged) and _UNREADABLE in line
        if rest:
            line = _with_member(line, REST_KEY, written(rest, record))
        if is_unread:
            line = _with_member(line, CORRUPT_KEY, written(told.text(place), Record(None)))
        return line

    def _with_text(self, line: str, value: dict[str, Any], record: Record, raw: bytes) -> str:
        """The line of a record with its text, too, unless that is long."""
        if isinstance(record.value, list):
            text = written(value, record)
        else:
            text = _shown(raw).strip("\ufeff \t\r\n")
        if len(text) > MAX_TEXT_CHARACTERS:
            return line
        return _with_member(line, TEXT_KEY, json.dumps(text))


def _read(text: str, options: JsonOptions) -> Record:
    """A record, or an array of them; whatever is behind the first value of a line is an error."""
    return read_record(text, options.lenient, takes_several=options.multi_line)


def _bytes_in_strings(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.end]
    return "".join(f"\\\\x{byte:02x}" for byte in found), error.end


codecs.register_error(_BYTES_IN_STRINGS, _bytes_in_strings)


def _with_member(line: str, key: str, value: str) -> str:
    """An object with one more member."""
    return f'{line[:-1]}{"" if line == "{}" else ","}"{key}":{value}}}'


def _places_of_words(record: Any) -> Iterator[Place]:
    waiting: list[tuple[Place, Any]] = [((), record)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Word):
            yield place
        elif isinstance(value, dict):
            waiting.extend(((*place, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*place, None), inner) for inner in value)


def _objects(value: Any) -> list[Any]:
    """The records of a value: itself, or those of an array."""
    values = value if isinstance(value, list) else [value]
    for item in values:
        if not isinstance(item, dict):
            raise ValueError("it is no object")  # noqa: TRY004 - the content is wrong, not the call
    return values


def _decoded(raw: bytes) -> tuple[str, bool]:
    """A text, with a sign in place of what is no UTF-8; and whether there was such."""
    try:
        return raw.decode("utf-8"), False
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), True


def _shown(raw: bytes) -> str:
    """A record's text, from which its bytes can be told."""
    return raw.decode("utf-8", "backslashreplace")


def _one_line(text: str) -> str:
    # In standard JSON they only stand between the parts.
    return text.replace("\r", " ").replace("\n", " ")


def _split(source: IO[bytes], separator: str | None, uri: str) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    ends = re.compile(re.escape(separator.encode())) if separator else _LINE_END
    rest = b""
    while chunk := source.read(_CHUNK_BYTES):
        *lines, rest = ends.split(rest + chunk)
        yield from lines
        if len(rest) > MAX_RECORD_BYTES:
            raise FileUnreadableError.too_long(uri, what="record", limit_bytes=MAX_RECORD_BYTES)
    yield rest
