"""The distributions of the latencies, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.ros.latency import BARE, OURS, RCLCPP, Passage
from benchmarks.ros.load import ORDINARY, REALTIME
from benchmarks.table import duration

# Okabe and Ito's colours, which everybody can tell apart
_STYLES = {
    OURS: ("dynamics_node", "#0072B2"),
    BARE: ("bare rclpy node", "#E69F00"),
    RCLCPP: ("bare rclcpp node", "#009E73"),
    ORDINARY: ("ordinary scheduling", "#E69F00"),
    REALTIME: ("real-time settings", "#0072B2"),
}
_BINS = 160


def draw(passages: Mapping[str, Passage], path: Path) -> None:
    """Draw how the latencies are distributed, and how many messages are later than that."""
    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    shape, tail = figure.subplots(1, 2)
    samples = {
        name: 1e6 * np.sort(p.latencies[~np.isnan(p.latencies)])
        for name, p in passages.items()
        if name in _STYLES
    }
    low = min(float(each[0]) for each in samples.values())
    high = max(float(each[-1]) for each in samples.values())
    bins = np.geomspace(low, max(float(np.quantile(each, 0.999)) for each in samples.values()), _BINS)
    for name, each in samples.items():
        label, colour = _STYLES[name]
        median = float(np.median(each))
        shares = np.full(len(each), 100.0 / len(each))
        shape.hist(
            each,
            bins,
            weights=shares,
            color=colour,
            alpha=0.55,
            label=f"{label}, median {duration(median * 1e-6)}",
        )
        shape.axvline(median, color=colour, linewidth=1.5)
        later = 100.0 * (1.0 - np.arange(len(each)) / len(each))
        tail.step(each, later, color=colour, linewidth=1.8, label=label)
    tail.axhline(1.0, color="0.5", linewidth=1.0, linestyle=":")
    tail.text(low, 1.1, "99th percentile", ha="left", va="bottom", color="0.4", fontsize=9)
    shape.set_ylabel("messages [%]")
    tail.set_ylabel("messages that are later [%]")
    tail.set_yscale("log")
    tail.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for ax, place in ((shape, "upper right"), (tail, "lower left")):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        if high < 1000.0 * low:
            ax.xaxis.set_minor_formatter(FuncFormatter(_minor_label))
        else:
            ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel("from input to output message [µs]")
        ax.grid(True, which="both", alpha=0.2)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(framealpha=0.9, edgecolor="none", loc=place)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _minor_label(value: float, _: int) -> str:
    leading = round(value / 10 ** np.floor(np.log10(value)))
    return f"{value:g}" if leading in (2, 5) else ""
