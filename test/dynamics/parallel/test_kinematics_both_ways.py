"""Compiled kinematics of robots with loops: all joints from the coordinates, and these from the drives."""

from math import factorial

import numpy as np
import pytest
from conditioning import SLACK, largest, moved_by_rounding
from oracles.cases import relative_errors
from oracles.motions import random_stack
from oracles.parallel_robots import gough_stewart, planar_3rrr
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, InputError, ParallelRobot, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.errors import HodynError
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.loops import Constraints, Loop

pytestmark = pytest.mark.thorough


PLATFORMS = ("gough_stewart_6ups", "planar_3rrr")
ROBOTS = (*PLATFORMS, "delta", "palletiser", "humanoid_leg")


def of_config(name: str) -> Robot:
    return Robot.load(share.find("config", f"{name}.yaml"))


def motion_of(robot: Robot, orders: int, seed: int = 0) -> list[Array]:
    """Return the coordinates' motion near home, as `compile` takes it: joints if any, pose and twists."""
    closure = robot.closure
    assert closure is not None
    rng = np.random.default_rng(seed)
    result: list[Array] = []
    if closure.joints:
        y = rng.uniform(-0.3, 0.3, (orders + 1, len(closure.joints)))
        y[0] = closure.home[list(closure.joints)] + 0.1 * y[0]
        result.append(y)
    if closure.leader is not None:
        start = robot.home[1]
        assert start is not None
        free = closure.directions
        pose = start @ exp(free @ rng.uniform(-0.04, 0.04, free.shape[1]))
        twists = rng.uniform(-0.5, 0.5, (max(orders, 1), free.shape[1])) @ free.T
        world = BaseMotion(pose, twists, representation="body_fixed").in_representation("spatial")
        result += [world.pose, np.ascontiguousarray(world.twists[:orders])]
    return result


@pytest.mark.parametrize("name", some([ROBOTS[0], *ROBOTS[2:]], ROBOTS[0], "palletiser", "humanoid_leg"))
def test_a_motion_goes_on_as_its_derivatives_say(name: str) -> None:
    robot, orders, dt = of_config(name), 6 if THOROUGH else 5, 0.001
    closure = robot.closure
    assert closure is not None
    motion = motion_of(robot, 0)
    drives = robot.compile(0, "joint_motion")(*motion)[0, list(closure.driven)]
    stack = np.vstack([drives, random_stack(5, orders, len(drives), rate=0.5)])

    def base(count: int) -> list[Array]:
        return [motion[-2], np.zeros((count, 6))] if closure.base_prescribed else []

    now = robot.compile(orders, "motion_from_drives")(stack, *base(orders))[0]
    powers = [dt**k / factorial(k) for k in range(orders + 1)]
    there = robot.compile(0, "motion_from_drives")(np.tensordot(powers, stack, 1)[None], *base(0))
    series: Array
    if closure.platform is None:
        series, expected = now.reshape(orders + 1, -1), there[0]
    else:
        twists = now[16:].reshape(orders, 6)
        series, expected = BaseMotion(now[:16].reshape(4, 4), twists).pose_derivatives(), there.reshape(4, 4)
    error = np.abs(np.tensordot(powers, series, 1) - expected).max()
    moved = np.abs(series[0] - expected).max()
    assert moved > 1e-4
    assert error < 1e-10 * moved


def test_a_platform_that_moves_is_found_by_its_limbs_alone() -> None:
    """Without the general code of loops, which takes thirty times as long: none is made."""
    for name in ("gough_stewart_6ups", "planar_3rrr"):
        robot = of_config(name)
        f, g = robot.compile(1, "joint_motion"), robot.compile(1, "motion_from_drives")
        for turn in np.linspace(0.0, 0.5, 40):
            pose, twists = motion_of(robot, 1)[-2:]
            assert robot.closure is not None
            pose = pose @ exp(robot.closure.directions[:, -1] * turn * 0.1)
            drives = np.ascontiguousarray(f(pose, twists)[:, list(robot.closure.driven)])
            row = g(drives)[0]
            assert np.abs(row[:16] - pose.ravel()).max() < 1e-13
        assert robot._need_loops("this")._by_drives is None


def test_a_call_that_fails_leaves_the_robot_where_it_was() -> None:
    for name in some(PLATFORMS, PLATFORMS[1]):  # code of all loops is made for what limbs do not reach
        robot = of_config(name)
        motion = motion_of(robot, 2)
        joints = robot.compile(2, "joint_motion")(*motion)
        before = robot.positions
        assert robot.closure is not None and before is not None
        drives = np.ascontiguousarray(joints[:, list(robot.closure.driven)])
        f = robot.compile(2, "motion_from_drives")
        far = drives.copy()
        far[0] += 40.0
        with pytest.raises(HodynError):
            f(far)
        assert np.array_equal(robot.positions, before)  # type: ignore[arg-type]
        assert np.allclose(f(drives)[0, :16], motion[-2].ravel(), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", some(ROBOTS, "planar_3rrr", "delta", "humanoid_leg"))
def test_batches_go_on_from_sample_to_sample(name: str) -> None:
    robot, count = of_config(name), 100
    closure = robot.closure
    assert closure is not None
    start, end = motion_of(robot, 2, 0), motion_of(robot, 2, 0)
    samples = []
    for share_of_way in np.linspace(0.0, 1.0, count):
        one = [array.copy() for array in start]
        one[0][0] += 0.0 if closure.joints == () else 0.1 * share_of_way * end[0][1]
        if closure.leader is not None:
            one[-2] = one[-2] @ exp(0.05 * share_of_way * closure.directions[:, 0])
        samples.append(one)
    joints = robot.compile_batch(2, "joint_motion")(*map(np.array, zip(*samples)))
    f, g = robot.compile(2, "joint_motion"), robot.compile(2, "motion_from_drives")
    robot.reset()
    assert relative_errors(joints, np.array([f(*one) for one in samples])).max() < 1e-11
    drives = np.ascontiguousarray(joints[:, :, list(closure.driven)])
    base = [np.array([one[k] for one in samples]) for k in (-2, -1)] if closure.base_prescribed else []
    robot.reset()
    batch = robot.compile_batch(2, "motion_from_drives")
    found = batch(drives, *base)
    robot.reset()
    alone = np.array([g(drives[i], *[part[i] for part in base]) for i in range(count)])
    assert np.abs(found - alone).max() <= 1e-11 * np.abs(alone).max()
    # what one call cannot reach at once is reached in small steps
    far = drives[[0, -1, 0]]
    apart = batch(far, *[part[[0, -1, 0]] for part in base])
    assert np.abs(apart - found[[0, -1, 0]]).max() <= 1e-11 * np.abs(found).max()


def test_what_is_found_cannot_be_written_to() -> None:
    """As of every motion of a base: nobody changes what a later call returns."""
    robot = of_config("planar_3rrr")
    for rows in (1, 3):
        found, _ = robot.motion_from_drives(np.zeros((rows, 3)))
        assert found is not None
        assert not found.pose.flags.writeable
        assert not found.twists.flags.writeable


def test_redundant_drives_agree_to_every_order_or_are_refused() -> None:
    arrays = planar_3rrr(side=0.0)
    robot = ParallelRobot.from_screws(**arrays.arguments())
    assert robot.closure is not None
    pose = arrays.placement @ exp(arrays.dof @ np.full(arrays.dof.shape[1], 0.05))
    given = BaseMotion(
        pose, random_stack(2, 3, arrays.dof.shape[1]) @ arrays.dof.T, representation="body_fixed"
    ).in_representation("spatial")
    drives = np.ascontiguousarray(robot.joint_motion(None, given)[:, list(robot.closure.driven)])
    assert drives.shape[1] > arrays.dof.shape[1]
    f = robot.compile(3, "motion_from_drives")
    row = f(drives)[0]
    assert relative_errors(row[16:].reshape(3, 6), given.twists).max() < 1e-10
    for order in range(4):
        wrong = drives.copy()
        wrong[order, 1] += 1e-6
        with pytest.raises(InputError):
            f(wrong)


@pytest.mark.parametrize("seed", some(range(20), 0))
def test_any_six_legged_platform_comes_back_to_its_pose(seed: int) -> None:
    """To what rounding does on the way there, and on the way back: some legs nearly depend on each other."""
    arrays = gough_stewart(seed=seed)
    robot = ParallelRobot.from_screws(**arrays.arguments())
    assert robot.closure is not None
    rng = np.random.default_rng(seed)
    pose = arrays.placement @ exp(rng.uniform(-0.05, 0.05, 6))
    given = BaseMotion(pose, rng.normal(size=(4, 6)))
    drives = np.ascontiguousarray(robot.joint_motion(None, given)[:, list(robot.closure.driven)])

    def back(drives: Array) -> Array:
        robot.reset()
        for _ in range(2):  # the second time from there on, as far as Newton's method goes
            found, _ = robot.motion_from_drives(drives)
        assert found is not None
        return np.vstack([found.pose[:3].reshape(2, 6), found.twists])

    robot.reset()
    first, _ = robot.motion_from_drives(drives)
    assert first is not None and np.abs(first.pose - pose).max() < 1e-12
    expected = np.vstack([pose[:3].reshape(2, 6), given.twists])
    # a leg's position is a difference of its lengths, and known as these are
    sizes = np.vstack([np.full((1, 6), arrays.placement[2, 3]), np.abs(drives[1:])])
    rounding = moved_by_rounding(back, drives, sizes=sizes)
    assert (largest(back(drives) - expected) <= 2.0 * SLACK * rounding).all()


def test_drives_turn_a_platform_right_round() -> None:
    """A platform on a wrist and three slides that stand on the ground, told from the platform on."""
    center, axes = np.array([0.0, 0.0, 0.5]), np.eye(3)
    wrist = [np.array([*axis, *np.cross(center, axis)]) for axis in axes[[1, 0, 2]]]
    slides = [np.array([0.0, 0.0, 0.0, *axis]) for axis in axes]
    robot = Robot.from_screws(
        parents=range(-1, 6),
        screws=[np.zeros(6), *wrist, *slides],
        placements=[from_rpy(center, np.zeros(3))] * 7,
        masses=np.ones(7),
        coms=np.random.default_rng(0).uniform(-0.1, 0.1, (7, 3)),
        inertias=np.broadcast_to(0.01 * axes, (7, 3, 3)),
        floating_base=True,
        constraints=Constraints(
            [Loop("world", 6, "weld", np.zeros(3))],
            coordinates=[(0, ("rx", "ry", "rz", "x", "y", "z"))],
            driven=list(range(6)),
        ),
    )
    drives = random_stack(3, 3, 6)
    drives[0] = 0.0
    for turn in 0.125 * np.pi * np.arange(1, 17):  # three turns depend on each other at right angles
        drives[0, 0] = turn
        found, _ = robot.motion_from_drives(drives)
        assert relative_errors(robot.joint_motion(None, found), drives).max() < 1e-12
