"""motor_reference_node: where the motors are to be, for drives with a position or velocity loop of their own.

Carries the last feedforward on by its derivatives, so that references come at a rate of their own and a lost
message does not show. When no feedforward has come for `timeout`, the motion brakes and stands, with the
efforts of the last moment. It is taken up, for the first time or again, only where the robot stands.

Topics: `feedforward_torque` (FeedforwardTorque) in; `joint_states` (sensor_msgs/JointState) in, for where the
robot stands; `position_commands`, `velocity_commands`, `effort_commands` (std_msgs/Float64MultiArray) out, to
be remapped to `<controller>/commands`; `motor_references` (sensor_msgs/JointState) out, the same three in one
message with the instant they are for; `/diagnostics` at 1 Hz. All are reflected to the link side.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros.control.command_stream import CommandStream
from hodyn_ros.control.feedforward import Feedforward
from hodyn_ros.control.motor_references import MotorReferences
from hodyn_ros.jets import Array
from hodyn_ros.nodes.diagnostics import Stream
from hodyn_ros.nodes.feedforward_consumer import SHARED_SETTINGS, FeedforwardConsumer
from hodyn_ros.nodes.fields import float64s
from hodyn_ros.nodes.messages import time_message
from hodyn_ros.nodes.parameters import Setting, value
from hodyn_ros.nodes.process import run
from hodyn_ros.nodes.qos import overridable, sensor_qos
from hodyn_ros.nodes.refusals import Refusals, Refused

SETTINGS = (
    *SHARED_SETTINGS,
    Setting(
        "join_within",
        0.02,
        "A motion is taken up where it is within this [rad or m] of joint_states, in every joint; 0: "
        "wherever it is, which makes a robot jump that stands somewhere else.",
        low=0.0,
        high=1.0,
        read_only=True,
    ),
)


class MotorReferenceNode(FeedforwardConsumer):
    """Sends references of the motors; the numbers come from `MotorReferences`."""

    def __init__(self) -> None:
        super().__init__("motor_reference_node", SETTINGS)
        names, join_within = self.joints.names, value(self, "join_within")
        self._references = MotorReferences(names, self.timeout, self.fade, join_within)
        self._publishers_of_commands = [
            self.publisher(Float64MultiArray, f"{quantity}_commands")
            for quantity in ("position", "velocity", "effort")
        ]
        self._publisher = self.publisher(JointState, "motor_references")
        self._measurements = Stream()
        self._refused_measurements = Refusals(self.get_logger().warning, "joint_states")
        if join_within > 0.0:
            self._states = self.create_subscription(
                JointState,
                "joint_states",
                self._measure,
                sensor_qos(),
                callback_group=self.streams,
                qos_overriding_options=overridable(),
            )
        self.start()

    @property
    def stream(self) -> CommandStream:
        """What commands come from."""
        return self._references.stream

    def _measure(self, msg: JointState) -> None:
        try:
            positions = self.joints.positions(msg)
        except Refused as refused:
            self._refused_measurements.add(refused)
            return
        self._references.measure(self.acts_at(), positions)
        self._measurements.tick()

    def follow(self, instant: int, feedforward: Feedforward, now: int) -> Array:
        """Follow the motion and the efforts of the motors."""
        return self._references.follow(instant, feedforward, now)

    def send(self, at: int) -> bool:
        """Send the references for an instant."""
        reference = self._references.command(at)
        if reference is None:
            return False
        position, velocity, effort = (float64s(values) for values in reference)
        msg = JointState(name=self.joints.names, position=position, velocity=velocity, effort=effort)
        msg.header.stamp = time_message(at)
        for publisher, values in zip(self._publishers_of_commands, (position, velocity, effort)):
            publisher.publish(Float64MultiArray(data=values))
        self._publisher.publish(msg)
        return True

    def facts(self) -> dict[str, object]:
        """Return how measurements come in."""
        return {
            "joint states": self._measurements.count,
            "age of the last joint states [s]": self._measurements.age(),
            "refused joint states": self._refused_measurements.total,
        }

    def ending(self) -> str:
        """Return what happens after a timeout."""
        return "the motion brakes and stands"


def main(args: Sequence[str] | None = None) -> int:
    """Run motor_reference_node as a process."""
    return run(MotorReferenceNode, args)


if __name__ == "__main__":
    sys.exit(main())
