"""traffic: asks the nodes under test in turns, hears their answers, and keeps the times of both.

    python -m benchmarks.ros.traffic FILE RATE TURNS NODE...

One process and one thread for all nodes, so that sending and hearing cost the same for each. It asks one node
at a time, for a turn of a second, as a user has one node; who comes first is drawn anew for each round of
turns. Nodes joined by a plus, as in arm0+arm1, are asked together. It sends and hears bytes. The clock is the
machine's monotonic one: read before a message is published, and again when the answer has come. It says how
far it is in lines on its standard output; FILE becomes a NumPy archive. Arguments of ROS may follow.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.serialization import serialize_message

from benchmarks.ros import samples
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.stream_executor import StreamGroup

# The topics on which nodes answer, in the namespace of their own name; all others as dynamics_node does.
_REPUBLISHED = ("republished_motion", DesiredMotion)
_COMPUTED = ("feedforward_torque", FeedforwardTorque)
ANSWERS: dict[str, tuple[str, Any]] = {"bare_node": _REPUBLISHED, "rclcpp_node": _REPUBLISHED}

_LAST_ANSWERS = 1.0  # [s] that the answers to the last messages of a turn get to arrive
_WARM_UP = 1  # turns of each node that do not count
_PATIENCE = 60.0  # [s] that the nodes get to start and to be found
_STAMP = struct.Struct("<4siI")  # where the serialised header of a message has its stamp
_FIRST = 1_000_000  # [ms] stamp before the first sample that counts; greetings have smaller ones


class Plan(NamedTuple):
    """What is asked of the traffic: samples per second and per turn, and turns of each node."""

    file: Path
    rate: float
    turns: int
    groups: Sequence[str]

    @property
    def length(self) -> int:
        """Samples of one turn."""
        return round(self.rate)

    def order(self) -> list[int]:
        """Return the groups, by their place in `groups`, in the order of their turns."""
        rng = np.random.default_rng(3)
        return [int(i) for _ in range(_WARM_UP + self.turns) for i in rng.permutation(len(self.groups))]


class Lane:
    """The way to one node and back."""

    def __init__(self, node: Node, name: str, count: int, group: StreamGroup) -> None:
        topic, kind = ANSWERS.get(name, _COMPUTED)
        self.name = name
        self.sent: NDArray[np.int64] = np.zeros(count, dtype=np.int64)  # [ns] on the monotonic clock
        self.arrived: NDArray[np.int64] = np.zeros(count, dtype=np.int64)  # 0: not yet
        self.repeated = 0
        self.next = 0
        self.heard = 0
        self.said = 0  # samples sent before both sides knew each other
        self._node = node
        self._publisher = node.create_publisher(DesiredMotion, f"{name}/desired_motion", stream_qos())
        self._subscription = node.create_subscription(
            kind, f"{name}/{topic}", self._take, stream_qos(), callback_group=group, raw=True
        )

    def greet(self, msg: bytearray) -> bool:
        """Send a sample that does not count, and return whether one has been answered."""
        if not self.heard:
            self.said += 1
            self._publish(msg, self.said)
        return self.heard > 0

    def send(self, msg: bytearray) -> None:
        """Send the next sample."""
        self.sent[self.next] = time.monotonic_ns()
        self.next += 1
        self._publish(msg, _FIRST + self.next)

    def _publish(self, msg: bytearray, milliseconds: int) -> None:
        seconds, rest = divmod(milliseconds, 1000)
        _STAMP.pack_into(msg, 0, msg[:4], seconds, 1_000_000 * rest)
        self._publisher.publish(bytes(msg))

    def _take(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.heard += 1
        _, seconds, nanoseconds = _STAMP.unpack_from(data)
        place = 1000 * seconds + nanoseconds // 1_000_000 - _FIRST - 1
        if place < 0:
            return
        if self.arrived[place]:
            self.repeated += 1
        else:
            self.arrived[place] = now

    @property
    def complete(self) -> bool:
        """Whether all that was sent has been answered."""
        return self.next == 0 or bool(self.arrived[: self.next].all())


class Traffic(Node):
    """Greets the nodes, takes turns, and saves what came of it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("traffic")
        self._plan = plan
        self._messages = [bytearray(serialize_message(msg)) for msg in samples.messages()]
        self._turns = plan.order()
        self._done = 0  # turns
        self._left = plan.length
        self._give_up_at = time.monotonic() + _PATIENCE
        group = StreamGroup()
        count = plan.length * (_WARM_UP + plan.turns)
        self._groups = [[Lane(self, name, count, group) for name in g.split("+")] for g in plan.groups]
        self._lanes = [lane for lanes in self._groups for lane in lanes]
        self._greeting = self.create_timer(0.05, self._greet)
        self._timer = self.create_timer(1.0 / plan.rate, self._tick, callback_group=group)
        self._timer.cancel()

    def _greet(self) -> None:
        strangers = [lane.name for lane in self._lanes if not lane.greet(self._messages[0])]
        if strangers and time.monotonic() > self._give_up_at:
            raise TimeoutError(f"no answer from {', '.join(strangers)} within {_PATIENCE:g} s")
        if not strangers:
            self._greeting.cancel()
            self._timer.reset()
            print("matched", flush=True)

    def _tick(self) -> None:
        lanes = self._groups[self._turns[self._done]]
        if self._left:
            for lane in lanes:
                lane.send(self._messages[self._left % len(self._messages)])
            self._left -= 1
            self._give_up_at = time.monotonic() + _LAST_ANSWERS
        elif all(lane.complete for lane in lanes) or time.monotonic() > self._give_up_at:
            group = self._plan.groups[self._turns[self._done]]
            self._done += 1
            print(f"turn {self._done} of {len(self._turns)}: {group}", flush=True)
            self._left = self._plan.length
            if self._done == len(self._turns):
                self._save()
                self.context.shutdown()

    def _save(self) -> None:
        skipped = self._plan.length * _WARM_UP
        arrays: dict[str, Any] = {}
        for lane in self._lanes:
            arrays[f"{lane.name} sent"] = lane.sent[skipped:]
            arrays[f"{lane.name} arrived"] = lane.arrived[skipped:]
            arrays[f"{lane.name} repeated"] = np.array(lane.repeated)
        np.savez(self._plan.file, **arrays)
        print("saved", flush=True)


def main() -> int:
    """Run the process; the plan is in its arguments."""
    file, rate, turns, *rest = sys.argv[1:]
    options = rest.index("--ros-args") if "--ros-args" in rest else len(rest)
    plan = Plan(Path(file), float(rate), int(turns), rest[:options])
    return run(lambda: Traffic(plan), rest[options:])


if __name__ == "__main__":
    sys.exit(main())
