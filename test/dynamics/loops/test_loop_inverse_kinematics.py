"""Inverse kinematics of robots with couplings and loops, against their forward kinematics."""

from math import factorial

import numpy as np
import pytest
from case_robots import closeness
from linkages import robot_of, shipped, three_rps
from oracles.mechanisms import four_bar
from oracles.motions import random_stack

from hodyn_ros import BaseMotion, Robot, SingularError
from hodyn_ros.array import Array

pytestmark = pytest.mark.thorough


def motion(robot: Robot, orders: int, shift: float = 0.0) -> Array:
    """Return a motion (orders, k) of the coordinates near home."""
    start, _ = robot.home
    y = 0.3 * random_stack(3, orders, len(start))
    y[0] = start + shift + 0.1 * np.random.default_rng(1).uniform(-1.0, 1.0, len(start))
    return y


def test_of_a_foot_on_linkages_beside_a_base_that_moves() -> None:
    robot = shipped("humanoid_leg.yaml")
    y, pose = motion(robot, 4, 0.1), robot.home[1]
    y[0, 3] = 0.7
    assert pose is not None
    base = BaseMotion(pose, 0.3 * random_stack(4, 3, 6))
    moved = robot.forward_kinematics(y, base)
    pose, twists = moved.pose_of("foot"), moved.twists_of("foot")
    found = robot.inverse_kinematics(pose, twists, body="foot", seed=y[0] - 0.1, base=base)
    assert closeness(found, y) < 1e-12


class TestRedundant:
    def test_an_arm_with_coupled_fingers_moves_as_the_arm(self) -> None:
        """Joints that do not move the hand stay where they are; the others share its motion as in a tree."""
        arm, robot = shipped("panda.yaml"), shipped("panda_hand.yaml")
        q = 0.2 * random_stack(2, 4, 7)
        q[0] += (0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8)
        moved = arm.forward_kinematics(q)
        pose, twists = moved.pose_of("panda_link7"), moved.twists_of("panda_link7")
        weights = np.linspace(1.0, 3.0, 7)
        expected = arm.inverse_kinematics(pose, twists, seed=q[0], weights=weights)
        seed, many = np.append(q[0], 0.02), np.append(weights, 1.0)
        found = robot.inverse_kinematics(pose, twists, body="panda_link7", seed=seed, weights=many)
        assert closeness(found[:, :7], expected) < 1e-12
        assert found[:, 7].tolist() == [0.02, 0.0, 0.0, 0.0]
        held = robot.inverse_kinematics(
            pose, twists, body="panda_link7", seed=seed, independent={"panda_joint3": q[:, 2]}
        )
        assert closeness(held[:, :7], q) < 1e-11

    def test_the_least_velocities_are_differentiated(self) -> None:
        robot = shipped("humanoid_leg.yaml")
        y, pose = motion(robot, 4, 0.1), robot.home[1]
        y[0, 3] = 0.7
        assert pose is not None
        still = BaseMotion(pose, np.zeros((3, 6)))
        twists = robot.forward_kinematics(y, still, "hybrid").twists_of("foot")[:, 3:]
        moved = robot.forward_kinematics(y, still)
        at, rates = moved.pose_of("foot"), moved.twists_of("foot")
        found = robot.inverse_kinematics(at, rates, body="foot", seed=y[0], task="position", base=still)

        def least(time: float) -> Array:
            """Return the least velocities along the motion found, for the velocity of the foot then."""
            q = sum(row * time**k / factorial(k) for k, row in enumerate(found))
            v = sum(row * time**k / factorial(k) for k, row in enumerate(twists))
            jacobian = robot.jacobian(
                q[None], body="foot", representation="hybrid", base=BaseMotion(pose, np.zeros((1, 6)))
            )[0]
            result: Array = np.linalg.pinv(jacobian[3:, 6:]) @ v
            return result

        np.testing.assert_allclose(found[1], least(0.0), atol=1e-13)
        steps = np.array([6 / 7, -15 / 56, 5 / 63, -1 / 56, 1 / 385, -1 / 5544])
        slope = sum(w * (least(0.01 * i) - least(-0.01 * i)) for i, w in enumerate(steps, 1)) / 0.01
        assert np.abs(found[2] - slope).max() < 1e-10 * np.abs(slope).max()


class TestPlatforms:
    """Their motion comes back as the coordinates' part."""

    @pytest.mark.parametrize("floating", [False, True])
    def test_a_hinge_and_a_ball_tell_what_the_platform_of_a_3_rps_does(self, floating: bool) -> None:
        robot = three_rps(floating)
        pose = robot.home[1]
        assert pose is not None
        rows = np.zeros((4, 6))
        rows[:, [0, 1, 5]] = 0.3 * random_stack(5, 4, 3)
        moved = robot.forward_kinematics(None, BaseMotion(pose, rows, representation="body_fixed"))
        names = ["body1", "body3", "body5"]  # of the sliders
        robot.reset()
        platform, joints = robot.inverse_kinematics(
            [moved.pose_of(name) for name in names],
            [moved.twists_of(name) for name in names],
            body=names,
            task="position",
        )
        assert joints.shape == (5, 0) and platform is not None
        np.testing.assert_allclose(platform.pose, moved.pose_of("body6"), atol=1e-12)
        assert closeness(platform.twists, moved.twists_of("body6")) < 1e-11


class TestRefusals:
    def test_near_a_dead_point_as_many_derivatives_as_have_digits(self) -> None:
        """Where the rocker turns back it does not say how the crank moves; beside it that is graded."""
        robot = robot_of(four_bar())

        dead = _dead_point(robot)
        twists = np.zeros((4, 6))
        for beside, order, refused in ((0.0, 1, True), (1e-4, 1, False), (1e-4, 4, True), (0.3, 4, False)):
            pose = robot.forward_kinematics(np.array([[dead + beside]])).pose_of("body3")
            arguments = {"body": "body3", "seed": [dead + beside], "task": "orientation"}
            if refused:
                with pytest.raises(SingularError):
                    robot.inverse_kinematics(pose, twists[:order] + [0, 0, 1e-3, 0, 0, 0], **arguments)
            else:
                robot.inverse_kinematics(pose, twists[:order] + [0, 0, 1e-3, 0, 0, 0], **arguments)

    def test_near_a_pose_at_which_coordinates_determine_too_little(self) -> None:
        """Where the rocker is the coordinate, it does not say how the crank moves at its dead point."""
        crank = robot_of(four_bar())
        dead = _dead_point(crank)
        led = robot_of(four_bar(), coordinates=["joint3"])
        assert led.closure is not None
        for beside in (1e-4, 3e-6):
            q = np.array([[dead + beside], [1.0], [0.0], [0.0], [0.0]])
            moved = crank.joint_motion(q)
            led.reset(moved[0][list(led.closure.leading)])
            pose, twists = crank.forward_kinematics(q[:1]).pose_of("body1"), np.zeros((4, 6))
            twists[0, 2] = 1.0
            arguments = {"body": "body1", "task": "orientation", "seed": moved[0, 2:3]}
            if beside < 1e-5:
                with pytest.raises(SingularError):
                    led.inverse_kinematics(pose, twists, **arguments)
            else:
                found = led.inverse_kinematics(pose, twists, **arguments)
                np.testing.assert_allclose(found, moved[:, 2:3], rtol=0.0, atol=1e-10)


def _dead_point(robot: Robot) -> float:
    """Return the angle of the crank of a four-bar at which the rocker turns back."""

    def slope(q: float) -> float:
        return float(robot.jacobian(np.array([[q]]), body="body3", representation="spatial")[0, 2, 0])

    steps = np.linspace(0.0, 3.0, 31)
    values = [slope(q) for q in steps]
    place = next(i for i in range(30) if values[i] * values[i + 1] < 0.0)
    dead = float(steps[place])
    for _ in range(8):
        dead -= slope(dead) * 1e-6 / (slope(dead + 1e-6) - slope(dead))
    return dead
