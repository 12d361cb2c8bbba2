"""forward_effort_node and motor_reference_node as processes, over real DDS, in simulated time."""

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from ros_clock import SimulatedClock
from ros_processes import RosProcess, start_node
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from std_srvs.srv import Trigger
from sweeps import some

from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.messages import time_message, write_feedforward_torque
from hodyn_ros.ros.streams.qos import latched_qos

JOINTS = ("a", "b", "c")
MS = 1_000_000  # [ns]
NO_BASE = np.empty((0, 6))
PHASES = np.arange(3.0)


def sines(ms: float, orders: int, amplitude: float, speed: float = 1.0) -> np.ndarray:
    """Derivatives (orders, 3) of `amplitude sin(speed t + phase)`."""
    phase = speed * 1e-3 * ms + PHASES
    return np.array([amplitude * speed**k * np.sin(phase + 0.5 * np.pi * k) for k in range(orders)])


def feedforward(ms: float, efforts: int = 4) -> Feedforward:
    """What a motion asks for: slow enough to be joined under way."""
    return Feedforward(
        sines(ms, efforts, 8.0), sines(ms, 3, 0.05), sines(ms, max(efforts - 2, 0), 6.0), NO_BASE
    )


class Bench:
    """A node, its clock and its topics."""

    def __init__(self, node: RosProcess, talk: Talk) -> None:
        self.node, self.talk = node, talk
        self._sender = talk.publisher(FeedforwardTorque, "feedforward_torque")
        # best effort: lost until the node knows who publishes, as it does when it follows the clock
        self._states = talk.publisher(JointState, "joint_states")
        self._last = 0.0

    @cached_property
    def clock(self) -> SimulatedClock:
        """Time begins when it is first looked at; by then, whoever wants to hear something does."""
        return SimulatedClock(self.talk)

    def stamp(self, ms: float) -> Time:
        return time_message(self.clock.start + round(ms * MS))

    def send(self, ms: float, what: Feedforward | None = None, names: Sequence[str] = JOINTS) -> None:
        """Send a feedforward whose stamp is so long after the start, and give it time to arrive."""
        stamp, what = self.stamp(ms), feedforward(ms) if what is None else what
        self._sender.publish(write_feedforward_torque(Header(stamp=stamp), list(names), what, 0.0))
        # what one process sends to another arrives in order, also on several topics; to be on the safe side
        self.talk.pause(0.01)

    def measure(self, ms: float, position: np.ndarray) -> None:
        """Say where the robot is, and give that time to arrive."""
        nothing = [float("nan")] * 4  # what joint_state_broadcaster sends for what the drives do not say
        names, positions = ["gripper", *JOINTS], [0.0, *position]
        msg = JointState(name=names, position=positions, velocity=nothing, effort=nothing)
        msg.header.stamp = self.stamp(ms)
        self._states.publish(msg)
        self.talk.pause(0.01)

    def tick(self, ms: float) -> None:
        """Let it be so long after the start."""
        self._last = ms
        self.clock.set(self.clock.start + round(ms * MS))

    def serve(self) -> None:
        """Wait until the node has seen the time, and taken what was sent.

        One that a busy machine holds up would find several steps at once, which are a hold-up to it.
        """
        self.talk.serve(self.node.name)

    def tick_and_hear(self, ms: float, heard: list[Any]) -> Any:
        """Let it be so long after the start; return the message that this brings."""
        before = len(heard)
        self.tick(ms)
        self.talk.wait_until(lambda: len(heard) > before, f"a command after {ms:g} ms")
        assert len(heard) == before + 1
        return heard[-1]

    def follow(self, begin: int, end: int, heard: list[Any]) -> list[Any]:
        """Send a feedforward every 10 ms, and hear the command for each."""
        found = []
        for ms in range(begin, end, 10):
            self.send(ms)
            found.append(self.tick_and_hear(ms, heard))
        return found

    def end(self) -> None:
        """Tell the node to end, and let time pass until it has."""
        os.kill(self.node.pid, signal.SIGINT)
        while self.node.running:
            self.tick(self._last + 10)
            self.talk.pause(0.002)
        assert self.node.wait() == 0, self.node.output()
        assert "Traceback" not in self.node.output()


class Manager(Talk):
    """A controller manager, as far as its name goes."""

    node_name = "controller_manager"


@contextmanager
def bench(name: str, namespace: str, **parameters: object) -> Iterator[Bench]:
    """Start a node with a command every 10 ms that joins at once, wherever the robot is, within 100 ms."""
    given = {
        "joints": list(JOINTS),
        "use_sim_time": True,
        "rate": 100.0,
        "fade": 0.1,
        "settle": 0.0,
        "join_within": 0.0,
        **parameters,
    }
    with start_node(name, given, namespace) as node, Talk(namespace) as talk:
        b = Bench(node, talk)
        yield b
        b.end()


def faded(value: np.ndarray, s: float) -> np.ndarray:
    """What is left of a value after the part s of a fade."""
    s = min(s, 1.0)
    return value * (1.0 - 10.0 * s**3 + 15.0 * s**4 - 6.0 * s**5)


# efforts


def test_efforts_go_on_between_messages_in_the_order_of_the_controller() -> None:
    with bench("forward_effort_node", "fe_order", joints=["c", "a"], lead=0.003) as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        first, *_ = b.follow(10, 130, commands)
        assert list(first.data) == pytest.approx([0.0, 0.0], abs=1e-6)  # efforts fade in
        for ms in (130, 140, 150, 160):  # no message for these
            found = b.tick_and_hear(ms, commands)
            # carried on by three derivatives, to the middle of the time that the command acts
            exact = sines(ms + 3, 1, 8.0)[0]
            h = 1e-3 * (ms + 3 - 120)
            np.testing.assert_allclose(found.data, exact[[2, 0]], rtol=0, atol=8.0 * h**4 / 24 + 1e-9)
        # another order, and a joint that the controller does not have
        names, columns = ("gripper", "a", "c", "b"), [0, 0, 2, 1]
        other = Feedforward(*(stack[:, columns] for stack in feedforward(170)[:3]), NO_BASE)
        b.send(170, other, names)
        found = b.tick_and_hear(170, commands)
        np.testing.assert_allclose(found.data, sines(173, 1, 8.0)[0][[2, 0]], rtol=0, atol=1e-9)


def test_motor_efforts_are_filled_up_and_come_with_each_message() -> None:
    with bench("forward_effort_node", "fe_motor", efforts="motor", rate=0.0) as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        b.tick(0)
        for ms in range(10, 130, 10):
            b.tick(ms)
            before = len(commands)
            b.send(ms)
            b.talk.wait_until(lambda: len(commands) > before, "the answer to a message")  # noqa: B023
        np.testing.assert_allclose(commands[-1].data, sines(120, 1, 6.0)[0], rtol=0, atol=1e-9)
        last, count = feedforward(120), len(commands)
        for ms in range(130, 210, 20):  # nobody asks for these, but when the stream stops they come
            b.tick(ms)
            b.serve()
        b.talk.wait_for_line(b.node, "following -> stopping: no feedforward")
        assert 1 <= len(commands) - count <= 5
        # what was sent last, before it goes to zero
        np.testing.assert_allclose(commands[count].data, last.motor_efforts[0], rtol=0, atol=1e-6)


@pytest.mark.thorough
def test_a_stop_that_takes_long_goes_on_to_its_end() -> None:
    """Longer than 4 s, after which the controllers would keep what is left of the efforts for ever."""
    given = {"joints": list(JOINTS), "rate": 100.0, "fade": 6.0, "settle": 0.0, "join_within": 0.0}
    given["drive_timeout"] = 10.0  # where the machine is busy
    with start_node("forward_effort_node", given, "fe_long") as node, Talk("fe_long") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        sender = talk.publisher(FeedforwardTorque, "feedforward_torque")
        resting = Feedforward(np.full((1, 3), 8.0), np.zeros((3, 3)), np.empty((0, 3)), NO_BASE)
        while not commands or max(commands[-1].data) < 0.5:
            header = Header(stamp=talk.node.get_clock().now().to_msg())
            sender.publish(write_feedforward_torque(header, list(JOINTS), resting, 0.0))
            talk.pause(0.02)
        assert node.stop(signal.SIGINT) == 0, node.output()
        talk.wait_until(lambda: not any(commands[-1].data), "the end of the efforts")
        assert "held up" not in node.output() and max(commands[-2].data) < 1e-3
        # less than 6 s where the last message was late, so that the stop has begun before the signal
        (takes,) = re.findall(r"the stop takes ([\d.]+) s", node.output())
        assert 4.0 < float(takes) <= 6.0


@pytest.mark.parametrize("end", ["zero", "hold", "silent"])
def test_what_is_sent_when_messages_stop_is_as_chosen(end: str) -> None:
    with bench("forward_effort_node", f"fe_{end}", end=end) as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        b.follow(10, 210, commands)
        for ms in range(210, 260, 10):
            last = np.array(b.tick_and_hear(ms, commands).data)
        count = len(commands)
        if end == "silent":
            for ms in range(260, 500, 40):
                b.tick(ms)
                b.serve()
            b.talk.wait_for_line(b.node, "following -> stopping: no feedforward")
            assert len(commands) == count
        else:
            for ms in range(260, 500, 10):
                found = b.tick_and_hear(ms, commands)
                expected = last if end == "hold" else faded(last, 1e-2 * (ms - 260))
                np.testing.assert_allclose(found.data, expected, rtol=1e-9, atol=1e-9)
        # it goes on where it stood, without a step
        back = [np.array(command.data) for command in b.follow(500, 640, commands)]
        stood = np.zeros(3) if end == "zero" else last
        steps = np.diff([stood, *back], axis=0)
        assert np.abs(steps).max() <= 1.9 * 0.1 * np.abs(stood - feedforward(500).efforts[0]).max() + 0.1
        np.testing.assert_allclose(back[-1], feedforward(630).efforts[0], rtol=0, atol=1e-9)
        b.tick(1700)
        values = b.talk.status("forward_effort_node", lambda _, v: v["stopped for: no feedforward"] != "0")
        assert values["efforts"] == "link"
        for words in (
            "waiting -> joining",
            "joining -> following",
            "stopping -> stopped",
            "stopped -> joining",
        ):
            b.talk.wait_for_line(b.node, words)


def test_bad_feedforwards_are_refused_and_the_next_one_works() -> None:
    with bench("forward_effort_node", "fe_bad", efforts="motor") as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        sound = feedforward(0)
        nan = sound._replace(efforts=np.full((1, 3), np.nan))
        without = sound._replace(motor_efforts=np.empty((0, 3)))
        for ms, what, names, words in (
            (0, sound, ("a", "c", "d"), "joint 'b' is missing from the message"),
            (0, nan, JOINTS, "efforts holds nan for joint 'a'"),
            (0, without, JOINTS, "the feedforward holds no motor efforts"),
            (-60, sound, JOINTS, "its stamp lies 0.06 s before the clock of this node"),
            (70, sound, JOINTS, "its stamp lies 0.07 s after the clock of this node"),
        ):
            b.send(ms, what, names)
            b.talk.wait_for_line(b.node, words)
            b.talk.pause(1.1 if ms < 0 else 0.0)  # one line per reason and second
        wide = Feedforward(np.ones((1, 4)), np.empty((0, 4)), np.ones((1, 4)), NO_BASE)
        b.send(0, wide, ("a", "b", "c", "a"))
        b.talk.wait_for_line(b.node, "joint 'a' is named twice in the message")
        b.tick(10)
        b.tick(20)
        b.send(20)
        b.serve()
        b.tick_and_hear(30, commands)
        b.talk.pause(1.1)
        b.send(20)
        b.talk.wait_for_line(b.node, "stamps must increase")
        b.tick(1100)
        values = b.talk.status("forward_effort_node", lambda _, v: v["feedforwards"] == "1")
        for reason, count in (("missing joint", 1), ("not finite", 1), ("bad times", 3)):
            assert values[f"rejected: {reason}"] == str(count)
        assert values["rejected"] == "7"


def test_a_second_publisher_and_limits_exceeded_end_the_following() -> None:
    with bench("forward_effort_node", "fe_second", end="hold") as b:
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        b.follow(10, 210, commands)
        shifted = feedforward(210)
        b.send(
            210,
            shifted._replace(motor_positions=shifted.motor_positions + 0.3, efforts=shifted.efforts + 30.0),
        )
        found = [np.array(b.tick_and_hear(ms, commands).data) for ms in range(210, 260, 10)]
        b.talk.wait_for_line(
            b.node, "following -> stopping: reference discontinuity: the position of joint 'a'"
        )
        assert np.abs(np.diff(found, axis=0)).max() < 0.5
        b.follow(260, 420, commands)
        assert b.talk.call(Trigger, "forward_effort_node/start", Trigger.Request()).success
        b.follow(420, 620, commands)
        b.send(620, feedforward(620)._replace(status=Status.POSITION_LIMIT_EXCEEDED))
        b.tick_and_hear(620, commands)
        b.talk.wait_for_line(
            b.node,
            "stopping: feedforward beyond limits: the feedforward has the status POSITION_LIMIT_EXCEEDED",
        )


def test_nothing_is_sent_before_the_controllers_are_active_and_it_fades_in_then() -> None:
    """By what a controller manager says in /diagnostics; its own message is not where this is tested."""
    with (
        bench("forward_effort_node", "fe_active", controllers=["arm", "hand"]) as b,
        Manager("fe_active") as ours,
        Manager("fe_other") as other,  # of another robot
    ):
        commands = b.talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        managers = {each: each.publisher(DiagnosticArray, "/diagnostics") for each in (ours, other)}

        def say(by: Manager = ours, **states: str) -> None:
            values = [KeyValue(key=f"{name}.state", value=state) for name, state in states.items()]
            status = DiagnosticStatus(name="controller_manager: Controllers Activity", values=values)
            managers[by].publish(DiagnosticArray(status=[status]))
            b.serve()

        for ms in range(10, 60, 10):
            b.send(ms)
            b.tick(ms)
        say(arm="active", hand="inactive")
        b.send(60)
        b.tick(60)
        b.talk.status("forward_effort_node", lambda _, v: v["reason"] == "nobody takes the commands")
        say(other, arm="active", hand="active")
        b.send(70)
        b.tick(70)
        b.talk.status("forward_effort_node", lambda _, v: v["reason"] == "nobody takes the commands")
        assert not commands
        say(arm="active", hand="active")
        say(other, arm="inactive", hand="inactive")
        first, *_, last = b.follow(80, 210, commands)
        assert list(first.data) == pytest.approx([0.0] * 3, abs=1e-6)
        np.testing.assert_allclose(last.data, feedforward(200).efforts[0], rtol=0, atol=1e-9)
        say(arm="inactive", hand="active")
        count = len(commands)
        b.send(210)
        b.tick(210)
        b.talk.wait_for_line(b.node, "following -> waiting: nobody takes the commands")
        assert len(commands) == count
        say(arm="active", hand="active")  # nothing is followed any more, and they keep what came last
        b.tick_and_hear(400, commands)
        for ms in (410, 420):
            b.tick(ms)
            b.serve()
        assert [list(each.data) for each in commands[count:]] == [[0.0] * 3]


# motors


def test_motor_references_begin_brake_and_return_where_the_robot_stands() -> None:
    with bench("motor_reference_node", "mr", lead=0.001, join_within=0.02) as b:
        references = b.talk.hear_nothing_yet(JointState, "motor_references")
        arrays = [
            b.talk.hear_nothing_yet(Float64MultiArray, f"{quantity}_commands")
            for quantity in ("position", "velocity", "effort")
        ]

        def reason(words: str) -> None:
            b.talk.status("motor_reference_node", lambda status, _: words in status.message)

        def at(ms: float) -> None:
            b.tick(ms)
            b.send(ms)
            b.tick(ms + 10)

        at(10)
        reason("start pose invalid: where the robot stands is not known")
        here = feedforward(1000).motor_positions[0]
        b.tick(1000)
        b.measure(1000, here + 0.03)
        at(1000)
        reason("start pose invalid: joint 'a' stands 0.03")
        assert not references
        b.tick(2000)
        b.measure(2000, feedforward(2000).motor_positions[0] + 0.01)
        b.send(2000)
        first = b.tick_and_hear(2010, references)
        np.testing.assert_allclose(
            first.position, feedforward(2000).motor_positions[0] + 0.01, rtol=0, atol=1e-4
        )
        assert np.abs(first.velocity).max() < 1e-2 and not any(first.effort)
        b.follow(2020, 2150, references)
        moving = b.tick_and_hear(2160, references)
        assert moving.header.stamp == b.stamp(2161)
        np.testing.assert_allclose(moving.position, sines(2161, 1, 0.05)[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(moving.velocity, sines(2161, 2, 0.05)[1], rtol=0, atol=1e-4)
        np.testing.assert_allclose(moving.effort, sines(2161, 1, 6.0)[0], rtol=0, atol=1e-2)
        k = len(references)
        for heard, field in zip(arrays, ("position", "velocity", "effort")):
            b.talk.wait_until(lambda: len(heard) == k, "the same in an array")  # noqa: B023
            np.testing.assert_array_equal(heard[-1].data, getattr(moving, field))
        stop = [b.tick_and_hear(ms, references) for ms in range(2170, 2500, 10)]
        speeds = np.array([np.array(msg.velocity) for msg in stop])
        assert not speeds[-1].any()
        assert (np.abs(np.diff(speeds, axis=0)) <= 1e-2 * 7.5).all()  # [rad/s^2] as asked for
        # the motion has gone on meanwhile, and is not taken up
        b.tick(3500)
        b.measure(3500, np.array(stop[-1].position))
        at(3500)
        reason("start pose invalid")


@pytest.mark.parametrize(
    ("name", "end"),
    some(
        product(("forward_effort_node", "motor_reference_node"), ("zero", "hold")),
        ("forward_effort_node", "zero"),
        ("motor_reference_node", "hold"),
    ),
)
def test_after_a_hold_up_nothing_that_drives_a_robot_on_stays_with_its_controllers(
    name: str, end: str
) -> None:
    """Those of ros2_control keep what came last, for ever: efforts as chosen, and a velocity of a motion."""
    with bench(name, f"held_{name}_{end}", end=end) as b:
        topics = ["effort_commands", "velocity_commands"][: 1 + (name == "motor_reference_node")]
        heard = [b.talk.hear_nothing_yet(Float64MultiArray, topic) for topic in topics]
        moving = b.follow(10, 210, heard[0])[-1]
        count = len(heard[0])
        b.tick(410)
        b.talk.wait_for_line(b.node, "following -> stopped: held up")
        b.talk.wait_until(lambda: len(heard[0]) == count + (end == "zero"), "efforts of zero")
        b.talk.wait_until(lambda: all(len(each) == count + 1 for each in heard[1:]), "a velocity of zero")
        for ms in (420, 430):
            b.tick(ms)
            b.serve()
        assert [list(each.data) for each in heard[0][count - 1 :]] == [
            list(moving.data),
            *[[0.0] * 3] * (end == "zero"),
        ]
        for velocities in heard[1:]:
            assert len(velocities) == count + 1 and any(velocities[-2].data)
            assert list(velocities[-1].data) == [0.0] * 3


def test_references_join_anywhere_where_allowed() -> None:
    with bench("motor_reference_node", "mr_any") as b:
        references = b.talk.hear_nothing_yet(JointState, "motor_references")
        *_, last = b.follow(10, 130, references)
        np.testing.assert_allclose(last.position, feedforward(120).motor_positions[0], rtol=0, atol=1e-9)
        without = feedforward(130)._replace(motor_positions=np.empty((0, 3)))
        b.send(130, without)
        b.talk.wait_for_line(b.node, "the feedforward holds motor positions of 0 orders")
        # one who keeps what newcomers have missed, which a stream does not offer
        b.talk.node.create_subscription(Float64MultiArray, "velocity_commands", print, latched_qos())
        b.talk.wait_for_line(
            b.node, "a subscription of 'velocity_commands' of node /mr_any/talk has incompatible"
        )


@pytest.mark.parametrize("name", ["forward_effort_node", "motor_reference_node"])
def test_what_is_joined_anywhere_is_watched_all_the_same(name: str) -> None:
    with bench(name, f"watched_{name}", tracking_error=0.02) as b:
        b.tick(0)
        for ms in range(10, 300, 10):
            b.measure(ms - 10, feedforward(ms - 10).motor_positions[0] + 0.03)
            b.send(ms)
            b.tick(ms)
            b.serve()
            if "joining -> stopping" in b.node.output():
                break
        b.talk.wait_for_line(b.node, "joining -> stopping: tracking error: joint 'a' is 0.0")
