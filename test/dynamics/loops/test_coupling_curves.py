"""Joints that follow others along curves."""

from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from linkages import motion_of, readable_solution, robot_of
from oracles.cases import relative_errors
from oracles.mechanisms import MECHANISMS, four_bar
from scipy.interpolate import make_interp_spline

from hodyn_ros import Constraints, Coupling, Robot
from hodyn_ros.model.joint_function import JointFunction


class TestCurves:
    """Joints that follow others along polynomials and tables; their efforts are among the exact ones."""

    @staticmethod
    def cam(**curve: object) -> Robot:
        tree = four_bar().tree
        constraints = Constraints(couplings=[Coupling("joint2", "joint1", **curve)])
        return Robot.from_screws(**tree.arguments(), constraints=constraints)

    def test_straight_curves_are_ratios(self) -> None:
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 2))
        expected = self.cam(ratio=3.0, offset=0.1).inverse_dynamics(y)
        at = np.linspace(-1.0, 1.0, 8)
        for curve in ({"polynomial": [0.1, 3.0]}, {"table": (at, 3.0 * at + 0.1), "degree": 7}):
            assert relative_errors(self.cam(**curve).inverse_dynamics(y), expected).max() < 1e-9

    @pytest.mark.parametrize("ratio", [1e-4, 2e4])
    def test_steep_curves_leave_the_rows_of_loops_alone(self, ratio: float) -> None:
        mechanism = MECHANISMS["geared linkage"]()
        y, _ = motion_of(mechanism, 3)
        curved = replace(mechanism, curves=(replace(mechanism.curves[0], polynomial=(0.0, ratio)),))
        straight = replace(mechanism, curves=(), couplings=((3, 2, ratio, 0.0),))
        found, expected = robot_of(curved).inverse_dynamics(y), robot_of(straight).inverse_dynamics(y)
        assert relative_errors(found, expected).max() < 1e-10

    def test_names_of_what_follows_are_no_coordinates(self) -> None:
        robot = self.cam(polynomial=[0.1, 3.0, 1.0])
        assert robot.joint_names == robot.driven_joints == ("joint1", "joint3")

    def test_splines_are_those_of_scipy(self) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        values = np.cos(2.0 * at)
        for degree in (3, 5, 7):
            function = JointFunction.of_table(at, values, degree, False)
            spline = make_interp_spline(at, values, k=degree)
            for x in (*at[:-1], -0.95, 0.0, 1.3):
                found = function.taylor(x, degree + 1)
                expected = [float(spline(x, nu=k)) / factorial(k) for k in range(degree + 1)]
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("periodic", [False, True])
    def test_pieces_of_tables_fit_together(self, periodic: bool) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        values = np.append(np.cos(2.0 * at[:-1]), np.cos(-2.0))
        function = JointFunction.of_table(at, values, 5, periodic)
        for x in function.breaks[1:-1]:
            before, after = (function.taylor(place, 5) for place in (np.nextafter(x, -9.0), x))
            np.testing.assert_allclose(before, after, rtol=1e-10, atol=1e-10)

    def test_periodic_tables_hold_for_any_turn(self) -> None:
        turn = np.linspace(0.0, 2.0 * np.pi, 17)
        lift = np.append(np.sin(turn[:-1]), 0.0)
        robot = self.cam(table=(turn, lift), degree=7, periodic=True)
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 2))
        here = robot.inverse_dynamics(y)
        for turns in (1, -3):
            there = y.copy()
            there[0, 0] += turns * 2.0 * np.pi
            # joint 1 carries joint 2, and stands where it stood
            assert relative_errors(robot.inverse_dynamics(there), here).max() < 1e-9

    @pytest.mark.parametrize("periodic", [False, True])
    def test_every_piece_of_a_table_is_in_the_compiled_code(self, periodic: bool) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        table = at, np.append(np.cos(2.0 * at[:-1]), np.cos(-2.0))
        robots = [self.cam(table=table, degree=5, periodic=periodic) for _ in range(2)]
        fast, slow = robots[0], robots[1]
        y = np.random.default_rng(1).uniform(-0.5, 0.5, (5, 2))
        places = [*at[:3], *np.linspace(-0.55, 1.4, 14), *at[3:], 1.5 + 1e-13]
        for y[0, 0] in sorted(places) + (list(np.linspace(1.6, 13.0, 40)) if periodic else []):
            expected = readable_solution(slow, y).efforts
            assert relative_errors(fast.inverse_dynamics(y), expected).max() < 1e-11

    def test_followers_may_lead_as_far_as_they_reach(self) -> None:
        tree = four_bar().tree
        couplings = [Coupling("joint2", "joint1", polynomial=[0.0, 1.0, -1.0])]
        constraints = Constraints(couplings=couplings, coordinates=["joint2", "joint3"])
        robot = Robot.from_screws(**tree.arguments(), constraints=constraints)
        y = np.zeros((3, 2))
        y[0, 0] = 0.21
        assert robot.solve_loops(y).joints[0, 0] == pytest.approx(0.3, rel=1e-12)
