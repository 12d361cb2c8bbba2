"""A picture of where two recordings differ."""

from __future__ import annotations

from math import ceil, inf
from pathlib import Path

from matplotlib.figure import Figure

from hodyn_ros.bags.comparison.compare import Comparison
from hodyn_ros.pictures import plain, save_picture

_MOST = 12  # graphs; the fields that differ most are shown
_COLUMNS = 2


def draw_differences(comparison: Comparison, title: str, path: Path) -> Path:
    """Draw the largest absolute difference of each field over time [s], one graph per field.

    Messages that only one recording has, texts and lengths that differ are marks in a graph of their own.
    """
    graphs = [
        (f"{topic}: {name}", [(time, size) for time, size in difference.series if 0.0 < size < inf])
        for topic, differing in comparison.topics.items()
        for name, difference in sorted(differing.fields.items(), key=lambda item: -item[1].relative)
    ]
    graphs = [(name, series) for name, series in graphs if series][:_MOST]
    marks = _marks(comparison)
    used = len(graphs) + bool(marks)
    rows = ceil(used / _COLUMNS)
    figure = Figure(figsize=(11.0, 1.0 + 2.3 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS, sharex=True, squeeze=False).ravel())
    for ax, (name, series) in zip(axes, graphs):
        ax.semilogy(*zip(*series), ".", color="#4477AA", markersize=3)
        ax.set_title(name, loc="left", fontsize=9)
    if marks:
        ax = axes[len(graphs)]
        for place, (_, instants) in enumerate(marks):
            ax.plot(instants, [place] * len(instants), "|", color="#EE6677", markersize=12)
        ax.set_yticks(range(len(marks)), [name for name, _ in marks], fontsize=8)
        ax.set_ylim(-0.6, len(marks) - 0.4)
        ax.set_title("what is not a difference of numbers", loc="left", fontsize=9)
    for ax in axes[:used]:
        plain(ax)
    for ax in axes[used:]:
        ax.set_visible(False)
    for ax in axes[max(0, used - _COLUMNS) : used]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel("time [s]")
    figure.suptitle(f"{title}: largest absolute difference of each field", fontsize=12)
    return save_picture(figure, path)


def _marks(comparison: Comparison) -> list[tuple[str, list[float]]]:
    """Return instants that have no place on an axis of sizes, by what they are."""
    marks: list[tuple[str, list[float]]] = []
    for name, topic in comparison.topics.items():
        short = name.rpartition("/")[2]
        marks += [
            (f"{short}\nonly in the first", topic.missing.times),
            (f"{short}\nonly in the second", topic.extra.times),
        ]
        marks += [
            (f"{short}\n{field}", [time for time, size in differing.series if size in (0.0, inf)])
            for field, differing in topic.fields.items()
        ]
    return [(name, times) for name, times in marks if times]
