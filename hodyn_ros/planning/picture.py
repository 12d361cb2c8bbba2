"""A picture of how far a motion uses the limits of a robot."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from matplotlib.figure import Figure

from hodyn_ros.pictures import joint_style, legend_below, plain, save_picture
from hodyn_ros.planning.check import Report

_COLUMNS = 2


def draw_usage(report: Report, title: str, path: Path) -> Path:
    """Draw the share of each limit over time [s], one graph per quantity, one line per joint."""
    quantities = list(dict.fromkeys(finding.column.quantity for finding in report.findings))
    joints = list(dict.fromkeys(finding.column.joint for finding in report.findings))
    rows = ceil(len(quantities) / _COLUMNS)
    figure = Figure(figsize=(11.0, 1.2 + 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, _COLUMNS, sharex=True, squeeze=False)
    for ax, quantity in zip(axes.ravel(), quantities):
        highest = 0.0
        for place, finding in enumerate(report.findings):
            if finding.column.quantity != quantity:
                continue
            colour, dashes = joint_style(joints.index(finding.column.joint))
            share = 100.0 * report.usage[:, place]
            ax.plot(report.times, share, dashes, color=colour, linewidth=1.3, label=finding.column.joint)
            if finding.violated:
                ax.plot(finding.time, 100.0 * finding.usage, "v", color=colour, markersize=7)
            highest = max(highest, 100.0 * finding.usage)
        ax.axhline(100.0, color="black", linewidth=1.0)
        ax.axhspan(100.0, max(115.0, 1.1 * highest), color="#CC3311", alpha=0.08)
        ax.set_ylim(0.0, max(115.0, 1.1 * highest))
        ax.set_xlim(report.times[0], report.times[-1])
        ax.set_title(f"{quantity}, % of its limit", loc="left", fontsize=10)
        plain(ax)
    for ax in axes.ravel()[len(quantities) :]:
        ax.set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    if len(quantities) % _COLUMNS:
        axes[-2, -1].tick_params(labelbottom=True)
        axes[-2, -1].set_xlabel("time [s]")
    handles = {str(line.get_label()): line for ax in axes.ravel() for line in ax.lines}
    shown = [name for name in joints if name in handles]
    legend_below(figure, [handles[name] for name in shown], shown)
    figure.suptitle(title, fontsize=12)
    return save_picture(figure, path)
