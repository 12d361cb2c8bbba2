"""Batches of samples: every one of them as it is on its own, with base motions of their own too."""

from typing import Any

import numpy as np
import pytest
from conditioning import ROUNDING, SLACK, largest, moved_by_rounding
from oracles.motions import random_base, random_stack
from oracles.random_trees import random_tree
from refusals import refused
from sweeps import THOROUGH

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.trees.tree_partials import TreePartials

pytestmark = pytest.mark.thorough

COUNT, ORDER = 5, 1


def robot_of(seed: int, floating_base: bool = False, bodies: int = 4) -> Robot:
    return Robot.from_screws(**random_tree(seed, bodies, floating_base=floating_base).arguments())


def several(frame: Any = "spatial") -> tuple[BaseMotion, list[BaseMotion]]:
    each = [random_base(seed, ORDER, frame) for seed in range(COUNT)]
    whole = BaseMotion(
        np.array([b.pose for b in each]), np.array([b.twists for b in each]), representation=frame
    )
    return whole, [BaseMotion(b.pose, b.twists, representation=frame) for b in each]


def stacks(robot: Robot, rows: int) -> Array:
    return np.array([random_stack(seed, rows, robot.n_coordinates) for seed in range(COUNT)])


def assert_same(found: Any, each: list[Any]) -> None:
    """Lanes may fuse other products and sums than code for one sample; nothing else differs."""
    if isinstance(found, tuple):
        for i, part in enumerate(found):
            assert_same(part, [one[i] for one in each])
        return
    expected = np.array(each)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("floating_base", [False, True])
def test_of_no_samples_there_are_no_results(floating_base: bool) -> None:
    robot = robot_of(3, floating_base, 3)
    base = several()[1][:1] if floating_base else []
    n = robot.n_coordinates
    state, torques = np.zeros((0, 2, n)), np.zeros((0, ORDER + 1, n))
    for found in (
        robot.inverse_dynamics(np.zeros((0, ORDER + 3, n)), *base),
        robot.forward_dynamics(state, torques, *base),
        robot.hybrid_dynamics(state, torques, *base, prescribed=[0]),
    ):
        parts = found if isinstance(found, tuple) else (found,)
        assert [part.shape[:2] for part in parts] == [(0, ORDER + 1)] * len(parts)
    if not floating_base:
        refused(lambda: robot.compile_batch(0)(np.zeros((0, 3, n))), "of one sample or more")


def test_wrenches_on_the_base_are_one_for_all_or_one_for_each() -> None:
    robot = robot_of(3, True, 3)
    whole, each = several()
    q, torques = stacks(robot, 2), stacks(robot, ORDER + 1)
    pushes = np.array([random_stack(50 + seed, ORDER + 1, 6) for seed in range(COUNT)])
    found = robot.forward_dynamics(q, torques, whole, pushes)
    assert_same(found, [robot.forward_dynamics(*one) for one in zip(q, torques, each, pushes, strict=True)])
    found = robot.forward_dynamics(q, torques, whole, pushes[0])
    each_one = zip(q, torques, each, strict=True)
    assert_same(found, [robot.forward_dynamics(*one, pushes[0]) for one in each_one])


def test_robots_too_large_for_compiled_partials_take_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = robot_of(3, True, 3)
    whole, each = several()
    q, torques = stacks(robot, 2), stacks(robot, 1)
    pushes = np.array([random_stack(50 + seed, 1, 6) for seed in range(COUNT)])
    expected = robot.forward_dynamics_derivatives(q, torques, whole, pushes)
    monkeypatch.setattr(TreePartials, "_partial_kernel", lambda *_: None)
    monkeypatch.setattr(Robot, "_screw_kernel", lambda *_: None)
    assert_same(robot.forward_dynamics_derivatives(q, torques, whole, pushes), list(expected))
    alone = [
        robot.forward_dynamics_derivatives(*one, pushes[0]) for one in zip(q, torques, each, strict=True)
    ]
    assert_same(robot.forward_dynamics_derivatives(q, torques, whole, pushes[0]), alone)
    assert_same(
        robot.forward_kinematics(q, whole).twists,
        [robot.forward_kinematics(*one).twists for one in zip(q, each, strict=True)],
    )


def test_a_batch_of_base_motions_changes_frames_as_each_does() -> None:
    whole, each = several("body_fixed")
    assert whole.batch == (COUNT,) and whole.orders == each[0].orders
    assert_same(
        whole.in_representation("spatial").twists, [one.in_representation("spatial").twists for one in each]
    )
    wrenches = np.array([random_stack(seed, 2, 6) for seed in range(COUNT)])
    moved = [one.wrenches_in_body(wrench) for one, wrench in zip(each, wrenches, strict=True)]
    assert_same(whole.wrenches_in_body(wrenches), moved)


SINGLE = 2.0**-23  # rounding of numbers of four bytes
ORDERS: dict[Any, tuple[int, ...]] = {  # the first in ordinary runs
    "inverse_dynamics": (2, 0, 4),
    "forward_kinematics": (2, 0, 4),
    "jacobian": (0, 2, 4),
    "com": (2, 0, 4),
    "mass_matrix": (0, 2, 4),
    "coriolis_matrix": (0, 2),
    "gravity_torque": (0, 2, 4),
    "regressor": (0, 2),
    "inverse_dynamics_derivatives": (0, 2),
    "forward_dynamics": (0, 2, 4),
    "forward_dynamics_derivatives": (0, 2),
}


@pytest.mark.parametrize("what", ORDERS)
def test_batches_of_float32_lose_some_of_its_roundings(what: Any) -> None:
    """Compared with doubles from the same numbers, by what one rounding of these to four bytes does."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    rng = np.random.default_rng(5)
    count = 1003  # which leaves lanes without a sample

    def by_order(result: Array, order: int) -> Array:
        if what != "forward_kinematics":
            return np.moveaxis(result.reshape(count, order + 1, -1), 1, 0)
        twists = result[..., 16:].reshape(*result.shape[:2], -1, 6)  # of all bodies, beside their poses
        padded = np.pad(twists, ((0, 0), (0, 0), (0, 0), (0, 10)))
        return np.concatenate([result[None, ..., :16], np.moveaxis(padded, 2, 0)])

    for order in ORDERS[what] if THOROUGH else ORDERS[what][:1]:
        whole, halves = (robot.compile_batch(order, what, dtype=kind) for kind in (np.float64, np.float32))
        of = OPERATIONS[what].of_frames(None, robot.tree.body_names, "spatial")
        shapes = [shape for _, shape in robot._need_tree("this").code(what, order, of).arguments]
        arrays = [rng.uniform(-1.0, 1.0, (count, *shape)).astype(np.float32) for shape in shapes]
        doubles = [array.astype(np.float64) for array in arrays]
        right = whole(*doubles)
        out = np.empty(right.shape, np.float32)
        found = halves(*arrays, out=out)
        assert found is out and found.dtype == np.float32
        unit = moved_by_rounding(lambda *x, f=whole, r=order: by_order(f(*x), r), *doubles)
        if what.startswith("forward_dynamics"):
            unit *= robot.n_joints  # which are eliminated one after the other, and each rounds the rest
        errors = largest(by_order(found - right, order))
        assert (errors > 1e-9 * largest(by_order(right, order))).all()
        assert (errors <= SLACK * unit * (SINGLE / ROUNDING)).all()
