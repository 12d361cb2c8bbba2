"""The feedforward of parallel robots, and dynamics_node with one of them over real DDS."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from oracles.motions import random_stack
from refusals import refused
from scipy.spatial.transform import Rotation

from hodyn_ros import BaseMotion, ConvergenceError, DriveTrain, Robot, series_elastic, share
from hodyn_ros.array import Array
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.se3 import exp

PLATFORM = share.find("config", "gough_stewart_6ups.yaml")
PLANAR = share.find("config", "planar_3rrr.yaml")
NO_JOINTS = np.empty((5, 0))


def home_of(robot: Robot) -> Array:
    _, pose = robot.home
    return pose


def planar_motion(x: float, y: float, orders: int = 4) -> BaseMotion:
    pose = np.eye(4)
    pose[:2, 3] = x, y
    twists = np.zeros((orders, 6))
    twists[:, 3:5] = random_stack(4, orders, 2)
    return BaseMotion(pose, twists, representation="spatial")


def test_the_law_of_a_platform_takes_its_pose_alone() -> None:
    model = FeedforwardModel(Robot.load(PLANAR), 2)
    assert model.joint_names == ("left_shoulder", "right_shoulder", "top_shoulder")
    assert model.motion_joints == ()
    assert model.moves_base
    assert model.has_drives
    weightless = FeedforwardModel(Robot.load(PLATFORM, gravity=[0.0, 0.0, 0.0]), 0)
    assert not weightless.has_drives
    assert weightless.robot.gravity.tolist() == [0.0, 0.0, 0.0]


def test_elastic_drives_follow_the_platform() -> None:
    robot = Robot.load(PLANAR)
    model = FeedforwardModel(robot, 2)
    model.warm_up()
    base = planar_motion(0.05, -0.04)
    found = model.compute(NO_JOINTS, base)
    state = robot.solve_loops(None, base)
    motors = DriveTrain(series_elastic(robot.drive_train.stiffness, robot.drive_train.motor_inertia))
    expected = motors.feedforward(state.drives, state.efforts)
    np.testing.assert_allclose(found.efforts, state.efforts, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.motor_positions, expected.position, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.motor_efforts, expected.effort, rtol=1e-11, atol=1e-13)
    assert found.base_wrenches.shape == (0, 6)
    assert found.status is Status.OK
    assert FeedforwardModel(robot, 1).compute(
        NO_JOINTS[:4], planar_motion(0.0, 0.0, 3)
    ).motor_efforts.shape == (0, 3)


def test_near_a_singular_pose_the_status_says_so() -> None:
    model = FeedforwardModel(Robot.load(PLANAR), 0)
    for distance, near in ((0.1, False), (0.28035, True)):
        base = BaseMotion(planar_motion(0.0, -distance).pose, np.zeros((2, 6)))
        assert bool(model.compute(NO_JOINTS[:3], base).status & Status.NEAR_SINGULARITY) is near


def test_limits_are_those_of_the_driven_joints(tmp_path: Path) -> None:
    text = Path(PLATFORM).read_text()
    limited = tmp_path / "robot.yaml"
    limited.write_text(
        text.replace("driven: true", "limits: {effort: 15, lower: -0.05}\n        driven: true")
    )
    model = FeedforwardModel(Robot.load(limited), 0, clamp=True)
    home = BaseMotion(home_of(model.robot), np.zeros((2, 6)))
    found = model.compute(NO_JOINTS[:3], home)
    assert found.status == Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED
    assert found.efforts[0].tolist() == [15.0] * 6
    low = home.pose.copy()
    low[2, 3] -= 0.1
    status = model.compute(NO_JOINTS[:3], BaseMotion(low, np.zeros((2, 6)))).status
    assert status & Status.POSITION_LIMIT_EXCEEDED


def test_a_failure_leaves_the_model_usable() -> None:
    model = FeedforwardModel(Robot.load(PLANAR), 2)
    base = planar_motion(0.02, 0.03)
    before = model.compute(NO_JOINTS, base)
    call = partial(model.compute, NO_JOINTS, planar_motion(3.0, 0.0))
    refused(call, "does not get there from the last coordinates in short steps", ConvergenceError)
    refused(lambda: model.compute(NO_JOINTS), "is moved by its platform 'tool'; give its motion")
    np.testing.assert_allclose(model.compute(NO_JOINTS, base).efforts, before.efforts, rtol=1e-12, atol=1e-14)


def test_the_node_answers_motions_of_the_platform() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    from builtin_interfaces.msg import Time
    from geometry_msgs.msg import Point, Pose, Quaternion
    from ros_peer import Peer
    from ros_processes import start_node

    from hodyn_ros.msg import DesiredMotion
    from hodyn_ros.ros.conversions.fields import JointOrder, float64s
    from hodyn_ros.ros.conversions.messages import read_feedforward_torque, write_desired_motion

    robot = Robot.load(PLATFORM)
    twists = random_stack(1, 4, 6)

    def motion(second: int, pose: Array, representation: int, motion_twists: Array) -> DesiredMotion:
        msg = write_desired_motion([], Time(sec=second), np.empty((0, 0)), "map")
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
        place = Point(**dict(zip("xyz", pose[:3, 3].tolist())))
        msg.base_pose = [Pose(position=place, orientation=Quaternion(x=x, y=y, z=z, w=w))]
        msg.base_twists = float64s(motion_twists)
        msg.base_twist_representation = representation
        return msg

    near = home_of(robot) @ exp(np.array([0.2, 0.1, -0.1, 0.01, 0.02, 0.03]))
    singular = home_of(robot) @ exp(np.array([0.0, 0.0, np.pi / 2, 0.0, 0.0, 0.0]))
    with (
        start_node("dynamics_node", {"robot_config": "gough_stewart_6ups.yaml"}, "platform") as node,
        Peer("platform") as peer,
    ):
        node.wait_for_line("robot 'gough_stewart_6ups', 6 joints, without drives; efforts to order 2")
        peer.wait_for_topics()
        answer = peer.answer_to(motion(1, near, DesiredMotion.BODY, twists))
        found = read_feedforward_torque(answer, JointOrder(robot.driven_joints))
        expected = robot.inverse_dynamics(None, BaseMotion(near, twists, representation="body_fixed"))
        np.testing.assert_allclose(found.efforts, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
        assert answer.header.frame_id == "map"
        assert not answer.base_wrenches
        tilted = twists.copy()
        tilted[:, 0] = np.nan
        peer.send(motion(2, near, DesiredMotion.BODY, tilted))
        peer.send(motion(2, near, DesiredMotion.BODY, twists[:3]))
        peer.send(motion(2, singular, DesiredMotion.BODY, twists))
        world = peer.answer_to(motion(3, near, DesiredMotion.WORLD, twists))
        expected = robot.inverse_dynamics(None, BaseMotion(near, twists))
        np.testing.assert_allclose(
            read_feedforward_torque(world, JointOrder(robot.driven_joints)).efforts,
            expected,
            rtol=1e-10,
            atol=1e-10 * np.abs(expected).max(),
        )
        assert peer.stamps() == [1_000_000_000, 3_000_000_000]
        counts = peer.diagnostics(lambda values: values.get("rejected") == "3")
        assert counts["rejected: out of reach or singular"] == "1"
        assert "keep away from this pose" in node.wait_for_line("is singular")
        assert node.stop() == 0, node.output()
