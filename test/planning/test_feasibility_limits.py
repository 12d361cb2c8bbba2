"""Check and retime where limits are just touched, or leave no room."""

from __future__ import annotations

import numpy as np
import pytest

from hodyn_ros import Robot
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.retime import retime
from hodyn_ros.trajectory import WaypointSpline

NONE = [np.inf]


def robot_with(limits: JointLimits) -> Robot:
    model = Robot.from_screws(
        [-1], [[0, 1, 0, 0, 0, 0]], [np.eye(4)], [1.0], [[0.5, 0, 0]], [0.1 * np.eye(3)]
    ).model
    return Robot(model, limits)


@pytest.mark.parametrize(("lower", "upper"), [(-0.1, 0.3), (-1.0, 0.7), (-0.2, 1.1), (-0.7, 0.7)])
def test_a_motion_may_end_at_a_position_limit(lower: float, upper: float) -> None:
    motion = WaypointSpline([0.0, 1.0], [[0.0], [upper]])
    free = robot_with(JointLimits([lower], [upper], NONE, NONE, NONE))
    assert not check(free, motion).violations
    found = retime(free, motion)
    assert found.speed == 1.0
    assert found.column.quantity == "position"
    assert found.usage == pytest.approx(1.0, abs=1e-9)
    slow = robot_with(JointLimits([lower], [upper], [0.1], NONE, NONE))
    found = retime(slow, motion)
    assert found.column.quantity == "velocity"
    assert 1.0 - 1e-9 <= found.usage <= 1.0
    assert not check(slow, found.motion).violations


def test_a_joint_may_have_no_room_at_all() -> None:
    robot = robot_with(JointLimits([0.2], [0.2], NONE, NONE, NONE))
    assert not check(robot, WaypointSpline([0.0, 1.0], [[0.2], [0.2]])).violations
    (violation,) = check(robot, WaypointSpline([0.0, 1.0], [[0.2], [0.3]])).violations
    assert violation.usage == pytest.approx(1.1)
