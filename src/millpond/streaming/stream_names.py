"""Tells from which source of its checkpoint each stream of a flow goes on.

A source keeps the name that it has in the checkpoint, and with it all that says what was read of
it, while the options of its read may change, the order of reads in the query, and their number.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from millpond.errors.streaming import CheckpointSourceChangedError
from millpond.redaction import is_secret

# Options that say which files a read takes of a folder; two of them are one.
_PATTERNS = frozenset({"pathglobfilter", "filenamepattern"})
_NAMES = frozenset({"format", "pattern"})
_FILES = _NAMES | {"recursivefilelookup", "modifiedafter", "modifiedbefore"}


@dataclass(frozen=True)
class StreamTraits:
    """What tells a stream from the others of its flow.

    Attributes:
        place: What it reads: a table, folders, topics.
        digests: Of its options without secrets: of all, and, if it reads files, of those that say
            which files it takes, and of those that say it by their names.
    """

    place: str
    digests: tuple[str, ...]

    @classmethod
    def of(cls, place: str, *, options: Mapping[str, str | None], is_files: bool) -> Self:
        """Take the traits of a stream with these options, whose keys are in lower case."""
        given = {
            _plain(key): value
            for key, value in options.items()
            if value is not None and not is_secret(key)
        }
        parts = [set(given), *([_FILES, _NAMES] if is_files else [])]
        return cls(place, tuple(_digest({k: given[k] for k in given if k in p}) for p in parts))

    @property
    def is_files(self) -> bool:
        return len(self.digests) > 1


def names_in_checkpoint(
    now: Mapping[str, StreamTraits], known: Mapping[str, StreamTraits | None]
) -> dict[str, str]:
    """The names of streams in their checkpoint, by the names that the query gives them.

    Args:
        now: The streams that there are.
        known: What the checkpoint has, by its names; `None` where it says nothing but the name.

    Raises:
        CheckpointSourceChangedError: It can't be told which stream is which.
    """
    places = dict.fromkeys(traits.place for traits in now.values())
    found: dict[str, str] = {}
    for place in places:
        found |= _paired(
            place,
            {name: traits for name, traits in now.items() if traits.place == place},
            {
                name: traits
                for name, traits in known.items()
                if (_place(name, places) if traits is None else traits.place) == place
            },
        )
    taken = {*known, *found.values()}
    for name in now:
        if name not in found:
            found[name] = next(free for free in _numbered(name) if free not in taken)
            taken.add(found[name])
    return found


def _paired(
    place: str, now: Mapping[str, StreamTraits], known: Mapping[str, StreamTraits | None]
) -> dict[str, str]:
    """Those of the streams of one place that go on, with what they go on from."""
    told = {name: traits for name, traits in known.items() if traits is not None}
    # A name without a pattern depends on which reads there are.
    pairs = {
        name: name
        for name in known.keys() - told.keys()
        if name in now and (len(now) == len(known) or name.startswith(f"{place} "))
    }
    for level in range(max((len(traits.digests) for traits in told.values()), default=0)):
        ours, before = _by_digest(now, level, pairs), _by_digest(told, level, pairs.values())
        for digest in ours.keys() & before.keys():
            is_clear = len(ours[digest]) == 1 or not level
            # Those that differ in secrets alone have read the same.
            if is_clear and len(ours[digest]) == len(before[digest]):
                pairs |= zip(ours[digest], before[digest], strict=True)
    new = sorted(now.keys() - pairs.keys())
    left = sorted(known.keys() - set(pairs.values()))
    if not left or len(new) < len(left):
        # What is no longer read is told of by who compares all sources.
        return pairs
    # Of tables and topics, all streams are at the end once an update is over.
    is_clear = len(left) == 1 or not any(now[name].is_files for name in new)
    if len(new) > len(left) or not is_clear:
        raise CheckpointSourceChangedError.from_unclear(place, now=new)
    return pairs | dict(zip(new, left, strict=True))


def _by_digest(
    streams: Mapping[str, StreamTraits], level: int, paired: Container[str]
) -> dict[str, list[str]]:
    """The names of streams that are not paired yet, by one of their digests."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, traits in streams.items():
        if name not in paired and level < len(traits.digests):
            found[traits.digests[level]].append(name)
    return found


def _place(name: str, places: Iterable[str]) -> str | None:
    """What a source reads, as its name says."""
    fitting = (p for p in places if name == p or name.startswith((f"{p} ", f"{p}#")))
    return max(fitting, key=len, default=None)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}#{number}"
        number += 1


def _plain(key: str) -> str:
    key = key.removeprefix("cloudfiles.")
    return "pattern" if key in _PATTERNS else key


def _digest(values: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]
