"""Tells from which source of its checkpoint each stream of a flow goes on.

A source keeps the name that it has in the checkpoint, and with it all that says what was read of
it, while its options, the number of reads in the query or their order may change.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from millpond.errors.streaming import CheckpointSourceChangedError
from millpond.redaction import is_secret, shown_value

# Options that say which files a read takes of a folder; two of them are one.
_PATTERNS = frozenset({"pathglobfilter", "filenamepattern"})
_NAMES = frozenset({"format", "pattern"})
_FILES = _NAMES | {"recursivefilelookup", "modifiedafter", "modifiedbefore"}
# Options that say which topics a read takes, and of which cluster.
_TOPICS = frozenset({"kafka.bootstrap.servers", "subscribe", "subscribepattern", "assign"})
_COLUMNS = frozenset({"format", "schema"})
_SHOWN_SIGNS = 60


@dataclass(frozen=True)
class StreamTraits:
    """What tells a stream from the others of its flow.

    Attributes:
        place: What it reads: a table, folders, topics.
        digests: Of its options without secrets: of all; then, if it reads files, of those that say
            which files it takes, and of those that say it by their names; else of those that say
            which topics it takes, of which there are none for a table.
        is_files: Whether it reads files.
        reads: At how many places the query reads it.
        options: Its options without secrets, to be shown.
    """

    place: str
    digests: tuple[str, ...]
    is_files: bool
    reads: int = 1
    options: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, place: str, *, options: Mapping[str, str | None], is_files: bool, reads: int = 1
    ) -> Self:
        """Take the traits of a stream with these options, whose keys are in lower case."""
        plain = {
            key.removeprefix("cloudfiles."): value
            for key, value in options.items()
            if value is not None and not is_secret(key)
        }
        given = {"pattern" if key in _PATTERNS else key: value for key, value in plain.items()}
        parts = [set(given), *([_FILES, _NAMES] if is_files else [_TOPICS])]
        return cls(
            place,
            tuple(_digest({k: given[k] for k in given if k in part}) for part in parts),
            is_files,
            reads,
            {key: shown_value(key, value) for key, value in plain.items()},
        )


def names_in_checkpoint(
    now: Mapping[str, StreamTraits], known: Mapping[str, StreamTraits | None]
) -> dict[str, str]:
    """The names of streams in their checkpoint, by the names that the query gives them.

    Args:
        now: The streams that there are, in the order of their reads in the query.
        known: What the checkpoint has, by its names, in the order that the reads had; `None` where
            it says nothing but the name.

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
    pairs, is_sure = _with_alike(pairs, now, told)
    new = sorted(now.keys() - pairs.keys())
    left = sorted(known.keys() - set(pairs.values()))
    is_files = any(traits.is_files for traits in now.values())
    if new and is_files and not is_sure:
        # The files that a changed read took may be those that a further one takes.
        raise CheckpointSourceChangedError.from_unclear(place, now=_shown(now, new))
    if len(new) < len(left):
        if is_files:
            # What would be noted of the others must not count when the read is back.
            patterns = (name for name in left if name.startswith(f"{place} "))
            raise CheckpointSourceChangedError.from_removed_read(
                place, removed=patterns, now=_shown(now, now, are_all=True)
            )
        # The one that is gone may be a table that is read by another path now.
        return pairs
    if left:
        if len(new) > 1:
            raise CheckpointSourceChangedError.from_unclear(place, now=_shown(now, new))
        pairs |= zip(new, left, strict=True)
    elif new and any(_has_fewer_reads(now[name], told.get(pairs[name])) for name in pairs):
        raise CheckpointSourceChangedError.from_parted(place, now=_shown(now, new))
    if not _keeps_options(now, told, pairs) and not _keeps_order(now, known, pairs):
        # A read may have got the options that another had so far.
        raise CheckpointSourceChangedError.from_moved(place, now=_shown(now, now))
    return pairs


def _with_alike(
    paired: Mapping[str, str], now: Mapping[str, StreamTraits], told: Mapping[str, StreamTraits]
) -> tuple[dict[str, str], bool]:
    """Add pairs of streams that are alike; and say whether each of them is in all its options."""
    pairs, is_sure = {**paired}, True
    for level in range(max((len(traits.digests) for traits in told.values()), default=0)):
        ours, before = _by_digest(now, level, pairs), _by_digest(told, level, pairs.values())
        for digest in ours.keys() & before.keys():
            is_clear = len(ours[digest]) == 1 or not level
            # Those that differ in secrets alone are taken to have read the same.
            if is_clear and len(ours[digest]) == len(before[digest]):
                pairs |= zip(ours[digest], before[digest], strict=True)
                is_sure = is_sure and not level
    return pairs, is_sure


def _keeps_options(
    now: Mapping[str, StreamTraits], told: Mapping[str, StreamTraits], pairs: Mapping[str, str]
) -> bool:
    """Whether there are no streams but those that there were, with all that tells them apart."""
    return all(name in pairs and told.get(pairs[name]) == traits for name, traits in now.items())


def _keeps_order(now: Iterable[str], known: Iterable[str], pairs: Mapping[str, str]) -> bool:
    """Whether streams that go on are read in the order that they had, and new ones after them."""
    ordered = [name for name in known if name in pairs.values()]
    return [pairs.get(name) for name in now][: len(ordered)] == ordered


def _has_fewer_reads(traits: StreamTraits, before: StreamTraits | None) -> bool:
    return before is not None and traits.reads < before.reads


def _shown(
    streams: Mapping[str, StreamTraits], names: Iterable[str], *, are_all: bool = False
) -> list[str]:
    """Some of the streams of one place, by all their options, or by those that tell them apart."""
    values: dict[str, set[str | None]] = {
        key: {traits.options.get(key) for traits in streams.values()}
        for traits in streams.values()
        for key in traits.options
    }
    return [
        _with_options(
            streams[name],
            {
                key: value
                for key, value in sorted(streams[name].options.items())
                if len(values[key]) > 1 or (are_all and key not in _COLUMNS)
            },
        )
        for name in names
    ]


def _with_options(stream: StreamTraits, options: Mapping[str, str]) -> str:
    if not options:
        return stream.place
    given = ", ".join(f"{key} => '{_cut(value)}'" for key, value in options.items())
    return f"{stream.place} ({given})"


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


def _cut(value: str) -> str:
    return value if len(value) <= _SHOWN_SIGNS else f"{value[: _SHOWN_SIGNS - 3]}..."


def _digest(values: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]
