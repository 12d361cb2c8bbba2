"""Eight robots in one process, each asked at a kilohertz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.ros.latency import Passage, asked
from benchmarks.ros.processes import arms_node
from benchmarks.stopwatch import Figure
from benchmarks.table import Bound, Row, Section

ARMS = 8
_PACE = 0.99  # of the rate, at least: else the machine was too busy to ask


def measure(rate: float, turns: int, folder: Path, say: Callable[[str, float], None]) -> dict[str, Passage]:
    """Ask all robots of a process at `rate` [Hz] each, `turns` times for a second."""
    group = "+".join(f"arm{k}" for k in range(ARMS))
    return asked({group: arms_node(ARMS)}, rate, turns, folder, say)


def section(passages: Mapping[str, Passage], rate: float, file: Path) -> Section:
    """Return the rows: losses, how often each was asked, and for the record latency and processor time."""
    found = list(passages.values())
    latencies = np.concatenate([each.latencies for each in found], axis=1)
    gone = float(sum(each.lost + each.repeated for each in found))
    with np.load(file) as arrays:
        sent = arrays["arm0 sent"].reshape(len(latencies), -1)
    pace = 1e9 * (sent.shape[1] - 1) / (sent[:, -1] - sent[:, 0])
    rows = [
        Row(
            f"lost or repeated of {latencies.size}",
            "none",
            Figure(gone, gone, gone),
            must=Bound(0.0),
            unit="messages",
        ),
        Row(
            "asked, each of them",
            f"{rate:g} Hz",
            Figure.of(pace),
            must=Bound(_PACE * rate, at_least=True),
            unit="Hz",
        ),
    ]
    for percent, work in ((50.0, "median latency"), (99.0, "99th percentile")):
        by_turn = np.nanpercentile(1e6 * latencies, percent, axis=1)
        rows.append(Row(work, "", Figure.of(by_turn), unit="µs"))
    busy = Figure.of(100.0 * rate * found[0].processor_time)
    rows.append(Row("processor time", "one core", busy, unit="%"))
    return Section(f"{ARMS} robots in one process at {rate:g} Hz each", rows)
