"""Accelerations of robots with loops against Pinocchio's constraint dynamics."""

import numpy as np
import pytest
from linkages import motion_of, robot_of, shipped
from oracles.cases import relative_errors
from oracles.mechanisms import MECHANISMS, Mechanism
from oracles.pinocchio_models import constrained_accelerations
from oracles.random_trees import Tree

from hodyn_ros import Robot
from hodyn_ros.array import Array

Pin = tuple[int, int, Array]


def pins_of(mechanism: Mechanism) -> list[Pin]:
    """Return points that keep together; a symmetric rod between two balls needs nothing for its spin."""
    pins: list[Pin] = []
    for loop in mechanism.loops:
        if loop.kind != "spin":
            pins.append((loop.a, loop.b, loop.point))
        if loop.kind == "hinge":
            assert loop.axis is not None
            pins.append((loop.a, loop.b, loop.point + 0.3 * np.array(loop.axis)))
    return pins


def disagreement(robot: Robot, y: Array, pins: list[Pin]) -> float:
    """Return how far all accelerations of the tree are from Pinocchio's, and from those asked for."""
    rng = np.random.default_rng(5)
    efforts = robot.solve_loops(y).efforts[:1]
    efforts = efforts + np.abs(efforts).max() * rng.uniform(-1.0, 1.0, efforts.shape)
    found = robot.forward_dynamics(y[:2], efforts)
    one = robot.solve_loops(np.vstack([y[:2], found]))
    worst = 0.0
    for given in (efforts, one.efforts[:1]):
        tau = np.zeros(robot.tree.n_joints)
        tau[[robot.tree.joint_names.index(name) for name in robot.driven_joints]] = given[0]
        right = constrained_accelerations(Tree.of(robot.tree), pins, one.joints[:2], tau)
        worst = max(worst, float(relative_errors(one.joints[2:3], right[None]).max()))
    return worst


@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "RSSR", "palletiser"])
def test_linkages(name: str) -> None:
    mechanism = MECHANISMS[name]()
    y, _ = motion_of(mechanism, 0)
    assert disagreement(robot_of(mechanism), y, pins_of(mechanism)) < 1e-9


def test_delta_of_the_package() -> None:
    # its file couples the rods of each pair; here each of the six ends in a ball on the platform
    robot = shipped("delta.yaml")
    bodies, at = robot.tree.body_names, robot.forward_kinematics(np.zeros((1, 3)))
    platform = bodies.index("platform")
    ends = {f"rod{i}{side}": f"end{i}{side.strip('a')}" for i in (1, 2, 3) for side in "ab"}
    pins = [(bodies.index(rod), platform, at.pose_of(end)[:3, 3]) for rod, end in ends.items()]
    y = 0.05 * np.random.default_rng(6).uniform(-1.0, 1.0, (3, 3))
    assert disagreement(robot, y, pins) < 1e-9
