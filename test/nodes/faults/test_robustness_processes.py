"""Nodes whose neighbours die, come back, are slow, freeze, or are another robot of the same kind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from ros_peer import Peer, asked
from ros_processes import RosProcess, start_node, start_script
from ros_stream import JOINTS, held_up, motion
from ros_talk import Talk

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.messages import nanoseconds, time_message, write_desired_motion
from hodyn_ros.ros.streams.qos import stream_qos

PANDA = "panda.yaml"
MILLISECOND = 1_000_000


@pytest.fixture(scope="module")
def law() -> FeedforwardModel:
    return FeedforwardModel(Robot.load(share.find("config", PANDA)), 2)


def desired(nanosecond: int) -> DesiredMotion:
    return write_desired_motion(JOINTS, time_message(nanosecond), motion(nanosecond))


def assert_right(answers: list[FeedforwardTorque], law: FeedforwardModel) -> None:
    """Hold answers against the law at their stamps, which increase."""
    stamps = [nanoseconds(answer.header.stamp) for answer in answers]
    assert stamps == sorted(set(stamps))
    for stamp, answer in zip(stamps, answers):
        expected = law.compute(motion(stamp))
        assert_same(answer.efforts, expected.efforts[0])
        assert_same(answer.motor_efforts, expected.motor_efforts[0])


def assert_same(found: object, expected: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


def start_publisher(namespace: str, folder: Path, count: int = 1, rate: int = 50) -> RosProcess:
    """Start a publisher that sends at 50 Hz until it is told to go, then `count` at `rate`."""
    return start_script(
        "ros_stream.py", "publish", str(count), str(rate), str(folder / "sent.npy"), namespace=namespace
    )


def more_answers(peer: Peer, count: int) -> Callable[[], bool]:
    """Return whether that many answers have come since now."""
    before = len(peer.answers)
    return lambda: len(peer.answers) >= before + count


def test_a_publisher_that_is_killed_and_started_again_is_answered(
    law: FeedforwardModel, tmp_path: Path
) -> None:
    with asked({"robot_config": PANDA}, "orphan") as (node, peer):
        for _ in range(2):
            with start_publisher("orphan", tmp_path) as publisher:
                publisher.wait_for_line("publisher matched")
                peer.wait_until(more_answers(peer, 20), "answers to the publisher")
                assert publisher.stop(signal.SIGKILL) == -signal.SIGKILL
        assert_right(peer.answers, law)
        # the second one waits until the first, whose end DDS has not seen yet, has been silent long enough
        report = peer.diagnostics()
        assert report["rejected"] == report["rejected: second publisher"]


def test_a_node_that_is_killed_and_started_again_goes_on_in_the_stream(
    law: FeedforwardModel, tmp_path: Path
) -> None:
    with Peer("phoenix") as peer, start_publisher("phoenix", tmp_path) as publisher:
        for how in (signal.SIGKILL, signal.SIGINT):
            with start_node("dynamics_node", {"robot_config": PANDA}, "phoenix") as node:
                node.wait_for_line("robot 'panda'")
                peer.wait_until(more_answers(peer, 20), "answers of the node")
                node.stop(how)
        assert publisher.running, publisher.output()
        assert_right(peer.answers, law)


@pytest.mark.realtime
def test_slow_and_frozen_subscribers_hold_up_nobody(tmp_path: Path) -> None:
    count = 1500  # more than the history of the topic holds
    with (
        start_node("dynamics_node", {"robot_config": PANDA}, "slow") as node,
        start_script("ros_stream.py", "collect", str(tmp_path / "fast.npz"), namespace="slow") as fast,
        start_script("ros_stream.py", "collect", str(tmp_path / "frozen.npz"), namespace="slow") as frozen,
        start_publisher("slow", tmp_path, count, 500) as publisher,
        Talk("slow") as talk,
    ):
        slow: list[int] = []

        def take(msg: FeedforwardTorque) -> None:
            time.sleep(0.02)  # it has ten times as much to do as there is time
            slow.append(nanoseconds(msg.header.stamp))

        subscription = talk.node.create_subscription(
            FeedforwardTorque, "feedforward_torque", take, stream_qos(1)
        )
        for subscriber in (fast, frozen):
            subscriber.wait_for_line("subscriber matched")
        talk.wait_until(lambda: slow, "an answer to the slow subscriber")
        os.kill(frozen.pid, signal.SIGSTOP)
        publisher.tell("go")
        talk.wait_for_line(publisher, "published")
        sent = np.load(tmp_path / "sent.npy")
        talk.wait_until(lambda: slow[-1] == sent[-1], "the last answer to the slow subscriber")
        os.kill(frozen.pid, signal.SIGCONT)
        for subscriber in (fast, frozen):
            subscriber.tell(str(sent[-1]))
            subscriber.wait_for_line("collected")
        talk.node.destroy_subscription(subscription)
        publisher.tell("end")
        assert node.stop() == 0, node.output()
    assert slow == sorted(set(slow))
    assert len(slow) < count // 2
    got = np.load(tmp_path / "fast.npz")["stamps"]
    if len(got[got >= sent[0]]) < count and held_up(sent):
        pytest.skip("the machine was too busy for this stream")
    np.testing.assert_array_equal(got[got >= sent[0]], sent)  # each once, in order
    late = np.load(tmp_path / "frozen.npz")["stamps"]
    assert (np.diff(late) > 0).all()
    assert late[-1] == sent[-1]


def test_two_robots_with_the_same_joint_names_do_not_hear_each_other() -> None:
    gravities = {"earth": [0.0, 0.0, -9.81], "moon": [0.0, 0.0, -1.62]}
    laws = {
        name: FeedforwardModel(Robot.load(share.find("config", PANDA), gravity), 2)
        for name, gravity in gravities.items()
    }
    with ExitStack() as stack:
        for name, gravity in gravities.items():
            parameters = {"robot_config": PANDA, "gravity": gravity}
            stack.enter_context(start_node("dynamics_node", parameters, name))
        peers = {name: stack.enter_context(Peer(name)) for name in gravities}
        for peer in peers.values():
            peer.wait_for_topics()
        sent: dict[str, list[int]] = {name: [] for name in gravities}
        for k in range(1, 51):
            for offset, (name, peer) in enumerate(peers.items()):
                sent[name].append((10 * k + offset) * MILLISECOND)
                peer.send(desired(sent[name][-1]))
        for name, peer in peers.items():
            peer.wait_until(lambda peer=peer: len(peer.answers) >= 50, f"the answers to {name}")
            values = peer.diagnostics(lambda values: int(values["answered"]) >= 50)
            assert (int(values["answered"]), int(values["rejected"])) == (50, 0)
            assert peer.stamps() == sent[name]
            assert_right(peer.answers, laws[name])


def chain(joints: int) -> str:
    """Return a URDF of a chain of so many revolute joints, no two alike."""
    rng = np.random.default_rng(joints)
    parts = ['<link name="link0"/>']
    for k in range(1, joints + 1):
        x, y, z = rng.uniform(-0.1, 0.1, 3)
        a, b, c = rng.uniform(0.01, 0.02, 3)
        axis = " ".join(f"{value:.6f}" for value in rng.normal(size=3))
        parts.append(
            f'<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/><child link="link{k}"/>'
            f'<origin xyz="{x:.6f} {y:.6f} 0.1" rpy="{z:.6f} {x:.6f} {y:.6f}"/><axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" effort="1000" velocity="10"/></joint>'
            f'<link name="link{k}"><inertial><origin xyz="{y:.6f} {z:.6f} {x:.6f}"/><mass value="{a:.6f}"/>'
            f'<inertia ixx="{a:.6f}" iyy="{b:.6f}" izz="{c:.6f}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
    return f'<robot name="chain">{"".join(parts)}</robot>'


def test_a_robot_of_a_hundred_joints(tmp_path: Path) -> None:
    (tmp_path / "chain.urdf").write_text(chain(100))
    config = tmp_path / "chain.yaml"
    config.write_text("urdf: chain.urdf\n")
    robot = Robot.load(config)
    rng = np.random.default_rng(1)
    shuffled = rng.permutation(100)
    names = [robot.joint_names[joint] for joint in shuffled]
    with asked({"robot_config": config}, "chain") as (node, peer):
        for k in range(1, 26):
            stack = rng.uniform(-1.0, 1.0, (5, 100))
            stamp = Time(nanosec=k * MILLISECOND)
            moved = np.ascontiguousarray(stack[:, shuffled])
            answer = peer.answer_to(write_desired_motion(names, stamp, moved))
            expected = robot.inverse_dynamics(stack, formulation="spatial")
            assert list(answer.joint_names) == list(robot.joint_names)
            for found, right in zip((answer.efforts, answer.effort_rates), expected):
                np.testing.assert_allclose(found, right, rtol=0.0, atol=1e-11 * np.abs(right).max())
        times = [answer.computation_time for answer in peer.answers]
        assert np.median(times) < 0.005  # a sample at 200 Hz
