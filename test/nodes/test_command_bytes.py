"""Bytes that are wrong, sent to a node that commands: counted, and its commands are as without them."""

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from hodyn_ros import Robot
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.guard.command_guard import GuardedCommand
from hodyn_ros.guard.guard_config import State
from hodyn_ros.guard.reasons import Fault
from hodyn_ros.nodes.forward_effort_node import ForwardEffortNode
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import time_message, write_feedforward_torque

MILLISECOND = 1_000_000
START = 10**18  # [ns]
Messages = list[tuple[bytes, bytes]]  # measurements and feedforwards, one each for a millisecond
HUGE = b"\xff\xff\xff\xff"


class Node(ForwardEffortNode):
    """With a clock that the test sets, and a memory of what it has sent."""

    def __init__(self) -> None:
        self.instant = START
        self.hold = 0  # [ns] that the process stands still after the first clock that the next command reads
        self.off = self.set_by = 0  # [ns] of the clock; by which it is set once the next command has begun
        self._comparing = False
        self.sent: list[bytes] = []
        super().__init__()

    def now(self) -> int:
        return self._read() + self.off

    def steady(self) -> float:
        return 1e-9 * self._read()

    def _read(self) -> int:
        reading = self.instant
        if self._comparing:
            self.instant += self.hold
            self.hold = 0
        return reading

    def _elapsed(self, at: int) -> float | None:
        self.off, self.set_by = self.off + self.set_by, 0
        self._comparing = True
        elapsed = super()._elapsed(at)
        self._comparing = False
        return elapsed

    def send(self, at: int, command: GuardedCommand) -> bool:
        self.sent.append(command.effort.tobytes())
        return super().send(at, command)


class Stream:
    """What a Panda gets that swings a little, as bytes."""

    def __init__(self, robot: Robot) -> None:
        self.robot, (self.home, _) = robot, robot.home

    def motion(self, instant: int) -> np.ndarray:
        time, orders = 1e-9 * (instant - START), np.arange(5)[:, None]
        swing = 0.02 * 2.0**orders * np.sin(2.0 * time + 0.5 * np.pi * orders)
        motion = np.tile(swing, self.robot.n_coordinates)
        motion[0] += self.home
        return motion

    def feedforward(self, instant: int) -> bytes:
        q = self.motion(instant)
        efforts = np.array(self.robot.inverse_dynamics(q[:3]))
        law = Feedforward(efforts, q[:3], np.empty((0, len(self.home))), np.empty((0, 6)))
        header = Header(stamp=time_message(instant))
        msg = write_feedforward_torque(header, self.robot.joint_names, law, 1e-4)
        return bytes(serialize_message(msg))

    def state(self, instant: int) -> bytes:
        position, velocity, *_ = self.motion(instant)
        msg = JointState(header=Header(stamp=time_message(instant)), name=self.robot.joint_names)
        msg.position, msg.velocity = float64s(position), float64s(velocity)
        return bytes(serialize_message(msg))


def poisons(data: bytes, first: bytes) -> Iterator[bytes]:
    """Return messages that are not to be used, made of a good one and of that which came first."""
    names = data.index(b"panda_joint1\0")
    numbers = 4 + 8 * -(-(data.index(b"panda_joint7\0") + 17 - 4) // 8)
    for length in (0, 3, 4, 12, names, numbers, numbers + 12, len(data) // 2):
        yield data[:length]
    for place in (12, names - 8, names - 4):  # lengths of the frame, the names, and a name
        yield data[:place] + HUGE + data[place + 4 :]
    yield data[:names] + b"panda_joint2\0" + data[names + 13 :]  # twice
    yield data[:names] + b"panda_joint8\0" + data[names + 13 :]  # so that one is missing
    for number in (np.nan, np.inf, -np.inf):
        yield data[:numbers] + np.float64(number).tobytes() + data[numbers + 8 :]
    yield b"\0\0" + data[2:]  # as if it were big endian
    yield data[:4] + bytes(8) + data[12:]  # never
    yield data[:4] + first[4:12] + data[12:]  # long ago
    yield data  # again


@pytest.fixture(scope="module")
def stream(panda: Robot) -> Stream:
    return Stream(panda)


@pytest.fixture
def context() -> Iterator[None]:
    names = ", ".join(f"panda_joint{k}" for k in range(1, 8))
    given = {"joints": f"[{names}]", "robot_config": "panda.yaml", "rate": "0.0", "settle": "0.02"}
    given |= {"fade": "0.05"}  # followed after a tenth of a second
    rclpy.init(args=["--ros-args", *(w for k, v in given.items() for w in ("-p", f"{k}:={v}"))])
    yield
    rclpy.try_shutdown()


def commands(messages: Messages, poisoned: bool) -> tuple[list[bytes], Node, int]:
    """Return what a node commands, the node, and how much poison each of its topics got."""
    node, count = Node(), 0
    first = messages[0]
    rotten: list[list[bytes]] = [[], []]
    for k, (state, feedforward) in enumerate(messages[1:], 1):
        node.instant = START + k * MILLISECOND
        node._take_measurement(state)
        node._take_feedforward(feedforward)
        if poisoned and k % 7 == 0:
            if not rotten[0]:
                rotten = [list(poisons(*pair)) for pair in zip((state, feedforward), first)]
            count += 1
            node._take_measurement(rotten[0].pop())
            node._take_feedforward(rotten[1].pop())
    return node.sent, node, count


def test_what_is_wrong_is_counted_and_changes_no_command(context: None, stream: Stream) -> None:
    instants = range(START, START + 300 * MILLISECOND, MILLISECOND)
    messages = [(stream.state(instant), stream.feedforward(instant)) for instant in instants]
    expected, clean, _ = commands(messages, poisoned=False)
    found, node, count = commands(messages, poisoned=True)
    assert clean.guard.state is node.guard.state is State.FOLLOWING
    assert len(expected) > 250 and found == expected
    assert node._rejected_feedforwards.total == node._rejected_measurements.total == count > 35
    assert clean._rejected_feedforwards.total == 0
    values = node._report().values
    assert values["rejected"] == values["rejected measurements"] == count
    by_reason = {key: n for key, n in values.items() if key.startswith("rejected measurements: ")}
    assert sum(by_reason.values()) == count and len(by_reason) > 2
    for each in (clean, node):
        each.destroy_node()


def test_a_process_that_is_held_up_between_two_clocks_has_not_seen_one_jump(
    context: None, stream: Stream
) -> None:
    node = Node()
    held_at, held_for = 200, 20
    for k in [*range(held_at + 1), *range(held_at + held_for, 400)]:
        node.instant = START + k * MILLISECOND
        node.hold = held_for * MILLISECOND if k == held_at else 0
        node._take_measurement(stream.state(node.instant))
        node._take_feedforward(stream.feedforward(node.instant))
        if k >= held_at:
            assert node.guard.state is State.FOLLOWING, node.guard.reason
    assert node.instant == START + 399 * MILLISECOND
    node.destroy_node()


@pytest.mark.parametrize("by", [-3600, -0.2, 0.2, 3600])
def test_a_clock_that_is_set_while_a_command_is_computed_is_no_process_that_was_held_up(
    context: None, stream: Stream, by: float
) -> None:
    node = Node()
    for k in range(202):
        node.instant = START + k * MILLISECOND
        node.set_by = round(1e9 * by) if k == 200 else 0
        node._take_measurement(stream.state(node.now()))
        node._take_feedforward(stream.feedforward(node.now()))
        if k == 200:
            assert node.guard.state is State.FOLLOWING, node.guard.reason
    assert node.guard.state is State.STOPPING and node.guard.reason.fault is Fault.CLOCK, node.guard.reason
    node.destroy_node()
