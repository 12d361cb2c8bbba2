"""The oracles, held against Pinocchio and differences; that they agree with the package is tested with it."""

from typing import Any

import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles import pinocchio_models
from oracles.cases import make_case
from oracles.motions import Load, random_stack

EXACT = 1e-25
"""Agreement of two computations with 40 digits or more."""


def largest(values: mp.Exact) -> float:
    return float(max(abs(value) for value in values.ravel()))


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("seed", range(2))
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
