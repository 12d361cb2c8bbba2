"""From an input message to its output message, through dynamics_node and through a bare node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.ros.processes import traffic
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section

OURS, BARE = "dynamics_node", "bare_node"
_PEER = "bare rclpy node"
_MUST = {50.0: ("median latency", 1.25), 99.0: ("99th percentile", 1.5)}


class Passage(NamedTuple):
    """What became of the messages that a node was sent."""

    latencies: Array  # (turns, samples) [s]; NaN for a message without answer
    repeated: int  # answers that came more than once

    @property
    def lost(self) -> int:
        """Messages without an answer."""
        return int(np.isnan(self.latencies).sum())

    def percentile(self, percent: float) -> float:
        """Return a percentile over all messages [s]."""
        return float(np.nanpercentile(self.latencies, percent))

    def by_turn(self, percent: float) -> Array:
        """Return a percentile of each turn [s]."""
        return np.asarray(np.nanpercentile(self.latencies, percent, axis=1))


def measure(rate: float, turns: int, folder: Path, say: Callable[[str, float], None]) -> dict[str, Passage]:
    """Send both nodes `turns` turns of a second each at `rate` [Hz], in one run."""
    with traffic(folder, rate, turns, (OURS, BARE)) as (sender, _):
        say("latency: waiting for the nodes", 0.0)
        for line in sender.lines():
            if line.startswith("turn"):
                _, done, _, total = line.split()
                say(f"latency: {done} of {total} turns", int(done) / int(total))
        sender.wait()
        say("latency", 1.0)
    return {name: read_passage(folder / "traffic.npz", name, turns) for name in (OURS, BARE)}


def read_passage(file: Path, name: str, turns: int) -> Passage:
    """Return what became of the messages to a node, from what the traffic has written."""
    with np.load(file) as arrays:
        sent, arrived = arrays[f"{name} sent"], arrays[f"{name} arrived"]
        latencies = np.where(arrived > 0, 1e-9 * (arrived - sent), np.nan)
        return Passage(latencies.reshape(turns, -1), int(arrays[f"{name} repeated"]))


def section(passages: dict[str, Passage], rate: float) -> Section:
    """Return the rows: ratios of percentiles over all messages, their spread over the turns, and losses."""
    ours, bare = passages[OURS], passages[BARE]
    rows = []
    for percent, (work, limit) in _MUST.items():
        mine, theirs = ours.percentile(percent), bare.percentile(percent)
        spread = Figure.of(ours.by_turn(percent) / bare.by_turn(percent))
        result = Figure(mine / theirs, spread.low, spread.high)
        rows.append(Row(work, _PEER, result, mine, theirs, must=Bound(limit)))
    for name, passage in passages.items():
        lost = float(passage.lost + passage.repeated)
        judged = Bound(0.0) if name == OURS else None
        rows.append(
            Row(
                f"lost or repeated of {passage.latencies.size} to {name}",
                "none",
                Figure(lost, lost, lost),
                must=judged,
                unit="messages",
            )
        )
    return Section(f"dynamics_node at {rate:g} Hz, input to output message", rows)
