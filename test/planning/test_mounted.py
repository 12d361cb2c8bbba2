"""Several robots planned as one: two arms, and a platform with an arm on it, within the limits of all."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from case_robots import panda
from places import ROOT
from refusals import assert_refused, refused
from sweeps import THOROUGH

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import pose
from hodyn_ros.model.drive_spec import RotorSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.mounted import Mount, mounted
from hodyn_ros.planning.streams.stream_config import Mode, StreamConfig
from hodyn_ros.planning.streams.tracking_planner import TrackingPlanner
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

pytestmark = pytest.mark.thorough

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
OPPOSITE = pose(np.diag([-1.0, -1.0, 1.0]), np.array([0.8, 0.0, 0.0]))
ON_TOP = pose(np.eye(3), np.array([0.02, 0.01, 0.05]))


@cache
def two_arms() -> Robot:
    return mounted([Mount(panda(), "left_"), Mount(panda(), "right_", OPPOSITE)], "two_arms")


@cache
def platform() -> Robot:
    return Robot.load(share.find("config", "gough_stewart_6ups.yaml"))


@cache
def arm() -> Robot:
    rigid = Robot.from_mjcf(ROOT / "benchmarks" / "data" / "qdd_arm.xml")
    bounds = {"velocity": 4.0, "effort": 30.0, "effort_rate": 400.0}
    limits = {key: np.full(6, value) for key, value in bounds.items()}
    return Robot(rigid.tree.with_gravity([0.0, 0.0, -9.8]), replace(JointLimits.unlimited(6), **limits))


@cache
def platform_with_arm() -> Robot:
    legs = {"velocity": np.full(6, 1.0), "effort": np.full(6, 400.0), "effort_rate": np.full(6, 3000.0)}
    limits = replace(JointLimits.unlimited(6), **legs)
    limited = Robot(platform().tree, limits, closure=platform().closure)
    return mounted([Mount(limited), Mount(arm(), "arm_", ON_TOP, on="platform")], "platform_with_arm")


def used(robot: Robot, motion: Array) -> float:
    limits = LimitSet(robot)
    return float(limits.usage(np.abs(limits.relative(MotionSample(motion)).values)).max())


# what they are


def test_two_arms_have_the_torques_of_each() -> None:
    robot = two_arms()
    assert robot.joint_names[6:8] == ("left_panda_joint7", "right_panda_joint1")
    q = np.random.default_rng(0).normal(size=(5, 14))
    each = [panda().inverse_dynamics(np.ascontiguousarray(half)) for half in (q[:, :7], q[:, 7:])]
    expected = np.concatenate(each, axis=1)
    np.testing.assert_allclose(
        robot.inverse_dynamics(q), expected, rtol=0.0, atol=1e-13 * abs(expected).max()
    )
    hands = [robot.forward_kinematics(q[:1]).pose_of(f"{side}panda_link7") for side in ("left_", "right_")]
    alone = [panda().forward_kinematics(half[None]).pose_of("panda_link7") for half in (q[0, :7], q[0, 7:])]
    np.testing.assert_allclose(hands, [alone[0], OPPOSITE @ alone[1]], atol=1e-14)


def test_an_arm_on_a_platform_weighs_on_its_legs_as_a_load_does() -> None:
    robot, random = platform_with_arm(), np.random.default_rng(1)
    twists = 0.3 * random.normal(size=(2, 6))
    base = BaseMotion(robot.home[1], twists, representation="body_fixed")
    still = np.zeros((3, 6))
    still[0] = random.uniform(-1.0, 1.0, 6)
    found = robot.inverse_dynamics(still, base)
    # the arm as one stiff body, whose mass, centre and inertia are those of its links
    tree = arm().tree
    places = ON_TOP @ tree.poses(still[0])
    load = np.zeros((4, 4))  # of each link, the second moments of its mass about the platform
    for place, mass, com, inertia in zip(places, tree.masses, tree.coms, tree.inertias):
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
        moments = np.block([[second, mass * com[:, None]], [mass * com[None], np.array([[mass]])]])
        load += place @ moments @ place.T
    mass, centre = load[3, 3], load[:3, 3] / load[3, 3]
    second = load[:3, :3] - mass * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    payload = Payload(mass, centre.tolist(), inertia[np.triu_indices(3)].tolist())
    loaded = platform().with_tree(payload.on_tree(platform()))
    expected = loaded.inverse_dynamics(None, base)
    legs, joints = found[:, :6], found[:, 6:]
    np.testing.assert_allclose(legs, expected[: len(legs)], rtol=1e-9, atol=1e-9 * abs(expected).max())
    standing = BaseMotion(robot.home[1], np.zeros((2, 6)), representation="body_fixed")
    moving = random.normal(size=(3, 6))
    joints = robot.inverse_dynamics(moving, standing)[:, 6:]
    np.testing.assert_allclose(joints, arm().inverse_dynamics(moving), rtol=1e-9, atol=1e-9)


def test_frames_rotors_and_limits_keep_their_robots() -> None:
    spec = replace(panda().require_drives().specs[0], rotor=RotorSpec("panda_link1"))
    specs = [panda().require_drives().specs[0], spec, *panda().require_drives().specs[2:]]
    plain = panda()
    framed = Robot(plain.model, plain.limits, specs, {"tool": Frame(6, ON_TOP), "foot": Frame(-1, np.eye(4))})
    robot = mounted([Mount(plain, "a_"), Mount(framed, "b_", OPPOSITE)])
    assert robot.require_drives().specs[8].rotor == replace(spec.rotor, body="b_panda_link1")
    assert robot.frames["b_tool"].body == 13
    np.testing.assert_array_equal(robot.frames["b_foot"].pose, OPPOSITE)
    np.testing.assert_array_equal(robot.limits.effort, np.tile(plain.limits.effort, 2))


def test_robots_that_cannot_be_mounted() -> None:
    assert_refused(
        (lambda: [], "give a robot at least"),
        (lambda: [Mount(panda()), Mount(panda())], "panda_link1"),
        (lambda: [Mount(panda(), "a_"), Mount(panda(), "b_", on="table")],
         "body 'table' to mount on is unknown"),
        (lambda: [Mount(panda(), "a_"), Mount(panda().with_drives(None), "b_")], "has no drives, but others"),
        (lambda: [Mount(panda()), Mount(platform(), "b_")], "only the first robot may: mount it first"),
        by=lambda mounts: mounted(mounts()),
        error=ModelError,
    )  # fmt: skip


# plans


def test_one_plan_keeps_the_limits_of_both_arms_at_the_same_time() -> None:
    away = HOME + np.array([0.5, 0.4, -0.3, 0.5, 0.4, -0.3, 0.2])
    points = np.stack([np.tile(HOME, 2), np.append(away, HOME), np.append(away, away)])
    path = WaypointSpline([0.0, 1.0, 2.0], points)
    found = time_optimal(path, two_arms(), pieces=60)
    motion = found.motion.trajectory.sample(np.linspace(0.0, found.duration, 2001), 5)
    shares = [used(panda(), np.ascontiguousarray(half)) for half in (motion[..., :7], motion[..., 7:])]
    assert max(shares) <= 1.0 + 1e-6 and max(shares) > 0.999
    # both are on the path at the same place: the point in the middle is passed by both
    middle = np.abs(motion[:, 0] - points[1]).max(axis=1)
    assert middle.min() < 2e-3
    alone = [
        time_optimal(WaypointSpline([0.0, 1.0, 2.0], some), panda(), pieces=60).duration
        for some in (points[:, :7], points[:, 7:])
    ]
    assert max(alone) * (1.0 - 1e-3) <= found.duration < sum(alone)


@pytest.mark.skipif(not THOROUGH, reason="ten seconds; make test-thorough runs it")
def test_one_plan_keeps_the_limits_of_a_platform_and_its_arm() -> None:
    robot = platform_with_arm()
    base = WaypointSpline([0.0, 1.0], [[0.0, 0.0], [0.03, 0.15]])
    joints = WaypointSpline([0.0, 1.0], [np.full(6, 0.2), np.array([0.8, -0.2, 0.7, 0.5, -0.3, 0.6])])
    path = RobotMotion.of_base(base, ["z", "yaw"], robot.home[1], joints)
    found = time_optimal(path, robot, pieces=10)
    sizes = []
    for time in np.linspace(0.0, found.duration, 60):
        sample = found.motion.sample(time, 3)
        efforts, limits = robot.inverse_dynamics(sample.joints, sample.base), robot.limits
        sizes.append(np.max([np.abs(efforts[0]) / limits.effort, np.abs(efforts[1]) / limits.effort_rate]))
    assert max(sizes) <= 1.0 + 1e-6
    assert found.bindings and max(each.usage for each in found.bindings) > 0.9999
    assert {each.column.joint for each in found.bindings} >= {"leg1_slide", "arm_joint_2"}


def test_streams_lead_both_arms() -> None:
    planner = TrackingPlanner(two_arms(), np.tile(HOME, 2), 0.0, StreamConfig(Mode.TRACK))
    for now in 0.1 * np.arange(6):
        times = now + 0.02 * np.arange(50)
        points = np.tile(HOME, 2) + 0.2 * np.sin(2.0 * times)[:, None] * np.repeat([1.0, -1.0], 7)
        assert planner.take(times, points, now).followed
    motion = planner.sample(np.arange(0.5, planner.ends, 0.002), 5)
    for half in (motion[..., :7], motion[..., 7:]):
        assert used(panda(), np.ascontiguousarray(half)) <= 1.0 + 1e-6
    refused(lambda: TrackingPlanner(platform_with_arm(), np.zeros(12), 0.0), "platform")
