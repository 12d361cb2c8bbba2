"""Rotations, poses and screws: the axioms of SE(3) and of its Lie algebra, exp and log."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_trees import random_pose, random_screw, unit_vector
from scipy.linalg import expm

from hodyn_ros.array import Array
from hodyn_ros.lie import se3

ROUNDING = 1e-14

seeds = st.integers(0, 2**32 - 1)


def examples(count: int) -> Any:
    return settings(max_examples=count, deadline=None, derandomize=True)


def twist_of(seed: int, angle: float) -> Array:
    """Return a twist (6,) of a given angle and a length of about one."""
    rng = np.random.default_rng(seed)
    return np.concatenate([angle * unit_vector(rng), rng.normal(size=3)])


def hat4(twist: Array) -> Array:
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = se3.hat(twist[:3]), twist[3:]
    return matrix


def assert_equal(found: Array, expected: Array, tolerance: float = ROUNDING) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


class TestGroup:
    @given(seed=seeds)
    @examples(30)
    def test_poses_are_a_group_and_ad_represents_it(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        A, B, C = (random_pose(rng) for _ in range(3))
        assert_equal((A @ B) @ C, A @ (B @ C))
        assert_equal(se3.inverse(A) @ A, np.eye(4))
        assert_equal(A @ se3.inverse(A), np.eye(4))
        assert_equal(se3.inverse(A @ B), se3.inverse(B) @ se3.inverse(A))
        assert_equal(se3.Ad(A @ B), se3.Ad(A) @ se3.Ad(B))
        assert_equal(se3.Ad(se3.inverse(A)) @ se3.Ad(A), np.eye(6))
        assert_equal(se3.Ad(np.eye(4)), np.eye(6), 0.0)

    @given(seed=seeds)
    @examples(30)
    def test_ad_of_a_pose_moves_twists_as_conjugation_does(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        C, V = random_pose(rng), rng.normal(size=6)
        assert_equal(hat4(se3.Ad(C) @ V), C @ hat4(V) @ se3.inverse(C))

    @given(seed=seeds)
    @examples(30)
    def test_power_does_not_depend_on_the_frame(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        C, V, W = random_pose(rng), rng.normal(size=6), rng.normal(size=6)
        moved = np.linalg.inv(se3.Ad(C)).T @ W
        assert abs(se3.dot(moved, se3.Ad(C) @ V) - W @ V) <= 1e-13


class TestAlgebra:
    @given(seed=seeds)
    @examples(30)
    def test_the_bracket_is_a_lie_bracket(self, seed: int) -> None:
        x, y, z = np.random.default_rng(seed).normal(size=(3, 6))

        def bracket(a: Array, b: Array) -> Array:
            return se3.ad(a) @ b

        assert_equal(bracket(x, y), -bracket(y, x))
        assert_equal(bracket(x, x), np.zeros(6))
        jacobi = bracket(x, bracket(y, z)) + bracket(y, bracket(z, x)) + bracket(z, bracket(x, y))
        assert_equal(jacobi, np.zeros(6), 1e-13)
        assert_equal(hat4(bracket(x, y)), hat4(x) @ hat4(y) - hat4(y) @ hat4(x))

    @given(seed=seeds)
    @examples(30)
    def test_ad_and_ad_belong_together(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        C, V = random_pose(rng), rng.normal(size=6)
        assert_equal(se3.Ad(C) @ se3.ad(V) @ se3.Ad(se3.inverse(C)), se3.ad(se3.Ad(C) @ V), 1e-13)
        assert_equal(expm(se3.ad(V)), se3.Ad(se3.exp(V)), 1e-13)

    def test_hat_is_the_cross_product(self) -> None:
        x, y = np.random.default_rng(1).normal(size=(2, 5, 3))
        assert_equal(se3.matvec(se3.hat(x), y), np.cross(x, y))


ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.01, 0.019, 0.021, 0.039, 0.041, 0.3, 1.0, 2.0, 3.0]
NEAR_PI = [np.pi - gap for gap in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15)]


class TestExponential:
    @pytest.mark.parametrize("angle", [*ANGLES, *NEAR_PI, 4.0, 10.0])
    def test_exp_is_the_exponential_of_the_matrix(self, angle: float) -> None:
        for seed in range(3):
            twist = twist_of(seed, angle)
            with mpmath.workdps(40):
                exact = mpmath.expm(mpmath.matrix(hat4(twist).tolist()))
                expected = np.array(exact.tolist(), dtype=float)
            assert_equal(se3.exp(twist), expected)

    @pytest.mark.parametrize("angle", [*ANGLES, *NEAR_PI])
    def test_log_undoes_exp(self, angle: float) -> None:
        for seed in range(5):
            twist = twist_of(seed, angle)
            assert_equal(se3.log(se3.exp(twist)), twist, 1e-13)

    @pytest.mark.parametrize("angle", [*ANGLES, *NEAR_PI, np.pi, 3.5, 6.0])
    def test_exp_undoes_log(self, angle: float) -> None:
        for seed in range(5):
            pose = se3.exp(twist_of(seed, angle))
            twist = se3.log(pose)
            assert np.linalg.norm(twist[:3]) <= np.pi * (1 + 1e-15)
            assert_equal(se3.exp(twist), pose)

    @pytest.mark.parametrize("axis", [*np.eye(3), np.ones(3) / np.sqrt(3.0), np.array([0.6, -0.8, 0.0])])
    def test_half_turns_have_a_logarithm(self, axis: Array) -> None:
        pose = se3.pose(2.0 * np.outer(axis, axis) - np.eye(3), np.array([1.0, 2.0, 3.0]))
        twist = se3.log(pose)
        assert abs(np.linalg.norm(twist[:3]) - np.pi) <= 1e-14
        assert_equal(se3.exp(twist), pose)

    def test_small_twists_keep_all_their_digits(self) -> None:
        twist = 1e-9 * twist_of(3, 1.0)
        np.testing.assert_allclose(se3.log(se3.exp(twist)), twist, rtol=0, atol=1e-24)

    @given(seed=seeds, kind=st.sampled_from(["revolute", "prismatic", "helical"]), q=st.floats(-6.0, 6.0))
    @examples(40)
    def test_a_joint_moves_along_its_screw(self, seed: int, kind: str, q: float) -> None:
        rng = np.random.default_rng(seed)
        screw = random_screw(rng, kind, rng.normal(size=3))
        assert_equal(se3.exp_screw(screw, np.array(q)), se3.exp(screw * q))


@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
def test_batches_are_their_samples(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    twists = rng.normal(size=(*batch, 6))
    poses = se3.exp(twists)
    assert poses.shape == (*batch, 4, 4)
    assert se3.log(poses).shape == (*batch, 6)
    for index in np.ndindex(batch):
        assert_equal(poses[index], se3.exp(twists[index]))
        assert_equal(se3.log(poses)[index], se3.log(poses[index]))
        assert_equal(se3.Ad(poses)[index], se3.Ad(poses[index]))
        assert_equal(se3.ad(twists)[index], se3.ad(twists[index]))
        assert_equal(se3.inverse(poses)[index], se3.inverse(poses[index]))


def test_spatial_inertia_weighs_twists_by_their_kinetic_energy() -> None:
    rng = np.random.default_rng(8)
    mass, com, V = 2.0, rng.normal(size=3), rng.normal(size=6)
    inertia = np.diag([0.1, 0.2, 0.25])
    velocity = V[3:] + np.cross(V[:3], com)
    energy = 0.5 * mass * velocity @ velocity + 0.5 * V[:3] @ inertia @ V[:3]
    M = se3.spatial_inertia(np.array(mass), com, inertia)
    assert_equal(M, M.T, 0.0)
    assert abs(0.5 * V @ M @ V - energy) <= 1e-13 * energy
