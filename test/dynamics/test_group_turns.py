"""Joints of groups that have turned by more than half a turn."""

from functools import partial

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import InputError, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.joint_groups import cylindrical, planar, prismatic, revolute
from hodyn_ros.model.joint_tree import JointTree

AXIS, POINT, PITCH = np.array([0.2, -0.5, 0.7]), np.array([0.3, 0.1, -0.4]), 0.05
ANGLES = [0.0, 1.0, -3.0, 3.2, np.pi, -np.pi, 2 * np.pi, -2 * np.pi, 5.0, 3 * np.pi, -40.0, 1000.3]


def of_joint(subspace: Array) -> GroupRobot:
    tree = JointTree.build([-1], [subspace], [np.eye(4)], [2.0], [[0.1, 0.2, 0.3]], [np.eye(3)])
    return GroupRobot(tree)


@pytest.mark.parametrize("angle", ANGLES)
def test_a_screw_of_many_turns_moves_as_the_same_robot_with_coordinates(angle: float) -> None:
    e = AXIS / np.linalg.norm(AXIS)
    screws = [[*e, *(np.cross(POINT, e) + PITCH * e)], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    placements = np.stack([np.eye(4), exp(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))])
    coms, inertias = [[0.1, 0.2, 0.3], [0.0, 0.3, 0.1]], [np.eye(3), 2.0 * np.eye(3)]
    robot = Robot.from_screws([-1, 0], screws, placements, [2.0, 1.0], coms, inertias)
    groups = GroupRobot(JointTree.of(robot.model))
    q = np.array([[angle, 0.4], [0.7, -0.2], [0.1, 0.5], [-0.3, 0.2]])
    motion = groups.motion(groups.tree.joint_poses(q[0]), q[1:])
    np.testing.assert_allclose(
        groups.inverse_dynamics(motion), robot.inverse_dynamics(q), rtol=1e-10, atol=1e-9
    )


def test_the_centre_of_mass_does_not_jump_at_half_a_turn() -> None:
    robot = of_joint(revolute(AXIS, POINT, PITCH))
    angles = np.pi + np.linspace(-1e-3, 1e-3, 21)
    path = np.stack(
        [robot.com(robot.motion(robot.tree.joint_poses([angle]), np.zeros((0, 1))))[0] for angle in angles]
    )
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3)


@pytest.mark.parametrize("angle", ANGLES)
def test_a_plane_that_advances_with_every_turn(angle: float) -> None:
    plane = planar([0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    plane[5, 0] = PITCH
    robot = of_joint(plane)
    pose = robot.tree.joint_poses([angle, 0.0, 0.0]) @ robot.tree.joint_poses([0.0, 0.3, -0.2])
    assert robot.motion(pose, np.zeros((1, 3))).order == 1


@pytest.mark.parametrize("subspace", [revolute(AXIS, POINT), cylindrical(AXIS, POINT), prismatic(AXIS)])
def test_joints_without_pitch_are_what_they_were(subspace: Array) -> None:
    robot = of_joint(subspace)
    for angle in ANGLES:
        coordinates = np.full(subspace.shape[1], angle)
        assert robot.motion(robot.tree.joint_poses(coordinates), np.zeros((1, len(coordinates))))


@pytest.mark.parametrize("advance", [1e-6, PITCH * np.pi, -0.3])
def test_a_pose_off_the_screw_is_refused(advance: float) -> None:
    robot = of_joint(revolute([0.0, 0.0, 1.0], pitch=PITCH))
    for angle in ANGLES:
        pose = robot.tree.joint_poses([angle])
        pose[0, 2, 3] += advance
        refused(partial(robot.motion, pose, np.zeros((1, 1))), "cannot be reached by that joint")
        pose[0, 2, 3] -= advance
        pose[0, 0, 3] += advance
        with pytest.raises(InputError):
            robot.motion(pose, np.zeros((1, 1)))
