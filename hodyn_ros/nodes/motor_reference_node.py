"""motor_reference_node: where the motors are to be, for drives with a position or velocity loop of their own.

Carries the last feedforward on by its derivatives, so that references come at a rate of their own and a lost
message does not show. What it sends is guarded (docs/safety.md): it joins a motion only where the robot
stands, and when a check fails the reference brakes and stands.

Topics: `feedforward_torque` (FeedforwardTorque) in; `joint_states` (sensor_msgs/JointState) in, for where the
robot stands; `position_commands`, `velocity_commands`, `effort_commands` (std_msgs/Float64MultiArray) out, to
be remapped to `<controller>/commands`; `motor_references` (sensor_msgs/JointState) out, the same three in one
message with the instant they are for; `/diagnostics` at 1 Hz. All are reflected to the link side.
"""

from __future__ import annotations

import sys
from functools import partial

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros.control.motor_pd import Reference, spring_deflections
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.guard.command_guard import GuardedCommand
from hodyn_ros.guard.guard_config import End
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.forward_commands import FORWARD_SETTINGS, ForwardCommands
from hodyn_ros.ros.parameters.guard_parameters import guard_settings
from hodyn_ros.ros.parameters.parameters import value
from hodyn_ros.ros.process import run

SETTINGS = (
    *FORWARD_SETTINGS,
    *guard_settings(lead=0.0, end=End.HOLD.value, measurement_timeout=0.5, tracking_error=0.2),
)


class MotorReferenceNode(ForwardCommands):
    """Sends references of the motors; the numbers come from `CommandGuard`."""

    def __init__(self) -> None:
        super().__init__("motor_reference_node", SETTINGS)
        self._arrays = self._positions, self._velocities, self._efforts = [
            self.publisher(Float64MultiArray, f"{quantity}_commands")
            for quantity in ("position", "velocity", "effort")
        ]
        self._publisher = self.publisher(JointState, "motor_references")
        self.start_guarded(motor=True, end=value(self, "end"), efforts_act=False)

    def reference(self, feedforward: Feedforward) -> Reference:
        """Return the motion and the efforts of the motors."""
        positions, efforts = feedforward.motor_positions, motor_effort_series(feedforward)
        if len(positions) < 2 or not len(efforts):
            raise InputError(
                f"the feedforward holds motor positions of {len(positions)} orders and motor efforts of "
                f"{len(efforts)}, but references need 2 and 1; let dynamics_node compute order 2 or more, "
                "of a robot with drives"
            )
        return Reference(positions, efforts, spring_deflections(self.drives, feedforward))

    def send(self, at: int, command: GuardedCommand) -> bool:
        """Send the references for an instant."""
        values = [float64s(command.position), float64s(command.velocity), float64s(command.effort)]
        for publisher, data in zip(self._arrays, values):
            publisher.publish(Float64MultiArray(data=data))
        position, velocity, effort = values
        msg = JointState(name=self.joint_names, position=position, velocity=velocity, effort=effort)
        msg.header.stamp = time_message(at)
        self._publisher.publish(msg)
        return True

    def send_end(self) -> None:
        """Leave no velocity to controllers, which keep what came last, nor efforts that are to go to zero."""
        nothing = Float64MultiArray(data=[0.0] * len(self.joint_names))
        self._velocities.publish(nothing)
        if self.guard.config.end is End.ZERO:
            self._efforts.publish(nothing)

    def facts(self) -> dict[str, object]:
        """Return nothing more."""
        return {}


main = partial(run, MotorReferenceNode)

if __name__ == "__main__":
    sys.exit(main())
