"""Robots as lines: what moves, what keeps its length, and the node that draws it."""

import numpy as np
import pytest

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.dynamics.kinematics.skeleton import read_skeleton, robot_lines
from hodyn_ros.lie.se3 import exp
from hodyn_ros.trajectory import read_motion


def lengths(lines: np.ndarray) -> np.ndarray:
    return np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)


def test_an_arm_stretches_no_bone() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    rng = np.random.default_rng(3)
    straight = robot_lines(robot, np.zeros(7))
    bent = robot_lines(robot, rng.normal(size=7))
    np.testing.assert_allclose(lengths(bent), lengths(straight), rtol=1e-12, atol=1e-15)
    # from the ground up: shoulder at 0.333 m, elbow 0.316 m and 0.0825 m farther
    np.testing.assert_allclose(straight[0], [[0, 0, 0], [0, 0, 0.333]], atol=1e-12)
    assert straight[:, 1, 2].max() == pytest.approx(0.333 + 0.316 + 0.384, abs=1e-9)
    np.testing.assert_allclose(bent[1:, 0], bent[:-1, 1], atol=1e-15)  # one hangs on the other


def test_a_floating_base_carries_both_arms() -> None:
    skeleton = read_skeleton(share.find("config", "aerial_manipulator.yaml"))
    assert skeleton.moves_base and len(skeleton.joint_names) == 6
    base = exp(np.array([0.1, -0.4, 0.8, 1.0, 2.0, 3.0]))
    q = np.array([0.3, -0.2, 0.1, 0.5, 0.6, -0.7])
    here, there = skeleton.lines(q, np.eye(4)), skeleton.lines(q, base)
    np.testing.assert_allclose(there, here @ base[:3, :3].T + base[:3, 3], atol=1e-14)
    from_base = here[np.linalg.norm(here[:, 0], axis=1) == 0.0]
    np.testing.assert_allclose(from_base[:, 1], [[0.09, 0.0, -0.1], [-0.09, 0.0, -0.1]], atol=1e-15)


@pytest.mark.parametrize("name", ["gough_stewart_6ups.yaml", "planar_3rrr.yaml"])
def test_limbs_reach_from_the_ground_to_the_platform(name: str) -> None:
    robot = Robot.load(share.find("config", name))
    home, closure = robot.home[1], robot.closure
    assert home is not None and closure is not None and closure.platform is not None
    dof = closure.platform.twists
    assert dof is not None
    pose = home @ exp(dof @ np.linspace(0.02, 0.05, dof.shape[1]))
    still, moved = (robot_lines(robot, np.empty(0), place) for place in (home, pose))
    feet = [loop.a.point for loop in closure.loops if loop.kind == "weld"]  # on the ground

    def limbs(lines: np.ndarray, tip: np.ndarray) -> list[list[float]]:
        """Return the lengths of the lines from each foot to the tip, one after the other."""
        found, used = [], np.zeros(len(lines), dtype=bool)
        for foot in feet:
            way, point = [], foot
            while np.linalg.norm(point - tip) > 1e-9:
                nearest = np.linalg.norm(lines[:, 1] - point, axis=1) + 10.0 * used
                nearest += np.where(lengths(lines) < 1e-9, 10.0, 0.0)
                line = int(nearest.argmin())
                assert nearest[line] <= 1e-9
                used[line] = True
                way.append(float(lengths(lines)[line]))
                point = lines[line, 0]
            found.append(way)
        assert np.all(used | (lengths(lines) < 1e-9))  # and nothing else is drawn
        return found

    before, after = np.array(limbs(still, home[:3, 3])), np.array(limbs(moved, pose[:3, 3]))
    if name == "planar_3rrr.yaml":
        assert after.shape == (3, 2)
        np.testing.assert_allclose(after, 0.4, rtol=1e-9)
    else:
        # a leg, and the platform from there to its origin; what a leg changes in length its slide moves
        assert after.shape == (6, 2)
        drives = robot.drive_state(None, BaseMotion(pose, np.zeros((2, 6)))).motion
        np.testing.assert_allclose(after[:, 0] - before[:, 0], drives[0], atol=1e-9)
        np.testing.assert_allclose(after[:, 1], before[:, 1], atol=1e-9)


@pytest.mark.parametrize(
    ("robot", "motion"),
    [
        ("panda.yaml", "panda_excitation.yaml"),
        ("gough_stewart_6ups.yaml", "gough_stewart_motion.yaml"),
    ],
)
def test_the_node_draws_the_desired_motion(robot: str, motion: str) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    from builtin_interfaces.msg import Time
    from ros_processes import start_node
    from ros_talk import Talk
    from visualization_msgs.msg import Marker

    from hodyn_ros.msg import DesiredMotion
    from hodyn_ros.ros.conversions.messages import write_sample
    from hodyn_ros.ros.diagnostics import OK

    sample = read_motion(share.find("config", motion)).sample(0.3, 1)
    skeleton = read_skeleton(share.find("config", robot))
    msg = write_sample(skeleton.joint_names, Time(sec=7), sample)
    with start_node("skeleton_node", {"robot_config": robot}, "drawn") as node, Talk("drawn") as talk:
        heard = talk.hear_nothing_yet(Marker, "skeleton")
        publisher = talk.publisher(DesiredMotion, "desired_motion")
        rejected = DesiredMotion(joint_names=["nobody"], positions=[1.0])

        def sent(message: DesiredMotion) -> bool:
            publisher.publish(message)  # again and again, as best effort may lose one
            return True

        talk.wait_until(
            lambda: sent(rejected) and "desired_motion rejected: " in node.output(), "a rejection"
        )
        assert not heard
        talk.wait_until(lambda: sent(msg) and heard, "a picture")
        values = talk.status("skeleton_node", lambda status, _: status.level == OK)
        assert node.stop() == 0, node.output()
    assert int(values["drawn"]) >= 1 and int(values["rejected"]) >= 1
    marker = heard[0]
    assert (marker.type, marker.header.frame_id, marker.header.stamp.sec) == (Marker.LINE_LIST, "world", 7)
    points = np.array([[p.x, p.y, p.z] for p in marker.points]).reshape(-1, 2, 3)
    np.testing.assert_allclose(points, skeleton.lines(sample.joints[0], sample.pose), atol=1e-12)
