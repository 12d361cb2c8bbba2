"""A picture of how far the fastest motion along a path uses the limits, beside the one of even speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hodyn_ros.pictures import joint_style, legend_below, plain, save_picture
from hodyn_ros.planning.time_optimal.planner import TimeOptimal


def draw_plan(plan: TimeOptimal, title: str, path: Path) -> Path:
    """Draw the share of each limit over the path, before and after: a row per quantity, a line per joint."""
    columns = [binding.column for binding in plan.bindings]
    quantities = list(dict.fromkeys(column.quantity for column in columns))
    joints = list(dict.fromkeys(column.joint for column in columns))
    figure = Figure(figsize=(11.0, 1.6 + 1.75 * (len(quantities) + 1)), layout="constrained")
    axes = figure.subplots(len(quantities) + 1, 2, sharex=True, sharey="row", squeeze=False)
    place = 100.0 * (plan.places - plan.places[0]) / (plan.places[-1] - plan.places[0])
    sides = (
        (f"even speed: {plan.even_duration:.2f} s", plan.even_usage),
        (f"time-optimal: {plan.duration:.2f} s", plan.usage),
    )
    lines = {}
    for side, (name, usage) in enumerate(sides):
        axes[0, side].set_title(name, fontsize=11)
        for row, quantity in enumerate(quantities):
            ax = axes[row, side]
            for i, column in enumerate(columns):
                if column.quantity == quantity:
                    colour, dashes = joint_style(joints.index(column.joint))
                    share = 100.0 * usage[:, i]
                    lines[column.joint] = ax.plot(place, share, dashes, color=colour, linewidth=1.1)[0]
            ax.axhline(100.0, color="black", linewidth=0.9)
            ax.set_ylim(0.0, 108.0)
            if not side:
                ax.set_ylabel(f"{quantity}\n% of limit", fontsize=8)
    length = plan.places[-1] - plan.places[0]
    even = np.full_like(place, length / plan.even_duration)
    fast = np.sqrt(plan.law.squared_speeds_at(plan.places))
    for side, speed in enumerate((even, fast)):
        axes[-1, side].plot(place, 100.0 * speed / length, color="black", linewidth=1.2)
        axes[-1, side].set_xlabel("path [%]")
    axes[-1, 0].set_ylim(0.0, 105.0 * max(even.max(), fast.max()) / length)
    axes[-1, 0].set_ylabel("path speed\n%/s", fontsize=8)
    for ax in axes.ravel():
        ax.set_xlim(0.0, 100.0)
        plain(ax)
    shown = [joint for joint in joints if joint in lines]
    legend_below(figure, [lines[joint] for joint in shown], shown)
    figure.suptitle(title, fontsize=12)
    return save_picture(figure, path)
