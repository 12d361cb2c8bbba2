"""What a busy machine does to an arm that nodes command in real time, and tests that are tried again then."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from ros_processes import RosProcess
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

ATTEMPTS = 5
TOLERANT = {  # parameters of controller_node, for which being held up by other tests is no fault
    "timeout": 0.5,
    "measurement_timeout": 0.5,
    "latency": 0.1,
    "natural_frequency": 10.0,
    "drive_timeout": 0.5,
}
HELD_UP = 0.1  # [s] without a command or a state, of which there are 200 a second: old efforts drive the arm
# Why a guard stops where messages do not come in time.
LATE = ("no measurement", "measurements too late", "no feedforward", "held up")


class RefusedStart(AssertionError):
    """The guard has stopped before there was a fault, as the machine kept messages from coming in time."""


class HeardArm:
    """What is heard of a simulated arm and of its controller, and whether the machine held them up.

    The simulated arm goes on in real time, driven by old efforts, where nodes are kept from running.
    """

    def __init__(self, talk: Talk) -> None:
        self.commands: list[Float64MultiArray] = []
        self.links: list[JointState] = []
        self.silenced = False  # whether the test keeps the controller from commanding
        self.gap = 0.0  # [s] the longest between two commands, or two states
        self._commanded = self._moved = float("inf")  # [s] when the last ones came
        self._kept = [
            talk.node.create_subscription(Float64MultiArray, "effort_commands", self._take_command, 1000),
            talk.node.create_subscription(JointState, "joint_states", self._take_links, 1000),
        ]

    @property
    def held_up(self) -> bool:
        """Whether the machine kept nodes from running while they commanded, or the test from hearing."""
        return self.gap > HELD_UP

    def _take_command(self, msg: Float64MultiArray) -> None:
        now = time.monotonic()
        if len(msg.data) and not self.silenced:
            self.gap = max(self.gap, now - self._commanded)
        self._commanded = now if len(msg.data) else float("inf")
        self.commands.append(msg)

    def _take_links(self, msg: JointState) -> None:
        now = time.monotonic()
        self.gap, self._moved = max(self.gap, now - self._moved), now
        self.links.append(msg)


def wait_unstopped(talk: Talk, controller: RosProcess, condition: Callable[[], bool], what: str) -> None:
    """Wait for what does not come any more once the controller has stopped; raises RefusedStart then."""
    talk.wait_until(lambda: condition() or "-> stop" in controller.output(), what)
    if stops := [line for line in list(controller.lines) if "-> stop" in line]:
        assert any(reason in stops[0] for reason in LATE), stops[0]
        raise RefusedStart(stops[0])


_Arm = TypeVar("_Arm", bound="_Heard")


class _Heard(Protocol):
    heard: HeardArm


def try_out(
    make: Callable[[str], AbstractContextManager[_Arm]], scenario: Callable[[_Arm], None], namespace: str
) -> None:
    """Run a scenario; again where it failed while the machine held the nodes up, which proves nothing.

    What fails each time, or once without a hold-up, is a failure.
    """
    for attempt in range(1, ATTEMPTS + 1):
        with make(f"{namespace}_{attempt}") as arm:
            try:
                scenario(arm)
            except (AssertionError, TimeoutError) as failure:
                late = arm.heard.held_up or isinstance(failure, RefusedStart)
                if not late or attempt == ATTEMPTS:
                    raise
                print(f"held up for {arm.heard.gap:.2f} s in attempt {attempt}: {failure}")
            else:
                return
