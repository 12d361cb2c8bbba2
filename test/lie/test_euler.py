"""Euler angles of a floating base, and derivatives of poses: against Taylor series in high precision."""

from math import factorial

import mpmath
import numpy as np
import pytest
from oracles.motions import random_stack
from refusals import assert_refused, misshapen, not_finite

from hodyn_ros import Robot, SingularError, share
from hodyn_ros.array import Array
from hodyn_ros.lie.euler import euler_base, euler_coordinates, euler_velocity_maps

ORDERS = 4


def exact_pose(coordinates: Array, t: mpmath.mpf) -> mpmath.matrix:
    """Return the pose at a time from coordinates whose polynomial goes on."""
    x, y, z, roll, pitch, yaw = (
        mpmath.fsum(mpmath.mpf(float(row[i])) * t**k / factorial(k) for k, row in enumerate(coordinates))
        for i in range(6)
    )

    def turn(axis: int, angle: mpmath.mpf) -> mpmath.matrix:
        matrix = mpmath.eye(4)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        matrix[i, i] = matrix[j, j] = mpmath.cos(angle)
        matrix[i, j], matrix[j, i] = -mpmath.sin(angle), mpmath.sin(angle)
        return matrix

    pose = turn(2, yaw) * turn(1, pitch) * turn(0, roll)
    pose[0, 3], pose[1, 3], pose[2, 3] = x, y, z
    return pose


def exact_derivatives(coordinates: Array) -> Array:
    """Return the pose and its derivatives, by differences at 60 digits."""
    with mpmath.workdps(80):
        entries = [
            [
                mpmath.diff(lambda t, i=i, j=j: exact_pose(coordinates, t)[i, j], 0, k)
                for k in range(ORDERS + 1)
            ]
            for i in range(4)
            for j in range(4)
        ]
    return np.array([[float(value) for value in row] for row in entries]).T.reshape(-1, 4, 4)


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_twists_from_euler_angles_move_the_pose_as_they_do(frame: str) -> None:
    coordinates = random_stack(1, ORDERS + 1, 6)
    base = euler_base(coordinates, frame)  # type: ignore[arg-type]
    assert base.representation == frame and base.orders == ORDERS
    expected = exact_derivatives(coordinates)
    found = base.pose_derivatives()
    for k in range(ORDERS + 1):
        scale = np.abs(expected[: k + 1]).max()
        np.testing.assert_allclose(found[k], expected[k], rtol=0, atol=1e-13 * scale, err_msg=f"order {k}")


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_euler_angles_are_found_again(frame: str) -> None:
    coordinates = random_stack(2, ORDERS + 1, 6)
    found = euler_coordinates(euler_base(coordinates, frame))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, coordinates, rtol=0, atol=1e-12 * np.abs(coordinates).max())


def test_a_batch_is_every_sample_on_its_own() -> None:
    stacks = np.array([random_stack(seed, ORDERS + 1, 6) for seed in range(3)])
    whole = euler_base(stacks)
    for i, stack in enumerate(stacks):
        np.testing.assert_allclose(whole.twists[i], euler_base(stack).twists, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            whole.pose_derivatives()[i], euler_base(stack).pose_derivatives(), atol=1e-12
        )
    np.testing.assert_allclose(euler_coordinates(whole), stacks, rtol=0, atol=1e-11)


def test_the_map_takes_rates_to_the_body_fixed_twist_with_all_derivatives() -> None:
    coordinates = random_stack(3, 3, 6)
    maps = euler_velocity_maps(coordinates)
    base = euler_base(coordinates, "body_fixed")
    assert maps.shape == (2, 6, 6)
    np.testing.assert_allclose(maps[0] @ coordinates[1], base.twists[0], atol=1e-14)
    second = maps[1] @ coordinates[1] + maps[0] @ coordinates[2]
    np.testing.assert_allclose(second, base.twists[1], atol=1e-13)


def test_what_has_no_euler_angles_is_told() -> None:
    upright = np.zeros((2, 6))
    upright[0, 4] = np.pi / 2
    assert_refused(
        (lambda: euler_coordinates(euler_base(upright)), "pitch of the base is 90 degrees", SingularError),
        (lambda: euler_base(np.zeros((1, 6))), misshapen("the coordinates", (1, 6))),
        (lambda: euler_base(np.full((2, 6), np.nan)), not_finite("the coordinates", (0, 0))),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("representation", ["spatial", "body_fixed", "hybrid"])
def test_poses_of_bodies_have_derivatives(representation: str) -> None:
    """They are those of the pose along the motion: checked by the sum of the Taylor series a little later."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    q = random_stack(6, 7, 7)
    step = 1e-2
    later = sum(q[k] * step**k / factorial(k) for k in range(7))
    for name in ("panda_link4", "panda_link8"):
        found = robot.forward_kinematics(q, representation=representation)  # type: ignore[arg-type]
        derivatives = found.pose_derivatives_of(name)
        assert derivatives.shape == (7, 4, 4)
        series = sum(derivatives[k] * step**k / factorial(k) for k in range(7))
        right = robot.forward_kinematics(later[None]).pose_of(name)
        np.testing.assert_allclose(series, right, rtol=0, atol=1e-12)
