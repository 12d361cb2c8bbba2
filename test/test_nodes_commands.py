"""forward_effort_node and motor_reference_node as processes, over real DDS, in simulated time."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from ros_clock import SimulatedClock
from ros_processes import RosProcess, start_node
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from hodyn_ros.control.feedforward import Feedforward, taylor
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.nodes.messages import time_message, write_feedforward_torque
from hodyn_ros.nodes.qos import latched_qos

JOINTS = ("a", "b", "c")
MS = 1_000_000  # [ns]
NO_BASE = np.empty((0, 6))


def series(orders: int, scale: float) -> np.ndarray:
    return scale * (1.0 + np.arange(3.0 * orders).reshape(orders, 3))


FEEDFORWARD = Feedforward(series(3, 2.0), series(3, 0.1), series(1, 3.0), NO_BASE)


class Bench:
    """A node, its clock and its topics."""

    def __init__(self, node: RosProcess, talk: Talk) -> None:
        self.node, self.talk = node, talk
        self._sender = talk.publisher(FeedforwardTorque, "feedforward_torque")

    @cached_property
    def clock(self) -> SimulatedClock:
        """Time begins when it is first looked at; by then, whoever wants to hear something does."""
        return SimulatedClock(self.talk)

    def stamp(self, ms: float) -> Time:
        return time_message(self.clock.start + round(ms * MS))

    def send(self, ms: float, feedforward: Feedforward = FEEDFORWARD, names: Sequence[str] = JOINTS) -> None:
        """Send a feedforward whose stamp is so long after the start, and give it time to arrive."""
        stamp = self.stamp(ms)
        self._sender.publish(write_feedforward_torque(Header(stamp=stamp), list(names), feedforward, 0.0))
        # what one process sends to another arrives in order, also on several topics; to be on the safe side
        self.talk.pause(0.01)

    def tick(self, ms: float) -> None:
        """Let it be so long after the start."""
        self.clock.set(self.clock.start + round(ms * MS))

    def tick_and_hear(self, ms: float, heard: list[Any]) -> Any:
        """Let it be so long after the start; return the message that this brings."""
        before = len(heard)
        self.tick(ms)
        self.talk.wait_until(lambda: len(heard) > before, f"a command after {ms:g} ms")
        assert len(heard) == before + 1
        return heard[-1]

    def follow(self, until: int, heard: list[Any]) -> None:
        """Send a feedforward every 10 ms, and hear the command for each."""
        for ms in range(10, until + 1, 10):
            self.send(ms)
            self.tick_and_hear(ms, heard)


@contextmanager
def bench(name: str, namespace: str, **parameters: object) -> Iterator[Bench]:
    """Start a node with a command every 10 ms, a timeout of 50 ms and a fade of 100 ms."""
    given = {"joints": list(JOINTS), "use_sim_time": True, "rate": 100.0, "fade": 0.1, **parameters}
    with start_node(name, given, namespace) as node, Talk(namespace) as talk:
        yield Bench(node, talk)
        assert node.stop(signal.SIGINT) == 0, node.output()


def faded(value: np.ndarray, s: float) -> np.ndarray:
    """What is left of a value after the part s of a fade."""
    return value * (1.0 - s) ** 2 * (1.0 + 2.0 * s)


# efforts


def test_efforts_go_on_between_messages_in_the_order_of_the_controller() -> None:
    wanted = ["c", "a"]
    with bench("forward_effort_node", "fe_order", joints=wanted, lead=0.003) as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        b.follow(110, commands)
        assert list(commands[0].data) == pytest.approx([0.0, 0.0], abs=1.0)  # efforts fade in
        b.send(120)
        for ms in (120, 130, 140, 150):
            expected = taylor(FEEDFORWARD.efforts, 1e-3 * (ms - 120 + 3))
            found = b.tick_and_hear(ms, commands)
            np.testing.assert_allclose(found.data, expected[[2, 0]], rtol=1e-12)
        # another order, and a joint that the controller does not have
        columns = np.array([[9.0, 1.0, 3.0, 2.0]])
        other = Feedforward(columns, np.empty((0, 4)), np.empty((0, 4)), NO_BASE)
        b.send(160, other, ("gripper", "a", "c", "b"))
        assert list(b.tick_and_hear(160, commands).data) == [3.0, 1.0]


def test_a_command_for_each_message_where_asked() -> None:
    with bench("forward_effort_node", "fe_each", rate=0.0, efforts="motor") as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        for k in range(12):
            b.tick(11 * k)
            b.send(11 * k)
            b.talk.wait_until(lambda: len(commands) == k + 1, "a command")  # noqa: B023
        np.testing.assert_allclose(commands[-1].data, FEEDFORWARD.motor_efforts[0], rtol=1e-12)
        # a message that comes late is carried on to the present, by the derivatives of the link efforts too
        b.tick(140)
        b.send(133)
        b.talk.wait_until(lambda: len(commands) == 13, "a command")
        filled = np.concatenate([FEEDFORWARD.motor_efforts, FEEDFORWARD.efforts[1:]])
        np.testing.assert_allclose(commands[-1].data, taylor(filled, 0.007), rtol=1e-12)
        for ms in (150, 160, 170, 180):
            b.tick(ms)
        first = b.tick_and_hear(190, commands)  # that no message has asked for
        np.testing.assert_allclose(first.data, commands[12].data, rtol=1e-12)
        assert len(commands) == 14


@pytest.mark.parametrize("on_timeout", ["zero", "hold", "silent"])
def test_what_is_sent_when_messages_stop_is_as_chosen(on_timeout: str) -> None:
    with bench("forward_effort_node", f"fe_{on_timeout}", on_timeout=on_timeout) as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        b.follow(110, commands)
        for ms in range(120, 170, 10):
            b.tick_and_hear(ms, commands)
        last = taylor(FEEDFORWARD.efforts, 0.05)
        np.testing.assert_allclose(commands[-1].data, last, rtol=1e-12)
        if on_timeout == "silent":
            for ms in range(170, 400, 10):
                b.tick(ms)
            b.talk.wait_for_line(b.node, "no feedforward for 0.05 s: nothing more is sent")
            assert len(commands) == 16
        else:
            for ms in range(170, 270, 10):
                found = b.tick_and_hear(ms, commands)
                expected = last if on_timeout == "hold" else faded(last, 1e-2 * (ms - 160))
                np.testing.assert_allclose(found.data, expected, rtol=1e-12, atol=1e-12)
            for ms in range(270, 400, 10):
                b.tick_and_hear(ms, commands)
        # it goes on where it stood, without a step
        off = (np.zeros(3) if on_timeout == "zero" else last) - FEEDFORWARD.efforts[0]
        for ms in range(400, 500, 10):
            b.send(ms)
            found = b.tick_and_hear(ms, commands)
            expected = FEEDFORWARD.efforts[0] + faded(off, 1e-2 * (ms - 390))
            np.testing.assert_allclose(found.data, expected, rtol=0, atol=0.5)
        b.send(500)
        np.testing.assert_allclose(b.tick_and_hear(500, commands).data, FEEDFORWARD.efforts[0], rtol=1e-12)
        b.tick(1500)
        values = b.talk.status("forward_effort_node", lambda _, values: values["timeouts"] != "0")
        assert values["on_timeout"] == on_timeout


def test_bad_feedforwards_are_refused_and_the_next_one_works() -> None:
    with bench("forward_effort_node", "fe_bad", efforts="motor") as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        nan = FEEDFORWARD._replace(efforts=np.full((1, 3), np.nan))
        without = FEEDFORWARD._replace(motor_efforts=np.empty((0, 3)))
        for ms, feedforward, names, words in (
            (0, FEEDFORWARD, ("a", "c", "d"), "joint 'b' is missing from the message"),
            (0, nan, JOINTS, "efforts holds nan for joint 'a'"),
            (0, without, JOINTS, "the feedforward holds no motor efforts"),
            (-60, FEEDFORWARD, JOINTS, "its stamp lies 0.06 s before the clock of this node"),
            (70, FEEDFORWARD, JOINTS, "its stamp lies 0.07 s after the clock of this node"),
        ):
            b.send(ms, feedforward, names)
            b.talk.wait_for_line(b.node, words)
            b.talk.pause(1.1 if ms < 0 else 0.0)  # one line per reason and second
        wide = Feedforward(np.ones((1, 4)), np.empty((0, 4)), np.ones((1, 4)), NO_BASE)
        b.send(0, wide, ("a", "b", "c", "a"))
        b.talk.wait_for_line(b.node, "joint 'a' is named twice in the message")
        b.tick(10)
        b.tick(20)
        b.send(20)
        b.tick_and_hear(30, commands)
        b.send(20)
        b.talk.wait_for_line(b.node, "stamps must increase")
        b.tick(1100)
        values = b.talk.status("forward_effort_node", lambda _, values: values["feedforwards"] == "1")
        for reason, count in (("missing joint", 1), ("not finite", 1), ("bad times", 2)):
            assert values[f"refused: {reason}"] == str(count)
        assert values["refused"] == "7"


# motors


def test_motor_references_begin_brake_and_return_where_the_robot_stands() -> None:
    with bench("motor_reference_node", "mr", lead=0.001) as b:
        references = b.talk.hear_nothing_yet(JointState, "motor_references")
        arrays = [
            b.talk.hear_nothing_yet(Float64MultiArray, f"{quantity}_commands")
            for quantity in ("position", "velocity", "effort")
        ]
        states = b.talk.publisher(JointState, "joint_states")
        here = FEEDFORWARD.motor_positions[0]

        def measure(ms: float, position: np.ndarray) -> None:
            b.tick(ms)
            b.talk.pause(0.01)
            nothing = [float("nan")] * 4  # what joint_state_broadcaster sends for what the drives do not say
            names, positions = ["gripper", *JOINTS], [0.0, *position]
            states.publish(JointState(name=names, position=positions, velocity=nothing, effort=nothing))
            b.talk.pause(0.01)

        b.send(0)
        b.talk.wait_for_line(b.node, "where the robot stands is not known")
        measure(1000, here + 0.03)
        b.talk.pause(1.1)  # one line per reason and second
        b.send(1000)
        b.talk.wait_for_line(b.node, "joint 'a' stands 0.029")
        measure(2000, here)
        assert not references
        b.send(2000)
        first = b.tick_and_hear(2010, references)
        np.testing.assert_allclose(first.position, here, rtol=0, atol=5e-3)
        for ms in range(2020, 2150, 10):
            b.send(ms)
            b.tick_and_hear(ms, references)
        h, k = 0.031, len(references)
        moving = b.tick_and_hear(2170, references)
        assert moving.header.stamp == b.stamp(2171)
        filled = np.concatenate([FEEDFORWARD.motor_efforts, FEEDFORWARD.efforts[1:]])
        np.testing.assert_allclose(moving.position, taylor(FEEDFORWARD.motor_positions, h), rtol=1e-12)
        np.testing.assert_allclose(moving.velocity, taylor(FEEDFORWARD.motor_positions[1:], h), rtol=1e-12)
        np.testing.assert_allclose(moving.effort, taylor(filled, h), rtol=1e-12)
        for heard, field in zip(arrays, ("position", "velocity", "effort")):
            b.talk.wait_until(lambda: len(heard) == k + 1, "the same in an array")  # noqa: B023
            np.testing.assert_array_equal(heard[-1].data, getattr(moving, field))
        stand = [b.tick_and_hear(ms, references) for ms in range(2180, 2400, 10)][-1]
        assert not any(stand.velocity)
        braked = 0.1 / 3.0 * taylor(FEEDFORWARD.motor_positions[1:], 0.041)
        last = taylor(FEEDFORWARD.motor_positions, 0.041)
        np.testing.assert_allclose(stand.position, last + braked, rtol=1e-12)
        np.testing.assert_allclose(stand.effort, taylor(filled, 0.041), rtol=1e-12)
        measure(3400, np.array(stand.position))
        b.send(3400)
        b.talk.wait_for_line(b.node, "more than join_within")


def test_references_join_anywhere_where_allowed() -> None:
    with bench("motor_reference_node", "mr_any", join_within=0.0) as b:
        references = b.talk.hear_nothing_yet(JointState, "motor_references")
        b.follow(110, references)
        np.testing.assert_array_equal(references[-1].position, FEEDFORWARD.motor_positions[0])
        assert b.talk.node.count_subscribers("/mr_any/joint_states") == 0
        without = FEEDFORWARD._replace(motor_positions=np.empty((0, 3)))
        b.send(120, without)
        b.talk.wait_for_line(b.node, "the feedforward holds motor positions of 0 orders")
        # one who keeps what newcomers have missed, which a stream does not offer
        b.talk.node.create_subscription(Float64MultiArray, "velocity_commands", print, latched_qos())
        b.talk.wait_for_line(
            b.node, "a subscription of 'velocity_commands' of node /mr_any/talk has incompatible"
        )


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("forward_effort_node", {}, "parameter 'joints' is empty"),
        ("motor_reference_node", {"joints": ["a", "b", "a"]}, "names joint 'a' twice"),
        ("forward_effort_node", {"joints": ["a"], "efforts": "some"}, "'some'; choose one of link, motor"),
        (
            "forward_effort_node",
            {"joints": ["a"], "on_timeout": "pray"},
            "'pray'; choose one of zero, hold, silent",
        ),
        ("motor_reference_node", {"joints": ["a"], "timeout": 0.0}, "parameter 'timeout'"),
    ],
)
def test_a_broken_start_ends_with_one_readable_line(
    name: str, parameters: dict[str, object], words: str
) -> None:
    with start_node(name, parameters) as node:
        assert node.wait() == 1
        assert len(node.lines) == 1, node.output()
        assert node.lines[0].startswith("error: ") and words in node.lines[0]
