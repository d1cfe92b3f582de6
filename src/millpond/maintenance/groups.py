"""Which data files are written anew together: small ones, and those of which much is deleted.

The rules, which docs/decisions/0012 explains with figures:

- A file is *small* if the rows that are left of it take less than half of the size aimed at. The
  smallest ones of a partition are merged once there are enough of them, as many as can be so that
  the largest is no larger than the others together. So a row is written again only when its file
  at least doubles, and how often is logarithmic, as is the number of files that are left.
- A file is *worn* if more than a certain share of its rows is deleted. It is written anew, with
  the small ones where they are merged, else by itself.
- Files that are merged go by their lowest key, so that those which lie side by side stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from millpond.delta import AddFile, Snapshot


@dataclass(frozen=True)
class Thoroughness:
    """From when on rewriting files pays.

    Attributes:
        min_files: So many small files are merged, fewer are left alone.
        worn_share: A file of which a larger share is deleted is written anew.
        worn_bytes: Of smaller files nobody asks; they are soon merged.
        doubles: Whether a small file waits until smaller ones add up to its size.
        share_of_target: How large files are to become, as a share of the table's target size.
    """

    min_files: int
    worn_share: float
    worn_bytes: int
    doubles: bool
    share_of_target: float


# While an update runs: rarely enough to cost little, and little at once, which memory can sort.
AUTOMATIC = Thoroughness(
    min_files=8, worn_share=0.2, worn_bytes=1024 * 1024, doubles=True, share_of_target=0.25
)
# When a person asks: as Delta's OPTIMIZE.
BY_HAND = Thoroughness(
    min_files=2, worn_share=0.05, worn_bytes=0, doubles=False, share_of_target=1.0
)


@dataclass(frozen=True)
class Group:
    """Files of one partition whose rows are written anew together."""

    files: tuple[AddFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def live_bytes(self) -> int:
        return sum(map(live_bytes, self.files))

    @property
    def vectors(self) -> int:
        return sum(file.deletion_vector is not None for file in self.files)


def groups_due(
    snapshot: Snapshot,
    thoroughness: Thoroughness,
    *,
    target_bytes: int,
    sorted_by: Sequence[str] = (),
) -> Iterator[Group]:
    """Give the groups of files that it pays to write anew, each of the size aimed at, at most.

    Args:
        target_bytes: The table's target size.
        sorted_by: The columns that the rows of a group are sorted by.
    """
    aim_bytes = round(target_bytes * thoroughness.share_of_target)
    for files in _by_partition(snapshot.files.values()):
        small = _small(files, thoroughness, aim_bytes=aim_bytes)
        merged = {file.path for file in small}
        yield from _cut(_in_order(small, sorted_by), aim_bytes)
        for file in files:
            if file.path not in merged and _is_worn(file, thoroughness):
                yield Group((file,))


def live_bytes(file: AddFile) -> int:
    """About how much of a file the rows take that are not deleted."""
    return round(file.size_bytes * (1 - deleted_share(file)))


def deleted_share(file: AddFile) -> float:
    """Which part of a file's rows is deleted."""
    if file.deletion_vector is None or file.stats is None or not file.stats.num_records:
        return 0.0
    return file.deletion_vector.cardinality / file.stats.num_records


def _by_partition(files: Iterable[AddFile]) -> list[list[AddFile]]:
    found: dict[frozenset[tuple[str, str | None]], list[AddFile]] = {}
    for file in files:
        found.setdefault(frozenset(file.partition_values.items()), []).append(file)
    return list(found.values())


def _small(
    files: Sequence[AddFile], thoroughness: Thoroughness, *, aim_bytes: int
) -> list[AddFile]:
    """The small files of a partition that are merged; none if they are too few."""
    sized = sorted(
        ((live_bytes(file), file) for file in files if live_bytes(file) < aim_bytes / 2),
        key=lambda pair: pair[0],
    )
    together = chosen = 0
    for number, (size, _) in enumerate(sized, start=1):
        if number >= thoroughness.min_files and (size <= together or not thoroughness.doubles):
            chosen = number
        together += size
    return [file for _, file in sized[:chosen]]


def _is_worn(file: AddFile, thoroughness: Thoroughness) -> bool:
    return (
        file.size_bytes >= thoroughness.worn_bytes and deleted_share(file) > thoroughness.worn_share
    )


def _in_order(files: Iterable[AddFile], sorted_by: Sequence[str]) -> list[AddFile]:
    """Files by their lowest key, or where rows are not sorted, as they came."""
    as_they_came = sorted(files, key=lambda file: (file.modification_time_ms, file.path))
    if not sorted_by:
        return as_they_came
    try:
        return sorted(as_they_came, key=lambda file: _lowest(file, sorted_by[0]))
    except TypeError:  # Statistics of one column, but of several kinds.
        return as_they_came


def _lowest(file: AddFile, column: str) -> tuple[bool, Any]:
    low = file.stats.min_values.get(column) if file.stats is not None else None
    return (low is not None, low)


def _cut(files: Sequence[AddFile], aim_bytes: int) -> Iterator[Group]:
    """Groups of files next to each other that are no larger than so many bytes together."""
    groups: list[list[AddFile]] = [[]]
    together = 0
    for file in files:
        if groups[-1] and together + live_bytes(file) > aim_bytes:
            groups.append([])
            together = 0
        groups[-1].append(file)
        together += live_bytes(file)
    for group in groups:
        if len(group) > 1 or any(file.deletion_vector for file in group):
            yield Group(tuple(group))
