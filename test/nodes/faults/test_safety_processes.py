"""What reaches the motors when processes die, freeze, are late or told to end: real nodes, over real DDS.

The faults that need no process are in virtual time, in test_command_guard.py.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_arm import Arm, arm
from ros_hold_ups import try_out
from sweeps import some

pytestmark = pytest.mark.realtime


def dynamics_die_and_come_back(a: Arm) -> None:
    a.start()
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
    if "stopped -> joining" not in a.controller.output():  # the motion came by otherwise
        np.testing.assert_allclose(a.links[-1].position, where, rtol=0, atol=0.06)
    assert a.controller.stop(signal.SIGTERM) == 0, a.controller.output()
    a.wait_for("simulator_node", "a command without efforts: the brakes are on")
    a.talk.wait_until(lambda: not len(a.commands[-1].data), "the end of the commands")
    a.check()


def test_a_dynamics_node_that_dies_and_comes_back_and_a_controller_that_is_told_to_end() -> None:
    try_out(arm, dynamics_die_and_come_back, "safe_dies")


def told_to_end(a: Arm, how: signal.Signals) -> None:
    a.start()
    a.follow()
    count = len(a.commands)
    assert a.controller.stop(how) == 0
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
    a.start()
    a.follow()
    last = len(a.commands)
    a.talk.wait_until(lambda: len(a.commands) > last, "a command")
    time.sleep(0.002)
    a.heard.silenced = True
    freeze(a.controller.pid)
    a.wait_for("simulator_node", "the brakes are on")
    # until then the arm was driven by the last efforts; what follows is the controller's
    a.talk.wait_until(lambda: a.speed() < 1e-6, "brakes")
    count, links = len(a.commands), len(a.links)
    os.kill(a.controller.pid, signal.SIGCONT)
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
