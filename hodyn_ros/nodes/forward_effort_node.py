"""forward_effort_node: efforts for a forward or joint group effort controller of ros2_control.

Carries the last feedforward on by its derivatives, so that commands come at a rate of their own and a lost
message does not show. When no feedforward has come for `timeout`, efforts fade to zero, or as `on_timeout`
says: a controller holds its last command for ever, whatever the robot does meanwhile.

Topics: `feedforward_torque` (FeedforwardTorque) in; `effort_commands` (std_msgs/Float64MultiArray) out, to be
remapped to `<controller>/commands`; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from std_msgs.msg import Float64MultiArray

from hodyn_ros.control.command_stream import CommandStream, Ending
from hodyn_ros.control.extrapolation import motor_effort_series
from hodyn_ros.control.feedforward import Feedforward
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.nodes.feedforward_consumer import SHARED_SETTINGS, FeedforwardConsumer
from hodyn_ros.nodes.fields import float64s
from hodyn_ros.nodes.parameters import Setting, chosen
from hodyn_ros.nodes.process import run

_SIDES = ("link", "motor")
_ENDINGS = {
    "zero": (Ending.FADE, "efforts fade to zero"),
    "hold": (Ending.HOLD, "the last efforts are held"),
    "silent": (Ending.HOLD, "nothing more is sent"),
}

SETTINGS = (
    *SHARED_SETTINGS,
    Setting(
        "efforts",
        "link",
        "Which efforts are sent: link, those of the inverse dynamics, for drives that control the torque at "
        "the joint; motor, what the motors have to produce, for drives that control the motor's.",
        read_only=True,
    ),
    Setting(
        "on_timeout",
        "zero",
        "What is sent after a timeout: zero, efforts that fade to zero; hold, those of the last moment; "
        "silent, nothing, for drives that watch over their commands themselves.",
        read_only=True,
    ),
)


class ForwardEffortNode(FeedforwardConsumer):
    """Sends efforts; the numbers come from `CommandStream`."""

    def __init__(self) -> None:
        super().__init__("forward_effort_node", SETTINGS)
        self._motor = chosen(self, "efforts", _SIDES) == "motor"
        self._on_timeout = chosen(self, "on_timeout", tuple(_ENDINGS))
        self._stream = CommandStream(self.timeout, self.fade, (_ENDINGS[self._on_timeout][0],))
        self._publisher = self.publisher(Float64MultiArray, "effort_commands")
        self.start()

    @property
    def stream(self) -> CommandStream:
        """What commands come from."""
        return self._stream

    def follow(self, instant: int, feedforward: Feedforward, now: int) -> Array:
        """Follow the chosen efforts."""
        series = motor_effort_series(feedforward) if self._motor else feedforward.efforts
        if not len(series):
            side = "motor" if self._motor else "link"
            raise InputError(
                f"the feedforward holds no {side} efforts; let dynamics_node compute order 2 or more, of a "
                "robot with drives"
            )
        return self._stream.follow(instant, (series,))

    def send(self, at: int) -> bool:
        """Send the efforts for an instant."""
        commands = self._stream.command(at)
        if not commands or (self._on_timeout == "silent" and not self._stream.following):
            return False
        self._publisher.publish(Float64MultiArray(data=float64s(commands[0].value)))
        return True

    def facts(self) -> dict[str, object]:
        """Return which efforts are sent."""
        return {"efforts": "motor" if self._motor else "link", "on_timeout": self._on_timeout}

    def ending(self) -> str:
        """Return what `on_timeout` does."""
        return _ENDINGS[self._on_timeout][1]


def main(args: Sequence[str] | None = None) -> int:
    """Run forward_effort_node as a process."""
    return run(ForwardEffortNode, args)


if __name__ == "__main__":
    sys.exit(main())
