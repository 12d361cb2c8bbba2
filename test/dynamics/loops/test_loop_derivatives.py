"""Matrices and partial derivatives of robots with loops, against virtual work, differences and the tree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from linkages import SHORT, SPINNING, motion_of, robot_of
from numpy.typing import NDArray
from oracles import parallel_robots
from oracles.cases import relative_errors
from oracles.mechanisms import FEW, MECHANISMS
from oracles.motions import random_stack
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, ParallelRobot, Robot, share
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import wrenches_to_body
from hodyn_ros.lie.se3 import ad, exp

Array = NDArray[np.float64]


@pytest.mark.thorough
class TestMatrices:
    """In the coordinates: `Q = M y'' + C y' + g`, with all its time derivatives."""

    @pytest.mark.parametrize("name", ["four-bar", "RSSR", "mimic chain"])
    def test_they_give_the_efforts_of_drives_that_are_coordinates(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        order = 3 if THOROUGH or name == "four-bar" else 1
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        assert robot.driven_joints == robot.joint_names
        one = robot.solve_loops(y, base)
        efforts = one.efforts
        rates = y[1:]
        if base is not None:
            body = base.in_representation("body_fixed")
            rates = np.concatenate([body.twists[: len(rates)], rates], axis=1)
            assert one.base_wrench is not None
            wrench = wrenches_to_body(base.pose, body.twists, one.base_wrench)
            efforts = np.concatenate([wrench, efforts], axis=1)
        found = robot.dynamic_matrices(y[: order + 2], base)
        for k in range(order + 1):
            expected = found.gravity[k]
            for matrices, speeds in ((found.mass, rates[1:]), (found.coriolis, rates)):
                expected = expected + product_derivative(matrices, speeds, k)
            assert relative_errors(expected[None], efforts[k][None]).max() < 1e-10

    @pytest.mark.parametrize("name", some(MECHANISMS, *FEW))
    def test_the_mass_matrix_changes_as_the_coriolis_matrix_says(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        mass = robot.mass_matrix(y[:2], base)
        coriolis = robot.coriolis_matrix(y[:2], base)[0]
        scale = max(float(np.abs(mass[1]).max()), 1e-6 * float(np.abs(mass[0]).max()))
        assert np.abs(coriolis + coriolis.T - mass[1]).max() < 1e-10 * scale
        gravity = robot.gravity_torque(y[:1], base)
        assert gravity.shape == (1, len(mass[0]))

    @pytest.mark.parametrize(
        "name",
        some(
            [name for name in MECHANISMS if name not in SPINNING], *(name for name in FEW if name != "RSSR")
        ),
    )
    def test_efforts_are_linear_in_the_parameters_of_the_bodies(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        order = 2 if THOROUGH or name in SHORT else 1
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        one = robot.solve_loops(y, base)
        efforts = one.efforts
        if one.base_wrench is not None and base is not None:
            wrench = wrenches_to_body(base.pose, base.in_representation("body_fixed").twists, one.base_wrench)
            efforts = np.concatenate([wrench, efforts], axis=1)
        regressor, parameters = robot.regressor(y, base), robot.dynamic_parameters()
        assert regressor.shape == (order + 1, efforts.shape[1], 10 * robot.tree.n_bodies)
        assert relative_errors(regressor @ parameters, efforts).max() < 1e-11
        if base is None and not robot.overconstrained_loops:
            compiled = robot.compile(order, "regressor")(y)
            np.testing.assert_allclose(compiled.reshape(regressor.shape), regressor, rtol=1e-9, atol=1e-9)

    def test_of_a_platform_its_wrench_against_gravity(self) -> None:
        mechanism = MECHANISMS["6-UPS"]()
        robot = robot_of(mechanism)
        still = BaseMotion(robot.home[1], np.zeros((3, 6)))
        held = robot.gravity_torque(np.zeros((1, 0)), still)[0]
        weight = -robot.gravity * robot.tree.masses.sum()
        assert held.shape == (6,)
        # legs on the ground carry a share of themselves
        assert 0.3 * weight[2] < held[5] < weight[2]

    @pytest.mark.parametrize("name", ["RSSR", "ankle", "planar 3-RRR"])
    def test_jacobians_take_coordinates_to_twists(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        moved = robot.forward_kinematics(y, base, "hybrid")
        body = robot.tree.n_bodies - 1
        jacobian = robot.jacobian(y[:2], body=body, representation="hybrid", base=base)
        rates = y[1:]
        if base is not None and mechanism.platform is None:
            rates = np.concatenate([base.in_representation("body_fixed").twists[: len(rates)], rates], axis=1)
        elif base is not None:
            rows = [("rx", "ry", "rz", "x", "y", "z").index(row) for row in mechanism.platform[1]]
            rates = _platform_rates(base)[:, rows]
        for k in range(min(2, len(rates))):
            found = product_derivative(jacobian, rates, k)
            np.testing.assert_allclose(found, moved.twists[k, body], rtol=1e-9, atol=1e-9)

    def test_the_centre_of_mass_is_that_of_the_tree(self) -> None:
        mechanism = MECHANISMS["ankle"]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        moved, masses = robot.forward_kinematics(y[:1], base), robot.tree.masses
        places = [pose[:3, :3] @ c + pose[:3, 3] for pose, c in zip(moved.poses, robot.tree.coms)]
        np.testing.assert_allclose(robot.com(y[:1], base)[0], masses @ np.array(places) / masses.sum())


def _platform_rates(base: BaseMotion) -> Array:
    """Return the rates (1, 6) of the rows of a platform: turns about the axes of its pose, shifts along."""
    w, v = base.twists[0, :3], base.twists[0, 3:]
    turned = base.pose[:3, :3].T @ np.stack([w, v + np.cross(w, base.pose[:3, 3])], axis=1)
    return turned.T.reshape(1, 6)


GROUNDED = [name for name in MECHANISMS if name not in SPINNING and MECHANISMS[name]().platform is None]
GROUNDED = [name for name in GROUNDED if not MECHANISMS[name]().tree.floating_base]


@pytest.mark.thorough
class TestPartials:
    """Against differences of eighth order of the calls themselves."""

    @staticmethod
    def slope(of: Callable[[float], Array], step: float = 0.005) -> Array:
        weights = np.array([4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0])
        parts = [w * (of(i * step) - of(-i * step)) for i, w in enumerate(weights, 1)]
        slope: Array = sum(parts[1:], start=parts[0]) / step
        return slope

    @pytest.mark.parametrize("name", some(GROUNDED, *(name for name in GROUNDED if name in FEW)))
    def test_of_inverse_dynamics_of_any_order(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 1)
        found = robot.inverse_dynamics_derivatives(y)
        assert found.shape == (2, 4, len(mechanism.driven), y.shape[1])
        for k in range(4):
            for c in range(y.shape[1]):

                def efforts(step: float, place: tuple[int, int] = (k, c)) -> Array:
                    moved = y.copy()
                    moved[place] += step
                    return robot.inverse_dynamics(moved)

                expected = self.slope(efforts)
                scale = np.abs(found[:, :3]).max()
                assert np.abs(found[:, k, :, c] - expected).max() < 1e-9 * scale

    @pytest.mark.parametrize("name", some(GROUNDED, *(name for name in GROUNDED if name in FEW)))
    def test_of_forward_dynamics(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        u = robot.inverse_dynamics(y)
        A, B = robot.linearised_dynamics(y[:2], u[0])
        n = y.shape[1]
        for i in range(2 * n):

            def accelerations(step: float, place: tuple[int, int] = divmod(i, n)) -> Array:
                moved = y[:2].copy()
                moved[place] += step
                return robot.forward_dynamics(moved, u)[0]

            assert np.abs(A[n:, i] - self.slope(accelerations)).max() < 1e-9 * np.abs(A).max()
        np.testing.assert_array_equal(A[:n], np.eye(2 * n)[n:])
        inertia = robot.mass_matrix(y[:1])[0]
        jacobian = robot.inverse_dynamics_derivatives(y)[0, 2]
        if len(mechanism.driven) == n:  # M y'' + ... = S_y u, and u = ... + S_y^-1 M y''
            np.testing.assert_allclose(B[n:] @ jacobian, np.eye(n), atol=1e-9)
        assert np.abs(inertia @ B[n:]).max() > 0.0

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

    @pytest.mark.parametrize(
        "name",
        some(
            ["ankle", "gough_stewart_6ups", "humanoid_leg", "RRR", "hinged RRR"], "ankle", "RRR", "hinged RRR"
        ),
    )
    def test_of_the_motion_of_a_base_or_platform(self, name: str) -> None:
        """Small body-fixed displacements of it, and the derivatives of its body-fixed twist."""
        robot, y, base = self.moved_robot(name)
        q = y if y.shape[1] else None
        found = robot.inverse_dynamics_derivatives(q, base)
        assert robot.closure is not None
        given, directions = robot.closure.base_given, robot.closure.directions

        def efforts(moving: BaseMotion, joints: Array) -> Array:
            result = robot.inverse_dynamics(joints if y.shape[1] else None, moving)  # type: ignore[arg-type]
            if not given:
                return np.asarray(result)
            wrench, drives = result
            return np.concatenate([moving.wrenches_in_body(wrench), drives], axis=1)

        scale = np.abs(found[:, :3]).max()
        for k in range(4):
            for c, direction in enumerate(directions.T):

                def moved(step: float, k: int = k, direction: Array = direction) -> Array:
                    pose, twists = base.pose, base.twists.copy()
                    if k:
                        twists[k - 1] += step * direction
                    else:
                        pose = pose @ exp(step * direction)
                    return efforts(BaseMotion(pose, twists, representation="body_fixed"), y)

                assert np.abs(found[:, k, :, c] - self.slope(moved)).max() < 1e-8 * scale
            for c in range(y.shape[1]):

                def bent(step: float, place: tuple[int, int] = (k, c)) -> Array:
                    joints = y.copy()
                    joints[place] += step
                    return efforts(base, joints)

                assert np.abs(found[:, k, :, 6 + c] - self.slope(bent)).max() < 1e-8 * scale

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
