"""monitor: starts a motion when all nodes are ready, and records it from beginning to end.

It says what it is doing in lines of JSON on its standard output, for `hodyn demo`, which shows them.

Topics in: `desired_motion`, `feedforward_torque`, `joint_states`, `/diagnostics`. Service called:
`trajectory_node/start` (std_srvs/Trigger).
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from hodyn_ros.errors import InputError
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_desired_motion,
    read_feedforward_torque,
    read_joint_state,
)
from hodyn_ros.ros.diagnostics import OK
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.stream_executor import StreamGroup
from hodyn_ros.simulation.recording import Recording

SETTINGS = parameters(
    file=ParameterSpec("", "Where the recording goes, a NumPy archive (.npz)."),
    orders=ParameterSpec(5, "Orders of the desired motion that are kept.", within=(1, 9)),
    timeout=ParameterSpec(60.0, "How long to wait for the nodes to be ready [s].", within=(1.0, 600.0)),
)

NODES = ("trajectory_node", "dynamics_node", "controller_node", "simulator_node")
TOPICS = {
    "desired_motion": DesiredMotion,
    "feedforward_torque": FeedforwardTorque,
    "joint_states": JointState,
}

_FLOWING = 200  # messages of each topic that show that everybody has found everybody
_LAST_MESSAGES = 0.3  # [s] that the last messages get to arrive
_LATE = 10.0  # [s] after which a motion that does not end is given up


class RecordedTopic:
    """The messages of one topic as they came: bytes, when they were sent, and when they arrived [ns]."""

    def __init__(self, node: Node, topic: str, message_type: Any, group: StreamGroup) -> None:
        self.messages: list[tuple[bytes, int, int]] = []
        self.count = 0
        self.keep = False
        self.message_type = message_type
        self._subscription = node.create_subscription(
            message_type, topic, self._take, stream_qos(), callback_group=group, raw=True
        )

    def _take(self, data: bytes, info: Mapping[str, int]) -> None:
        self.count += 1
        if self.keep:
            self.messages.append((data, info["source_timestamp"], info["received_timestamp"]))

    def read(self) -> list[tuple[Any, int, int]]:
        """Return the messages in the order of their stamps, with when they were sent and arrived."""
        read = [(deserialize_message(data, self.message_type), *times) for data, *times in self.messages]
        return sorted(read, key=lambda heard: nanoseconds(heard[0].header.stamp))


class Monitor(Node):
    """Waits, starts, records, saves; each in its turn, five times a second."""

    def __init__(self) -> None:
        super().__init__("monitor")
        declare(self, SETTINGS)
        if not value(self, "file"):
            raise InputError("parameter 'file' is empty; say where the recording goes")
        self._file = Path(value(self, "file"))
        group = StreamGroup()
        self._heard = {topic: RecordedTopic(self, topic, kind, group) for topic, kind in TOPICS.items()}
        self._reports: dict[str, DiagnosticStatus] = {}
        self._subscription = self.create_subscription(
            DiagnosticArray, "/diagnostics", self._take_diagnostics, 100
        )
        self._client = self.create_client(Trigger, "trajectory_node/start")
        self._answer: Future[Trigger.Response] | None = None
        self._give_up_at = time.monotonic() + value(self, "timeout")
        self._ended_at = math.inf
        self._timer = steady_timer(self, 0.2, self._look)

    def _take_diagnostics(self, msg: DiagnosticArray) -> None:
        namespace = self.get_namespace().strip("/")
        for status in msg.status:
            name = status.name.removeprefix(f"{namespace}/") if namespace else status.name
            if name in NODES:
                self._reports[name] = status

    def _look(self) -> None:
        if self._answer is None:
            self._wait_or_start()
        elif self._answer.done() and not (response := self._answer.result()).success:
            self._fail(f"trajectory_node does not start: {response.message}")
        else:
            self._follow_motion(self._answer)

    # waiting

    def _wait_or_start(self) -> None:
        missing = self._missing()
        if missing:
            say(state="waiting", missing=missing)
            self._check_time("; ".join(missing))
            return
        for heard in self._heard.values():
            heard.keep = True
        self._answer = self._client.call_async(Trigger.Request())

    def _missing(self) -> list[str]:
        """Say what is not ready yet."""
        lines = []
        for name in NODES:
            report = self._reports.get(name)
            if report is None:
                lines.append(f"{name}: nothing heard of it")
            elif report.level != OK:
                lines.append(f"{name}: {report.message}")
        lines += [f"no {topic}" for topic, heard in self._heard.items() if heard.count < _FLOWING]
        return lines or ([] if self._client.service_is_ready() else ["no service trajectory_node/start"])

    def _check_time(self, what: str) -> None:
        if time.monotonic() > self._give_up_at:
            self._fail(f"not ready after {value(self, 'timeout'):g} s: {what}")

    def _fail(self, text: str) -> None:
        say(state="failed", text=text, all_heard=all(name in self._reports for name in NODES))
        raise SystemExit(1)

    # recording

    def _follow_motion(self, answer: Future[Trigger.Response]) -> None:
        report = self._reports["trajectory_node"]
        facts = {entry.key: entry.value for entry in report.values}
        if not facts["motion end [ns]"]:
            if not answer.done():  # an answer may be lost; the motion runs all the same
                self._check_time("the answer of trajectory_node/start")
            return
        start, end = int(facts["motion start [ns]"]), int(facts["motion end [ns]"])
        duration = 1e-9 * (end - start)
        elapsed = 1e-9 * (self.get_clock().now().nanoseconds - start)
        if report.message != "ended":
            say(state="recording", elapsed=min(elapsed, duration))
            if elapsed > duration + _LATE:
                self._fail(f"trajectory_node does not end its motion: {report.message}")
            return
        self._ended_at = min(self._ended_at, time.monotonic())
        if time.monotonic() - self._ended_at >= _LAST_MESSAGES:
            say(state="reading the recording", elapsed=duration)
            for heard in self._heard.values():
                heard.keep = False
            self._save(start, end, int(facts["motion samples published"]))
            say(state="done", elapsed=duration)
            raise SystemExit(0)

    def _save(self, start: int, end: int, samples_sent: int) -> None:
        desired, feedforward, measured = (
            [
                (message, *times)
                for message, *times in heard.read()
                if start <= nanoseconds(message.header.stamp) <= end
            ]
            for heard in self._heard.values()
        )
        joints = JointOrder(measured[0][0].name)
        orders: int = value(self, "orders")
        answers = [read_feedforward_torque(message, joints) for message, _, _ in feedforward]
        Recording(
            joint_names=np.array(joints.names),
            start=start,
            end=end,
            samples_sent=samples_sent,
            desired_stamps=stamps(desired),
            desired=np.array([read_desired_motion(message, joints, orders) for message, _, _ in desired]),
            desired_sent=np.array([sent for _, sent, _ in desired], dtype=np.int64),
            feedforward_stamps=stamps(feedforward),
            efforts=np.array([answer.efforts for answer in answers]),
            feedforward_received=np.array([received for _, _, received in feedforward], dtype=np.int64),
            computation_times=np.array([message.computation_time for message, _, _ in feedforward]),
            measured_stamps=stamps(measured),
            measured=np.array([read_joint_state(message, joints).positions for message, _, _ in measured]),
        ).save(self._file)


def stamps(heard: Sequence[tuple[Any, int, int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the stamps of messages [ns]."""
    return np.array([nanoseconds(message.header.stamp) for message, _, _ in heard], dtype=np.int64)


def say(**facts: object) -> None:
    """Write a line for whoever has started this process."""
    print(json.dumps(facts), flush=True)


main = partial(run, Monitor)

if __name__ == "__main__":
    sys.exit(main())
