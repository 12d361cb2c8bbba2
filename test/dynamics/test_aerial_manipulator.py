"""The aerial manipulator of Ali et al. (Table 3): its file, its flight, and the way to torques and back.

What forward dynamics returns can be no better than its input: torques and base wrench are rounded to doubles,
and high orders amplify that. The unit of its error is therefore what exact arithmetic makes of one rounding.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import gmpy2
import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles.motions import Base
from oracles.random_trees import Tree
from places import CONFIG, EXAMPLES
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.array import Array

pytestmark = pytest.mark.thorough


ORDER = 5
EXAMINED = some((0, 333, 1000, 1499, 2001, 2750, 2999), 0, 1000, 2750)
"""Samples that are computed exactly as well."""

SLACK = 8.0
"""How many times the effect of one rounding of the input an error may be."""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load(CONFIG / "aerial_manipulator.yaml")


@pytest.fixture(scope="module")
def tree(robot: Robot) -> Tree:
    return Tree.of(robot.model)


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as environment:
        environment.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module("aerial_manipulator")


@pytest.fixture(scope="module")
def flight(example: Any) -> Any:
    return example.table_3_flight(0.01 * np.arange(3000))


@pytest.fixture(scope="module")
def efforts(robot: Robot, example: Any, flight: Any) -> Any:
    return example.inverse_dynamics(robot, flight.q, flight.poses, flight.twists)


@pytest.fixture(scope="module")
def found(robot: Robot, example: Any, flight: Any, efforts: Any) -> Any:
    return example.forward_dynamics(robot, flight, efforts, range(len(flight.times)))


def exact_base(flight: Any, sample: int, twists: int = ORDER + 2) -> Base:
    return Base(flight.poses[sample], flight.twists[sample, :twists], "spatial")


def exact_accelerations(tree: Tree, flight: Any, sample: int, torques: Any, wrench: Any) -> Array:
    """Return (order + 1, 12): accelerations of the joints, and on their right of the base."""
    result = mp.forward_dynamics(
        tree, flight.q[sample, :2], torques, base=exact_base(flight, sample, 1), base_wrench=wrench
    )
    assert result.base is not None
    return mp.to_float(np.concatenate([result.joints, result.base], axis=1))


def by_quantity(accelerations: Array) -> Array:
    """Return the largest of the joints and of the base (..., 2), from (..., 12)."""
    sizes = np.abs(accelerations)
    return np.stack([sizes[..., :6].max(axis=-1), sizes[..., 6:].max(axis=-1)], axis=-1)


@pytest.fixture(scope="module")
def largest(flight: Any) -> Array:
    """Largest accelerations in the flight by order, of joints and base (order + 1, 2)."""
    motion = np.concatenate([flight.q[:, 2:], flight.twists[:, 1:]], axis=2)
    return np.asarray(by_quantity(motion).max(axis=0))


@pytest.fixture(scope="module")
def one_rounding(tree: Tree, flight: Any, efforts: Any, largest: Array) -> Array:
    """How far rounding torques and wrench moves the exact motion, relative (order + 1, 2)."""
    rng = np.random.default_rng(0)

    def rounded(values: Array) -> mp.Exact:
        # as exact numbers, since a double cannot hold half of its last digit
        signs = rng.choice([-1.0, 1.0], size=values.shape)
        return np.asarray(mp.exact(values) * (1 + mp.exact(2.0**-53 * signs)))

    moves = []
    for i in EXAMINED:
        torques, wrench = efforts.torques[i], efforts.wrenches[i]
        expected = exact_accelerations(tree, flight, i, torques, wrench)
        for _ in range(2):
            near = exact_accelerations(tree, flight, i, rounded(torques), rounded(wrench))
            moves.append(by_quantity(near - expected) / largest)
    return np.asarray(np.max(moves, axis=0))


class TestTable3:
    """The robot's file against the paper, whose frames lie in the centres of mass."""

    HEIGHT, LENGTH, SPACING = 0.10, 0.06, 0.18  # b, d, c

    def test_masses_and_inertias(self, robot: Robot) -> None:
        np.testing.assert_array_equal(robot.model.masses, [2.5] + [0.25] * 6)
        expected = [np.diag([0.03, 0.03, 0.05])] + [np.diag([0.002, 0.002, 0.001])] * 6
        np.testing.assert_allclose(robot.model.inertias, expected, rtol=1e-15)

    def test_tree(self, robot: Robot) -> None:
        assert robot.model.floating_base
        assert robot.model.parents == (-1, 0, 1, 2, 0, 4, 5)

    def test_centres_of_mass_and_screws_in_home_configuration(self, robot: Robot) -> None:
        b, d, c = self.HEIGHT, self.LENGTH, self.SPACING
        centres, screws = [np.zeros(3)], [np.zeros(6)]
        for side in (1.0, -1.0):  # eqs. 29 and 30
            at = np.array([side * c / 2.0, 0.0, -b - d])
            for axis in ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
                centres.append(at)
                screws.append(np.concatenate([axis, np.cross(at + [0.0, 0.0, d], axis)]))
                at = at - [0.0, 0.0, 2.0 * d]
        model = robot.model
        found = [(place @ [*com, 1.0])[:3] for place, com in zip(model.placements, model.coms)]
        np.testing.assert_allclose(found, centres, atol=1e-16)
        np.testing.assert_allclose(model.screws, screws, atol=1e-16)

    def test_joint_motion(self, flight: Any) -> None:
        start = np.deg2rad([10.0, -5.0, 15.0, -10.0, 7.0, -12.0])
        swing = np.deg2rad([60.0, 50.0, 40.0, 55.0, 45.0, 35.0])
        rate = np.pi / 30.0
        for k in range(ORDER + 3):
            # the k-th derivative of -cos(x) is -cos(x + k pi/2)
            wave = -np.cos(rate * flight.times + 0.5 * np.pi * k)[:, None]
            expected = 0.5 * swing * rate**k * wave + (start + 0.5 * swing if k == 0 else 0.0)
            np.testing.assert_allclose(flight.q[:, k], expected, rtol=1e-12, atol=1e-15 * rate**k)

    @pytest.mark.parametrize("sample", EXAMINED)
    def test_base_motion(self, flight: Any, sample: int) -> None:
        """Pose and spatial twists from the Taylor series of circle and yaw at 40 digits."""
        terms, pi = ORDER + 3, gmpy2.const_pi()
        time = mp.taylor(mp.exact([float(flight.times[sample]), 1.0]), terms)
        poses = mp.exact(np.zeros((terms, 3, 4)))
        cosines, sines = _cos_sin(pi / 10 * time)
        turn, slope = _cos_sin(25 * pi / 180 * _cos_sin(pi / 15 * time)[1])
        poses[:, 0, 0], poses[:, 0, 1] = turn, -slope
        poses[:, 1, 0], poses[:, 1, 1] = slope, turn
        poses[0, 2, 2] = mp.ONE
        poses[:, 0, 3], poses[:, 1, 3] = cosines, sines
        np.testing.assert_allclose(flight.poses[sample, :3], mp.to_float(poses[0]), atol=1e-15)
        expected = mp.to_float(mp.derivatives(mp.twists_of(poses, "spatial")))
        np.testing.assert_allclose(
            flight.twists[sample], expected, atol=1e-14 * np.abs(expected).max(), rtol=1e-12
        )


def _cos_sin(angle: mp.Exact) -> tuple[mp.Exact, mp.Exact]:
    c, s = angle * 0, angle * 0
    c[0], s[0] = mp.cos(angle[0]), mp.sin(angle[0])
    for k in range(1, len(angle)):
        c[k] = -sum(j * angle[j] * s[k - j] for j in range(1, k + 1)) / k
        s[k] = sum(j * angle[j] * c[k - j] for j in range(1, k + 1)) / k
    return c, s


def test_inverse_then_forward_dynamics_returns_the_motion(
    flight: Any, found: Any, largest: Array, one_rounding: Array
) -> None:
    """Figure 3 of the paper: all 3000 samples."""
    motion = np.concatenate([flight.q[:, 2:], flight.twists[:, 1:]], axis=2)
    returned = np.concatenate([found.joints, found.base], axis=2)
    errors = by_quantity(returned - motion).max(axis=0) / largest
    assert (errors <= SLACK * one_rounding).all(), f"errors {errors}, effect of one rounding {one_rounding}"
