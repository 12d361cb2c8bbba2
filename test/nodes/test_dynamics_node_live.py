"""What changes about dynamics_node while it answers: payload, limits, wrenches; and settings that tell it."""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3, Wrench, WrenchStamped
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from ros_peer import Peer, asked, node_and_peer
from ros_processes import RosProcess
from ros_stream import JOINTS, motion
from std_msgs.msg import Header, String

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import nanoseconds, read_wrenches, time_message, write_desired_motion
from hodyn_ros.ros.streams.qos import latched_qos
from hodyn_ros.ros.streams.rejections import MessageRejected

PANDA = "panda.yaml"
SPACE = "live"
SECOND = 1_000_000_000
HAND = "panda_link7"


both, node, peer = node_and_peer({"robot_config": PANDA}, SPACE, "module")
DEFAULTS = {
    **{name: list(x) if isinstance(x, tuple) else x for name, x in asdict(FeedforwardConfig()).items()},
    **{"wrench_cutoff": 10.0, "wrench_timeout": 0.1},
}


@pytest.fixture(autouse=True)
def defaults(peer: Peer) -> Iterator[None]:
    """Leave the parameters of the node as they are by default."""
    yield
    answer = peer.set_parameters(**DEFAULTS)
    assert answer.successful, answer.reason


class Stamps:
    now = 0

    @classmethod
    def next(cls) -> Time:
        cls.now += SECOND // 1000
        return time_message(cls.now)


def ask(peer: Peer, stack: np.ndarray) -> FeedforwardTorque:
    return peer.answer_to(write_desired_motion(JOINTS, Stamps.next(), stack))


STACK = motion(3 * SECOND)


def wrench(moment: list[float], force: list[float], frame: str = "") -> WrenchStamped:
    m, f = (Vector3(x=v[0], y=v[1], z=v[2]) for v in (moment, force))
    return WrenchStamped(header=Header(frame_id=frame), wrench=Wrench(torque=m, force=f))


class Sensor:
    """A publisher of wrenches, best effort as those of sensors often are."""

    def __init__(self, peer: Peer, body: str) -> None:
        best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
        self._publisher: Any = peer.node.create_publisher(
            WrenchStamped, f"external_wrench/{body}", best_effort
        )
        peer.wait_until(lambda: self._publisher.get_subscription_count() > 0, "the node's subscription")

    def publish(self, msg: WrenchStamped) -> None:
        self._publisher.publish(msg)

    def publish_until(self, peer: Peer, msg: WrenchStamped, key: str, count: int) -> None:
        """Publish again and again, as best effort may lose some, until the node has counted so many."""

        def counted(values: dict[str, str]) -> bool:
            self.publish(msg)
            return int(values[key]) >= count

        peer.diagnostics(counted)


def test_the_settings_tell_all_that_the_answers_follow_from(peer: Peer) -> None:
    heard: list[str] = []

    def wait_for(count: int) -> str:
        peer.wait_until(lambda: len(heard) >= count, f"settings number {count}")
        return heard[-1]

    kept = peer.node.create_subscription(  # noqa: F841  the subscription lives as long as it has a name
        String, "dynamics_node/settings", lambda msg: heard.append(msg.data), latched_qos()
    )
    first = wait_for(1)
    assert json.loads(first)["after_stamp"] is None
    questions, answers = [], []

    def ask_again() -> None:
        for _ in range(3):
            questions.append(write_desired_motion(JOINTS, Stamps.next(), motion(Stamps.now)))
            answers.append(peer.answer_to(questions[-1]))

    ask_again()
    change = {"payload_mass": 1.0, "gravity": [1.0, 0.0, -9.0], "wrench_bodies": [HAND], "order": 1}
    assert peer.set_parameters(**change).successful
    second = wait_for(2)
    assert json.loads(second)["after_stamp"] == nanoseconds(questions[-1].header.stamp)
    pushed = wrench([0.1, 0.2, 0.3], [4.0, 5.0, 6.0])
    Sensor(peer, HAND).publish_until(peer, pushed, f"wrench on {HAND}: messages", 1)
    ask_again()
    assert np.abs(read_wrenches(answers[-1])).max() > 0.0
    for text, some in ((first, slice(0, 3)), (second, slice(3, 6))):
        pipeline = FeedforwardPipeline.from_settings(text)
        for question, answer in zip(questions[some], answers[some], strict=True):
            again = pipeline.answer(question, read_wrenches(answer))
            again.computation_time = answer.computation_time
            assert again == answer  # to the last bit
        refused(partial(pipeline.answer, questions[0]), "before the last accepted one", MessageRejected)


def test_a_payload_changes_while_the_node_answers_all_or_none(peer: Peer, panda: Robot) -> None:
    tool = {"payload_mass": 1.5, "payload_centre": [0.0, 0.01, 0.15]}
    assert peer.set_parameters(**tool, payload_inertia=[0.004, 0.0, 0.0, 0.005, 0.0, 0.003]).successful
    payload = Payload(1.5, (0.0, 0.01, 0.15), (0.004, 0.0, 0.0, 0.005, 0.0, 0.003))
    loaded = Robot(payload.on_tree(panda), panda.limits, panda.drive_train)
    expected = FeedforwardModel(loaded, 2).compute(STACK)
    answer = ask(peer, STACK)
    np.testing.assert_allclose(answer.efforts, expected.efforts[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(answer.motor_efforts, expected.motor_efforts[0], rtol=1e-12, atol=1e-12)
    for wrong, reason in (
        ({"payload_mass": 2.0, "payload_inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 3.0]}, "which no body has"),
        ({"payload_mass": -1.0}, "payload_mass"),
        ({"payload_mass": 3.0, "payload_centre": [1.0]}, "'payload_centre' is [1.0]; give 3 finite values"),
        ({"payload_mass": 3.0, "payload_body": "hand"}, "'payload_body' is 'hand'; the robot has the bodies"),
    ):
        rejected = peer.set_parameters(**wrong)
        assert not rejected.successful
        assert reason in rejected.reason
    np.testing.assert_array_equal(ask(peer, STACK).efforts, answer.efforts)
    assert peer.set_parameters(payload_body="panda_link3").successful
    elsewhere = Payload(payload.mass, payload.centre, payload.inertia, "panda_link3").on_tree(panda)
    np.testing.assert_allclose(
        ask(peer, STACK).efforts, Robot(elsewhere).inverse_dynamics(STACK)[0], rtol=1e-12, atol=1e-12
    )


def test_limits_change_while_the_node_answers_all_or_none(peer: Peer, panda: Robot) -> None:
    assert Status(ask(peer, STACK).status) == Status.OK
    free = ask(peer, STACK)
    low = (0.5 * np.abs(free.efforts)).tolist()
    assert peer.set_parameters(effort_limits=low, clamp=True).successful
    answer = ask(peer, STACK)
    assert Status(answer.status) == Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED
    np.testing.assert_allclose(answer.efforts, np.sign(free.efforts) * low, rtol=1e-15, atol=0.0)
    assert peer.set_parameters(effort_limits=[np.inf] * 7, velocity_limits=[0.01] * 7).successful
    answer = ask(peer, STACK)
    assert Status(answer.status) == Status.VELOCITY_LIMIT_EXCEEDED
    np.testing.assert_array_equal(answer.efforts, free.efforts)
    assert peer.set_parameters(velocity_limits=[5.0] * 7, effort_rate_limits=[1e-3] * 7).successful
    assert Status(ask(peer, STACK).status) == Status.EFFORT_RATE_LIMIT_EXCEEDED
    rejected = peer.set_parameters(effort_limits=[1.0] * 7, velocity_limits=[1.0, 2.0])
    assert "'velocity_limits' holds 2 values for 7 joints; give one for each of" in rejected.reason
    rejected = peer.set_parameters(effort_limits=[1.0] * 6 + [-1.0])
    assert "joint 'panda_joint7': the limit effort is -1" in rejected.reason
    assert Status(ask(peer, STACK).status) == Status.EFFORT_RATE_LIMIT_EXCEEDED


def test_samples_go_on_while_a_change_is_made_and_all_switch_at_once(peer: Peer, panda: Robot) -> None:
    """A client asks for another order and gravity at once, in the middle of a stream of samples."""
    before = panda.inverse_dynamics(STACK)
    after = Robot(panda.model.with_gravity([0.5, 0.0, -9.5])).inverse_dynamics(
        np.vstack([STACK, np.zeros((1, 7))])
    )
    ask(peer, STACK)
    count = len(peer.answers)
    stack = np.vstack([STACK, np.zeros((1, 7))])
    sent, done = [], threading.Event()

    def stream() -> None:
        while not done.wait(0.002):
            if len(sent) - (len(peer.answers) - count) > 200:  # a busy machine must not fill the queues
                continue
            stamp = Stamps.next()
            peer.send(write_desired_motion(JOINTS, stamp, stack))
            sent.append(nanoseconds(stamp))

    thread = threading.Thread(target=stream)
    thread.start()
    try:
        peer.wait_until(lambda: len(peer.answers) > count + 50, "answers before")
        assert peer.set_parameters(order=3, gravity=[0.5, 0.0, -9.5]).successful
        peer.wait_until(lambda: peer.answers[-1].higher_effort_derivatives, "answers after")
    finally:
        done.set()
        thread.join()
    peer.wait_until(lambda: len(peer.answers) == count + len(sent), "the last answer")
    assert peer.stamps()[count:] == sent
    new = [bool(answer.higher_effort_derivatives) for answer in peer.answers[count:]]
    assert new == sorted(new)  # one switch
    for answer, switched in zip(peer.answers[count:], new, strict=True):
        expected = after if switched else before
        np.testing.assert_allclose(answer.efforts, expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(answer.effort_accelerations, expected[2], rtol=1e-12, atol=1e-11)


def test_lists_are_emptied_and_whole_numbers_taken(peer: Peer, panda: Robot) -> None:
    before = ask(peer, STACK)
    assert peer.set_parameters(gravity=[0, 0, 0]).successful
    weightless = Robot(panda.model.with_gravity([0.0, 0.0, 0.0])).inverse_dynamics(STACK)[0]
    np.testing.assert_allclose(ask(peer, STACK).efforts, weightless, rtol=1e-12, atol=1e-12)
    rejected = peer.set_parameters(gravity=["down"])
    assert "parameter 'gravity' takes double array, not ['down']" in rejected.reason
    assert peer.set_parameters(gravity=[]).successful
    np.testing.assert_array_equal(ask(peer, STACK).efforts, before.efforts)


def test_measured_wrenches_are_filtered_and_told(peer: Peer, node: RosProcess, panda: Robot) -> None:
    ask(peer, STACK)
    assert peer.set_parameters(wrench_bodies=[HAND], wrench_cutoff=30.0, wrench_timeout=60.0).successful
    answer = ask(peer, STACK)
    np.testing.assert_array_equal(read_wrenches(answer), np.zeros((1, 3, 6)))
    assert list(answer.wrench_bodies) == [HAND]
    assert answer.wrench_representation == FeedforwardTorque.BODY
    peer.diagnostics(lambda values: values[f"wrench on {HAND}: messages"] == "0")
    assert peer.statuses[-1].level == DiagnosticStatus.WARN
    assert peer.statuses[-1].message == f"no wrench is measured on {HAND}"
    sensor = Sensor(peer, HAND)
    push = [1.0, -2.0, 0.5, 10.0, 5.0, -30.0]
    seen = [np.zeros((3, 6))]
    while np.abs(seen[-1][0] - push).max() > 1e-3:
        assert len(seen) < 10_000
        sensor.publish(wrench(push[:3], push[3:], HAND))
        answer = ask(peer, STACK)
        found = read_wrenches(answer)
        assert found is not None
        seen.append(found[0])
        applied = AppliedWrench(HAND, found[0], representation="body_fixed")
        expected = panda.inverse_dynamics(STACK, wrenches=[applied])
        np.testing.assert_allclose(answer.efforts, expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(answer.effort_accelerations, expected[2], rtol=1e-12, atol=1e-12)
    assert np.abs(np.array(seen)[:, 1:]).max() > 0.0  # derivatives belong to it
    values = peer.diagnostics(lambda values: int(values[f"wrench on {HAND}: messages"]) > 1)
    assert values[f"wrench on {HAND}: timeouts"] == "0"
    # silence: the wrench fades, and that is counted
    assert peer.set_parameters(wrench_timeout=0.2).successful
    values = peer.diagnostics(lambda values: float(values[f"wrench on {HAND}: age [s]"]) > 1.0)
    faded = read_wrenches(ask(peer, STACK))
    assert faded is not None
    assert np.abs(faded[0, 0]).max() < 1e-3
    assert peer.diagnostics()[f"wrench on {HAND}: timeouts"] == "1"
    # what is not a wrench in a frame of the body is rejected
    sensor.publish_until(peer, wrench(push[:3], push[3:], "map"), f"wrench on {HAND}: rejected", 1)
    nothing = wrench([float("nan"), 0.0, 0.0], push[3:])
    rejected = int(peer.diagnostics()[f"wrench on {HAND}: rejected"])
    sensor.publish_until(peer, nothing, f"wrench on {HAND}: rejected", rejected + 1)
    peer.wait_for_line(node, "the wrench holds NaN or infinite numbers")
    line = peer.wait_for_line(node, "frame_id is 'map'")
    assert f"external_wrench/{HAND} rejected: " in line
    assert f"with wrench_frame 'body' a wrench on '{HAND}' is given in '{HAND}'" in line
    # off again
    assert peer.set_parameters(wrench_bodies=[]).successful
    answer = ask(peer, STACK)
    assert read_wrenches(answer) is None
    np.testing.assert_allclose(answer.efforts, panda.inverse_dynamics(STACK)[0], rtol=1e-12, atol=1e-12)
    assert f"wrench on {HAND}: messages" not in peer.diagnostics()
    # and on, in the world: the topic's QoS parameters exist already
    assert peer.set_parameters(wrench_bodies=[HAND], wrench_frame="world").successful
    there = wrench(push[:3], push[3:], "world")
    assert peer.set_parameters(wrench_timeout=60.0).successful
    Sensor(peer, HAND).publish_until(peer, there, f"wrench on {HAND}: messages", 1)
    answer = ask(peer, STACK)
    assert answer.wrench_representation == FeedforwardTorque.WORLD
    found = read_wrenches(answer)
    assert found is not None
    assert found[0, 0].any()
    expected = panda.inverse_dynamics(
        STACK, wrenches=[AppliedWrench(HAND, found[0], representation="spatial")]
    )
    np.testing.assert_allclose(answer.efforts, expected[0], rtol=1e-12, atol=1e-12)


def test_wrench_sources_that_cannot_be_are_refused(peer: Peer) -> None:
    for wrong, reason in (
        ({"wrench_bodies": ["nothing"]}, "no body 'nothing'"),
        ({"wrench_bodies": [HAND, HAND]}, "name every body once"),
        ({"wrench_bodies": ["a-b"]}, "'a-b' cannot have a topic"),
        ({"wrench_frame": "tool"}, "'wrench_frame' is 'tool'; choose one of world, body"),
        ({"wrench_cutoff": 0.0}, "wrench_cutoff"),
    ):
        rejected = peer.set_parameters(**wrong)
        assert not rejected.successful
        assert reason in rejected.reason
    ask(peer, STACK)


def test_a_source_that_cannot_be_heard_fails_the_configuration_and_leaves_nothing() -> None:
    override = f"qos_overrides./deaf/external_wrench/{HAND}.subscription.reliability"
    parameters = {
        "robot_config": PANDA,
        "wrench_bodies": f"[{HAND}]",
        override: "quick",
        "autostart": False,
    }
    with asked(parameters, "deaf") as (node, peer):
        assert not peer.transition("configure")
        assert "quick" in node.wait_for_line("cannot configure")
        assert peer.state() == "unconfigured"
        peer.diagnostics(lambda values: values["engine"] == "")
        assert peer.statuses[-1].message.startswith("cannot configure: ")
        assert "quick" in peer.statuses[-1].message
        assert peer.set_parameters(wrench_bodies=[]).successful
        assert peer.transition("configure")
        assert peer.transition("cleanup")
        seen = len(peer.statuses)
        peer.wait_until(lambda: len(peer.statuses) > seen + 1, "diagnostics after the cleanup")
        assert peer.statuses[-1].message == "no robot is configured"


def test_a_platform_is_pushed_too() -> None:
    config, name, leg = "planar_3rrr.yaml", "tool", "left_body1"
    robot = Robot.load(share.find("config", config))
    home, twists = robot.home[1], np.zeros((4, 6))
    assert home is not None
    twists[1, 3] = 2.0  # [m/s^2], in the plane
    parameters = {"robot_config": config, "wrench_bodies": f"[{name}]", "wrench_timeout": 60.0}
    with asked(parameters, "pushed") as (node, peer):

        def check(robot: Robot, *bodies: str) -> NDArray[np.float64]:
            """Hold an answer against that of a robot which is pushed as it says."""
            msg = DesiredMotion(base_twists=float64s(twists))
            msg.header.stamp = Stamps.next()
            x, y, z = home[:3, 3]
            msg.base_pose = [Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=1.0))]
            answer = peer.answer_to(msg)
            found = read_wrenches(answer)
            assert found is not None and found[:, 0].any(axis=1).all()
            moved = BaseMotion(home, twists)
            loads = [AppliedWrench(*each, representation="body_fixed") for each in zip(bodies, found)]
            efforts = robot.inverse_dynamics(None, moved, loads)[0]
            np.testing.assert_allclose(answer.efforts, efforts, rtol=1e-12, atol=1e-12)
            assert np.abs(efforts - robot.inverse_dynamics(None, moved, loads[:-1])[0]).max() > 0.1
            return efforts

        back = wrench([0.0, 0.0, 0.0], [-20.0, 0.0, 0.0])
        Sensor(peer, name).publish_until(peer, back, f"wrench on {name}: messages", 1)
        light = check(robot, name)
        assert peer.set_parameters(payload_mass=5.0).successful
        heavier = robot.with_tree(Payload(5.0).on_tree(robot))
        assert np.abs(check(heavier, name) - light).max() > 0.1
        rejected = peer.set_parameters(wrench_bodies=["leg1"])
        assert "no body 'leg1'; known here: ['tool', 'left_body2', " in rejected.reason
        # and a limb as well as the platform
        assert peer.set_parameters(wrench_bodies=[name, leg]).successful
        pushed = wrench([0.0, 0.0, 1.0], [30.0, 0.0, 0.0])
        Sensor(peer, leg).publish_until(peer, pushed, f"wrench on {leg}: messages", 1)
        check(heavier, name, leg)
