"""Inverse dynamics of any order: every formulation against exact arithmetic, Pinocchio and mechanics."""

from dataclasses import replace

import numpy as np
import pytest
from case_robots import of_tree, robot_of, wrenches_of
from hypothesis import given
from oracles import mp_dynamics as mp
from oracles.cases import Case, cases, make_case, relative_errors
from oracles.motions import Frame, random_motion, random_stack
from oracles.random_trees import KINDS, Tree, random_tree
from sweeps import examples, some

from hodyn_ros import AppliedWrench, BaseMotion, Robot
from hodyn_ros.array import Array

FORMULATIONS = ["body_fixed", "closed_form", "hybrid", "spatial", None]
"""Every way to compute; None is the default, whatever is fastest."""

TOLERANCES = (1e-12, 1e-12, 1e-12, 1e-12, 1e-11, 1e-11, 1e-11)
"""Allowed error of orders 0 to 6, relative to the largest effort of the order, or of those below it.

Motions are drawn with seconds for their unit. The only effort of one body passes through zero, and what is
left of its terms then is all rounding.
"""

formulations = pytest.mark.parametrize("formulation", FORMULATIONS)
both_bases = pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])


def efforts_of(case: Case, formulation: str | None = None, robot: Robot | None = None) -> Array:
    """Return torques (order + 1, n), with the base wrench left of them where the base floats."""
    made, base = robot_of(case)
    wrenches = wrenches_of(case.loads) or None
    result = (robot or made).inverse_dynamics(case.q, base, wrenches, formulation=formulation)
    efforts = np.concatenate(result, axis=1) if case.tree.floating_base else result
    assert efforts.shape == (case.order + 1, case.tree.n_joints + 6 * case.tree.floating_base)
    return efforts


def assert_close(found: Array, expected: Array, what: object = "") -> None:
    assert found.shape == expected.shape
    sizes = np.maximum.accumulate(np.abs(expected).max(axis=-1))
    errors = np.abs(found - expected).max(axis=-1) / sizes
    allowed = np.array(TOLERANCES[: len(errors)])
    assert (errors <= allowed).all(), f"{what}: errors by order {errors}, allowed {allowed}"


def assert_exact(case: Case) -> None:
    """Hold all formulations against one computation in exact arithmetic, which takes longest."""
    exact, robot = case.exact_efforts(), of_tree(case.tree)
    for formulation in FORMULATIONS:
        assert_close(efforts_of(case, formulation, robot), exact, formulation)


@pytest.mark.thorough
class TestAgainstExactArithmetic:
    """The oracle shares neither algorithm nor arithmetic with the package."""

    @given(case=cases(30, orders=[0, 1, 2, 3]))
    @examples(40)
    def test_orders_0_to_3_of_trees_up_to_30_bodies(self, case: Case) -> None:
        assert_exact(case)

    @given(case=cases(7, orders=[4, 5, 6]))
    @examples(20, share=6)
    def test_orders_4_to_6_of_trees_up_to_7_bodies(self, case: Case) -> None:
        assert_exact(case)

    @pytest.mark.parametrize("floating_base", some([False, True], True), ids=str)
    def test_order_6_of_30_bodies(self, floating_base: bool) -> None:
        assert_exact(make_case(60, 30, 6, floating_base))

    @pytest.mark.parametrize("kind", KINDS)
    def test_robots_of_one_joint_kind(self, kind: str) -> None:
        tree = random_tree(20, 6, kinds=(kind,))
        assert_exact(Case(tree, random_motion(21, tree, 4), None, []))

    @both_bases
    def test_bodies_without_mass_inside_a_chain(self, floating_base: bool) -> None:
        case = make_case(22, 5, 3, floating_base, branching=0.0)
        for body in (1, 3):
            case.tree.masses[body] = 0.0
            case.tree.inertias[body] = 0.0
        assert_exact(case)

    def test_a_floating_body_without_joints(self) -> None:
        case = make_case(23, 1, 3, True, n_loads=1, representation="body_fixed")
        assert_exact(case)
        robot, base = robot_of(replace(case, loads=[]))  # arrays with no columns: q (order + 3, 0)
        moving = base.in_representation("spatial")
        found = robot.compile(3)([[]] * 6, moving.pose.tolist(), moving.twists.tolist())
        assert_close(found, replace(case, loads=[]).exact_efforts())

    @pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
    def test_more_twists_than_needed_do_not_matter(self, frame: Frame) -> None:
        case = make_case(33, 4, 1, True, representation=frame)
        robot, base = robot_of(case)
        more = BaseMotion(case.base.pose, np.vstack([base.twists, np.ones((2, 6))]), representation=frame)
        for first, second in zip(robot.inverse_dynamics(case.q, base), robot.inverse_dynamics(case.q, more)):
            np.testing.assert_array_equal(first, second)

    @formulations
    def test_a_robot_at_rest_far_from_the_world_origin(self, formulation: str | None) -> None:
        """All derivatives of a static torque vanish; large lever arms must not raise noise in them."""
        tree = random_tree(24, 5)
        shift = np.eye(4)
        shift[:3, 3] = (10.0, -20.0, 5.0)
        q = np.zeros((6, 5))
        q[0] = random_stack(25, 1, 5)[0]
        torques = of_tree(tree.moved(shift)).inverse_dynamics(q, formulation=formulation)
        static = mp.to_float(mp.inverse_dynamics(tree, q[:3]).torques)
        assert_close(torques[:1], static)
        np.testing.assert_allclose(torques[1:], 0.0, rtol=0, atol=1e-12 * np.abs(static).max())

    def test_far_away_and_after_many_turns(self) -> None:
        """A pose that floats costs no digits far away, a place in the file those that it is rounded to."""
        floating = make_case(34, 5, 2, True, representation="body_fixed")
        tree, q, shift = random_tree(35, 5, kinds=("revolute",)), random_stack(36, 5, 5), np.eye(4)
        shift[:3, 3] = (6e5, -8e5, 1e4)
        moved = replace(floating, base=replace(floating.base, pose=shift @ floating.base.pose))
        assert_close(efforts_of(moved)[:, 6:], floating.exact_efforts()[:, 6:])
        for away, moved_q in ((np.eye(4), q + 2e6 * np.pi * np.eye(5, 1)), (shift, q)):
            case = Case(tree.moved(away), moved_q, None, [])
            robot, exact = of_tree(case.tree), Case(tree, moved_q, None, []).exact_efforts()
            estimated = robot.accuracy("inverse_dynamics", moved_q)
            assert (estimated.digits < 11.0).all()
            wrong = np.abs(efforts_of(case, robot=robot) - exact).max(axis=1)
            assert (wrong <= 10.0 * estimated.errors[0]).all(), wrong / estimated.errors
        poses = of_tree(tree.moved(shift)).accuracy("forward_kinematics", q)
        assert (poses.digits > 13.0).all()  # of numbers as large as the distance


@both_bases
def test_a_description_typed_with_ten_digits_is_one_robot_to_all_formulations(floating_base: bool) -> None:
    """What is accepted as a unit screw or a rotation within a tolerance must not mean different robots."""
    case = make_case(26, 6, 3, floating_base)
    arguments = case.tree.arguments()
    for name in ("screws", "placements"):
        arguments[name] = np.round(arguments[name], 10)
    base = case.base and replace(case.base, pose=np.round(case.base.pose, 10))
    rounded = Case(Tree(**arguments), case.q, base, [])
    first, *others = [efforts_of(rounded, formulation) for formulation in FORMULATIONS]
    assert (relative_errors(first, case.exact_efforts()) <= 1e-7).all()
    for other in others:
        assert (relative_errors(other, first) <= 1e-11).all()


class TestBatches:
    @formulations
    @pytest.mark.parametrize("n_samples", [0, 1, 7])
    def test_a_batch_is_its_samples(self, formulation: str | None, n_samples: int) -> None:
        tree = random_tree(30, 6)
        robot = of_tree(tree)
        batch = random_stack(31, n_samples * 5, 6).reshape(n_samples, 5, 6)
        torques = robot.inverse_dynamics(batch, formulation=formulation)
        assert torques.shape == (n_samples, 3, 6)
        for sample, found in zip(batch, torques, strict=True):
            single = robot.inverse_dynamics(sample, formulation=formulation)
            assert (relative_errors(found, single) <= 1e-14).all()

    @formulations
    def test_a_batch_over_one_base_motion(self, formulation: str | None) -> None:
        case = make_case(32, 5, 2, True, n_loads=2, representation="body_fixed")
        robot, base = robot_of(case)
        batch = np.stack([case.q, random_motion(33, case.tree, 2), random_motion(34, case.tree, 2)])
        wrenches, torques = robot.inverse_dynamics(
            batch, base, wrenches_of(case.loads), formulation=formulation
        )
        assert wrenches.shape == (3, 3, 6)
        assert torques.shape == (3, 3, 4)
        for sample, wrench, torque in zip(batch, wrenches, torques, strict=True):
            single = efforts_of(Case(case.tree, sample, case.base, case.loads), formulation, robot)
            assert (relative_errors(np.concatenate([wrench, torque], axis=1), single) <= 1e-14).all()


class TestAppliedWrenches:
    @formulations
    @pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
    def test_missing_derivatives_of_a_wrench_count_as_zero(
        self, formulation: str | None, frame: Frame
    ) -> None:
        case = make_case(50, 5, 3)
        robot = of_tree(case.tree)
        values = random_stack(51, 1, 6)
        full = np.concatenate([values, np.zeros((3, 6))])
        expected = robot.inverse_dynamics(
            case.q, wrenches=[AppliedWrench(4, full, representation=frame)], formulation=formulation
        )
        for short in (values, values[0]):
            found = robot.inverse_dynamics(
                case.q, wrenches=[AppliedWrench(4, short, representation=frame)], formulation=formulation
            )
            np.testing.assert_array_equal(found, expected)

    @formulations
    def test_a_body_is_named_or_counted(self, formulation: str | None) -> None:
        case = make_case(52, 4, 2)
        robot = of_tree(case.tree)
        values = random_stack(53, 3, 6)
        name = robot.model.body_names[2]
        by_name, by_index = (
            robot.inverse_dynamics(case.q, wrenches=[AppliedWrench(body, values)], formulation=formulation)
            for body in (name, 2)
        )
        np.testing.assert_array_equal(by_name, by_index)


class TestArrays:
    @formulations
    def test_any_array_of_the_same_numbers_gives_the_same_torques(self, formulation: str | None) -> None:
        robot = of_tree(random_tree(60, 4))
        q = np.arange(20.0).reshape(5, 4) % 3
        expected = robot.inverse_dynamics(q, formulation=formulation)
        wide = np.zeros((10, 8))
        wide[::2, ::2] = q
        same = [
            np.asfortranarray(q),
            wide[::2, ::2],
            q.astype(int),
            q.astype(np.float32),
            q.tolist(),
            q[None][0],
        ]
        for values in same:
            np.testing.assert_array_equal(robot.inverse_dynamics(values, formulation=formulation), expected)

    @formulations
    def test_the_input_stays_and_the_output_is_new(self, formulation: str | None) -> None:
        robot = of_tree(random_tree(61, 4))
        q = random_stack(62, 5, 4)
        before = q.copy()
        q.setflags(write=False)
        first = robot.inverse_dynamics(q, formulation=formulation)
        kept = first.copy()
        second = robot.inverse_dynamics(2.0 * q, formulation=formulation)
        np.testing.assert_array_equal(q, before)
        np.testing.assert_array_equal(first, kept)
        assert not np.shares_memory(first, second)
        assert first.dtype == np.float64
        assert first.flags.c_contiguous
        first[:] = 0.0


class TestCompiled:
    """What `compile` returns: the engine without its comforts."""

    def test_out_may_lie_in_the_motion(self) -> None:
        case = make_case(92, 5, 2)
        f = of_tree(case.tree).compile(2)
        expected = f(case.q)
        for start in range(3):
            q = case.q.copy()
            np.testing.assert_array_equal(f(q, out=q[start : start + 3]), expected)
