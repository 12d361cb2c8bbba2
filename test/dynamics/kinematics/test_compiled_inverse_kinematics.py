"""Inverse kinematics in compiled code: the readable form's answers, of several frames too, and its errors."""

from typing import Any

import numpy as np
import pytest
from case_robots import six_joint_arm
from oracles.motions import random_base, random_stack
from oracles.random_trees import Tree, random_tree
from scipy.linalg import null_space

from hodyn_ros import BaseMotion, Robot, SingularError
from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics import inverse_kinematics as module
from hodyn_ros.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.lie.representations import Representation

pytestmark = pytest.mark.thorough


HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
ORDER = 3


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the readable form is asked."""
    asked: list[int] = []
    solve = module.inverse_kinematics

    def counted(*arguments: Any, **named: Any) -> Array:
        asked.append(1)
        return solve(*arguments, **named)

    monkeypatch.setattr(module, "inverse_kinematics", counted)
    return asked


def six_joints(seed: int = 61, kinds: Any = ("revolute", "prismatic"), floating_base: bool = False) -> Robot:
    count = 6 + floating_base
    tree = random_tree(seed, count, branching=0.0, kinds=kinds, floating_base=floating_base)
    return Robot.from_screws(**tree.arguments())


def two_arms(seed: int = 23) -> Robot:
    """A waist of one joint that carries an arm of six joints and one of three."""
    tree = random_tree(seed, 10, branching=0.0, kinds=("revolute",))
    parents = (-1, 0, 1, 2, 3, 4, 5, 0, 7, 8)
    return Robot.from_screws(**Tree(**{**tree.arguments(), "parents": parents}).arguments())


ARMS = ["body7", "body10"]


def goals(robot: Robot, q: Array, names: Any, representation: Representation, base: Any = None) -> Any:
    moved = robot.forward_kinematics(q, base, representation)
    return (
        np.array([moved.pose_of(name) for name in names]),
        np.array([moved.twists_of(name) for name in names]),
    )


def near(found: Array, expected: Array, share: float = 1e-11) -> None:
    for k in range(len(expected)):
        size = np.abs(expected[: k + 1]).max()
        np.testing.assert_allclose(found[k], expected[k], rtol=0, atol=share * size, err_msg=f"order {k}")


@pytest.mark.parametrize("representation", ["spatial", "body_fixed", "hybrid"])
def test_what_an_arm_of_six_joints_does_is_found_again(representation: Any, readable: list[int]) -> None:
    robot = six_joints()
    q = random_stack(62, ORDER + 1, 6)
    (pose,), (twists,) = goals(robot, q, ["body6"], representation)
    function = robot.compile(ORDER, "inverse_kinematics", ["body6"], representation)
    out = np.empty((ORDER + 1, 6))
    found = function(q[:1] + 0.02, pose, twists, out=out)
    assert found is out and not readable
    near(found, q, 1e-10)


def test_the_named_call_gives_the_numbers_of_the_compiled_one(panda: Robot, readable: list[int]) -> None:
    q = random_stack(1, ORDER + 1, 7)
    q[0] = HOME + 0.2 * q[0]
    (pose,), (twists,) = goals(panda, q, ["panda_link8"], "spatial")
    seed = q[0] + 1e-3
    compiled = panda.compile(ORDER, "inverse_kinematics", ["panda_link8"])(seed[None], pose, twists)
    for _ in range(2):
        named = panda.inverse_kinematics(pose, twists, body="panda_link8", seed=seed)
        np.testing.assert_array_equal(named, compiled)
    assert not readable


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])
def test_rates_are_those_of_the_readable_form(panda: Robot, weights: Any, readable: list[int]) -> None:
    """From where Newton's method has ended both go on the same way: one has no position left to choose."""
    q = random_stack(2, 5, 7)
    q[0] = HOME + 0.2 * q[0]
    (pose,), (twists,) = goals(panda, q, ["panda_link7"], "body_fixed")
    found = panda.inverse_kinematics(
        pose, twists, representation="body_fixed", seed=q[0] + 0.05, weights=weights
    )
    assert not readable
    call = GoalCall(pose, twists, representation="body_fixed", seed=found[0], weights=weights)
    near(found, inverse_kinematics(panda.model, call))


@pytest.mark.parametrize("task", ["position", "orientation"])
@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_half_a_task(panda: Robot, task: Any, frame: Any, readable: list[int]) -> None:
    q = random_stack(3, ORDER + 1, 7)
    q[0] = HOME + 0.2 * q[0]
    (pose,), (twists,) = goals(panda, q, ["panda_link7"], frame)
    found = panda.inverse_kinematics(pose, twists, representation=frame, seed=q[0] + 0.05, task=task)
    assert not readable
    call = GoalCall(pose, twists, representation=frame, seed=found[0], task=task)
    near(found, inverse_kinematics(panda.model, call))


def test_two_arms_on_one_waist(readable: list[int]) -> None:
    """One hand keeps its pose, one its position, and of all joint velocities theirs are the least."""
    robot, task = two_arms(), ["pose", "position"]
    q = random_stack(5, ORDER + 1, 10)
    poses, twists = goals(robot, q, ARMS, "spatial")
    w = np.linspace(1.0, 3.0, 10)
    found = robot.inverse_kinematics(poses, twists, body=ARMS, seed=q[0] + 0.02, task=task, weights=w)
    assert not readable
    wanted, done = (robot.forward_kinematics(x, representation="hybrid") for x in (q, found))
    np.testing.assert_allclose(done.pose_of(ARMS[0]), poses[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(done.pose_of(ARMS[1])[:3, 3], poses[1][:3, 3], rtol=0, atol=1e-12)
    assert np.abs(done.pose_of(ARMS[1])[:3, :3] - poses[1][:3, :3]).max() > 1e-3
    for name, rows in zip(ARMS, (slice(0, 6), slice(3, 6)), strict=True):
        for k, row in enumerate(wanted.twists_of(name)):
            size = np.abs(wanted.twists[: k + 1]).max()
            np.testing.assert_allclose(done.twists_of(name)[k, rows], row[rows], rtol=0, atol=1e-10 * size)
    (idle,) = null_space(np.vstack([done.jacobian_of(ARMS[0])[0], done.jacobian_of(ARMS[1])[0, 3:]])).T
    assert abs(idle @ (w * found[1])) <= 1e-12 * np.abs(w * found[1]).max()
    call = GoalCall(poses, twists, body=ARMS, seed=found[0], weights=w, task=task)
    near(found, inverse_kinematics(robot.model, call), 1e-10)


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_an_arm_on_a_base_that_flies(frame: Any, readable: list[int]) -> None:
    robot = six_joints(68, ("revolute",), floating_base=True)
    q, base = random_stack(7, ORDER + 1, 6), random_base(8, ORDER, frame)
    motion = BaseMotion(base.pose, base.twists, representation=frame)
    (pose,), (twists,) = goals(robot, q, ["body7"], "spatial", motion)
    found = robot.inverse_kinematics(pose, twists, seed=q[0] + 0.01, base=motion)
    assert not readable
    near(found, q, 1e-10)


def test_near_a_singular_pose_the_derivatives_are_compared_in_compiled_code_too(readable: list[int]) -> None:
    """A condition number of some hundreds is too much for the bound at order 4, and too little to reject."""
    arm, q = six_joint_arm(), random_stack(10, 5, 6)
    for distance, rejected in ((0.1, False), (1e-4, True)):
        q[0] = [0.3, -0.6, 0.9, 0.4, distance, 0.2]
        (pose,), (twists,) = goals(arm, q, [5], "spatial")
        jacobian = arm.jacobian(q[:1], body=5, representation="hybrid")[0]
        assert np.linalg.cond(jacobian) > 102.0  # where the bound at order 4 is: 1e-5 / (4 eps) to the 1/5
        if rejected:
            with pytest.raises(SingularError):
                arm.inverse_kinematics(pose, twists, seed=q[0])
        else:
            near(arm.inverse_kinematics(pose, twists, seed=q[0]), q, 1e-6)
        assert len(readable) == rejected


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_calls_that_follow_are_those_of_their_own_arguments(frame: Any, readable: list[int]) -> None:
    """With a base that moves, and of several frames: shapes and names alone are those of the first call."""
    flying, arms = six_joints(floating_base=True), two_arms()
    for seed in (1, 2, 3):
        q = 0.5 * random_stack(seed, ORDER + 1, 6)
        moved = random_base(seed, ORDER, "spatial")
        base = BaseMotion(moved.pose, moved.twists).in_representation(frame)
        body = flying.model.body_names[-1]
        (pose,), (twists,) = goals(flying, q, [body], "spatial", base)
        near(flying.inverse_kinematics(pose, twists, body=body, seed=q[0] + 0.01, base=base), q)
        q = 0.5 * random_stack(seed, ORDER + 1, 10)
        poses, rates = goals(arms, q, ARMS, frame)
        tasks = ["pose", "position"]
        given: Any = {"body": ARMS, "seed": q[0] + 0.01, "task": tasks}
        expected = arms.inverse_kinematics(poses.tolist(), rates.tolist(), representation=frame, **given)
        near(arms.inverse_kinematics(poses, rates, representation=frame, **given), expected)
    assert not readable
