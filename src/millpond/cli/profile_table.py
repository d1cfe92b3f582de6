"""`millpond run --profile`: a table of where the time of an update went."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from millpond.cli.grid import Column, print_grid
from millpond.cli.wording import duration
from millpond.profiling import Profile

COLUMNS = (
    Column("Flow"),
    Column("Phase"),
    Column("Seconds", is_number=True),
    Column("Share", is_number=True),
    Column("Times", is_number=True),
)
# What took less is not shown.
SHOWN_S = 0.0005
# What shows of a flow's name for what is done outside of flows.
NO_FLOW = "(update)"


@contextmanager
def profiled(shorten: Callable[[str], str]) -> Iterator[None]:
    """Take a profile of what runs within, and print it at the end, however that comes.

    Args:
        shorten: Makes names of flows shorter for people.
    """
    profile, before_s = Profile(), time.process_time()
    # Until here the program was read by a single thread, which waited for little.
    profile.add(None, "start program", before_s)
    began_s = time.perf_counter()
    try:
        with profile.taken():
            yield
    finally:
        total_s = before_s + time.perf_counter() - began_s
        click.echo(f"\nWhere {duration(total_s)} went:")
        print_grid(COLUMNS, rows(profile, total_s, shorten))


def rows(profile: Profile, total_s: float, shorten: Callable[[str], str]) -> list[list[str]]:
    """What the update did itself, then each flow, in the order in which they began."""
    flows = list(dict.fromkeys(flow for flow, _ in profile.spent if flow is not None))
    return [
        [
            NO_FLOW if flow is None else shorten(flow),
            name,
            f"{spent.seconds:.3f}",
            f"{spent.seconds / total_s:.0%}",
            f"{spent.times:,}",
        ]
        for shown in (None, *flows)
        for (flow, name), spent in profile.spent.items()
        if flow == shown and spent.seconds >= SHOWN_S
    ]
