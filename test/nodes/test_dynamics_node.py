"""dynamics_node as a process among processes, over real DDS."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from geometry_msgs.msg import Point, Pose, Quaternion
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from ros_peer import Peer, asked, node_and_peer
from ros_processes import RosProcess, start_node, start_script
from ros_stream import JOINTS, held_up, motion

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros import process
from hodyn_ros.ros.conversions.fields import JointOrder, float64s
from hodyn_ros.ros.conversions.messages import (
    read_base_motion,
    read_feedforward_torque,
    time_message,
    write_desired_motion,
)

PANDA = "panda.yaml"
SECOND = 1_000_000_000


# one for all tests that leave it as they found it
both, node, peer = node_and_peer({"robot_config": PANDA}, "shared", "module")


class Clock:
    """Stamps that increase from test to test."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def tick(self) -> int:
        self.now += SECOND // 1000
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


def desired(nanosecond: int, orders: int = 5) -> DesiredMotion:
    """Return a sound desired motion of the Panda."""
    return write_desired_motion(JOINTS, time_message(nanosecond), motion(nanosecond)[:orders])


def assert_same(found: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.realtime
def test_a_kilohertz_for_a_second_arrives_complete_and_right(panda: Robot, tmp_path: Path) -> None:
    count, sent_file, got_file = 1000, tmp_path / "sent.npy", tmp_path / "got.npz"
    with (
        start_node("dynamics_node", {"robot_config": PANDA}, "stream") as node,
        start_script("ros_stream.py", "collect", str(got_file), namespace="stream") as subscriber,
        start_script(
            "ros_stream.py", "publish", str(count), "1000", str(sent_file), namespace="stream"
        ) as publisher,
    ):
        publisher.wait_for_line("publisher matched")
        subscriber.wait_for_line("subscriber matched")  # an answer has come the whole way
        publisher.tell("go")
        publisher.wait_for_line("published")
        sent = np.load(sent_file)
        subscriber.tell(str(sent[-1]))
        subscriber.wait_for_line("collected")
        publisher.tell("end")
        assert publisher.wait() == 0, publisher.output()
        assert subscriber.wait() == 0, subscriber.output()
        assert node.stop() == 0, node.output()
        assert "rejected" not in node.output()
    got = np.load(got_file)
    counted = got["stamps"] >= sent[0]
    if np.count_nonzero(counted) < count and held_up(sent):
        pytest.skip("the machine was too busy for a kilohertz")
    np.testing.assert_array_equal(got["stamps"][counted], sent)  # each once, in order
    law = FeedforwardModel(panda, 2)
    efforts, motor_efforts = got["efforts"][counted], got["motor_efforts"][counted]
    for i in range(0, count, 50):
        expected = law.compute(motion(int(sent[i])))
        assert_same(efforts[i], expected.efforts[0])
        assert_same(motor_efforts[i], expected.motor_efforts[0])
    delay = (got["arrived"][counted] - sent) * 1e-3
    print(
        "from the publisher to the subscriber: "
        + ", ".join(f"p{p:g} {np.percentile(delay, p):.0f} us" for p in (50, 99, 100))
    )


def test_an_answer_holds_all_that_the_drives_allow(peer: Peer, clock: Clock, panda: Robot) -> None:
    stamp = clock.tick()
    msg = write_desired_motion(
        JOINTS[::-1], time_message(stamp), np.ascontiguousarray(motion(stamp)[:, ::-1]), "base"
    )
    answer = peer.answer_to(msg)
    assert answer.header == msg.header
    assert list(answer.joint_names) == list(panda.joint_names)
    assert 0.0 < answer.computation_time < 10.0
    found = read_feedforward_torque(answer, JointOrder(panda.joint_names))
    expected = FeedforwardModel(panda, 2).compute(motion(stamp))
    assert_same(found.efforts, expected.efforts)
    assert_same(found.motor_positions, expected.motor_positions)
    assert_same(found.motor_efforts, expected.motor_efforts)
    assert found.status == expected.status
    assert found.base_wrenches.shape == (0, 6)


def test_refusals_are_logged_with_the_thing_and_the_mend_but_not_each_time(
    peer: Peer, clock: Clock, node: RosProcess
) -> None:
    written = len(node.lines)

    def lines() -> list[str]:
        return [line for line in node.lines[written:] if "panda_joint4" in line]

    def another_line() -> list[str]:
        for _ in range(20):
            msg = desired(clock.tick())
            del msg.joint_names[3]
            peer.send(msg)
        return lines()

    # at most one line a second for a reason, and the tests before may have had theirs just now
    start = time.monotonic()
    peer.wait_until(another_line, "the line about the rejection")
    for _ in range(10):
        another_line()
    peer.answer_to(desired(clock.tick()))
    assert 1 <= len(lines()) <= 2 + (time.monotonic() - start)
    assert (
        "desired_motion rejected: joint 'panda_joint4' is missing from the message; the model expects "
        "['panda_joint1', " in lines()[0]
    )
    assert "WARN" in lines()[0]


def test_diagnostics_tell_how_the_node_is_doing(peer: Peer, clock: Clock) -> None:
    before = int(peer.diagnostics()["answered"])
    for _ in range(10):
        peer.answer_to(desired(clock.tick()))
    values = peer.diagnostics(lambda values: int(values["answered"]) >= before + 10)
    assert int(values["answered"]) == before + 10
    assert values["order"] == "2"
    assert float(values["rate [1/s]"]) >= 0.0
    p50, p99, most = (float(values[f"latency {name} [us]"]) for name in ("p50", "p99", "max"))
    # between the arrival and the answer there is the computation
    assert 0.0 < float(values["computation time p50 [us]"]) < p50 <= p99 <= most
    assert float(values["computation time p50 [us]"]) <= float(values["computation time p99 [us]"])
    assert values["engine"] == "straight-line code"
    assert float(values["age of the last answer [s]"]) < 60.0
    assert peer.statuses[-1].hardware_id == "panda"
    assert peer.statuses[-1].name == "shared/dynamics_node"


def test_limits_set_bits_and_clamping_is_switched_on_while_active(
    peer: Peer, clock: Clock, panda: Robot
) -> None:
    assert panda.limits is not None
    stack = motion(clock.now)
    stack[0, 0] = 3.5  # beyond 2.8973 rad
    stack[1, 1] = -4.0  # beyond 2.175 rad/s
    stack[2, 2] = 500.0  # takes more than 87 N·m

    def ask() -> tuple[Status, NDArray[np.float64], NDArray[np.float64]]:
        msg = write_desired_motion(JOINTS, time_message(clock.tick()), stack)
        answer = peer.answer_to(msg)
        return Status(answer.status), np.array(answer.efforts), np.array(answer.motor_efforts)

    status, efforts, motor_efforts = ask()
    exceeded = Status.EFFORT_LIMIT_EXCEEDED | Status.VELOCITY_LIMIT_EXCEEDED | Status.POSITION_LIMIT_EXCEEDED
    assert status & exceeded == exceeded
    assert not status & Status.EFFORT_CLAMPED
    limit = panda.limits.effort
    assert (np.abs(efforts) > limit).any()
    assert peer.set_parameters(clamp=True).successful
    status, clamped, motor_clamped = ask()
    assert status & exceeded == exceeded
    assert status & Status.EFFORT_CLAMPED
    assert_same(clamped, np.clip(efforts, -limit, limit))
    assert_same(motor_clamped, np.clip(motor_efforts, -limit, limit))
    values = peer.diagnostics(lambda values: int(values["effort clamped"]) > 0)
    assert int(values["position limit exceeded"]) >= 2
    assert peer.set_parameters(clamp=False).successful


def test_order_and_gravity_change_while_active_all_or_none(peer: Peer, clock: Clock, panda: Robot) -> None:
    assert peer.set_parameters(order=0).successful
    stamp = clock.tick()
    answer = peer.answer_to(desired(stamp, orders=3))  # fewer derivatives are enough now
    assert len(answer.effort_rates) == 0
    assert len(answer.motor_efforts) == 0
    assert len(answer.motor_positions) == 7
    rejected = peer.set_parameters(order=4, gravity=[0.0, 0.0])
    assert not rejected.successful
    assert "'gravity' is [0.0, 0.0]; give three" in rejected.reason
    assert not peer.set_parameters(order=7).successful
    assert len(peer.answer_to(desired(clock.tick(), orders=3)).effort_rates) == 0  # as before
    assert peer.set_parameters(order=3, gravity=[0.0, 9.0, -3.0]).successful
    stamp = clock.tick()
    stack = np.vstack([motion(stamp), np.zeros((1, 7))])
    answer = peer.answer_to(write_desired_motion(JOINTS, time_message(stamp), stack))
    robot = Robot.load(share.find("config", PANDA), gravity=[0.0, 9.0, -3.0])
    expected = FeedforwardModel(robot, 3).compute(stack)
    assert_same(np.array(answer.efforts), expected.efforts[0])
    assert_same(np.array(answer.higher_effort_derivatives), expected.efforts[3])
    assert_same(np.array(answer.motor_effort_rates), expected.motor_efforts[1])
    assert peer.set_parameters(order=2, gravity=panda.gravity.tolist()).successful
    rejected = peer.set_parameters(robot_config="other.yaml")
    assert not rejected.successful
    assert "fixed while the node is configured" in rejected.reason


def test_parameters_are_described(peer: Peer) -> None:
    names = ["robot_config", "order", "clamp", "gravity", "new_clock_after", "autostart"]
    descriptors = dict(zip(names, peer.describe(*names)))
    assert all(len(d.description) > 20 for d in descriptors.values())
    order = descriptors["order"].integer_range[0]
    assert (order.from_value, order.to_value) == (0, 6)
    assert descriptors["autostart"].read_only
    assert "m/s^2" in descriptors["gravity"].description


def test_lifecycle_from_outside_with_another_robot_and_qos(tmp_path: Path, panda: Robot) -> None:
    other = tmp_path / "other.yaml"
    text = Path(share.find("config", PANDA)).read_text()
    other.write_text(text.replace("name: panda\n", "name: other\n", 1))
    assert "name: other\n" in other.read_text()
    parameters = {
        "robot_config": "none.yaml",
        "autostart": False,
        "new_clock_after": 0.2,
        "qos_overrides./life/desired_motion.subscription.reliability": "best_effort",
        "qos_overrides./life/desired_motion.subscription.depth": 3,
    }
    with asked(parameters, "life") as (node, peer):
        (info,) = peer.node.get_subscriptions_info_by_topic("/life/desired_motion")
        assert info.qos_profile.reliability == QoSReliabilityPolicy.BEST_EFFORT
        assert peer.state() == "unconfigured"
        assert not peer.transition("configure")
        assert peer.state() == "unconfigured"
        assert "cannot configure: no file 'none.yaml'" in node.wait_for_line("cannot configure")
        assert peer.set_parameters(robot_config=PANDA).successful
        assert peer.transition("configure")
        assert peer.state() == "inactive"
        assert peer.transition("activate")
        peer.answer_to(desired(50 * SECOND))
        assert peer.transition("deactivate")
        for k in range(200):
            peer.send(desired(51 * SECOND + k))
        assert peer.arrived()
        for _ in range(2):  # and has been left unanswered by now
            values = peer.diagnostics(lambda _: peer.statuses[-1].message == "not active")
        assert (values["answered"], values["rejected"]) == ("1", "0")
        assert peer.transition("activate")
        peer.answer_to(desired(40 * SECOND))  # earlier than before: activation starts a new time
        # after silence a clock that starts again is followed
        peer.diagnostics(
            lambda values: values["answered"] == "2" and float(values["age of the last answer [s]"]) > 0.3
        )
        peer.answer_to(desired(30 * SECOND))
        assert peer.stamps() == [50 * SECOND, 40 * SECOND, 30 * SECOND]
        assert peer.transition("deactivate")
        assert peer.transition("cleanup")
        assert peer.set_parameters(robot_config=str(other)).successful
        assert peer.transition("configure")
        assert peer.transition("activate")
        answer = peer.answer_to(desired(60 * SECOND))
        assert_same(np.array(answer.efforts), panda.inverse_dynamics(motion(60 * SECOND))[0])
        peer.diagnostics(lambda values: peer.statuses[-1].hardware_id == "other")
        assert peer.transition("shutdown")


def test_a_publisher_that_cannot_be_heard_is_named_in_the_log(peer: Peer, node: RosProcess) -> None:
    unreliable = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    publisher = peer.node.create_publisher(DesiredMotion, "desired_motion", unreliable)
    peer.wait_until(lambda: any("incompatible QoS" in line for line in node.lines), "the line about QoS")
    line = next(line for line in node.lines if "incompatible QoS" in line)
    assert "'desired_motion'" in line
    assert "RELIABILITY" in line
    peer.node.destroy_publisher(publisher)


URDF = """<robot name="flyer">
  <link name="body"><inertial><origin xyz="0.1 0 0.05"/><mass value="4"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="body"/><child link="arm"/><origin xyz="0 0 -0.1"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="100" velocity="10"/></joint>
  <link name="arm"><inertial><origin xyz="0 0 -0.2"/><mass value="1"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.002"/></inertial></link>
</robot>"""


def test_a_floating_base_is_answered_with_its_wrench(tmp_path: Path) -> None:
    (tmp_path / "flyer.urdf").write_text(URDF)
    config = tmp_path / "flyer.yaml"
    config.write_text("urdf: flyer.urdf\nfloating_base: true\n")
    robot = Robot.load(config)
    twists = np.random.default_rng(2).normal(size=(4, 6))
    q = np.array([[0.3], [0.1], [-0.5], [2.0], [1.0]])
    msg = write_desired_motion(["hinge"], time_message(SECOND), q, "map")
    pose = Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=Quaternion(w=0.6, z=0.8))
    msg.base_pose, msg.base_twists = [pose], float64s(twists)
    msg.base_twist_representation = DesiredMotion.BODY
    with asked({"robot_config": config}, "flyer") as (node, peer):
        peer.send(write_desired_motion(["hinge"], time_message(1), q))
        answer = peer.answer_to(msg)
        assert peer.stamps() == [SECOND]
        node.wait_for_line("base_pose is empty, but the robot has a floating base")
    wrenches, efforts = robot.inverse_dynamics(q, read_base_motion(msg, 4))
    found = read_feedforward_torque(answer, JointOrder(["hinge"]))
    assert_same(found.efforts, efforts)
    assert_same(found.base_wrenches, wrenches)
    assert answer.header.frame_id == "map"
    assert answer.base_wrench_representation == FeedforwardTorque.WORLD


def test_it_starts_in_an_empty_environment_and_ends_cleanly() -> None:
    keep = ["ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_LOG_DIR"]
    if "ROS_DISTRO" in os.environ:  # a sourced ROS is found through these
        keep += ["AMENT_PREFIX_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"]
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    parameters = {"robot_config": PANDA}
    with (
        start_node("dynamics_node", parameters, "empty", environment, cold=True) as node,
        Peer("empty") as peer,
    ):
        peer.wait_for_topics()
        assert node.stop(signal.SIGTERM) == 0, node.output()
    (line,) = node.lines
    assert line.endswith("robot 'panda', 7 joints, with its drives; efforts to order 2")


def test_logs_find_a_folder_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "ROS_HOME", "ROS_LOG_DIR"):
        monkeypatch.delenv(name, raising=False)
    with monkeypatch.context() as patch:
        process._ensure_log_folder()
        assert Path(os.environ["HOME"]) == Path.home()
        patch.delenv("HOME")
    monkeypatch.delenv("HOME", raising=False)

    def nobody() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.setattr(Path, "home", nobody)
    process._ensure_log_folder()
    folder = Path(os.environ.pop("ROS_LOG_DIR"))
    assert folder.is_dir()
    folder.rmdir()
