"""Floating bases of which components follow from the others, as of a 3-RPS."""

from functools import cache

import numpy as np
import pytest
from linkages import readable_solution, three_rps
from oracles.cases import relative_errors
from oracles.motions import random_stack
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Robot
from hodyn_ros.dynamics.loops.grounded import base_pose, base_turns
from hodyn_ros.dynamics.operations import PRODUCTS, RATES
from hodyn_ros.lie.se3 import exp

pytestmark = pytest.mark.thorough

ORDER = 1


def motion_of(robot: Robot, tilt: float = 0.0, seed: int = 0) -> BaseMotion:
    """Return a motion of the platform, tilted about x; what of it follows is given as something else."""
    pose = robot.home[1]
    assert pose is not None
    turned = pose @ exp(np.array([tilt, 0.0, 0.0, 0.0, 0.0, 0.05]))
    return BaseMotion(turned, 0.3 * np.random.default_rng(seed).normal(size=(ORDER + 2, 6)))


@cache
def made(compiled: bool) -> Robot:
    """Return a robot, which keeps the calls that were made for it."""
    return three_rps(floating=True)


@pytest.fixture
def robot() -> Robot:
    return made(True)


def test_everything_that_moves_and_holds(robot: Robot) -> None:
    base, rng = motion_of(robot, 0.1), np.random.default_rng(1)
    wrenches = [
        AppliedWrench(0, rng.normal(size=(ORDER + 1, 6)), representation="body_fixed"),
        AppliedWrench(robot.tree.n_bodies - 1, rng.normal(size=(ORDER + 1, 6))),
    ]
    expected = readable_solution(robot, None, base, wrenches)
    assert robot.is_compiled(ORDER) and expected.base is not None
    found = robot.solve_loops(None, base, wrenches)
    assert relative_errors(found.joints, expected.joints).max() < 1e-12
    assert relative_errors(found.efforts, expected.efforts).max() < 1e-12
    for name, load in expected.loads.items():
        assert relative_errors(found.loads[name], load).max() < 1e-11
    assert found.base is not None
    np.testing.assert_allclose(found.base.pose, expected.base.pose, atol=1e-14)
    assert relative_errors(found.base.twists, expected.base.twists).max() < 1e-12
    assert found.drive_margin == pytest.approx(expected.drive_margin, rel=1e-11)
    for formulation in (None, "embedding"):
        efforts = robot.inverse_dynamics(None, base, wrenches, formulation=formulation)
        assert relative_errors(efforts, expected.efforts).max() < 1e-12
    moved = robot.forward_kinematics(None, BaseMotion(base.pose, base.twists[:ORDER]))
    np.testing.assert_allclose(moved.poses[0], expected.base.pose, atol=1e-14)
    assert relative_errors(moved.twists[:, 0], expected.base.twists[:ORDER]).max() < 1e-12


@pytest.mark.parametrize("tilt", [0.55, -0.6])
def test_far_from_home_code_is_made_for_where_the_base_is(tilt: float) -> None:
    robot = three_rps(floating=True)
    pose = robot.home[1]
    assert pose is not None
    for part in np.linspace(0.2, 1.0, 5):
        base = motion_of(robot, part * tilt)
        found = robot.inverse_dynamics(None, base)
        other = three_rps(floating=True)
        assert robot.positions is not None
        other.reset(robot.positions)
        assert relative_errors(found, readable_solution(other, None, base).efforts).max() < 1e-11


def test_drives_tell_the_motion_of_a_platform_that_tilts_far() -> None:
    """Past where the joints that its base is written with would be singular, and from where it was put."""
    robot, other = three_rps(floating=True), three_rps(floating=True)
    pose, steps = robot.home[1], np.linspace(0.0, 0.7, 8)
    assert pose is not None
    twists = 0.3 * random_stack(4, ORDER + 2, 6)
    for tilt in (*steps, *steps[-2::-2]):
        turned = pose @ exp(np.array([0.2 * tilt, tilt, 0.0, 0.0, 0.0, 0.0]))
        given = other.solve_loops(None, BaseMotion(turned, twists))
        found, _ = robot.motion_from_drives(given.drives)
        assert found is not None and given.base is not None
        assert np.allclose(found.pose, given.base.pose, rtol=0.0, atol=1e-12)
        assert relative_errors(found.twists, given.base.twists).max() < 1e-10


def test_forward_dynamics_finds_the_motion_again(robot: Robot) -> None:
    base = motion_of(robot, 0.1, seed=2)
    one = robot.solve_loops(None, base)
    assert one.base is not None  # which moves as it has to
    orders = ORDER + 1 if THOROUGH else 1
    still = BaseMotion(one.base.pose, one.base.twists[:1])
    twists, _ = robot.forward_dynamics(None, one.efforts[:orders], still)
    assert relative_errors(twists, one.base.twists[1 : orders + 1]).max() < 1e-11


@pytest.mark.parametrize("name", some(sorted(set(PRODUCTS) - {"regressor"}), "coriolis_matrix", "jacobian"))
def test_products_are_those_of_the_robot_built_up_from_the_ground(name: str, either_way: bool) -> None:
    robot, grounded = made(either_way), three_rps(floating=False)
    looped, other = robot._need_loops("this"), grounded._need_loops("this")
    base = motion_of(robot, 0.1, seed=3)
    moved = BaseMotion(base.pose, base.twists[: 1 + RATES[name]])
    others = ("body6", "body_fixed") if name == "jacobian" else ()
    found, expected = (one.computed(name, None, moved, *others) for one in (looped, other))
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() < 1e-11 * np.abs(b).max()


def test_parameters_are_those_of_its_own_bodies(either_way: bool) -> None:
    robot = made(either_way)
    base = motion_of(robot, 0.1, seed=4)
    base = BaseMotion(base.pose, base.twists[:2])
    parameters = robot.dynamic_parameters()
    regressor = robot.regressor(None, base)
    assert relative_errors(regressor @ parameters, robot.inverse_dynamics(None, base)).max() < 1e-11
    short = BaseMotion(base.pose, base.twists[:1])
    Y = robot.slotine_li_regressor(None, None, short, np.ones((2, 6)))
    assert Y.shape[-1] == len(parameters)
    of_parameters, matrices = robot.parameter_derivatives(None, short), robot.dynamic_matrices(None, short)
    for found, expected in zip(of_parameters, matrices):
        assert relative_errors(np.einsum("rp...,p->r...", found, parameters), expected).max() < 1e-11


def test_batches_are_their_samples(robot: Robot) -> None:
    bases = [motion_of(robot, tilt) for tilt in (0.1, 0.12, 0.14)]
    batch = BaseMotion(np.array([one.pose for one in bases]), np.array([one.twists for one in bases]))
    found = robot.inverse_dynamics(None, batch)
    moved = robot.forward_kinematics(None, batch)
    for i, one in enumerate(bases):
        assert relative_errors(found[i], robot.inverse_dynamics(None, one)).max() < 1e-12
        np.testing.assert_allclose(moved.poses[i], robot.forward_kinematics(None, one).poses, atol=1e-13)


def test_a_pose_of_the_six_joints_is_that_of_their_turns() -> None:
    start = exp(np.array([0.3, -0.2, 0.4, 1.0, 2.0, 3.0]))
    joints = np.array([0.1, -0.2, 0.3, 0.5, -0.4, 0.7])
    base = base_pose(joints, start)
    np.testing.assert_allclose(base_turns(base, start), joints[3:], atol=1e-15)
    np.testing.assert_allclose(base[:3, 3] - start[:3, 3], joints[:3], atol=1e-15)
