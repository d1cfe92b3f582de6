"""Numbers, durations and counts in the words of people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """How long something took.

    >>> duration(3.21), duration(125), duration(3780)
    ('3.2 s', '2 min 5 s', '1 h 3 min')
    """
    if round(seconds, 1) < 60:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def plural(number: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "flow"), plural(1200, "flow"), plural(2, "batch")
    ('1 flow', '1,200 flows', '2 batches')
    """
    if number != 1:
        noun += "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}"


def size(size_bytes: int) -> str:
    """How large something is on disk.

    >>> size(0), size(999), size(1234), size(134_217_728)
    ('0 B', '999 B', '1.2 kB', '134 MB')
    """
    value = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 9.95 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def short_count(number: int, *, limit: int) -> str:
    """A count in full below `limit`, else with three figures.

    >>> short_count(99_999, limit=100_000), short_count(1_234_567, limit=100_000)
    ('99,999', '1.23M')
    """
    if number < limit:
        return f"{number:,}"
    value = float(number)
    for unit in ("", "K", "M", "B"):
        if value < 999.5:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:,.0f}T"
