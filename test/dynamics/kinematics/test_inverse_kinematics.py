"""Inverse kinematics of any order: what it returns must move the body as asked, and be the solution meant."""

from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
import pytest
from case_robots import of_tree, serial_robot, six_joint_arm
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles.motions import random_stack
from oracles.random_trees import Tree, random_pose, random_tree
from scipy.linalg import null_space
from sweeps import examples

from hodyn_ros import BaseMotion, ConvergenceError, Kinematics, Robot, SingularError
from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics import carriers
from hodyn_ros.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.model.frames import Frame

pytestmark = pytest.mark.thorough


HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])

POSE, TWIST = 1e-12, 1e-11
"""Allowed errors of poses [rad, m] and of twists, relative to the largest component of the order."""

frames = pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
seeds = st.integers(0, 2**32 - 1)


def motion_near(position: Array, seed: int, order: int = 4, reach: float = 0.3) -> Array:
    q = random_stack(seed, order + 1, len(position))
    q[0] = position + reach * q[0]
    return q


def kinematics(robot: Robot, q: Array, frame: str, base: BaseMotion | None = None) -> Kinematics:
    return robot.forward_kinematics(q, base, "spatial" if frame == "spatial" else "body_fixed")


def goal(robot: Robot, q: Array, frame: str, body: str | int, base: BaseMotion | None = None) -> Any:
    motion = kinematics(robot, q, frame, base)
    return motion.pose_of(body), motion.twists_of(body)


def assert_moves(
    robot: Robot, q: Array, body: str | int, pose: Array, twists: Array, frame: str, base: Any = None
) -> None:
    found, found_twists = goal(robot, q, frame, body, base)
    np.testing.assert_allclose(found, pose, rtol=0, atol=POSE * max(1.0, float(np.abs(pose).max())))
    assert found_twists.shape == twists.shape
    for k, (a, b) in enumerate(zip(found_twists, twists, strict=True)):
        np.testing.assert_allclose(
            a, b, rtol=0, atol=TWIST * np.abs(twists[: k + 1]).max(), err_msg=f"order {k}"
        )


def condition(robot: Robot, q: Array) -> float:
    jacobian = robot.forward_kinematics(q[:1], representation="hybrid").jacobian_of(robot.n_coordinates - 1)[
        0
    ]
    return float(np.linalg.cond(jacobian))


class TestDeterminedArms:
    @frames
    @given(
        seed=seeds, kinds=st.sampled_from([("revolute",), ("revolute", "helical"), ("revolute", "prismatic")])
    )
    @examples(12, share=6)
    def test_random_chains_of_six_joints(self, frame: Any, seed: int, kinds: tuple[str, ...]) -> None:
        robot = of_tree(random_tree(seed, 6, branching=0.0, kinds=kinds))
        q = random_stack(seed, 5, 6)
        assume(condition(robot, q) < 100.0)
        pose, twists = goal(robot, q, frame, 5)
        start = q[0] + 0.1 * np.random.default_rng(seed).normal(size=6)
        found = inverse_kinematics(robot.model, GoalCall(pose, twists, representation=frame, seed=start))
        assert_moves(robot, found, 5, pose, twists, frame)

    @pytest.mark.parametrize("order", [0, 1, 6])
    def test_there_are_as_many_orders_as_asked_for(self, order: int) -> None:
        robot = six_joint_arm()
        q = motion_near(np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.6]), 3, order)
        pose, twists = goal(robot, q, "spatial", 5)
        found = robot.inverse_kinematics(pose, twists, seed=q[0])
        assert found.shape == (order + 1, 6)
        assert_moves(robot, found, 5, pose, twists, "spatial")
        np.testing.assert_array_equal(found[0], robot.inverse_kinematics(pose, seed=q[0])[0])

    def test_far_from_the_origin(self) -> None:
        tree = random_tree(6, 6, branching=0.0, kinds=("revolute",))
        far = random_pose(np.random.default_rng(5))
        far[:3, 3] = (300.0, -200.0, 100.0)
        q = random_stack(6, 4, 6)
        here, there = of_tree(tree), of_tree(tree.moved(far))
        assert condition(here, q) < 100.0
        expected = here.inverse_kinematics(
            *goal(here, q, "body_fixed", 5), representation="body_fixed", seed=q[0] + 0.05
        )
        found = there.inverse_kinematics(
            *goal(there, q, "body_fixed", 5), representation="body_fixed", seed=q[0] + 0.05
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(q).max())


class TestNewton:
    def test_it_converges_quadratically_and_the_warmer_the_faster(self, monkeypatch: Any) -> None:
        """The number of correct digits doubles: one more evaluation for twice the digits of the start."""
        evaluations = []
        count = carriers.CarriedMotion.__init__
        monkeypatch.setattr(
            carriers.CarriedMotion, "__init__", lambda *args: evaluations.append(1) or count(*args)
        )
        robot = six_joint_arm()
        q = np.array([[0.1, 0.2, 0.3, 0.4, 0.8, 0.6]])
        pose, _ = goal(robot, q, "spatial", 5)
        needed = []
        for offset in (0.0, 1e-8, 1e-4, 1e-2, 0.2):
            evaluations.clear()
            found = inverse_kinematics(robot.model, GoalCall(pose, seed=q[0] + offset))
            needed.append(len(evaluations))
            np.testing.assert_allclose(found, q, rtol=0, atol=1e-13)
        assert needed[0] == 2  # the start, and a last step that cannot better it
        assert needed == sorted(needed)
        assert needed[2] <= 5
        assert needed[-1] <= 9

    def test_it_mostly_converges_from_afar(self) -> None:
        """Newton's method may end in a local minimum, which it tells, but seldom does."""
        robot, failures = six_joint_arm(), 0
        for seed in range(40):
            position, start = np.random.default_rng(seed).uniform(-2.0, 2.0, size=(2, 6))
            pose, _ = goal(robot, position[None], "spatial", 5)
            try:
                found = robot.inverse_kinematics(pose, seed=start)
            except ConvergenceError:
                failures += 1
            else:
                np.testing.assert_allclose(goal(robot, found, "spatial", 5)[0], pose, rtol=0, atol=POSE)
        assert failures <= 3

    def test_nothing_is_kept_from_a_failure(self, panda: Robot) -> None:
        q = motion_near(HOME, 10)
        pose, twists = goal(panda, q, "spatial", 6)
        before = panda.inverse_kinematics(pose, twists, seed=HOME)
        out_of_reach, start = np.eye(4), HOME.copy()
        out_of_reach[0, 3] = 5.0
        with pytest.raises(ConvergenceError) as rejection:
            panda.inverse_kinematics(out_of_reach, twists, seed=start)
        assert 4.0 < rejection.value.distance < 5.0
        np.testing.assert_array_equal(start, HOME)
        np.testing.assert_array_equal(panda.inverse_kinematics(pose, twists, seed=HOME), before)


class TestRedundantArms:
    @pytest.mark.parametrize(
        "weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1e3, 1, 1, 1, 1e-3, 1, 1]]
    )
    def test_the_velocity_is_the_least_of_all(self, panda: Robot, weights: Any) -> None:
        q = motion_near(HOME, 11)
        pose, twists = goal(panda, q, "spatial", 6)
        found = panda.inverse_kinematics(pose, twists, seed=q[0], weights=weights)
        w = np.ones(7) if weights is None else np.array(weights)
        (idle,) = null_space(panda.forward_kinematics(found[:1]).jacobian_of(6)[0]).T
        assert abs(idle @ (w * found[1])) <= 1e-12 * np.abs(w * found[1]).max()
        assert w @ found[1] ** 2 < w @ q[1] ** 2

    @pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])
    def test_higher_orders_are_derivatives_of_the_least_velocity(self, panda: Robot, weights: Any) -> None:
        """Along the polynomial found, what the velocity has too much leaves with the order after the last."""
        order = 4
        w = np.ones(7) if weights is None else np.array(weights)
        q = motion_near(HOME, 12, order)
        pose, twists = goal(panda, q, "spatial", 6)
        found = panda.inverse_kinematics(pose, twists, seed=q[0], weights=weights)

        def idle_part(t: float) -> float:
            position = sum(found[k] * t**k / factorial(k) for k in range(order + 1))
            velocity = sum(found[k] * t ** (k - 1) / factorial(k - 1) for k in range(1, order + 1))
            (idle,) = null_space(panda.forward_kinematics(position[None]).jacobian_of(6)[0]).T
            return float(abs(idle @ (w * velocity)))

        assert idle_part(0.0) <= 1e-12
        slope = np.log2(idle_part(4e-2) / idle_part(2e-2))
        assert abs(slope - order) <= 0.3

    @frames
    @pytest.mark.parametrize("joint", ["panda_joint3", 0, "panda_joint7"])
    def test_decomposition_finds_the_motion_that_the_independent_joint_has(
        self, panda: Robot, frame: Any, joint: str | int
    ) -> None:
        q = motion_near(HOME, 13)
        pose, twists = goal(panda, q, frame, 6)
        independent = {joint: q[:, panda.model.joint_index(joint)]}
        start = q[0] + 0.02
        found = panda.inverse_kinematics(
            pose, twists, representation=frame, seed=start, method="decomposition", independent=independent
        )
        for k in range(5):
            np.testing.assert_allclose(found[k], q[k], rtol=0, atol=1e-10 * np.abs(q[: k + 1]).max())
        again = panda.inverse_kinematics(
            pose, twists, representation=frame, seed=start, independent=independent
        )
        np.testing.assert_array_equal(again, found)

    def test_an_independent_joint_can_be_held(self, panda: Robot) -> None:
        q = motion_near(HOME, 14)
        q[1:, 2] = 0.0
        pose, twists = goal(panda, q, "spatial", 6)
        held = panda.inverse_kinematics(pose, twists, seed=HOME, independent={"panda_joint3": q[0, 2]})
        np.testing.assert_array_equal(held[:, 2], q[:, 2])
        assert_moves(panda, held, 6, pose, twists, "spatial")


class TestSingularPoses:
    @pytest.mark.parametrize("offset", [0.0, 1e-9, 1e-3, 0.1])
    @pytest.mark.parametrize(
        "position", [[0.1, 0.2, 0.3, 0.4, 0.0, 0.6], [0.1, 0.2, -np.pi / 2, 0.4, 0.5, 0.6]]
    )
    def test_wrist_and_elbow_are_told_with_the_condition_number(
        self, position: list[float], offset: float
    ) -> None:
        robot = six_joint_arm()
        q = np.stack([np.array(position), np.ones(6)])
        pose, twists = goal(robot, q, "spatial", 5)
        start = q[0] + offset * np.array([1, -1, 1, 1, -1, 1])
        with pytest.raises(SingularError) as rejection:
            robot.inverse_kinematics(pose, twists, seed=start)
        assert rejection.value.condition > 1e6
        # the pose itself can be reached
        found = robot.inverse_kinematics(pose, seed=start)
        np.testing.assert_allclose(goal(robot, found, "spatial", 5)[0], pose, rtol=0, atol=POSE)

    def test_the_condition_number_has_no_dimension(self) -> None:
        """A robot of micrometres is no more singular than one of metres of the same shape."""
        tree = random_tree(23, 6, branching=0.0, kinds=("revolute", "prismatic"))
        slides = ~tree.screws[:, :3].any(axis=1)
        assert 1 <= slides.sum() <= 2
        screws, placements = tree.screws.copy(), tree.placements.copy()
        screws[~slides, 3:] *= 1e-6
        placements[:, :3, 3] *= 1e-6
        small = replace(tree, screws=screws, placements=placements)
        large, small = of_tree(tree), of_tree(small)
        q = random_stack(30, 3, 6)
        assert condition(large, q) < 100.0
        pose, twists = goal(large, q, "spatial", 5)
        pose[:3, 3] *= 1e-6
        twists = twists * np.repeat([1.0, 1e-6], 3)
        scale = np.where(slides, 1e-6, 1.0)
        found = small.inverse_kinematics(pose, twists, seed=scale * (q[0] + 0.05))
        np.testing.assert_allclose(found / scale, q, rtol=0, atol=1e-10 * np.abs(q).max())


class TestFewerJoints:
    @pytest.fixture(scope="class")
    def scara(self) -> Robot:
        z = np.array([0.0, 0.0, 1.0])
        origins = [(0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.7, 0.0, 0.0), (0.7, 0.0, 0.0)]
        screws = [np.concatenate([z, np.cross(p, z)]) for p in origins[:3]]
        return serial_robot([*screws, np.concatenate([np.zeros(3), z])], origins)

    @frames
    def test_a_scara_arm_follows_what_it_can(self, scara: Robot, frame: Any) -> None:
        q = motion_near(np.array([0.3, 0.9, -0.4, 0.1]), 17)
        pose, twists = goal(scara, q, frame, 3)
        found = scara.inverse_kinematics(pose, twists, representation=frame, seed=q[0] + 0.05)
        assert_moves(scara, found, 3, pose, twists, frame)
        np.testing.assert_allclose(found, q, rtol=0, atol=1e-9 * np.abs(q).max())

    @pytest.mark.parametrize("task", ["position", "orientation"])
    @frames
    def test_half_a_task_for_three_joints(self, task: Any, frame: Any) -> None:
        robot = of_tree(random_tree(34, 3, branching=0.0, kinds=("revolute",)))
        q = random_stack(21, 5, 3)
        pose, twists = goal(robot, q, frame, 2)
        found = robot.inverse_kinematics(pose, twists, representation=frame, seed=q[0] + 0.05, task=task)
        for k in range(5):
            np.testing.assert_allclose(found[k], q[k], rtol=0, atol=1e-10 * np.abs(q[: k + 1]).max())


class TestTrees:
    def test_joints_off_the_way_stay_where_they_are(self) -> None:
        tree = random_tree(23, 9, branching=0.0, kinds=("revolute",))
        parents = (*tree.parents[:6], 1, 6, 2)  # two side branches
        robot = of_tree(Tree(**{**tree.arguments(), "parents": parents}))
        q = random_stack(24, 4, 9)
        pose, twists = goal(robot, q, "spatial", "body6")
        start = q[0] + 0.05
        found = robot.inverse_kinematics(pose, twists, body="body6", seed=start)
        assert_moves(robot, found, "body6", pose, twists, "spatial")
        np.testing.assert_array_equal(found[0, 6:], start[6:])
        np.testing.assert_array_equal(found[1:, 6:], 0.0)

    def test_a_named_frame_can_be_the_tool(self) -> None:
        tree = random_tree(25, 6, branching=0.0, kinds=("revolute",))
        offset = random_pose(np.random.default_rng(26), 0.2)
        robot = Robot(of_tree(tree).model, frames={"tool": Frame(5, offset), "table": Frame(-1, offset)})
        q = random_stack(27, 4, 6)
        pose, twists = goal(robot, q, "body_fixed", "tool")
        found = robot.inverse_kinematics(
            pose, twists, representation="body_fixed", body="tool", seed=q[0] + 0.05
        )
        assert_moves(robot, found, "tool", pose, twists, "body_fixed")


def test_axes_that_slide_turn_nothing() -> None:
    slides = np.hstack([np.zeros((3, 3)), np.eye(3)])
    robot = serial_robot(slides, [np.zeros(3)] * 3)
    body = robot.tree.body_names[2]
    with pytest.raises(SingularError):
        robot.inverse_kinematics(np.eye(4), np.zeros((2, 6)), body=body, task="orientation")


@pytest.mark.parametrize("away", [0.0, 0.7], ids=["nearest the origin", "elsewhere on the axis"])
def test_frames_on_the_axis_that_turns_them_turn(away: float) -> None:
    """What rounding leaves of the distance from the axis is no lever, beside which turns count nothing."""
    rng = np.random.default_rng(0)
    e = rng.normal(size=3)
    e /= np.linalg.norm(e)
    point = np.cross(e, rng.normal(size=3)) + away * e
    slides = np.hstack([np.zeros((3, 3)), np.eye(3)])
    robot = serial_robot([*slides, np.hstack([e, np.cross(point, e)])], [point] * 4)
    q = rng.uniform(-0.5, 0.5, (4, 4))
    moved = robot.forward_kinematics(q)
    body = robot.tree.body_names[3]
    goal = moved.pose_of(body), moved.twists_of(body)
    found = robot.inverse_kinematics(*goal, seed=q[0] + 0.1)
    np.testing.assert_allclose(found, q, rtol=0.0, atol=1e-12)
    call = GoalCall(*goal, seed=q[0] + 0.1)
    np.testing.assert_allclose(inverse_kinematics(robot.model, call), q, rtol=0.0, atol=1e-12)
