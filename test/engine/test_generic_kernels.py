"""The generic kernels, which loop over bodies, against straight-line code of the same robots."""

import numpy as np
import pytest
from oracles.motions import random_stack
from oracles.random_trees import random_pose, random_tree
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Robot
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.engine import kernels
from hodyn_ros.engine.large_trees.forward import TreeHybridKernel
from hodyn_ros.engine.large_trees.inverse import TreeKernel
from hodyn_ros.lie.motion import BaseRepresentation

pytestmark = pytest.mark.thorough

ORDER = 3 if THOROUGH else 2
FRAMES: list[BaseRepresentation | None] = [None, "body_fixed", "spatial"]

sizes = pytest.mark.parametrize("n_bodies", some([1, 2, 5, 9], 5))
bases = pytest.mark.parametrize("frame", FRAMES, ids=["fixed", "body_fixed", "spatial"])


def robot_of(seed: int, n_bodies: int, frame: BaseRepresentation | None) -> Robot:
    return Robot.from_screws(**random_tree(seed, n_bodies, floating_base=frame is not None).arguments())


@pytest.mark.parametrize(
    ("frame", "base_prescribed"),
    some(
        [(None, False), *((frame, prescribed) for frame in FRAMES[1:] for prescribed in (False, True))],
        *((None, False), ("body_fixed", True), ("spatial", False)),
    ),
)
@pytest.mark.parametrize("n_bodies", some([2, 4, 6], 4))
def test_hybrid_dynamics_is_that_of_straight_line_code(
    n_bodies: int, frame: BaseRepresentation | None, base_prescribed: bool
) -> None:
    robot = robot_of(250 + n_bodies, n_bodies, frame)
    n = robot.n_coordinates
    loads = loads_of(n_bodies)
    wrenches = [random_stack(10 + i, ORDER + 1, 6) for i in range(len(loads))]
    arguments = [random_stack(1, 2, n), random_stack(2, ORDER + 1, n)]
    if frame:
        pose = random_pose(np.random.default_rng(2))
        arguments += [pose, random_stack(3, 1, 6), random_stack(4, ORDER + 1, 6)]
    every = (), tuple(range(0, n, 2)), tuple(range(n))
    # none prescribed is forward dynamics, of which the test of applied wrenches tells
    for prescribed in every if THOROUGH else every[1:] if frame == "spatial" else every[1:2]:
        setting = kernels.KernelSpec(frame, loads, prescribed, base_prescribed)
        straight = kernels.hybrid_dynamics(robot.model, ORDER, setting)
        assert isinstance(straight, Kernel)
        expected = straight.function(*arguments, *wrenches)
        generic = TreeHybridKernel(robot.model, ORDER, setting)
        found = generic.function(*arguments, *wrenches)
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(found - expected) <= 1e-11 * scale).all()  # as above


def loads_of(n_bodies: int) -> tuple[tuple[int, BaseRepresentation], ...]:
    """Return wrenches in both frames, on the first and the last body and one between, two on the same."""
    last = n_bodies - 1
    return (
        (0, "spatial"),
        (last // 2, "body_fixed"),
        (last, "spatial"),
        (last, "body_fixed"),
        (0, "body_fixed"),
    )


@bases
@sizes
def test_applied_wrenches_are_those_of_straight_line_code(
    n_bodies: int, frame: BaseRepresentation | None
) -> None:
    robot = robot_of(270 + n_bodies, n_bodies, frame)
    loads = loads_of(n_bodies)
    wrenches = [random_stack(10 + i, ORDER + 1, 6) for i in range(len(loads))]
    pose = [random_pose(np.random.default_rng(2))] if frame else []
    setting = kernels.KernelSpec(base=frame, loads=loads)
    q = random_stack(1, ORDER + 3, robot.n_coordinates)
    motion = [q, *pose, *([random_stack(3, ORDER + 2, 6)] if frame else [])]
    state = [random_stack(1, 2, robot.n_coordinates), random_stack(2, ORDER + 1, robot.n_coordinates), *pose]
    state += [random_stack(3, 1, 6), random_stack(4, ORDER + 1, 6)] if frame else []
    for arguments, straight, generic, tolerance in (
        (
            motion,
            kernels.inverse_dynamics(robot.model, ORDER, setting),
            TreeKernel(robot.model, ORDER, setting),
            1e-13,
        ),
        (
            state,
            kernels.hybrid_dynamics(robot.model, ORDER, setting),
            TreeHybridKernel(robot.model, ORDER, setting),
            1e-11,  # as above
        ),
    ):
        assert isinstance(straight, Kernel)
        expected = straight.function(*arguments, *wrenches)
        found = generic.function(*arguments, *wrenches)
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(found - expected) <= tolerance * scale).all()
        batch = generic.batch(*[np.stack([argument, argument]) for argument in (*arguments, *wrenches)])
        np.testing.assert_array_equal(batch[1], found)


@bases
def test_large_robots_take_it(frame: BaseRepresentation | None) -> None:
    robot = robot_of(250, 120, frame)
    n = robot.n_coordinates
    q = 0.3 * random_stack(5, 4, n)
    base = None
    if frame:
        base = BaseMotion(
            random_pose(np.random.default_rng(6)), 0.3 * random_stack(7, 3, 6), representation=frame
        )
        wrench, torques = robot.inverse_dynamics(q, base)
        twists, accelerations = robot.forward_dynamics(q[:2], torques, base, wrench)
        np.testing.assert_allclose(twists, base.twists[1:], rtol=0, atol=1e-9)
    else:
        torques = robot.inverse_dynamics(q)
        accelerations = robot.forward_dynamics(q[:2], torques)
    np.testing.assert_allclose(accelerations, q[2:], rtol=0, atol=1e-9)
    # and the state that comes back needs the same torques, whatever the conditioning
    again = robot.inverse_dynamics(np.concatenate([q[:2], accelerations]), base)
    again = again[1] if isinstance(again, tuple) else again
    np.testing.assert_allclose(again, torques, rtol=0, atol=1e-11 * np.abs(torques).max())


@bases
def test_large_robots_under_wrenches_with_prescribed_joints(frame: BaseRepresentation | None) -> None:
    """Inverse dynamics in another formulation, then the engine's; then hybrid dynamics of the same motion."""
    robot = robot_of(255, 60, frame)
    n = robot.n_coordinates
    q = 0.3 * random_stack(5, 5, n)
    wrenches = [
        AppliedWrench(robot.model.body_names[body], random_stack(8 + body, 3, 6), representation=given_in)
        for body, given_in in loads_of(60)
    ]
    prescribed = [robot.joint_names[j] for j in range(0, n, 3)]
    free = np.array([name not in prescribed for name in robot.joint_names])
    if frame:
        base = BaseMotion(
            random_pose(np.random.default_rng(6)), 0.3 * random_stack(7, 4, 6), representation=frame
        )
        wrench, torques = robot.inverse_dynamics(q, base, wrenches)
        expected_wrench, expected = robot.inverse_dynamics(q, base, wrenches, formulation="hybrid")
        np.testing.assert_allclose(wrench, expected_wrench, rtol=0, atol=1e-12 * np.abs(wrench).max())
    else:
        base, expected = None, robot.inverse_dynamics(q, wrenches=wrenches, formulation="hybrid")
        torques = robot.inverse_dynamics(q, wrenches=wrenches)
    np.testing.assert_allclose(torques, expected, rtol=0, atol=1e-12 * np.abs(torques).max())
    given, right = np.where(free, torques, q[2:]), np.where(free, q[2:], torques)
    found = robot.hybrid_dynamics(
        q[:2], given, base, wrenches=wrenches, prescribed=prescribed, prescribe_base=frame is not None
    )
    if frame:
        found_wrench, found = found
        np.testing.assert_allclose(found_wrench, wrench, rtol=0, atol=1e-9 * np.abs(wrench).max())
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-9 * np.abs(right).max())


def test_which_code_a_robot_gets() -> None:
    small, large = robot_of(260, 7, None).model, robot_of(261, 60, None).model
    assert isinstance(kernels.inverse_dynamics(small, 2), Kernel)
    assert isinstance(kernels.inverse_dynamics(large, 2), TreeKernel)
    assert isinstance(kernels.hybrid_dynamics(small, 2), Kernel)
    assert isinstance(kernels.hybrid_dynamics(large, 0), TreeHybridKernel)
    busy = kernels.KernelSpec(None, ((3, "body_fixed"),), (1, 2))
    assert isinstance(kernels.inverse_dynamics(large, 2, busy), TreeKernel)
    assert isinstance(kernels.hybrid_dynamics(large, 2, busy), TreeHybridKernel)
