"""Hybrid dynamics of robots with couplings and loops, against their inverse and forward dynamics."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from oracles.cases import relative_errors
from oracles.motions import random_stack
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.loops import grounded

NAMES = ("delta", "palletiser", "panda_hand", "humanoid_leg", "gough_stewart_6ups")
ORDER = 2 if THOROUGH else 1


@cache
def robot_of(name: str) -> Robot:
    return Robot.load(share.find("config", f"{name}.yaml"))


def motion_of(robot: Robot, seed: int) -> tuple[Array | None, BaseMotion | None]:
    """Return a motion of the coordinates near home, of order + 3 rows."""
    rng = np.random.default_rng(seed)
    start, pose = robot.home
    q = random_stack(rng, ORDER + 3, len(start), rate=1.0) * 0.3
    limits = robot.coordinate_limits
    low, high = np.maximum(limits.position_lower, start - 1.0), np.minimum(limits.position_upper, start + 1.0)
    q[0] = start + 0.2 * (np.clip(start, low, high) - start) + 0.1 * rng.uniform(-1, 1, len(start))
    if robot.name == "humanoid_leg":
        q[0, 3] = 0.7
    base = None if pose is None else BaseMotion(pose, 0.2 * random_stack(rng, ORDER + 2, 6))
    return (q if len(start) else None), base


def wrench_on(robot: Robot) -> list[AppliedWrench]:
    return [AppliedWrench(robot.tree.body_names[-2], random_stack(4, ORDER + 1, 6), representation="spatial")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", some(NAMES, *NAMES[:-1]))
@pytest.mark.parametrize("count", some([0, 1, 2], 1))
def test_returns_what_was_left_out(name: str, count: int) -> None:
    """Of the motion and efforts of inverse dynamics, some of each are given, and the others come back."""
    robot = robot_of(name)
    q, base = motion_of(robot, 3)
    wrenches = wrench_on(robot)
    state = robot.drive_state(q, base, wrenches)
    accelerations, efforts = state.motion[2 : ORDER + 3], state.efforts
    prescribed = list(robot.driven_joints[::2][:count])
    chosen = [robot.driven_joints.index(joint) for joint in prescribed]
    given, expected = efforts.copy(), accelerations.copy()
    given[:, chosen], expected[:, chosen] = accelerations[:, chosen], efforts[:, chosen]
    start = None if q is None else q[:2]
    moving = None if base is None else BaseMotion(base.pose, base.twists[:1])
    found: Any = robot.hybrid_dynamics(
        start, given, moving, prescribed=prescribed, base_wrench=state.base_wrench, wrenches=wrenches
    )
    if base is not None:
        assert relative_errors(found.base, base.twists[1:]).max() < 1e-8
        found = found.joints
    assert relative_errors(found, expected).max() < 1e-8


@pytest.mark.thorough
def test_all_prescribed_is_inverse_dynamics_and_none_forward_dynamics() -> None:
    robot = robot_of("humanoid_leg")
    q, base = motion_of(robot, 5)
    assert q is not None and base is not None
    state = robot.drive_state(q, base)
    wrench, efforts = robot.hybrid_dynamics(
        q[:2], state.motion[2 : ORDER + 3], base, prescribed=robot.driven_joints, prescribe_base=True
    )
    assert relative_errors(efforts, state.efforts).max() < 1e-10
    assert relative_errors(wrench, state.base_wrench).max() < 1e-10
    still = BaseMotion(base.pose, base.twists[:1])
    twists, free = robot.hybrid_dynamics(
        q[:2], state.efforts, still, prescribed=[], base_wrench=state.base_wrench
    )
    rates, joints = robot.forward_dynamics(q[:2], state.efforts, still, state.base_wrench)
    assert relative_errors(twists, rates).max() < 1e-8
    assert relative_errors(free, state.motion[2 : ORDER + 3]).max() < 1e-8
    assert joints.shape == (ORDER + 1, 6)


@pytest.mark.parametrize(
    ("name", "prescribe_base"),
    [("delta", False), ("humanoid_leg", False), ("humanoid_leg", True), ("planar_3rrr", False)],
)
def test_computed_with_numbers_as_in_compiled_code(
    name: str, prescribe_base: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of joints, of a base that is pushed or moved, and of a platform, with a wrench on a body."""
    robot = Robot.load(share.find("config", f"{name}.yaml"))  # that knows no code
    q, base = motion_of(robot, 3)
    if name == "planar_3rrr" and base is not None and robot.closure is not None:
        along = robot.closure.directions
        base = BaseMotion(
            base.pose, base.twists @ along @ along.T, representation="body_fixed"
        ).in_representation("spatial")
    state = robot.drive_state(q, base, wrench_on(robot))
    given = 1 + len(state.efforts)
    arguments = (
        None if q is None else q[:2],
        state.efforts + random_stack(6, *state.efforts.shape),
        None if base is None else BaseMotion(base.pose, base.twists[: given if prescribe_base else 1]),
        None if prescribe_base else state.base_wrench,
        wrench_on(robot),
    )
    prescribed: Any = {"prescribed": robot.driven_joints[1:2], "prescribe_base": prescribe_base}
    with monkeypatch.context() as without_code:
        without_code.setattr(grounded, "compiles", lambda *_, **__: False)
        expected: Any = robot.hybrid_dynamics(*arguments, **prescribed)
    found: Any = robot_of(name).hybrid_dynamics(*arguments, **prescribed)
    if base is None:
        found, expected = (found,), (expected,)
    for one, other in zip(found, expected):
        assert relative_errors(one, other).max() < 1e-10
