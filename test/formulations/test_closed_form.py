"""The system matrices of the closed form and their derivatives: what they are, and what they must satisfy."""

import numpy as np
import pytest
from oracles.cases import Case, make_case

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.formulations import closed_form
from hodyn_ros.model.tree import TreeModel

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


class TestCoriolisMatrix:
    @both_bases
    def test_the_term_left_out_in_the_paper_does_no_work(self, floating_base: bool) -> None:
        case = make_case(3, 7, 3, floating_base)
        system = system_of(case)
        velocity = system.velocities[0]
        printed = -system.inertia @ system.Aa[0] - system.b[0].T @ system.inertia
        expected = system.J[0].T @ printed @ system.J[0] @ velocity
        assert_close(closed_form.coriolis_matrices(system, 0)[0] @ velocity, expected)
        assert_close(system.b[0] @ system.V[0], np.zeros_like(system.V[0]), scale=1.0)


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
