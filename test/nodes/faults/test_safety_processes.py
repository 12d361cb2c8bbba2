"""What reaches the motors when processes die, freeze, are late or told to end: real nodes, over real DDS.

The faults that need no process are in virtual time, in test_command_guard.py.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticArray
from ros_hold_ups import TOLERANT, HeardArm, try_out, wait_unstopped
from ros_processes import RosProcess, start_node
from ros_talk import Talk
from std_srvs.srv import Trigger
from sweeps import some

from hodyn_ros import Robot, share

pytestmark = pytest.mark.realtime

PANDA, MOTION = "panda.yaml", "panda_excitation.yaml"
RATE = 200.0  # [Hz]
LIMITS = Robot.load(share.find("config", PANDA)).limits


class Arm:
    """A simulated Panda that follows a motion, its nodes, and what they send."""

    def __init__(self, talk: Talk, stack: ExitStack, namespace: str) -> None:
        self.talk, self._stack, self._namespace = talk, stack, namespace
        self.nodes: dict[str, RosProcess] = {}
        self.heard = HeardArm(talk)
        self.commands, self.links = self.heard.commands, self.heard.links
        self.status: dict[str, str] = {}  # what the controller last said of itself
        self._kept = talk.node.create_subscription(DiagnosticArray, "/diagnostics", self._take_status, 100)

    def _take_status(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            if status.name == f"{self._namespace}/controller_node":
                self.status = {item.key: item.value for item in status.values}

    def start(self, *names: str) -> None:
        parameters: dict[str, dict[str, object]] = {
            "dynamics_node": {"robot_config": PANDA},
            "controller_node": {"robot_config": PANDA, "lead": 0.003, "patience": 0.0075, **TOLERANT},
            "simulator_node": {
                "robot_config": PANDA,
                "trajectory": MOTION,
                "rate": RATE,
                "command_timeout": 1.0,
            },
            "trajectory_node": {"trajectory": MOTION, "rate": RATE, "auto_start": False},
        }
        for name in names:
            self.nodes[name] = self._stack.enter_context(start_node(name, parameters[name], self._namespace))

    def wait_for(self, node: str, text: str) -> None:
        self.talk.wait_for_line(self.nodes[node], text)

    def follow(self) -> None:
        """Wait until the arm moves fast."""
        controller = self.nodes["controller_node"]
        following = "joining -> following"
        wait_unstopped(self.talk, controller, lambda: following in controller.output(), following)
        self.move()
        wait_unstopped(self.talk, controller, lambda: self.speed() > 0.4, "a fast motion")

    def stops(self, *reasons: str) -> None:
        """Wait until the controller stops, which has to be for one of these reasons."""
        line = self.talk.wait_for_line(self.nodes["controller_node"], "following -> stop")
        assert any(f"following -> {reason}" in line for reason in reasons), line

    def move(self) -> None:
        assert self.talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success

    def speed(self) -> float:
        """The present speed of the links, as a share of their limits."""
        return float(np.max(np.abs(self.links[-1].velocity) / LIMITS.velocity)) if self.links else 0.0

    def check(self, since: int = 0, links_since: int = 0) -> None:
        """Hold commands and speeds against the bars."""
        speeds = np.array([message.velocity for message in self.links[links_since:]]) / LIMITS.velocity
        assert np.abs(speeds).max() <= 1.2
        efforts = [np.array(message.data) for message in self.commands[since:]]
        for before, after in zip(efforts, efforts[1:]):
            if len(before) and len(after):
                # a late command may go as far as its rate allows for the time since the one before it
                assert np.abs(after - before).max() <= 25.0


@contextmanager
def arm(namespace: str) -> Iterator[Arm]:
    with Talk(namespace) as talk, ExitStack() as stack:
        found = Arm(talk, stack, namespace)
        try:
            yield found
        except BaseException:
            for node in found.nodes.values():
                print(node.output())
            print(found.status)
            raise


def dynamics_die_and_come_back(a: Arm) -> None:
    a.start("simulator_node", "controller_node", "dynamics_node", "trajectory_node")
    a.follow()
    a.nodes["dynamics_node"].stop(signal.SIGKILL)
    # the last one drives the arm for half a second, in which it may come to be too fast
    a.stops("stopping: no feedforward", "stopping: velocity violation")
    a.wait_for("controller_node", "stopping -> stopped")
    a.talk.wait_until(lambda: a.speed() < 0.01, "a standstill")
    where = np.array(a.links[-1].position)
    a.start("dynamics_node")
    a.wait_for("dynamics_node", "robot 'panda'")
    a.talk.status("controller_node", lambda _, values: "start pose invalid" in values["reason"])
    a.talk.pause(1.0)
    if "stopped -> joining" not in a.nodes["controller_node"].output():  # the motion came by otherwise
        np.testing.assert_allclose(a.links[-1].position, where, rtol=0, atol=0.06)
    assert a.nodes["controller_node"].stop(signal.SIGTERM) == 0, a.nodes["controller_node"].output()
    a.wait_for("simulator_node", "a command without efforts: the brakes are on")
    a.talk.wait_until(lambda: not len(a.commands[-1].data), "the end of the commands")
    a.check()


def test_a_dynamics_node_that_dies_and_comes_back_and_a_controller_that_is_told_to_end() -> None:
    try_out(arm, dynamics_die_and_come_back, "safe_dies")


def told_to_end(a: Arm, how: signal.Signals) -> None:
    a.start("simulator_node", "controller_node", "dynamics_node", "trajectory_node")
    a.follow()
    count = len(a.commands)
    assert a.nodes["controller_node"].stop(how) == 0
    a.stops("stopping: shutdown")
    a.wait_for("controller_node", "stopping -> stopped")
    a.wait_for("simulator_node", "a command without efforts: the brakes are on")
    a.talk.wait_until(lambda: a.speed() < 1e-6, "a standstill")
    assert len(a.commands) > count + 2  # it has braked for a while
    a.check()


@pytest.mark.parametrize("how", some([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_a_controller_that_is_told_to_end_in_a_motion_brakes_first(how: signal.Signals) -> None:
    try_out(arm, partial(told_to_end, how=how), f"safe_{how.name.lower()}")


def freeze(pid: int) -> None:
    """Stop a process that waits; what one was sending, or about to, would arrive when it goes on."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(10_000):
        begin = time.monotonic()
        if stat.read_text().rpartition(")")[2].split()[0] == "S":
            os.kill(pid, signal.SIGSTOP)
            if time.monotonic() - begin < 5e-4:
                return
            os.kill(pid, signal.SIGCONT)  # it may have begun to run between the look and the signal
        time.sleep(1e-3)
    raise TimeoutError(f"process {pid} has not been seen to wait")


def controller_freezes(a: Arm) -> None:
    a.start("simulator_node", "controller_node", "dynamics_node", "trajectory_node")
    a.follow()
    last = len(a.commands)
    a.talk.wait_until(lambda: len(a.commands) > last, "a command")
    time.sleep(0.002)
    a.heard.silenced = True
    freeze(a.nodes["controller_node"].pid)
    a.wait_for("simulator_node", "the brakes are on")
    # until then the arm was driven by the last efforts; what follows is the controller's
    a.talk.wait_until(lambda: a.speed() < 1e-6, "brakes")
    count, links = len(a.commands), len(a.links)
    os.kill(a.nodes["controller_node"].pid, signal.SIGCONT)
    a.stops("stopped: held up")
    assert "no command for 1 s: the brakes are on" in a.nodes["simulator_node"].output()
    a.talk.wait_until(lambda: len(a.commands) > count, "the end of the commands")
    a.talk.pause(0.5)
    assert not any(len(message.data) for message in a.commands[count:])  # the brakes are on, and stay on
    a.check(count, links)


def test_a_controller_that_freezes_leaves_the_brakes_to_the_driver_and_is_careful_afterwards() -> None:
    try_out(arm, controller_freezes, "safe_frozen")


def test_a_robot_that_comes_late_is_not_dragged_to_the_motion() -> None:
    with arm("safe_late") as a:
        a.start("controller_node", "dynamics_node", "trajectory_node")
        a.wait_for("dynamics_node", "robot 'panda'")
        a.move()
        a.talk.pause(1.5)  # at which the motion is 1 rad from where it starts
        a.start("simulator_node")
        a.talk.status("controller_node", lambda _, values: "start pose invalid" in values["reason"])
        a.talk.pause(1.0)
        assert not a.commands
        assert not np.any([message.velocity for message in a.links])
