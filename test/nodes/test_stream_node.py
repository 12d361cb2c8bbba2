"""stream_node as a process, over real DDS."""

import signal
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from panda_plan import HOME, NAMES, after
from ros_processes import start_node
from ros_talk import Talk, talking
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import nanoseconds, read_desired_motion, time_message

ROBOT = {"robot_config": "panda.yaml", "rate": 200.0, "diagnostic_updater.period": 0.1}
MOVE = np.array([0.1, 0.05, -0.08, 0.1, 0.05, -0.08, 0.1])


def chunk(stamp: int, begin: float, count: int = 30) -> JointTrajectory:
    """Return points 20 ms apart of a wave that begins at `begin` [s] ago."""
    points = []
    for i in range(count):
        t = max(begin + 0.02 * i, 0.0)
        rise = min(t, 1.0) ** 3 * (10.0 - 15.0 * min(t, 1.0) + 6.0 * min(t, 1.0) ** 2)
        points.append(
            JointTrajectoryPoint(
                positions=list(HOME + MOVE * rise * np.sin(2.0 * t)), time_from_start=after(0.02 * i)
            )
        )
    msg = JointTrajectory(joint_names=list(NAMES), points=points)
    msg.header.stamp = time_message(stamp)
    return msg


def now(talk: Talk) -> int:
    instant: int = talk.node.get_clock().now().nanoseconds
    return instant


def follow(talk: Talk, publisher: object, count: int, since: int) -> int:
    """Send ten chunks a second that overlap by half a second; return how many of them.

    Every third one is 80 ms late, and every fifth one missing.
    """
    sent = 0
    for k in range(count):
        stamp, late = now(talk), 0.08 if k % 3 == 1 else 0.0
        talk.pause(late)
        if k % 5 != 4:
            publisher.publish(chunk(stamp, 1e-9 * (stamp - since)))  # type: ignore[attr-defined]
            sent += 1
        talk.pause(0.1 - late)
    return sent


def require_smooth(heard: list[DesiredMotion]) -> np.ndarray:
    """Return the motion (N, 5, 7), each sample of which follows from the one before."""
    stamps = np.array([nanoseconds(msg.header.stamp) for msg in heard])
    motion = np.array([read_desired_motion(msg, JointOrder(NAMES), 5) for msg in heard])
    step = 1e-9 * np.diff(stamps)[:, None]
    assert (step > 0.0).all()
    followed = step[:, 0] < 0.0075  # a busy machine skips samples
    assert followed.any()
    for k in range(4):  # the trapezoidal rule, whose error the next derivative but one bounds
        change = motion[1:, k] - motion[:-1, k] - 0.5 * step * (motion[1:, k + 1] + motion[:-1, k + 1])
        scale = np.abs(motion[:, k + 1]).max() * step
        assert (np.abs(change) <= 0.5 * scale + 1e-9)[followed].all()
    return motion


def test_chunks_become_a_smooth_motion_that_stops_with_them_and_bad_ones_are_named() -> None:
    with talking("stream_node", ROBOT | {"mode": "approximate"}, "sn_chunks") as (node, talk):
        talk.wait_for_line(node, "waiting for points")
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        publisher = talk.publisher(JointTrajectory, "joint_trajectory")
        since = now(talk)
        missing = chunk(now(talk), 0.0)
        missing.joint_names[3] = "elbow"
        publisher.publish(missing)
        talk.wait_for_line(node, "joint_trajectory rejected: joint 'elbow' is unknown")
        assert not heard  # nothing is published for it
        sent = follow(talk, publisher, 13, since)
        for bad, words in (
            (chunk(now(talk), 0.0), "rad (or m) from where the motion is, and 'jump' is 0.5"),
            (chunk(now(talk) - 2_000_000_000, 0.0), "stamps must increase"),
            (chunk(now(talk) + 100_000_000_000, 0.0), "let both run by the same clock"),
        ):
            for point in bad.points:
                point.positions = list(np.array(point.positions) + 0.7)
            publisher.publish(bad)
            talk.wait_for_line(node, words)
        holed = chunk(now(talk), 0.0)
        holed.points[4].positions[6] = float("nan")
        publisher.publish(holed)
        talk.wait_for_line(node, "joint 'panda_joint7'")
        facts = talk.status("stream_node", lambda status, _: status.message == "standing: no new points")
        talk.wait_until(lambda: not any([*heard[-1].velocities, *heard[-1].snaps]), "its last sample")
    motion = require_smooth(heard)
    assert np.abs(motion[:, 0] - HOME).max() > 0.02
    assert not motion[-1, 1:].any() and not motion[0, 1:].any()
    rejected = {name.rpartition(": ")[2]: int(facts[name]) for name in facts if ": rejected: " in name}
    late = rejected.pop("too late", 0)  # on a busy machine: after its last point
    bad = ("unknown joint", "not finite", "time going backwards", "bad times", "jump")
    assert rejected == dict.fromkeys(bad, 1) and int(facts["rejected"]) == 5 + late
    assert int(facts["messages followed"]) + late == sent == 11 and late <= 3
    assert -1e-9 <= float(facts["delay [s]"]) <= 0.5
    assert float(facts["largest share of a limit"]) <= 1.0


def test_single_points_are_followed_from_where_the_robot_is_and_a_signal_stops_the_motion() -> None:
    parameters = ROBOT | {"wait_for_robot": True, "jerk": [300.0] * 7, "acceleration": [5.0] * 7}
    with start_node("stream_node", parameters, "sn_points") as node, Talk("sn_points") as talk:
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        targets = talk.publisher(JointState, "joint_targets")
        states = talk.publisher(JointState, "joint_states")
        target = JointState(name=NAMES, position=list(HOME))  # best effort: the first may be lost
        talk.wait_for_line(node, "where the robot is is not known yet", lambda: targets.publish(target))
        while not heard:
            states.publish(JointState(name=NAMES, position=list(HOME)))
            talk.pause(0.05)
        talk.status("stream_node", lambda status, _: status.level != DiagnosticStatus.ERROR)
        since = now(talk)
        for _ in range(30):
            t = 1e-9 * (now(talk) - since)
            place = HOME + MOVE * min(t, 1.0) ** 3 * 2.0 * t
            targets.publish(JointState(name=NAMES, position=list(place)))
            talk.pause(0.04)
        place = heard[-1].positions
        node.send(signal.SIGINT)
        talk.pause(0.05)
        node.send(signal.SIGSTOP)  # a machine so busy that the time of the stop passes without its samples
        talk.pause(0.5)
        node.send(signal.SIGCONT)
        talk.wait_until(lambda: not node.running, "the end of the node")
        talk.hear_out(heard)
        assert node.wait() == 0, node.output()
    motion = require_smooth(heard)
    np.testing.assert_allclose(motion[0, 0], HOME, atol=1e-12)
    assert not motion[-1, 1:].any()  # it has come to rest before its end
    assert np.abs(np.array(place) - HOME).max() > 0.01
    assert np.abs(motion[:, 2]).max() <= 5.0 and np.abs(motion[:, 3]).max() <= 300.0


def test_targets_are_tracked_and_what_is_wrong_with_them_is_said_counted_and_followed() -> None:
    with talking("stream_node", ROBOT, "sn_track") as (node, talk):
        talk.wait_for_line(node, "waiting for points")
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        targets = talk.publisher(JointState, "joint_targets")

        def send(place: np.ndarray, late: float, done: Callable[[], bool]) -> None:
            for _ in range(400):  # best effort: what is lost is sent again
                msg = JointState(name=NAMES, position=list(place))
                msg.header.stamp = time_message(now(talk) - int(1e9 * late))
                targets.publish(msg)
                talk.pause(0.02)
                if done():
                    return
            raise AssertionError(node.output())

        send(HOME, 0.0, lambda: bool(heard))
        away = HOME + 0.9 * np.array([1.0, 0.5, -1.0, 0.5, 1.0, -1.0, 1.0])  # all the way at once
        send(away, 0.0, lambda: "the 3rd message that says so is followed" in node.output())
        send(away, 0.0, lambda: abs(heard[-1].positions[0] - away[0]) < 1e-3)
        send(away, 3.0, lambda: "before the last one; send points in order" in node.output())
        send(away, 3.0, lambda: "joint_targets followed, though wrong: its last point is" in node.output())
        send(
            away * np.nan,
            0.0,
            lambda: "joint_targets rejected: position holds nan for joint" in node.output(),
        )
        facts = talk.status("stream_node", lambda status, _: status.message == "standing: no new points")
    motion = require_smooth(heard)
    np.testing.assert_allclose(motion[-1, 0], away, atol=1e-9)
    assert not motion[-1, 1:].any()
    assert int(facts["joint_targets: rejected: jump"]) == 2
    assert int(facts["joint_targets: followed, though wrong: too late"]) > 0


def pose(stamp: int, x: float, y: float, tilt: float = 0.0) -> PoseStamped:
    msg = PoseStamped()
    msg.header.stamp = time_message(stamp)
    msg.pose.position.x, msg.pose.position.y = x, y
    msg.pose.orientation.x, msg.pose.orientation.w = float(np.sin(tilt / 2.0)), float(np.cos(tilt / 2.0))
    return msg


def test_a_platform_follows_poses_that_it_can_have() -> None:
    parameters = ROBOT | {"robot_config": "planar_3rrr.yaml"}
    with start_node("stream_node", parameters, "sn_poses") as node, Talk("sn_poses") as talk:
        talk.wait_for_line(node, "waiting for points on pose_targets")
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        targets = talk.publisher(PoseStamped, "pose_targets")

        def send(x: float, y: float, tilt: float, done: Callable[[], bool]) -> None:
            for _ in range(300):  # best effort: what is lost is sent again
                targets.publish(pose(now(talk), x, y, tilt))
                talk.pause(0.05)
                if done():
                    return
            raise AssertionError(node.output())

        send(0.0, 0.0, 0.2, lambda: "the pose has roll 0.2 from the home of" in node.output())
        send(0.01, 0.0, 0.0, lambda: bool(heard))
        send(0.036, 0.018, 0.0, lambda: abs(heard[-1].base_pose[0].position.x - 0.036) < 1e-10)
        send(float("nan"), 0.0, 0.0, lambda: "pose holds NaN or infinite numbers" in node.output())
        send(0.04, 5.0, 0.0, lambda: "'y' is wanted" in node.output())
        assert node.stop(signal.SIGINT) == 0, node.output()
        talk.hear_out(heard)
    places = np.array([[msg.base_pose[0].position.x, msg.base_pose[0].position.y] for msg in heard])
    speeds = np.array([np.array(msg.base_twists).reshape(4, 6)[:, 3:5] for msg in heard])
    np.testing.assert_allclose(places[-1], [0.036, 0.018], atol=1e-9)
    assert not speeds[-1].any() and np.abs(speeds[:, 0]).max() > 0.02
    stamps = 1e-9 * np.array([nanoseconds(msg.header.stamp) for msg in heard])
    step, followed = np.diff(stamps)[:, None], np.diff(stamps) < 0.0075  # a busy machine skips samples
    missed = np.diff(places, axis=0) - 0.5 * step * (speeds[1:, 0] + speeds[:-1, 0])
    rule = step[followed].max() ** 3 / 12.0 * np.abs(speeds[:, 2]).max()  # what the trapezoidal rule misses
    assert followed.any() and np.abs(missed[followed]).max() <= 1.5 * rule + 1e-9
