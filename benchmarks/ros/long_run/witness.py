"""witness: hears all streams of a robot, and keeps when each message was sent, by the clock of the machine.

    python -m benchmarks.ros.long_run.witness FOLDER

It hears bytes, and writes for each message its stamp, when its sender published it, and the number that the
sender gave it, so that its own delays count for nothing and its own losses are known. So the memory of this
process does not grow. Every ten seconds it writes the last report of each node on /diagnostics as a line of
JSON into FOLDER/diagnostics.jsonl. It does what a person beside the robot would do: once a minute it gives
the arm a payload, or takes it off; and after a stop it lets the motion go on slowly until the robot has
joined it again. Arguments of ROS may follow.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import Trigger

from hodyn_ros.guard.reasons import State
from hodyn_ros.msg import DesiredMotion, ExternalEfforts, FeedforwardTorque
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.stream_executor import StreamGroup

# By topic: the kind of its messages, and whether they have a stamp.
TOPICS: Mapping[str, tuple[Any, bool]] = {
    "desired_motion": (DesiredMotion, True),
    "feedforward_torque": (FeedforwardTorque, True),
    "corrected_feedforward_torque": (FeedforwardTorque, True),
    "motor_states": (JointState, True),
    "joint_states": (JointState, True),
    "effort_commands": (Float64MultiArray, False),
    "motor_references": (JointState, True),
    "external_efforts": (ExternalEfforts, True),
}
COLUMNS = 3  # stamp, sent [ns], number
REPORTS = "diagnostics.jsonl"
REPORT_PERIOD = 10.0  # [s]

_STAMP = struct.Struct("<4xiI")  # where the serialised header of a message has its stamp
_DEPTH = 10_000  # messages that may wait for this process
_COMMANDERS = ("controller_node", "motor_reference_node")
_PAYLOAD, _PAYLOAD_PERIOD = 0.05, 60.0  # [kg], [s]
_SLOW = 0.05  # of its speed has a motion that a robot joins again on its way
_STOPPED = tuple(state.value for state in (State.STOPPING, State.STOPPED, State.WAITING))


class Heard:
    """The messages of one topic, in rows of `COLUMNS` that go to a file."""

    def __init__(self, node: Node, topic: str, folder: Path, group: StreamGroup) -> None:
        kind, self._stamped = TOPICS[topic]
        self._rows = array("q")
        self._file = file_of(folder, topic)
        self._file.write_bytes(b"")
        self._subscription = node.create_subscription(
            kind, topic, self._take, QoSProfile(depth=_DEPTH), callback_group=group, raw=True
        )

    def _take(self, data: bytes, info: Mapping[str, int]) -> None:
        seconds, nanoseconds = _STAMP.unpack_from(data) if self._stamped else (0, 0)
        stamp = 1_000_000_000 * seconds + nanoseconds
        self._rows.extend((stamp, info["source_timestamp"], info["publication_sequence_number"]))

    def flush(self) -> None:
        """Write what has come since the last time."""
        with self._file.open("ab") as file:
            self._rows.tofile(file)
        self._rows = array("q")


class Witness(Node):
    """Hears, reports, and does what a person would do."""

    def __init__(self, folder: Path) -> None:
        super().__init__("witness")
        self._heard = [Heard(self, topic, folder, group) for group in [StreamGroup()] for topic in TOPICS]
        self._reports: dict[str, dict[str, str]] = {}
        self._reports_file = folder / REPORTS
        self._reports_file.write_text("")
        self._diagnostics = self.create_subscription(DiagnosticArray, "/diagnostics", self._take_report, 100)
        self._override = self.create_publisher(Float64, "trajectory_node/override", 1)
        self._starts = {name: self.create_client(Trigger, f"{name}/start") for name in _COMMANDERS}
        self._settings = self.create_client(SetParameters, "dynamics_node/set_parameters")
        self._payload, self._slow = 0.0, False
        every: Callable[..., Any] = self.create_timer
        self._timers = [
            every(1.0, self._look),
            every(REPORT_PERIOD, self._report),
            every(_PAYLOAD_PERIOD, self._change_payload),
        ]

    def _take_report(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            facts = {entry.key: entry.value for entry in status.values}
            self._reports[status.name] = {"message": status.message, **facts}

    def _report(self) -> None:
        for heard in self._heard:
            heard.flush()
        with self._reports_file.open("a") as file:
            file.write(json.dumps({"at": time.time(), "reports": self._reports}) + "\n")

    def _look(self) -> None:
        stopped = [n for n in _COMMANDERS if self._reports.get(n, {}).get("state") in _STOPPED]
        for name in stopped:
            self._starts[name].call_async(Trigger.Request())
        # slowly, so that an arm that stands somewhere on the path joins the motion as it comes by
        if self._slow != (slow := "controller_node" in stopped):
            self._slow = slow
            self._override.publish(Float64(data=_SLOW if slow else 1.0))

    def destroy_node(self) -> None:
        """Write what has come since the last report."""
        self._report()
        super().destroy_node()

    def _change_payload(self) -> None:
        self._payload = _PAYLOAD - self._payload
        number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=self._payload)
        request = SetParameters.Request(parameters=[Parameter(name="payload_mass", value=number)])
        self._settings.call_async(request)


def file_of(folder: Path, topic: str) -> Path:
    """Return where the rows of a topic are."""
    return folder / f"{topic}.rows"


def main(arguments: Sequence[str]) -> int:
    """Run the process; where its files go is the first of its arguments."""
    folder, *rest = arguments
    return run(lambda: Witness(Path(folder)), rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
