"""Draws a suite's times as SVG, with matplotlib, in an environment that has it. Reads JSON."""

from __future__ import annotations

import json
import statistics
import sys


def main() -> None:
    import matplotlib as mpl

    mpl.use("svg")
    # Text stays text, and the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "millpond", "font.size": 9})
    import matplotlib.pyplot as plt

    order = json.load(sys.stdin)
    bars = order["bars"][::-1]
    figure, axes = plt.subplots(figsize=(8.5, 0.9 + 0.3 * len(bars)), layout="constrained")
    axes.set_xscale("log")
    right = [statistics.median(bar["seconds"]) for bar in bars if bar["state"] == "ok"]
    least = min(right, default=0.01) / 3
    for place, bar in enumerate(bars):
        if bar["state"] != "ok":
            axes.text(least * 1.1, place, bar["state"], va="center", color="#b03030", weight="bold")
            continue
        middle = statistics.median(bar["seconds"])
        own = bar["label"].startswith("millpond")
        axes.barh(place, middle - least, left=least, color="#2f6f9f" if own else "#b8bfc6")
        axes.plot([min(bar["seconds"]), max(bar["seconds"])], [place] * 2, color="#333333", lw=1)
        axes.text(max(bar["seconds"]) * 1.1, place, f"{middle:.3g} s", va="center")
    axes.set_yticks(range(len(bars)), [bar["label"] for bar in bars])
    axes.set_xlim(least, max([second for bar in bars for second in bar["seconds"]], default=1) * 4)
    axes.set_xlabel("seconds a batch, logarithmic: median, and a line from least to most")
    axes.set_title(order["title"], loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1], metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
