"""Calls that are compiled by name: the same numbers as the calls themselves and as the readable forms."""

from typing import Any

import numpy as np
import pytest
from oracles.random_trees import random_tree

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics import matrices
from hodyn_ros.dynamics.kinematics.forward_kinematics import forward_kinematics
from hodyn_ros.dynamics.motion_stack import motion_stack
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.formulations.dynamic_matrices import com_positions
from hodyn_ros.lie.representations import REPRESENTATIONS, Representation
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=[False, True], ids=["ground", "floating"])
def robot(request: pytest.FixtureRequest) -> Robot:
    made = Robot.from_screws(**random_tree(5, 4, floating_base=request.param).arguments())
    tool = make_frame(made)
    return Robot(made.model, frames={"tool": tool, "corner": tool._replace(body=-1)})


def make_frame(robot: Robot) -> Any:
    body = find_frame(robot.model, {}, robot.model.n_bodies - 2)
    return body._replace(pose=exp(np.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.3])))


def motion(robot: Robot, rows: int, seed: int = 0) -> tuple[Array, BaseMotion | None]:
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, (rows, robot.n_coordinates))
    if not robot.model.floating_base:
        return q, None
    return q, BaseMotion(exp(rng.uniform(-1.0, 1.0, 6)), rng.uniform(-1.0, 1.0, (max(rows - 1, 1), 6)))


def close(found: Array, expected: Array) -> None:
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) < 1e-12 * scale


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_named_frames_and_readable_recursions(robot: Robot, representation: Representation) -> None:
    """Frames beside bodies and on the ground; the recursions that large robots take are the compiled ones."""
    q, base = motion(robot, 3)
    read = forward_kinematics(robot.model, q, base, representation, robot.frames)
    found = robot.forward_kinematics(q, base, representation)
    for name in ("poses", "twists", "screws"):
        close(getattr(found, name), getattr(read, name))
    names = ["tool", 0, robot.model.body_names[-1], "corner"]
    moving = [] if base is None else [base.pose, base.twists]
    table = robot.compile(2, "forward_kinematics", names, representation)(q, *moving)
    bodies = motion_stack(robot.model, q, base, 0).bodies(JointTree.of(robot.model))
    for row, name in zip(table, names):
        close(row[:16].reshape(4, 4), read.pose_of(name))
        close(row[16:].reshape(2, 6), read.twists_of(name))
        jacobian = robot.jacobian(q, body=name, representation=representation, base=base)
        place = find_frame(robot.model, robot.frames, name)
        close(jacobian, np.array(matrices.jacobian(bodies, 2, place, representation)))
    close(robot.com(q, base), np.array(com_positions(bodies, 2)))
