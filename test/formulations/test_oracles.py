"""The oracles, held against Pinocchio, against Lagrange's equations, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles import pinocchio_models
from oracles.cases import make_case
from oracles.motions import Base, Load, random_stack
from oracles.random_trees import random_tree

EXACT = 1e-25
"""Agreement of two computations with 40 digits or more."""


def largest(values: mp.Exact) -> float:
    return float(max(abs(value) for value in values.ravel()))


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_torques_and_mass_matrix_are_those_of_pinocchio(seed: int, floating_base: bool) -> None:
    case = make_case(seed, 12, 0, floating_base, representation="body_fixed")
    wrench, torques = pinocchio_models.inverse_dynamics(case.tree, case.q, case.base)
    found = mp.inverse_dynamics(case.tree, case.q, base=case.base)
    scale = np.abs(torques).max()
    np.testing.assert_allclose(mp.to_float(found.torques[0]), torques, rtol=0, atol=1e-13 * scale)
    if case.base is not None:
        assert found.base_wrench is not None
        assert wrench is not None
        pose = mp.exact(case.base.pose[None, :3])
        moved = mp.to_float(mp.wrench_to_world(pose, mp.exact(wrench[None]))[0])
        np.testing.assert_allclose(
            mp.to_float(found.base_wrench[0]), moved, rtol=0, atol=1e-13 * np.abs(moved).max()
        )
    matrix = pinocchio_models.mass_matrix(case.tree, case.q[0], case.base)
    np.testing.assert_allclose(
        mp.to_float(mp.mass_matrix(case.tree, case.q[0], case.base)),
        matrix,
        rtol=0,
        atol=1e-13 * np.abs(matrix).max(),
    )


@pytest.mark.parametrize("floating_base", [False, True])
def test_accelerations_are_those_of_pinocchio(floating_base: bool) -> None:
    case = make_case(5, 6, 0, floating_base, representation="body_fixed")
    torques = random_stack(1, 1, case.tree.n_joints)
    base_rate, expected = pinocchio_models.forward_dynamics(case.tree, case.q[:2], torques[0], case.base)
    found = mp.forward_dynamics(case.tree, case.q[:2], torques, base=case.base)
    np.testing.assert_allclose(
        mp.to_float(found.joints[0]), expected, rtol=0, atol=1e-11 * np.abs(expected).max()
    )
    if base_rate is not None:
        assert found.base is not None
        np.testing.assert_allclose(
            mp.to_float(found.base[0]), base_rate, rtol=0, atol=1e-11 * np.abs(base_rate).max()
        )


@pytest.mark.parametrize("seed", range(3))
def test_torques_satisfy_lagranges_equations(seed: int) -> None:
    """Q = d/dt dL/dq' - dL/dq by numeric differentiation of the energies, with 120 digits."""
    tree = random_tree(seed, 3)
    motion = random_stack(seed, 3, 3)
    with mp.digits(120):
        step = mp.mpfr(10) ** -30
        q, rate, acceleration = mp.exact(motion)

        def lagrangian(position: mp.Exact, velocity: mp.Exact) -> Any:
            kinetic, potential = mp.energies(tree, mp.kinematics(tree, np.array([position, velocity])))
            return kinetic[0] - potential[0]

        def momenta(time: Any) -> mp.Exact:
            position = q + rate * time + acceleration * time**2 / 2
            velocity = rate + acceleration * time
            return np.array(
                [
                    (lagrangian(position, velocity + unit) - lagrangian(position, velocity - unit))
                    / (2 * step)
                    for unit in step * np.eye(3, dtype=int)
                ]
            )

        slopes = np.array(
            [
                (lagrangian(q + unit, rate) - lagrangian(q - unit, rate)) / (2 * step)
                for unit in step * np.eye(3, dtype=int)
            ]
        )
        expected = (momenta(step) - momenta(-step)) / (2 * step) - slopes
        found = mp.inverse_dynamics(tree, motion).torques[0]
        assert largest(found - expected) < EXACT * largest(expected)


def test_derivatives_are_those_of_torques_along_the_motion() -> None:
    """Orders 1 to 4 against numeric differentiation of order 0 in time, with 120 digits."""
    case = make_case(3, 4, 4)
    found = mp.inverse_dynamics(case.tree, case.q).torques
    with mp.digits(120):
        step = mp.mpfr(10) ** -20
        coefficients = mp.taylor(mp.exact(case.q), len(case.q))

        def torques(time: Any) -> Any:
            series = [coefficients]
            for _ in range(2):
                series.append(mp.derivative(series[-1]))
            stack = [sum(term * time**k for k, term in enumerate(terms)) for terms in series]
            return mp.inverse_dynamics(case.tree, np.array(stack)).torques[0]

        samples = {k: torques(k * step) for k in range(-2, 3)}
        expected = [
            (samples[1] - samples[-1]) / (2 * step),
            (samples[1] - 2 * samples[0] + samples[-1]) / step**2,
            (samples[2] - 2 * samples[1] + 2 * samples[-1] - samples[-2]) / (2 * step**3),
            (samples[2] - 4 * samples[1] + 6 * samples[0] - 4 * samples[-1] + samples[-2]) / step**4,
        ]
        for k, value in enumerate(expected, start=1):
            assert largest(found[k] - value) < EXACT * largest(value), f"order {k}"


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_a_floating_base_led_by_a_joint_moves_like_the_body_on_that_joint(frame: str) -> None:
    fixed = make_case(8, 5, 3, branching=0.0)
    tree = fixed.tree
    motion = mp.kinematics(tree, mp.taylor(mp.exact(fixed.q), len(fixed.q)))
    leader = motion.poses[0]
    assert motion.screws[0] is not None
    last_row = np.array([[mp.ZERO] * 3 + [mp.ONE]], dtype=object)
    base = Base(
        pose=np.concatenate([leader[0], last_row]),
        twists=mp.derivatives(mp.twists_of(leader, frame)),
        representation="spatial" if frame == "spatial" else "body_fixed",
    )
    floating = type(tree)(**{**tree.arguments(), "floating_base": True})
    expected = mp.inverse_dynamics(tree, fixed.q).torques
    found = mp.inverse_dynamics(floating, fixed.q[:, 1:], base=base)
    assert found.base_wrench is not None
    assert largest(found.torques - expected[:, 1:]) < EXACT * largest(expected)
    wrench = mp.taylor(found.base_wrench, len(found.base_wrench))
    transmitted = mp.derivatives(mp.matmul(motion.screws[0], wrench))
    assert largest(transmitted - expected[:, 0]) < EXACT * largest(expected)


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
@pytest.mark.parametrize("floating_base", [False, True])
def test_gravity_given_as_loads_is_gravity(floating_base: bool, frame: str) -> None:
    case = make_case(9, 5, 3, floating_base)
    tree, weightless = case.tree, case.tree.with_gravity(np.zeros(3))
    orders = case.order + 1
    flyer = None
    if case.base is not None:
        twists = mp.taylor(mp.exact(case.base.twists), orders + 1)
        flyer = mp.base_poses(case.base, twists, orders + 2)
    motion = mp.kinematics(tree, mp.taylor(mp.exact(case.q), orders + 2), flyer)
    loads = []
    for body, pose in enumerate(motion.poses):
        weight = mp.taylor(mp.exact(tree.masses[body] * tree.gravity)[None], len(pose))
        arm = pose[:, :, :3] @ mp.exact(tree.coms[body]) + pose[:, :, 3]
        if frame == "body_fixed":
            weight = mp.matmul(pose[:, :, :3].transpose(0, 2, 1), weight)
            arm = mp.taylor(mp.exact(tree.coms[body])[None], len(pose))
        values = mp.derivatives(np.concatenate([mp.cross(arm, weight), weight], axis=1))
        loads.append(Load(body, values[:orders], "spatial" if frame == "spatial" else "body_fixed"))
    expected = mp.inverse_dynamics(tree, case.q, base=case.base)
    found = mp.inverse_dynamics(weightless, case.q, base=case.base, loads=loads)
    # m g is rounded to a double here
    assert largest(found.torques - expected.torques) < 1e-14 * largest(expected.torques)


@pytest.mark.parametrize("floating_base", [False, True])
def test_forward_dynamics_inverts_inverse_dynamics(floating_base: bool) -> None:
    case = make_case(10, 6, 4, floating_base, n_loads=2, representation="body_fixed")
    efforts = mp.inverse_dynamics(case.tree, case.q, base=case.base, loads=case.loads)
    found = mp.forward_dynamics(
        case.tree,
        case.q[:2],
        efforts.torques,
        base=case.base,
        base_wrench=efforts.base_wrench,
        loads=case.loads,
    )
    assert largest(found.joints - mp.exact(case.q[2:])) < EXACT
    if case.base is not None:
        assert found.base is not None
        assert largest(found.base - mp.exact(case.base.twists[1:])) < EXACT


@pytest.mark.parametrize("base_free", [False, True])
def test_hybrid_dynamics_completes_motion_and_torques(base_free: bool) -> None:
    case = make_case(11, 6, 2, True)
    efforts = mp.inverse_dynamics(case.tree, case.q, base=case.base)
    free = np.array([True, False, True, True, False])
    motion, found = mp.hybrid_dynamics(
        case.tree,
        case.q[:2],
        free,
        np.where(free, efforts.torques, mp.ZERO),
        np.where(free, 0.0, case.q[2:]),
        base=case.base,
        base_free=base_free,
        base_wrench=efforts.base_wrench,
    )
    assert largest(motion.joints - mp.exact(case.q[2:])) < EXACT
    assert largest(found.torques - efforts.torques) < EXACT * largest(efforts.torques)
    assert found.base_wrench is not None
    assert efforts.base_wrench is not None
    assert largest(found.base_wrench - efforts.base_wrench) < EXACT * largest(efforts.base_wrench)


def test_potential_energy_falls_with_gravity_and_kinetic_energy_is_that_of_a_point() -> None:
    """A body of 2 kg on a prismatic joint along gravity: T = m v^2 / 2, V = -m g q up to a constant."""
    tree = random_tree(12, 1, kinds=("prismatic",))
    tree.masses[0] = 2.0
    down = tree.with_gravity(9.81 * tree.screws[0, 3:])
    start, later = (
        mp.energies(down, mp.kinematics(down, mp.exact([[position], [3.0]]))) for position in (0.0, 0.5)
    )
    assert float(later[0][0]) == pytest.approx(9.0, rel=1e-14)
    assert float(later[1][0] - start[1][0]) == pytest.approx(-2.0 * 9.81 * 0.5, rel=1e-14)
