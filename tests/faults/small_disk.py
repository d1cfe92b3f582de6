"""A disk of a few megabytes that can be filled: a tmpfs in a mount namespace, for root and others.

Where no namespace can be had, as in some containers, the kernel limits how large files get instead.
That is no full disk, but another real one of its kind: writes fail at some file, half done.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SIZE_BYTES = 64 * 1024 * 1024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Ways to get a namespace in which a file system can be mounted: as root, and as anybody.
WAYS = (("--mount",), ("--user", "--map-root-user", "--mount"))
MOUNT = f'mount -t tmpfs -o size={SIZE_BYTES} none "$0" && echo ready && exec cat'
# Of `ulimit -f`, as POSIX has it.
BLOCK_BYTES = 512


def limited(what: str, to: int) -> Sequence[str]:
    """A command that runs another with a limit of the kernel's, named as by `ulimit`."""
    return ("sh", "-c", f'ulimit -{what} {to} && exec "$0" "$@"')


@dataclass(frozen=True)
class SmallDisk:
    """A disk at a path.

    Attributes:
        point: Under this path the program sees it.
        seen: Under this one the tests do.
        inside: A command that runs another where the disk is.
        too_few_bytes: So few are not enough for a first update, by far.
    """

    point: Path
    seen: Path
    inside: Sequence[str]
    too_few_bytes: int = 150_000

    def leave(self, size_bytes: int) -> Sequence[str]:
        """Fill it up to so many bytes, whole pages; give what to run a command with."""
        self.clear()
        found = os.statvfs(self.seen)
        ballast = found.f_bavail * found.f_frsize - size_bytes // PAGE_BYTES * PAGE_BYTES
        with (self.seen / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, ballast)
        return ()

    def read_only(self, *, is_so: bool = True) -> None:
        """Let nothing be written to it, or anything again."""
        mode = "ro" if is_so else "rw"
        subprocess.run([*self.inside, "mount", "-o", f"remount,{mode}", self.point], check=True)

    def clear(self) -> None:
        (self.seen / "ballast").unlink(missing_ok=True)


@dataclass(frozen=True)
class LimitedFiles:
    """Files that can't be longer than the kernel lets the process make them.

    Attributes:
        too_few_bytes: So few are not enough for the events of an update, by far.
    """

    seen: Path
    inside: Sequence[str] = ()
    too_few_bytes: int = 8_000

    def leave(self, size_bytes: int) -> Sequence[str]:
        """Limit files to so many bytes; Python ignores the signal that would end the process."""
        return limited("f", size_bytes // BLOCK_BYTES)

    def clear(self) -> None:
        """Nothing is left of it."""


@contextmanager
def small_disk(point: Path) -> Iterator[SmallDisk | None]:
    """Mount a disk at a folder, which only it and what runs inside see; `None` if there is no way."""
    for way in WAYS:
        holder = subprocess.Popen(
            ["unshare", *way, "sh", "-c", MOUNT, point],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with holder:
            assert holder.stdout is not None
            if holder.stdout.readline() != "ready\n":
                continue
            seen = Path(f"/proc/{holder.pid}/root{point}")
            enter = ("--user", "--preserve-credentials") if "--user" in way else ()
            yield SmallDisk(
                point, seen, ("nsenter", f"--target={holder.pid}", "--mount", *enter, "--")
            )
            return
    yield None
