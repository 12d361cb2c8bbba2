"""The fastest motion along a path in words: which limit binds where, and what a larger one would bring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rich.box import SIMPLE
from rich.table import Table

from hodyn_ros.planning.report import percent
from hodyn_ros.planning.time_optimal.planner import TimeOptimal
from hodyn_ros.tables import number

_BINDS = 0.99  # of a limit
_MORE = 0.1  # by which limits are thought larger


class Stretch(NamedTuple):
    """A stretch of a motion in which one limit is used most."""

    start: float  # [s]
    end: float  # [s]
    binding: int | None  # None where no limit is touched


def stretches(plan: TimeOptimal) -> list[Stretch]:
    """Return which limit binds from when to when, in order of time."""
    times = plan.law.times_at(plan.places)
    most = np.argmax(plan.usage, axis=1)
    touched = plan.usage[np.arange(len(most)), most] >= _BINDS
    which = np.where(touched, most, -1)
    starts = np.flatnonzero(np.diff(which, prepend=-2))
    ends = np.append(starts[1:], len(which) - 1)
    return [
        Stretch(float(times[start]), float(times[end]), None if which[start] < 0 else int(which[start]))
        for start, end in zip(starts, ends)
    ]


def bindings_table(plan: TimeOptimal) -> Table:
    """Return a table of the limits that bind, those first that a larger value would bring most for."""
    held = np.zeros(len(plan.bindings))
    for stretch in stretches(plan):
        if stretch.binding is not None:
            held[stretch.binding] += stretch.end - stretch.start
    table = Table(
        caption=f"gain: what {percent(_MORE)} more of the limit would save, to first order", box=SIMPLE
    )
    table.add_column("limit, joint", overflow="fold")
    for head in (r"limit", "used", "binds for", r"gain \[s]"):
        table.add_column(head, justify="right", no_wrap=True)
    order = sorted(range(len(held)), key=lambda i: -plan.bindings[i].gain)
    for i in order:
        binding = plan.bindings[i]
        if binding.usage < _BINDS:
            continue
        column = binding.column
        table.add_row(
            f"{column.quantity} of {column.joint}",
            f"{number(column.upper, 5)} {column.unit}",
            percent(binding.usage),
            percent(held[i] / plan.duration),
            number(_MORE * binding.gain, 3),
        )
    return table


def outcome(plan: TimeOptimal) -> str:
    """Return in one line how long the motion lasts."""
    share = plan.duration / plan.even_duration
    if share >= 1.0:  # an end that is given may be slower than the path at even speed
        return f"the motion lasts {plan.duration:.4f} s"
    return (
        f"the motion lasts {plan.duration:.4f} s, {share:.3f} of the {plan.even_duration:.4f} s that it "
        "takes where its path parameter runs evenly"
    )
