"""Between a robot and who commands it, as a process: passes messages on, false ones once it is told how.

From `motor_states`, `feedforward_torque` and `effort_commands` to the same names with `_told`. A line on the
standard input is a `Lie` as Python writes it, and holds from then on; it is answered by a line.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import rclpy
from fault_lies import EFFORT, MEASURED, MOTION, Lie, false_rows, false_stream
from fault_plant import Differences
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.messages import nanoseconds, time_message
from hodyn_ros.ros.streams.qos import stream_qos

POSITIONS = ("motor_positions", "motor_velocities", "motor_accelerations")
EFFORTS = ("motor_efforts", "motor_effort_rates")
Change = Callable[[int, Any], list[Any]]  # takes the time since the lie began [ms], and a message


class Stamped(NamedTuple):
    """A message with its stamp [ns], as `false_stream` takes it."""

    stamp: int
    msg: Any


class Relay:
    """Passes the messages of a topic on, as it has been told."""

    def __init__(self, node: Any, kind: Any, topic: str) -> None:
        self.change: Change | None = None
        self._began = 0.0  # [s]
        self._lasts = 0  # [ms]
        self._publisher = node.create_publisher(kind, f"{topic}_told", stream_qos())
        self._kept = node.create_subscription(kind, topic, self._take, stream_qos())

    def tell(self, lie: Lie, change: Change) -> None:
        self._began, self._lasts, self.change = time.monotonic(), lie.lasts, change

    def _take(self, msg: Any) -> None:
        since = round(1e3 * (time.monotonic() - self._began))
        change = self.change
        for each in [msg] if change is None or since >= self._lasts else change(since, msg):
            self._publisher.publish(each)


def of_values(lie: Lie) -> Change:
    """False numbers in measurements and feedforwards."""
    rows = [false_rows(lie, np.random.default_rng(0)) for _ in range(3)]
    groups = (("position", "velocity"), MEASURED, rows[0]), (POSITIONS, MOTION, rows[1])
    last = EFFORTS, EFFORT, rows[2]

    def change(since: int, msg: Any) -> list[Any]:
        for names, parts, false in (*groups, last):
            if lie.signal in parts and hasattr(msg, names[0]):
                filled = [name for name in names if len(getattr(msg, name))]
                whole = np.array([getattr(msg, name) for name in filled])
                whole[parts[lie.signal]] = false(1e-3 * since, whole[parts[lie.signal]].copy())
                for name, row in zip(filled, whole):
                    setattr(msg, name, row.tolist())
        return [msg]

    return change


def of_stream(lie: Lie) -> Change:
    """Messages that are lost, late, or stamped wrongly."""
    told = false_stream(lie, np.random.default_rng(0))

    def change(since: int, msg: Any) -> list[Any]:
        found = told([Stamped(nanoseconds(msg.header.stamp), msg)], since)
        for each in found:
            each.msg.header.stamp = time_message(each.stamp)
        return [each.msg for each in found]

    return change


def of_motors(lie: Lie) -> Change:
    """Motors that are turned, weak, or connected to each other's cables."""
    weak = lie.kind == "weak"
    drives = Differences(weak=lie.joints, most=lie.amount) if weak else Differences(**{lie.kind: lie.joints})

    def change(since: int, msg: Any) -> list[Any]:
        if len(msg.data):
            efforts = drives.delivered(np.array(msg.data))
            msg.data = np.clip(efforts, -drives.cap, drives.cap).tolist()
        return [msg]

    return change


def listen(relays: dict[str, Relay]) -> None:
    """Take lies from the standard input."""
    for line in sys.stdin:
        lie: Lie = eval(line, {"Lie": Lie, "nan": np.nan, "inf": np.inf})
        if lie.signal == "robot":
            relays["effort_commands"].tell(lie, of_motors(lie))
        elif lie.signal in ("measurements", "feedforwards"):
            topic = "motor_states" if lie.signal == "measurements" else "feedforward_torque"
            relays[topic].tell(lie, of_stream(lie))
        else:
            topic = "motor_states" if lie.signal in MEASURED else "feedforward_torque"
            relays[topic].tell(lie, of_values(lie))
        print(f"from now on: {lie}", flush=True)


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("liar")
    kinds = {
        "motor_states": JointState,
        "feedforward_torque": FeedforwardTorque,
        "effort_commands": Float64MultiArray,
    }
    relays = {topic: Relay(node, kind, topic) for topic, kind in kinds.items()}
    threading.Thread(target=listen, args=(relays,), daemon=True).start()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    print("passing on", flush=True)
    executor.spin()


if __name__ == "__main__":
    main()
