"""Reads a YAML file into nodes that know their lines, within bounds.

Nodes are read one by one instead of being turned into values at once: an error can then name the
line, a repeated key is seen, and text that would grow without end by its aliases is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from millpond.errors import SourceLocation
from millpond.errors.project import SpecFieldError, SpecNotFoundError, SpecUnreadableError
from millpond.errors.suggestion import cut_short
from millpond.redaction import REDACTED

MAX_BYTES = 1_000_000
MAX_NODES = 20_000
MAX_DEPTH = 50

_KINDS = {
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "empty",
    "tag:yaml.org,2002:timestamp": "a date",
    "tag:yaml.org,2002:map": "a block of keys",
    "tag:yaml.org,2002:seq": "a list",
}
_TEXT = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"
_SURROGATE = re.compile("[\ud800-\udfff]")


class _TooDeepError(Exception):
    """Blocks stand in blocks, more than any spec needs."""


class _TooManyError(Exception):
    """There are more values than any spec needs."""


class _BoundedLoader(yaml.SafeLoader):
    """Stops at text that is nested too deep or holds too much, instead of reading all of it."""

    _depth = 0
    _nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _TooManyError
        if self._depth > MAX_DEPTH:
            raise _TooDeepError
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


@dataclass(frozen=True)
class SpecDocument:
    """A YAML document whose nodes are read by kind.

    Attributes:
        file: The file's name, as messages show it.
        root: The outermost node, or `None` where the file holds nothing.
    """

    file: str
    root: yaml.Node | None

    @classmethod
    def read(cls, path: Path, *, file: str) -> SpecDocument:
        """Read and bound the file.

        Raises:
            SpecNotFoundError: There is no such file.
            SpecUnreadableError: It is not YAML, or too much of it.
        """
        where = SourceLocation(file)
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except (FileNotFoundError, IsADirectoryError):
            raise SpecNotFoundError.from_path(path) from None
        except OSError as error:
            raise SpecUnreadableError.from_os_error(error, where=where) from error
        if len(data) > MAX_BYTES:
            raise SpecUnreadableError.from_size(limit="1 MB", where=where)
        try:
            root = _compose(data.decode("utf-8-sig"))
        except yaml.YAMLError as error:
            raise _yaml_error(error, where) from error
        except UnicodeDecodeError as error:
            raise SpecUnreadableError.from_yaml(
                "it is not UTF-8 text", where=where, detail=None
            ) from error
        except _TooDeepError:
            raise SpecUnreadableError.from_size(limit=f"{MAX_DEPTH} levels", where=where) from None
        except _TooManyError:
            raise _too_many(file) from None
        document = cls(file, root)
        document._check_bounds()
        return document

    def where(self, node: yaml.Node | None) -> SourceLocation:
        if node is None:
            return SourceLocation(self.file)
        return SourceLocation(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def fields(
        self, node: yaml.Node | None, *, place: str, known: Collection[str] | None = None
    ) -> dict[str, yaml.Node]:
        """The entries of a mapping; none where the node is empty.

        Raises:
            SpecFieldError: It is no mapping; a key is no string, not `known`, or stands twice.
        """
        if node is None or node.tag == _NULL:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self.type_error(node, place, "a block of keys, key: value")
        found: dict[str, yaml.Node] = {}
        merged: dict[str, yaml.Node] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for part in _parts(value):
                    merged = {**self.fields(part, place=place, known=known), **merged}
                continue
            name = self.text(key, place=f"A key of {place}")
            if known is not None and name not in known:
                raise SpecFieldError.from_unknown(
                    name, known=known, place=place, where=self.where(key)
                )
            if name in found:
                raise SpecFieldError.from_repeated(name, first=lines[name], where=self.where(key))
            found[name] = value
            lines[name] = key.start_mark.line + 1
        return {**merged, **found}

    def items(self, node: yaml.Node | None, *, place: str) -> list[yaml.Node]:
        """The entries of a list; none where the node is empty.

        Raises:
            SpecFieldError: It is no list.
        """
        if node is None or node.tag == _NULL:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise self.type_error(node, place, "a list")
        return list(node.value)

    def text(self, node: yaml.Node, *, place: str, hidden: bool = False) -> str:
        """The value of a string.

        Args:
            hidden: Whether no message may show it.

        Raises:
            SpecFieldError: It is no string; text that YAML takes for a number needs quotes.
        """
        if node.tag != _TEXT or not isinstance(node, yaml.ScalarNode):
            raise self.type_error(node, place, "a string", hidden=hidden)
        text = str(node.value)
        if _SURROGATE.search(text):
            raise SpecFieldError.from_value(
                place,
                reason="holds half of a character, an escape from \\ud800 to \\udfff",
                where=self.where(node),
                hint="write the character itself",
            )
        return text

    def is_empty(self, node: yaml.Node | None) -> bool:
        return node is None or node.tag == _NULL

    def type_error(
        self, node: yaml.Node, place: str, expected: str, *, hidden: bool = False
    ) -> SpecFieldError:
        actual = _KINDS.get(node.tag, f"of the type {node.tag}")
        hint = None
        if isinstance(node, yaml.ScalarNode) and expected == "a string":
            shown = REDACTED if hidden else cut_short(node.value)
            actual = f"{shown} ({actual})" if node.value else actual
            hint = f'put it in quotes: "{shown}"'
        return SpecFieldError.from_type(
            place, expected=expected, actual=actual, where=self.where(node), hint=hint
        )

    def _check_bounds(self) -> None:
        """Count nodes as often as they are reached, so that aliases count as what they repeat."""
        count = 1
        pending: list[Any] = [self.root]
        while pending:
            node = pending.pop()
            parts: list[Any] = []
            if isinstance(node, yaml.SequenceNode):
                parts = node.value
            elif isinstance(node, yaml.MappingNode):
                parts = [part for entry in node.value for part in entry]
            # Counted before they are kept: a list that holds itself has no end.
            count += len(parts)
            if count > MAX_NODES:
                raise _too_many(self.file)
            pending.extend(parts)


def _compose(text: str) -> yaml.Node | None:
    """The outermost node.

    Raises:
        yaml.YAMLError: The text is not YAML.
    """
    loader = _BoundedLoader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
    except (ValueError, OverflowError) as error:
        # PyYAML lets these through: of an escape that is no character, and of huge numbers.
        raise yaml.MarkedYAMLError(
            problem="it holds a number that is out of range", problem_mark=loader.get_mark()
        ) from error
    finally:
        loader.dispose()
    return node


def _too_many(file: str) -> SpecUnreadableError:
    return SpecUnreadableError.from_size(limit=f"{MAX_NODES:,} values", where=SourceLocation(file))


def _parts(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _yaml_error(error: yaml.YAMLError, where: SourceLocation) -> SpecUnreadableError:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if mark is None:
        return SpecUnreadableError.from_yaml(str(reason), where=where, detail=None)
    return SpecUnreadableError.from_yaml(
        str(reason),
        where=SourceLocation(where.file, mark.line + 1, mark.column + 1),
        detail=mark.get_snippet(indent=0),
    )
