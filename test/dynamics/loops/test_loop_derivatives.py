"""Matrices and partial derivatives of robots with loops, against virtual work, differences and the tree."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import motion_of, robot_of
from numpy.typing import NDArray
from oracles import parallel_robots
from oracles.mechanisms import MECHANISMS
from oracles.motions import random_stack
from sweeps import some

from hodyn_ros import BaseMotion, ParallelRobot, Robot, share
from hodyn_ros.lie.se3 import ad, exp

Array = NDArray[np.float64]


@pytest.mark.thorough
class TestPartials:
    """Against differences of eighth order of the calls themselves."""

    @staticmethod
    def moved_robot(name: str) -> tuple[Robot, Array, BaseMotion]:
        """Return a robot whose coordinates include a pose, with a motion of order 1."""
        if name == "ankle":
            mechanism = MECHANISMS["ankle"]()
            robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 1)
            assert base is not None
            return robot, y, base.in_representation("body_fixed")
        if name.endswith("RRR"):
            robot = ParallelRobot.from_screws(
                **parallel_robots.planar_3rrr(0.08 if name == "RRR" else 0.0).arguments()
            )
        else:
            robot = Robot.load(share.find("config", f"{name}.yaml"))
        start, pose = robot.home
        assert robot.closure is not None and pose is not None
        directions = robot.closure.directions
        y = random_stack(2, 4, len(start), rate=1.0) * 0.2
        y[0] = start + (0.1 if len(start) else 0.0)
        y[0, 3:4] = 0.7
        pose = pose @ exp(directions @ np.linspace(0.02, 0.05, directions.shape[1]))
        twists = 0.3 * random_stack(5, 3, 6) @ directions @ directions.T
        return robot, y, BaseMotion(pose, twists, representation="body_fixed")

    @pytest.mark.parametrize("name", some(["ankle", "gough_stewart_6ups", "RRR"], "ankle", "RRR"))
    def test_linearised_dynamics_are_those_of_inverse_dynamics_turned_around(self, name: str) -> None:
        robot, y, base = self.moved_robot(name)
        assert robot.closure is not None
        state, still = (y[:2], y[:2]) if y.shape[1] else (None, np.zeros((2, 0)))
        u = np.linspace(1.0, 2.0, len(robot.driven_joints))
        now = BaseMotion(base.pose, base.twists[:1], representation="body_fixed")
        twists, joints = robot.forward_dynamics(state, u[None], now)
        then = BaseMotion(base.pose, np.concatenate([now.twists, twists]), representation="body_fixed")
        by = robot.inverse_dynamics_derivatives(np.concatenate([still, joints]), then)[0]
        A, B = robot.linearised_dynamics(state, u, now)
        m = robot.closure.n_coordinates
        for found, right in ((A[m:, :m], -by[0]), (A[m:, m:], -by[1]), (B[m:], np.eye(m)[:, m - len(u) :])):
            np.testing.assert_allclose(by[2] @ found, right, rtol=0.0, atol=1e-10 * np.abs(right).max())
        # a displacement e of the pose changes by e' = dw - [w, e]
        rows = slice(0, 6) if robot.closure.base_given else slice(len(joints[0]), m)
        directions = robot.closure.directions
        turned = np.linalg.lstsq(directions, ad(now.twists[0]) @ directions, rcond=None)[0]
        np.testing.assert_allclose(A[rows, rows], -turned, atol=1e-14)
        np.testing.assert_array_equal(A[:m, m:], np.eye(m))
