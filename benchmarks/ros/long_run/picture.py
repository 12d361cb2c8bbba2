"""A long run as a picture: delays, memory and processors over its minutes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.ros.long_run.result import ANSWERS, COMMANDS, LongRun

_LONGEST = 60.0  # [s] of a part of the time
_PERCENTS = {50.0: ("median", "-"), 99.0: ("99 %", "--"), 100.0: ("latest", ":")}
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def draw(runs: Sequence[LongRun], path: Path) -> None:
    """Draw one column for each run."""
    figure = Figure(figsize=(5.4 * len(runs) + 2.6, 9.0), layout="constrained")
    axes = figure.subplots(3, len(runs), squeeze=False, sharex="col", sharey="row")
    for run, (late, memory, processor) in zip(runs, axes.T):
        late.set_title(f"{run.name}, {run.seconds / 60.0:.0f} min")
        _draw_delays(late, run)
        for colour, (name, each) in zip(_COLOURS, run.memory.items()):
            memory.plot(run.times / 60.0, each, color=colour, label=name)
            processor.step(run.times[1:] / 60.0, run.processor[name], color=colour, label=name)
        processor.set_xlabel("time [min]")
    for row, title in zip(axes, ("delay [ms]", "memory in use [MiB]", "processors in use")):
        row[0].set_ylabel(title)
        row[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for ax in row:
            ax.grid(True, alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[1]:
        ax.set_ylim(bottom=0.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_delays(ax: Axes, run: LongRun) -> None:
    part = min(_LONGEST, max(1.0, run.seconds / 40.0))
    edges = np.arange(0.0, run.seconds + part, part)
    for colour, way in zip(_COLOURS, (*ANSWERS, COMMANDS[0])):
        place = np.digitize(run.delays_at[way], edges) - 1
        groups = [1e3 * run.delays[way][place == k] for k in range(len(edges) - 1)]
        for percent, (words, style) in _PERCENTS.items():
            figures = [
                np.percentile(group[np.isfinite(group)], percent) if np.isfinite(group).any() else np.nan
                for group in groups
            ]
            label = f"{way}, {words}"
            ax.plot((edges[:-1] + 0.5 * part) / 60.0, figures, style, color=colour, label=label)
    ax.set_yscale("log")
