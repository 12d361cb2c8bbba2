"""From an input message to its output message, through dynamics_node and other nodes, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.ros.processes import BARE_NODE, DYNAMICS_NODE, MESSAGE_NODE, in_namespace, traffic
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section

OURS, BARE, MESSAGES, RCLCPP = "dynamics_node", "bare_node", "message_node", "rclcpp_node"
_PEERS = {BARE: "bare rclpy node", RCLCPP: "bare rclcpp node"}
_BOUNDS = {
    50.0: ("median latency", Bound(0.85), Bound(0.72)),
    99.0: ("99th percentile", Bound(1.0), None),
}


class Passage(NamedTuple):
    """What became of the messages that a node was sent."""

    latencies: Array  # (turns, samples) [s]; NaN for a message without answer
    repeated: int  # answers that came more than once
    processor_time: Array  # (turns,) [s] a sample

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


def measure(
    rate: float, turns: int, folder: Path, say: Callable[[str, float], None], rclcpp: Path | None = None
) -> dict[str, Passage]:
    """Send each node `turns` turns of a second each at `rate` [Hz], in one run; `rclcpp` is a bare node."""
    commands = {OURS: DYNAMICS_NODE, BARE: BARE_NODE, MESSAGES: MESSAGE_NODE}
    if rclcpp is not None:
        commands[RCLCPP] = [str(rclcpp)]
    return asked(
        {name: in_namespace(command, name) for name, command in commands.items()}, rate, turns, folder, say
    )


def asked(
    commands: Mapping[str, Sequence[str]],
    rate: float,
    turns: int,
    folder: Path,
    say: Callable[[str, float], None],
    settings: Sequence[str] = (),
) -> dict[str, Passage]:
    """Return what became of the messages to nodes that are asked in turns; see `traffic`."""
    used: dict[str, list[float]] = {name: [] for name in commands}
    with traffic(folder, rate, turns, commands, settings) as (sender, nodes):
        say(f"{folder.name}: waiting for the nodes", 0.0)
        before: dict[str, float] = {}
        for line in sender.lines():
            if line.startswith("turn"):
                done, total, name = line.removeprefix("turn ").replace(" of ", ":").split(":")
                say(f"{folder.name}: {done} of {total} turns", int(done) / int(total))
                now = {each: node.processor_time() for each, node in nodes.items()}
                if before:
                    used[name.strip()].append((now[name.strip()] - before[name.strip()]) / rate)
                before = now
        sender.wait()
        say(folder.name, 1.0)
    lanes = {name: group for group in commands for name in group.split("+")}
    return {
        name: read_passage(folder / "traffic.npz", name, turns, used[group][-turns:])
        for name, group in lanes.items()
    }


def read_passage(file: Path, name: str, turns: int, processor_time: Sequence[float] = ()) -> Passage:
    """Return what became of the messages to a node, from what the traffic has written."""
    with np.load(file) as arrays:
        sent, arrived = arrays[f"{name} sent"], arrays[f"{name} arrived"]
        latencies = np.where(arrived > 0, 1e-9 * (arrived - sent), np.nan)
        repeated = int(arrays[f"{name} repeated"])
        return Passage(latencies.reshape(turns, -1), repeated, np.array(processor_time))


def section(passages: Mapping[str, Passage], rate: float) -> Section:
    """Return the rows: ratios of percentiles over all messages, their spread over the turns, and losses."""
    ours = passages[OURS]
    rows = []
    for peer in (name for name in _PEERS if name in passages):
        theirs = passages[peer]
        for percent, (work, must, aim) in _BOUNDS.items():
            mine, other = ours.percentile(percent), theirs.percentile(percent)
            spread = Figure.of(ours.by_turn(percent) / theirs.by_turn(percent))
            result = Figure(mine / other, spread.low, spread.high)
            bounds = (must, aim) if peer == BARE else (None, None)
            rows.append(Row(work, _PEERS[peer], result, mine, other, *bounds))
    return Section(
        f"dynamics_node at {rate:g} Hz, input to output message", [*rows, *map(lost, passages.items())]
    )


def lost(passage: tuple[str, Passage]) -> Row:
    """Return the row of messages that a node did not answer, or twice; judged for dynamics_node."""
    name, found = passage
    count = float(found.lost + found.repeated)
    work = f"lost or repeated of {found.latencies.size} to {name}"
    judged = Bound(0.0) if name == OURS else None
    return Row(work, "none", Figure(count, count, count), must=judged, unit="messages")


def processor_section(passages: Mapping[str, Passage]) -> Section:
    """Return the rows of the processor time of a sample, of all threads of the process."""
    mine = passages[OURS].processor_time
    # What both nodes share grows with what a system call costs; so much of the ratio is no merit of either.
    peers = {BARE: (_PEERS[BARE], Bound(0.6)), MESSAGES: ("the same by messages of Python", None)}
    rows = []
    for name, (words, must) in peers.items():
        theirs = passages[name].processor_time
        spread = Figure.of(mine / theirs)
        result = Figure(float(mine.mean() / theirs.mean()), spread.low, spread.high)
        rows.append(Row("a sample", words, result, float(mine.mean()), float(theirs.mean()), must=must))
    return Section("processor time of dynamics_node", rows)
