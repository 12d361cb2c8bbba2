"""forward_effort_node: efforts for a forward or joint group effort controller of ros2_control.

Carries the last feedforward on by its derivatives, so that commands come at a rate of their own and a lost
message does not show. What it sends is guarded (docs/safety.md): it joins a motion only where the robot
stands, from zero efforts, and stops when a check fails.

Topics: `feedforward_torque` (FeedforwardTorque) in; `joint_states` (sensor_msgs/JointState) in, for where the
robot stands; `effort_commands` (std_msgs/Float64MultiArray) out, to be remapped to `<controller>/commands`;
`/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
from functools import partial

from std_msgs.msg import Float64MultiArray

from hodyn_ros.control.motor_pd import Reference, spring_deflections
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.guard.command_guard import GuardedCommand
from hodyn_ros.guard.guard_config import End, State
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.forward_commands import FORWARD_SETTINGS, ForwardCommands
from hodyn_ros.ros.parameters.guard_parameters import ENDS, guard_settings
from hodyn_ros.ros.parameters.parameters import ParameterSpec, choice, parameters
from hodyn_ros.ros.process import run

_SIDES = ("link", "motor")
_SILENT = "silent"

SETTINGS = (
    *FORWARD_SETTINGS,
    *(
        setting
        for setting in guard_settings(
            lead=0.0, end=End.ZERO.value, measurement_timeout=0.5, tracking_error=0.2
        )
        if setting.name != "end"
    ),
    *parameters(
        end=ParameterSpec(
            End.ZERO.value,
            "What is sent when the robot stops: zero, efforts that fade to zero; hold, those of "
            "standstill; silent, nothing from the stop on, for drives with a timeout of their own.",
        ),
        efforts=ParameterSpec(
            "link",
            "Which efforts are sent: link, those of the inverse dynamics, for drives that control the "
            "torque at the joint; motor, what the motors have to produce, for drives that control the "
            "motor's.",
        ),
    ),
)


class ForwardEffortNode(ForwardCommands):
    """Sends efforts; the numbers come from `CommandGuard`."""

    def __init__(self) -> None:
        super().__init__("forward_effort_node", SETTINGS)
        self._motor = choice(self, "efforts", _SIDES) == "motor"
        end = choice(self, "end", (*ENDS, _SILENT))
        self._silent, self._ends_at_zero = end == _SILENT, end == End.ZERO.value
        self._publisher = self.publisher(Float64MultiArray, "effort_commands")
        self.start_guarded(motor=self._motor, end=End.HOLD.value if self._silent else end, efforts_act=True)

    def reference(self, feedforward: Feedforward) -> Reference:
        """Return the chosen efforts, and the motor positions where there are some."""
        efforts = motor_effort_series(feedforward) if self._motor else feedforward.efforts
        if not len(efforts):
            side = "motor" if self._motor else "link"
            raise InputError(
                f"the feedforward holds no {side} efforts; let dynamics_node compute order 2 or more, of a "
                "robot with drives"
            )
        deflections = spring_deflections(self.drives, feedforward)
        return Reference(feedforward.motor_positions, efforts, deflections)

    def send(self, at: int, command: GuardedCommand) -> bool:
        """Send the efforts."""
        if self._silent and self.guard.state in (State.STOPPING, State.STOPPED):
            return False
        self._publisher.publish(Float64MultiArray(data=float64s(command.effort)))
        return True

    def send_end(self) -> None:
        """Leave no efforts to controllers, which keep what came last, where efforts are to go to zero."""
        if self._ends_at_zero:
            self._publisher.publish(Float64MultiArray(data=[0.0] * len(self.joint_names)))

    def facts(self) -> dict[str, object]:
        """Return which efforts are sent."""
        return {"efforts": "motor" if self._motor else "link"}


main = partial(run, ForwardEffortNode)

if __name__ == "__main__":
    sys.exit(main())
