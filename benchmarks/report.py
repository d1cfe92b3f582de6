"""A suite's figures as a Markdown table, with words for a peer that was wrong or failed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.peers import PEERS

HEADINGS = (
    "tool",
    "s a batch, median (min to max)",
    "ratio",
    "start, s",
    "peak MB",
    "MB written a batch",
    "MB alive",
    "full read, s",
    "read of a key, ms",
)
MEGABYTE = 1_000_000


def markdown(found: dict[str, Any]) -> str:
    """The table of a suite. Ratios are to millpond's flow, or to the first that was right."""
    base = base_seconds(found)
    lines = [
        f"### {found['suite']}: {found['title']}",
        "",
        (
            f"{found['workload']}. Scale {found['scale']:g}, {found['rounds']} "
            f"{'round' if found['rounds'] == 1 else 'rounds'}, {found['date']}."
        ),
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|" + "---:|" * (len(HEADINGS) - 1),
    ]
    lines += [_row(peer, outcome, found, base) for peer, outcome in found["peers"].items()]
    return "\n".join(lines)


def matrix(cells: Sequence[dict[str, Any]]) -> str:
    """Suites of one batch each in a table: a row for each, a column for each tool."""
    peers = list(dict.fromkeys(peer for found in cells for peer in found["peers"]))
    sizes = sorted({(found["into"], found["scale"]) for found in cells})
    lines = [
        *(f"One batch, the second of its process, into {into}. Scale {s:g}." for into, s in sizes),
        "",
        "| seconds a batch | " + " | ".join(PEERS[peer].label for peer in peers) + " |",
        "|---|" + "---:|" * len(peers),
    ]
    for found in cells:
        outcomes = (found["peers"].get(peer) for peer in peers)
        lines.append(f"| {found['title']} | " + " | ".join(map(_brief, outcomes)) + " |")
    return "\n".join(lines)


def _brief(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    return f"{middle(outcome):.3f}" if outcome["state"] == "ok" else f"**{outcome['state']}**"


def _row(peer: str, outcome: dict[str, Any], found: dict[str, Any], base: float | None) -> str:
    label = PEERS[peer].label
    if outcome["state"] != "ok":
        words = f"**{outcome['state']}**: {_cell(outcome['reason'])}"
        return f"| {label} | {words} |" + " |" * (len(HEADINGS) - 2)
    if outcome["batches"] < found["batches"]:
        label += f" (time was up after {outcome['batches']} of {found['batches']} batches)"
    seconds = seconds_of(outcome)
    cells = [
        label,
        f"{middle(outcome):.3f} ({min(seconds):.3f} to {max(seconds):.3f})",
        f"{middle(outcome) / base:.1f}" if base else "",
        f"{statistics.median(outcome['start_s']):.1f}",
        f"{peak_bytes(outcome) / MEGABYTE:,.0f}",
        _megabytes(written_bytes(outcome)),
        _megabytes(outcome["alive_bytes"]),
        _full_read(outcome),
        f"{outcome['point_s'] * 1000:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _full_read(outcome: dict[str, Any]) -> str:
    text = f"{outcome['scan_s']:.3f}"
    if fresh := outcome.get("fresh_scan_s"):
        text += f" ({outcome['scan_s'] / fresh:.2f} of a fresh table's)"
    return text


def base_seconds(found: dict[str, Any]) -> float | None:
    right = {peer: one for peer, one in found["peers"].items() if one["state"] == "ok"}
    first = right.get("millpond") or next(iter(right.values()), None)
    return middle(first) if first else None


def seconds_of(outcome: dict[str, Any]) -> list[float]:
    """All batches of all rounds."""
    return [second for one in outcome["seconds"] for second in one]


def middle(outcome: dict[str, Any]) -> float:
    return statistics.median(seconds_of(outcome))


def peak_bytes(outcome: dict[str, Any]) -> float:
    return statistics.median(outcome["peak_bytes"])


def written_bytes(outcome: dict[str, Any]) -> float | None:
    """For each batch: what the system saw go to disks, or what the folder grew by."""
    totals = [
        grown if written is None else written
        for written, grown in zip(outcome["written_bytes"], outcome["grown_bytes"], strict=True)
    ]
    return statistics.median(totals) / outcome["batches"] if totals else None


def _megabytes(size: float | None) -> str:
    if size is None:
        return ""
    return f"{size / MEGABYTE:,.0f}" if size >= 100 * MEGABYTE else f"{size / MEGABYTE:.2f}"


def _cell(text: str) -> str:
    without_addresses = re.sub(r"https?://\S+", "(an address)", text)
    return without_addresses.replace("|", "\\|").replace("\n", " ")
