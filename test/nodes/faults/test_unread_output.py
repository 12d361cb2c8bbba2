"""Nodes that command, under a flood of messages, while nobody reads their output or they are held up.

For bytes that are no message the middleware writes a line each, so that a pipe is soon full. Whoever writes
more waits until somebody reads, and would command nothing meanwhile. A flood that finds no room is lost; a
middleware that sends it again, while new messages come, may do nothing else from then on.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rclpy.serialization import serialize_message
from ros_processes import child_environment
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from sweeps import some
from warm_python import WarmProcess

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import time_message, write_feedforward_torque
from hodyn_ros.ros.streams.wait_sets import RCLError

MANY = 30_000  # [bytes] of the 65,536 that a pipe has room for, whose pages may end half empty
LOOKS = 20  # without a byte more, after which it counts as full
# A busy machine holds nodes up beside; they are to go on then without being asked.
TOLERANT = {"timeout": 0.5, "measurement_timeout": 0.5, "drive_timeout": 0.5, "rejoin": "always"}
CONSUMERS = {
    "controller_node": ("motor_states", "effort_commands", Float64MultiArray, {"latency": 0.2}),
    "forward_effort_node": ("joint_states", "effort_commands", Float64MultiArray, {}),
    "motor_reference_node": ("joint_states", "motor_references", JointState, {}),
}


class Standing:
    """What a Panda gets that is to stand where it is."""

    def __init__(self) -> None:
        robot = Robot.load(share.find("config", "panda.yaml"))
        model = FeedforwardModel(robot, 2)
        motion = np.zeros((model.motion_orders, robot.n_coordinates))
        motion[0] = [0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.8]
        self.names, self._feedforward = list(robot.joint_names), model.compute(motion)

    def feedforward(self) -> FeedforwardTorque:
        return write_feedforward_torque(self._now(), self.names, self._feedforward, 1e-4)

    def state(self) -> JointState:
        state = JointState(header=self._now(), name=self.names)
        state.position = float64s(self._feedforward.motor_positions[0])
        state.velocity = float64s(np.zeros(len(self.names)))
        return state

    def _now(self) -> Header:
        return Header(stamp=time_message(time.time_ns()))


def waiting_in(pipe: int) -> int:
    """Return how many bytes lie in a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(count)


class Commanding(NamedTuple):
    """A node that is to command, and what it gets."""

    process: WarmProcess
    talk: Talk
    publish: Callable[[FeedforwardTorque | bytes], None]  # a feedforward
    commands_come: Callable[[int], bool]  # whether there are more than so many; sends what they need
    commands: list[object]
    standing: Standing


@contextmanager
def commanding(node: str, output: int) -> Iterator[Commanding]:
    """Start a node whose output goes to a descriptor, which is closed here; it has to end when told to."""
    measured, commanded, kind, more = CONSUMERS[node]
    standing = Standing()
    given = {"robot_config": "panda.yaml", **TOLERANT, **more}
    if node != "controller_node":
        given["joints"] = f"[{', '.join(standing.names)}]"
    rules = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    command = ["-m", f"hodyn_ros.nodes.{node}", "--ros-args", *rules, "-r", f"__ns:=/unread_{node}"]
    process = WarmProcess(command, child_environment(), (0, output, output))
    os.close(output)
    try:
        with Talk(f"unread_{node}") as talk:
            feedforwards = talk.publisher(FeedforwardTorque, "feedforward_torque")
            states = talk.publisher(JointState, measured)
            commands = talk.hear_nothing_yet(kind, commanded)

            def commands_come(count: int) -> bool:
                states.publish(standing.state())
                feedforwards.publish(standing.feedforward())
                talk.pause(0.005)
                return len(commands) > count

            yield Commanding(process, talk, feedforwards.publish, commands_come, commands, standing)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20.0) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def held_up(process: WarmProcess) -> Iterator[None]:
    """Hold a process up again and again, for up to 0.3 s."""
    over, rng = threading.Event(), np.random.default_rng(1)

    def hold_up() -> None:
        while not over.wait(rng.uniform(0.02, 0.2)):
            process.send_signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0.05, 0.3))
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=hold_up)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("node", some(CONSUMERS, "forward_effort_node"))
def test_a_log_that_nobody_reads_does_not_keep_a_node_from_commanding(node: str) -> None:
    unread, output = os.pipe()
    try:
        with commanding(node, output) as it:
            whole = bytes(serialize_message(it.standing.feedforward()))
            names = whole.index(b"panda_joint1\0") - 8  # where it says how many there are
            broken = whole[:names] + b"\xff\xff\xff\xff" + whole[names + 4 :]

            lengths: list[int] = []

            def send_broken() -> bool:
                with suppress(RCLError):  # no room for more, where a busy machine holds up who takes them
                    for _ in range(50):
                        it.publish(broken)
                it.talk.pause(0.005)
                lengths.append(waiting_in(unread))
                return lengths[-1] > MANY and len(set(lengths[-LOOKS:])) == 1

            it.talk.wait_until(send_broken, "so much output that there is no room for more")
            send_broken()
            del it.commands[:]
            it.talk.wait_until(lambda: it.commands_come(20), "commands")
    finally:
        os.close(unread)


@pytest.mark.parametrize("node", some(CONSUMERS, "forward_effort_node"))
def test_a_node_that_is_held_up_behind_a_flood_takes_the_newest_and_commands(node: str) -> None:
    with commanding(node, os.open(os.devnull, os.O_WRONLY)) as it, held_up(it.process):
        old = it.standing.feedforward()
        for _ in range(400):
            with suppress(RCLError):  # no room for more
                for _ in range(50):
                    it.publish(old)
            it.talk.pause(0.005)
        del it.commands[:]
        it.talk.wait_until(lambda: it.commands_come(300), "commands")
