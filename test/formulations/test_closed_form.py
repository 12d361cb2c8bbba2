"""The system matrices of the closed form and their derivatives: what they are, and what they must satisfy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from oracles import mp_dynamics as mp
from oracles.cases import Case, cases, make_case
from oracles.motions import Base
from oracles.random_trees import Tree
from sweeps import examples

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.dynamics.kinematics.forward_kinematics import forward_kinematics
from hodyn_ros.formulations import closed_form
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Ad, inverse
from hodyn_ros.model.tree import TreeModel

Array = NDArray[np.float64]

EXACT = 1e-12

both_bases = pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])


def parts_of(case: Case) -> tuple[TreeModel, BaseMotion | None]:
    base = case.base and BaseMotion(case.base.pose, case.base.twists, representation=case.base.representation)
    return Robot.from_screws(**case.tree.arguments()).tree, base


def system_of(case: Case) -> closed_form.SystemMatrices:
    model, base = parts_of(case)
    return closed_form.system_matrices(model, case.q, base)


def assert_close(found: Array, expected: Array, tolerance: float = EXACT, scale: float = 0.0) -> None:
    scale = max(scale, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def exact_mass_matrices(tree: Tree, q: Array, base: Base | None, order: int) -> list[Array]:
    """Return the mass matrix and its derivatives by differences between points on q(t), with 100 digits."""
    with mp.digits(100):
        step = mp.mpfr(10) ** -20
        series = mp.taylor(mp.exact(q), len(q))
        points = [
            mp.mass_matrix(tree, sum(term * (k * step) ** i for i, term in enumerate(series)), base)
            for k in range(-2, 3)
        ]
        minus2, minus, here, plus, plus2 = points
        derivatives = [
            here,
            (plus - minus) / (2 * step),
            (plus - 2 * here + minus) / step**2,
            (plus2 - 2 * plus + 2 * minus - minus2) / (2 * step**3),
        ]
        return [mp.to_float(derivative) for derivative in derivatives[: order + 1]]


class TestMassMatrix:
    @both_bases
    @pytest.mark.parametrize("branching", [0.0, 0.7])
    def test_derivatives_of_the_mass_matrix(self, floating_base: bool, branching: float) -> None:
        # the mass matrix in body-fixed velocities does not depend on the motion of the base
        case = make_case(1, 5, 1, floating_base, branching=branching, representation="body_fixed")
        exact = exact_mass_matrices(case.tree, case.q, case.base, 3)
        found = closed_form.mass_matrices(system_of(case), 3)
        for a, b in zip(found, exact, strict=True):
            assert_close(a, b)

    @given(case=cases(15, orders=[0, 2], max_loads=0))
    @examples(15)
    def test_it_weighs_velocities_by_the_kinetic_energy(self, case: Case) -> None:
        system = system_of(case)
        terms, flyer = len(case.q), None
        if case.base is not None:
            flyer = mp.base_poses(case.base, mp.taylor(mp.exact(case.base.twists), terms - 1), terms)
        motion = mp.kinematics(case.tree, mp.taylor(mp.exact(case.q), terms), flyer)
        kinetic = mp.to_float(mp.derivatives(mp.energies(case.tree, motion)[0]))
        mass = closed_form.mass_matrices(system, case.order)
        for r in range(case.order + 1):
            momenta = [product_derivative(mass, system.velocities, k) for k in range(r + 1)]
            energy = 0.5 * product_derivative(system.velocities, momenta, r, np.dot)
            assert_close(np.array(energy), kinetic[r], scale=float(np.abs(kinetic[: r + 1]).max()))

    @both_bases
    def test_it_is_symmetric_and_positive_definite(self, floating_base: bool) -> None:
        mass = closed_form.mass_matrices(system_of(make_case(2, 8, 3, floating_base)), 3)
        for matrix in mass:
            assert_close(matrix, matrix.T, 1e-14)
        np.linalg.cholesky(mass[0])


class TestCoriolisMatrix:
    @given(case=cases(15, orders=[0, 2, 4], max_loads=0))
    @examples(20)
    def test_mass_rate_less_twice_coriolis_is_skew(self, case: Case) -> None:
        """Also its derivatives; with a floating base too (Ali et al., lemma 1)."""
        system = system_of(case)
        order = system.order - 1
        mass = closed_form.mass_matrices(system, order + 1)
        coriolis = closed_form.coriolis_matrices(system, order)
        for k in range(order + 1):
            difference = mass[k + 1] - 2.0 * coriolis[k]
            scale = max(float(np.abs(matrix).max()) for matrix in [*mass[: k + 2], coriolis[k]])
            assert_close(difference + difference.T, np.zeros_like(difference), scale=scale)

    @both_bases
    def test_the_term_left_out_in_the_paper_does_no_work(self, floating_base: bool) -> None:
        case = make_case(3, 7, 3, floating_base)
        system = system_of(case)
        velocity = system.velocities[0]
        printed = -system.inertia @ system.Aa[0] - system.b[0].T @ system.inertia
        expected = system.J[0].T @ printed @ system.J[0] @ velocity
        assert_close(closed_form.coriolis_matrices(system, 0)[0] @ velocity, expected)
        assert_close(system.b[0] @ system.V[0], np.zeros_like(system.V[0]), scale=1.0)


class TestKinematics:
    @both_bases
    def test_blocks_of_the_jacobian_are_those_of_the_bodies(self, floating_base: bool) -> None:
        case = make_case(4, 8, 3, floating_base, branching=0.5)
        model, base = parts_of(case)
        system = closed_form.system_matrices(model, case.q, base)
        motion = forward_kinematics(model, case.q, base, "body_fixed")
        first = 6 if floating_base else 0
        for r in range(system.order + 1):
            blocks = system.J[r].reshape(8, 6, -1)
            for j in range(8):
                assert_close(
                    blocks[j][:, first:], motion.jacobian_of(j)[r], scale=float(np.abs(blocks).max())
                )
            if r < system.order:
                assert_close(system.V[r].reshape(8, 6), motion.twists[r])
        for j in range(8):
            rows = slice(6 * j, 6 * j + 6)
            assert_close(system.poses[j], motion.poses[j])
            assert_close(system.U[0][rows], Ad(inverse(motion.poses[j])))

    def test_the_adjoint_follows_the_branches(self) -> None:
        case = make_case(5, 8, 0, branching=0.7)
        model, _ = parts_of(case)
        assert any(len(children) > 1 for children in model.children)
        system = system_of(case)
        for i in range(8):
            carriers, j = set(), i
            while j >= 0:
                carriers.add(j)
                j = model.parents[j]
            for j in range(8):
                block = system.A[0][6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                relative = inverse(system.poses[i]) @ system.poses[j]
                assert_close(block, Ad(relative) if j in carriers else np.zeros((6, 6)), scale=1.0)

    @both_bases
    def test_derivatives_are_those_along_the_motion(self, floating_base: bool) -> None:
        """A, J, U and the forces of gravity leave their Taylor polynomials with the order after the last."""
        order = 3
        case = make_case(6, 5, order - 2, floating_base, branching=0.3, representation="body_fixed")
        model, _ = parts_of(case)
        base = None
        if case.base is not None:  # at rest, so that its pose along the motion is known
            base = BaseMotion(case.base.pose, np.zeros((order, 6)), representation="body_fixed")
        start = closed_form.system_matrices(model, case.q, base)

        def values(system: closed_form.SystemMatrices, order: int) -> list[list[Array]]:
            gravity = closed_form.gravity_forces(system, model.gravity, order)
            return [system.A, system.J, system.U, gravity]

        def errors(t: float) -> Array:
            powers = np.cumprod([1.0, *(t / k for k in range(1, order + 1))])
            position = np.einsum("k,kj->j", powers, case.q)
            there = values(closed_form.system_matrices(model, position[None], base), 0)
            series = [sum(p * d for p, d in zip(powers, stack)) for stack in values(start, order)]
            return np.array([np.abs(a[0] - b).max() for a, b in zip(there, series, strict=True)])

        slopes = np.log2(errors(2e-2) / errors(1e-2))
        np.testing.assert_allclose(slopes, order + 1, atol=0.2)


def test_positions_alone_give_mass_matrix_and_gravity() -> None:
    case = make_case(7, 6, 2)
    model, _ = parts_of(case)
    alone = closed_form.system_matrices(model, case.q[:1])
    assert alone.order == 0
    whole = closed_form.system_matrices(model, case.q)
    for function in (
        lambda system: closed_form.mass_matrices(system, 0),
        lambda system: closed_form.gravity_forces(system, model.gravity, 0),
    ):
        np.testing.assert_array_equal(function(alone), function(whole))


@both_bases
def test_a_batch_is_its_samples(floating_base: bool) -> None:
    case = make_case(8, 5, 1, floating_base)
    model, base = parts_of(case)
    batch = np.stack([case.q, 2.0 * case.q, -case.q], axis=1)

    def values(q: Array) -> list[Array]:
        system = closed_form.system_matrices(model, q, base)
        return [
            np.stack(closed_form.mass_matrices(system, 2)),
            np.stack(closed_form.coriolis_matrices(system, 2)),
            np.stack(closed_form.gravity_forces(system, model.gravity, 2)),
        ]

    together = values(batch)
    for i in range(3):
        for whole, single in zip(together, values(batch[:, i]), strict=True):
            assert_close(whole[:, i], single, 1e-14)
