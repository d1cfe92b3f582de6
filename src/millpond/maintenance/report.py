"""What looking after a table came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Report:
    """Counts; those of several passes add up.

    Attributes:
        files_compacted: Data files whose rows went into other files.
        files_written: Those files.
        bytes_compacted: Size of the files that were rewritten.
        bytes_written: Size of the files that their rows are in now.
        vectors_purged: Deletion vectors that are gone with the files rewritten.
        files_removed: Files on disk that no version within the retention time names.
        bytes_removed: Their size.
        log_files_removed: Old entries and checkpoints of the log.
        checkpoints_written: Checkpoints of the log.
        given_up: Rewrites that were discarded because another writer changed the same files.
    """

    files_compacted: int = 0
    files_written: int = 0
    bytes_compacted: int = 0
    bytes_written: int = 0
    vectors_purged: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    log_files_removed: int = 0
    checkpoints_written: int = 0
    given_up: int = 0

    def __add__(self, other: Report) -> Report:
        names = [field.name for field in fields(self)]
        return Report(*(getattr(self, name) + getattr(other, name) for name in names))

    def counts(self) -> dict[str, int]:
        """What there is to say, by name, without zeros."""
        return {name: count for name, count in asdict(self).items() if count}

    def __bool__(self) -> bool:
        """Whether anything was done."""
        return self != Report()
