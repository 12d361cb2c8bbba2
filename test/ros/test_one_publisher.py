"""One publisher of a stream is followed; another one is rejected by name, and what is lost is counted."""

import signal
from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from geometry_msgs.msg import Point, Pose
from rclpy.qos import QoSProfile
from ros_peer import asked
from ros_stream import JOINTS, motion

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion
from hodyn_ros.ros.streams.one_publisher import OnePublisher, motion_continues
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

MILLISECOND = 10**6
A, B = b"a" * 16, b"b" * 16


class World:
    """A topic in virtual time: who publishes, and who is followed."""

    def __init__(self, **options: Any) -> None:
        self.now = 100.0
        self.publishers = {A: "/planner", B: "/left/trajectory_node"}
        self.one = OnePublisher(lambda: self.publishers, clock=lambda: self.now, **options)
        self.lost = 0

    def hears(self, gid: bytes | None, number: int | None = None, msg: Any = None) -> bool:
        """Return whether a message is taken, a millisecond after the one before."""
        self.now += 0.001
        identity = None if gid is None else {"implementation_identifier": "some", "data": gid}
        try:
            info = {"publisher_gid": identity, "publication_sequence_number": number}
            self.lost += self.one.check(msg, info)
        except MessageRejected as rejected:
            assert rejected.reason is Reason.SECOND_PUBLISHER
            self.words = str(rejected)
            return False
        return True


def test_a_second_publisher_is_refused_by_name() -> None:
    world = World()
    rng = np.random.default_rng(5)
    assert world.hears(A)
    for gid in (A, B)[:: int(rng.integers(2)) * 2 - 1] * 500:
        assert world.hears(gid) == (gid == A)
    assert world.words == (
        "it comes from /left/trajectory_node while /planner is followed; let one node publish at a time; "
        "another is followed when the first has been silent for 0.5 s"
    )


def test_another_publisher_is_followed_after_silence_or_when_the_first_has_gone() -> None:
    world = World()
    assert world.hears(A)
    world.now += 0.49
    assert not world.hears(B)
    world.now += 0.02
    assert world.hears(B) and not world.hears(A)  # which comes back, and is second now
    del world.publishers[B]
    assert not world.hears(A)  # those that have just been heard may not be known yet
    world.now += 0.15
    assert world.hears(A)


def test_a_publisher_without_a_name_is_refused_all_the_same() -> None:
    world = World()
    del world.publishers[B]
    assert world.hears(A) and not world.hears(B)
    assert "it comes from a node unknown by name while /planner is followed" in world.words


def test_lost_messages_show_in_their_numbers() -> None:
    world = World()
    taken = [*range(7, 20), *range(25, 40), 41]
    assert all(world.hears(A, number) for number in taken)
    assert world.lost == 5 + 1
    world.now += 1.0
    assert world.hears(B, 900) and world.hears(B, 901)
    assert world.lost == 6  # another publisher counts for itself
    world.one.forget()
    assert world.hears(B, 1000)
    assert world.lost == 6


def stream(start: float, position: float, rate: float) -> list[DesiredMotion]:
    """Return half a second of a fast motion from a random instant on."""
    times = start + np.arange(0.0, 0.5, 1.0 / rate)
    messages = []
    for t in times:
        phase = 3.0 * t + np.arange(3)
        stack = np.array([2.0 * 3.0**k * np.sin(phase + 0.5 * np.pi * k) for k in range(3)])
        stack[0] += position
        messages.append(write_desired_motion(["a", "b", "c"], time_message(round(1e9 * t)), stack))
    return messages


@pytest.mark.parametrize("rate", [10.0, 100.0, 1000.0])
def test_without_identities_samples_have_to_go_on_from_each_other(rate: float) -> None:
    """As under ROS 2 Jazzy, whose messages do not say where they come from."""
    first, second = stream(100.0, 0.0, rate), stream(100.0001, 0.3, rate)
    assert all(motion_continues(*pair) for pair in zip(first, first[1:]))
    world = World(continues=motion_continues)
    heard = Counter[bool]()
    for one, other in zip(first, second):
        assert world.hears(None, msg=one)
        heard[world.hears(None, msg=other)] += 1
    assert heard[True] == 0
    words = "it does not go on from the one before, and /left/trajectory_node and /planner publish"
    assert words in world.words
    # a single publisher may jump as it likes
    del world.publishers[B]
    world.now += 0.2
    assert world.hears(None, msg=second[-1])


def test_a_base_has_to_go_on_as_well() -> None:
    def at(nanosecond: int, x: float) -> DesiredMotion:
        msg = DesiredMotion(base_pose=[Pose(position=Point(x=x))], base_twists=[0.0] * 3 + [1.0, 0.0, 0.0])
        msg.header.stamp = time_message(nanosecond)
        return msg

    assert motion_continues(at(0, 1.0), at(10 * MILLISECOND, 1.01))
    assert not motion_continues(at(0, 1.0), at(10 * MILLISECOND, 1.1))
    assert not motion_continues(at(0, 1.0), DesiredMotion(header=at(10 * MILLISECOND, 1.0).header))


def test_dynamics_node_answers_one_of_two_publishers_and_names_the_other() -> None:
    parameters = {"robot_config": "panda.yaml", "new_publisher_after": 2.0}
    with asked(parameters, "two") as (node, peer):
        intruder = peer.node.create_publisher(DesiredMotion, "desired_motion", QoSProfile(depth=1000))
        peer.wait_until(lambda: intruder.get_subscription_count() > 0, "the second publisher")

        def sample(k: int, offset: float = 0.0) -> DesiredMotion:
            stack = motion(k * MILLISECOND)
            stack[0] += offset
            return write_desired_motion(JOINTS, time_message(k * MILLISECOND), stack)

        peer.answer_to(sample(1))
        for k in range(2, 400, 2):
            intruder.publish(sample(k, 0.3))
            peer.answer_to(sample(k + 1))
        assert peer.stamps() == [k * MILLISECOND for k in range(1, 400, 2)]
        values = peer.diagnostics(lambda values: int(values["rejected"]) >= 199)
        assert values["rejected: second publisher"] == "199"
        sent = [399]

        def send() -> None:
            intruder.publish(sample(sent[-1] + 1, 0.3))
            sent.append(sent[-1] + 2)
            peer.answer_to(sample(sent[-1]))

        # names of nodes come later than their topics, and lines once a second
        words = "it comes from /two/peer while /two/peer is followed; let one node publish at a time"
        peer.wait_for_line(node, words, send)
        peer.pause(2.1)
        last = sent[-1] + 1
        intruder.publish(sample(last))
        peer.wait_until(lambda: peer.stamps()[-1] == last * MILLISECOND, "the answer to the successor")


def test_dynamics_node_counts_what_does_not_fit_into_its_queue() -> None:
    parameters = {
        "robot_config": "panda.yaml",
        "qos_overrides./full/desired_motion.subscription.depth": 5,
    }
    with asked(parameters, "full") as (node, peer):
        peer.answer_to(write_desired_motion(JOINTS, time_message(1), motion(0)))
        node.send(signal.SIGSTOP)  # a node too slow for what is sent
        for k in range(2, 502):
            peer.send(write_desired_motion(JOINTS, time_message(k), motion(0)))
        node.send(signal.SIGCONT)
        peer.wait_until(lambda: peer.stamps()[-1] == 501, "the answer to the last sample")
        lost = 501 - len(peer.answers)
        key = "messages lost: desired_motion"
        assert lost > 0
        assert peer.diagnostics(lambda values: int(values[key]) > 0)[key] == str(lost)
        assert "messages on 'desired_motion' were lost: more came than can wait" in node.output()
