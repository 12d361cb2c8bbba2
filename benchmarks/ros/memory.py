"""The memory of dynamics_node while it answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.ros.latency import OURS
from benchmarks.ros.processes import DYNAMICS_NODE, in_namespace, traffic
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section

_WARM_UP = 0.1  # of the time that counts, and before it; at most a minute


def measure(rate: float, minutes: float, folder: Path, say: Callable[[str, float], None]) -> Array:
    """Return the resident memory [MiB] of dynamics_node after each second at `rate` [Hz], once warmed up."""
    counted = max(10, round(60.0 * minutes))
    warm_up = min(60, round(_WARM_UP * counted))
    seconds = warm_up + counted
    resident = []
    with traffic(folder, rate, seconds, {OURS: in_namespace(DYNAMICS_NODE, OURS)}) as (sender, nodes):
        say("memory: waiting for the node", 0.0)
        for line in sender.lines():
            if line.startswith("turn"):
                resident.append(nodes[OURS].resident())
                say(f"memory: {len(resident)} of {seconds} s", len(resident) / seconds)
        sender.wait()
        say("memory", 1.0)
    return np.array(resident[warm_up:])


def section(resident: Array) -> Section:
    """Return the row: the most that it ever grew above what it was at first."""
    growth = resident - resident[0]
    result = Figure(float(growth.max()), float(growth.min()), float(growth.max()))
    work = f"growth within {len(growth) / 60.0:.1f} minutes, once warmed up"
    against = f"{resident[0]:.1f} MiB in use"
    return Section("memory of dynamics_node", [Row(work, against, result, must=Bound(1.0), unit="MiB")])
