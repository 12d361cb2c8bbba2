"""Parallel robots against Lagrange multipliers at many digits, the laws of mechanics, and themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import mp_dynamics, mp_parallel
from oracles.cases import relative_errors
from oracles.motions import Base, Frame, Load, random_stack
from oracles.parallel_robots import Parallel, gough_stewart, planar_3rrr
from oracles.random_trees import Tree

from hodyn_ros import AppliedWrench, ParallelRobot, Robot, SeriesElastic
from hodyn_ros.motion import twists_to_world
from hodyn_ros.se3 import exp

pytestmark = pytest.mark.thorough

Array = NDArray[np.float64]

ROBOTS = {
    "gough-stewart": gough_stewart(),
    "gough-stewart, uneven": gough_stewart(seed=3),
    "3-RRR": planar_3rrr(side=0.08),
    "3-RRR on a hinge": planar_3rrr(side=0.0),
}
SMALL = ["gough-stewart, uneven", "3-RRR", "3-RRR on a hinge"]


@cache
def robot_of(name: str) -> ParallelRobot:
    return ParallelRobot.from_screws(**ROBOTS[name].arguments())


def motion_of(robot: Parallel, order: int, seed: int = 1, frame: Frame = "body") -> tuple[Array, Array]:
    """Return a pose near the home pose and twists that the platform can have."""
    rng = np.random.default_rng(seed)
    delta = robot.dof.shape[1]
    pose = robot.placement @ exp(robot.dof @ rng.uniform(-0.1, 0.1, delta))
    twists = random_stack(rng, order + 2, delta) @ robot.dof.T
    return pose, np.ascontiguousarray(twists if frame == "body" else twists_to_world(pose, twists))


def frame_of_loads(robot: Parallel, frame: Frame) -> Frame:
    """Return the frame in which a wrench without moment goes through the hinge, where there is one."""
    return frame if len(robot.balanced) == len(robot.free) else "body"


def load_of(robot: Parallel, order: int, frame: Frame) -> Load:
    """Return a wrench of the size of the platform's weight, with no part that turns it on a hinge."""
    size = np.zeros(6)
    size[list(robot.balanced)] = (robot.mass * np.repeat([0.05, 1.0], 3))[list(robot.balanced)]
    return Load(0, random_stack(7, order + 1, 6) * size, frame)


@pytest.mark.parametrize(
    ("name", "order", "frame"),
    [
        ("gough-stewart", 4, "world"),
        ("gough-stewart, uneven", 2, "body"),
        ("3-RRR", 4, "body"),
        ("3-RRR on a hinge", 4, "world"),
    ],
)
def test_agrees_with_lagrange_multipliers(name: str, order: int, frame: Frame) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, order, frame=frame)
    load = load_of(arrays, order, "body")
    preload = None if robot.n_driven == robot.n_dof else random_stack(3, order + 1, robot.n_driven)

    exact = mp_parallel.inverse_dynamics(arrays, pose, twists, frame, load, preload)
    joints = np.concatenate(
        [mp_dynamics.to_float(part) for part in mp_parallel.joint_motion(arrays, pose, twists, frame)], axis=1
    )

    wrench = AppliedWrench("platform", load.values, frame="body")
    for formulation in (None, "body_fixed"):
        forces = robot.inverse_dynamics(
            pose, twists, frame, wrenches=wrench, preload=preload, formulation=formulation
        )
        assert relative_errors(forces, mp_dynamics.to_float(exact)).max() < 1e-11
    assert relative_errors(robot.inverse_kinematics(pose, twists, frame), joints).max() < 1e-12


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("frame", ["body", "world"])
@pytest.mark.parametrize("loads", [False, True])
def test_compiled_kernels_agree_with_the_published_formulas(name: str, frame: Frame, loads: bool) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, 3, seed=5, frame=frame)
    frames: tuple[Frame, Frame] = ("body", frame_of_loads(arrays, "world"))
    wrenches = [AppliedWrench("platform", load_of(arrays, 3, f).values, frame=f) for f in frames]
    given = wrenches if loads else None
    published = robot.solve(pose, twists, frame, wrenches=given, formulation="body_fixed")
    compiled = robot.solve(pose, twists, frame, wrenches=given)
    assert relative_errors(compiled.forces, published.forces).max() < 1e-12
    assert relative_errors(compiled.motion, published.motion).max() < 1e-12
    assert compiled.near_singularity == published.near_singularity is False
    assert relative_errors(robot.drive_motion(pose, twists, frame), published.motion).max() < 1e-12


@pytest.mark.parametrize("name", SMALL)
def test_both_frames_say_the_same(name: str) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, 2)
    world = np.ascontiguousarray(twists_to_world(pose, twists))
    assert (
        relative_errors(
            robot.inverse_dynamics(pose, world, "world"), robot.inverse_dynamics(pose, twists, "body")
        ).max()
        < 1e-12
    )


@pytest.mark.parametrize("name", SMALL)
def test_orders_are_derivatives_of_each_other(name: str) -> None:
    """Rows of forces and drive motion are the finite differences of those above, to their error."""
    arrays, robot = ROBOTS[name], robot_of(name)
    rate = 0.7
    direction = arrays.dof @ np.linspace(1.0, 2.0, arrays.dof.shape[1])

    def at(t: float) -> tuple[Array, Array]:
        angle = 0.1 * np.sin(rate * t)
        speeds = [0.1 * rate ** (k + 1) * np.sin(rate * t + (k + 1) * np.pi / 2) for k in range(5)]
        return arrays.placement @ exp(angle * direction), np.outer(speeds, direction)

    h = 1e-3
    states = {t: robot.solve(*at(t)) for t in (0.4 - 2 * h, 0.4 - h, 0.4, 0.4 + h, 0.4 + 2 * h)}
    for part, rows in (("forces", 3), ("motion", 5)):
        far, near, _, after, beyond = (getattr(state, part) for state in states.values())
        difference = (8.0 * (after - near) - (beyond - far))[:rows] / (12.0 * h)
        assert relative_errors(getattr(states[0.4], part)[1 : rows + 1], difference).max() < 1e-8


@pytest.mark.parametrize("name", SMALL)
def test_drives_deliver_the_change_of_energy(name: str) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, 1)
    state = robot.solve(pose, twists)
    power = state.forces[0] @ state.motion[1]
    power_rate = state.forces[1] @ state.motion[1] + state.forces[0] @ state.motion[2]
    energy = exact_energy(arrays, pose, twists)
    assert power == pytest.approx(energy[1], rel=1e-12)
    assert power_rate == pytest.approx(energy[2], rel=1e-12)


def exact_energy(robot: Parallel, pose: Array, twists: Array) -> Array:
    """Return T + V of all bodies and its time derivatives at many digits."""
    total = 0.0
    for tree, joints in zip(robot.limbs, mp_parallel.joint_motion(robot, pose, twists, "body")):
        motion = mp_dynamics.kinematics(tree, mp_dynamics.taylor(joints, len(joints)))
        kinetic, potential = mp_dynamics.energies(tree, motion)
        total = total + kinetic + potential[: len(kinetic)]
    base = Base(pose, twists, "body")
    series = mp_dynamics.taylor(mp_dynamics.exact(twists), len(twists))
    poses = mp_dynamics.base_poses(base, series, len(twists) + 1)
    flight = mp_dynamics.kinematics(robot.body(), mp_dynamics.exact(np.zeros((len(poses), 0))), poses)
    kinetic, potential = mp_dynamics.energies(robot.body(), flight)
    return mp_dynamics.to_float(mp_dynamics.derivatives(total + kinetic + potential[: len(kinetic)]))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("frame", ["body", "world"])
def test_forward_dynamics_returns_the_motion(name: str, frame: Frame) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, 2, frame=frame)
    wrench = AppliedWrench(
        "platform", load_of(arrays, 2, "world").values, frame=frame_of_loads(arrays, "world")
    )
    forces = robot.inverse_dynamics(pose, twists, frame, wrenches=[wrench])
    found = robot.forward_dynamics(pose, twists[0], forces, frame, wrenches=[wrench])
    assert relative_errors(found, twists[1:]).max() < 1e-9
    only = robot.forward_dynamics(pose, twists[0], forces[0], frame, wrenches=[wrench])
    assert relative_errors(only, twists[1:2]).max() < 1e-11


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("frame", ["body", "world"])
def test_forward_dynamics_beyond_the_compiled_orders(name: str, frame: Frame) -> None:
    """Rounding grows tenfold with every order; the forces of what was found are still the ones given."""
    arrays, robot = ROBOTS[name], robot_of(name)
    pose, twists = motion_of(arrays, 8, frame=frame)
    wrench = AppliedWrench(
        "platform", load_of(arrays, 8, "world").values, frame=frame_of_loads(arrays, "world")
    )
    forces = robot.inverse_dynamics(pose, twists, frame, wrenches=[wrench])
    found = robot.forward_dynamics(pose, twists[0], forces, frame, wrenches=[wrench])
    assert (relative_errors(found, twists[1:]) < 1e-11 * 10.0 ** np.arange(9)).all()
    again = robot.inverse_dynamics(pose, np.vstack([twists[:1], found]), frame, wrenches=[wrench])
    assert relative_errors(again, forces).max() < 1e-11


def test_forward_dynamics_returns_the_motion_of_exact_forces() -> None:
    arrays, robot = ROBOTS["gough-stewart, uneven"], robot_of("gough-stewart, uneven")
    pose, twists = motion_of(arrays, 0, seed=4)
    forces = mp_dynamics.to_float(mp_parallel.inverse_dynamics(arrays, pose, twists, "body"))
    found = robot.forward_dynamics(pose, twists[0], forces)
    assert relative_errors(found, twists[1:]).max() < 1e-11


def test_one_limb_alone_is_a_serial_robot() -> None:
    """A platform on one limb, all joints driven, is a serial arm with the platform as its last body."""
    arrays = gough_stewart()
    tree = arrays.limbs[0]
    arguments = arrays.arguments()
    alone = ParallelRobot.from_screws(
        [{**arguments["limbs"][0], "driven": range(6)}], arguments["platform"], np.eye(6)
    )
    serial = Robot.from_screws(
        tree.parents,
        tree.screws,
        tree.placements,
        [*tree.masses[:-1], arrays.mass],
        [*tree.coms[:-1], arrays.com],
        [*tree.inertias[:-1], arrays.inertia],
        arrays.gravity,
    )
    pose, twists = motion_of(arrays, 2)
    state = alone.solve(pose, twists)
    assert relative_errors(state.forces, serial.inverse_dynamics(state.motion)).max() < 1e-12
    torques = mp_dynamics.inverse_dynamics(limb_with_platform(arrays), state.motion).torques
    assert relative_errors(state.forces, mp_dynamics.to_float(torques)).max() < 1e-11


def limb_with_platform(robot: Parallel) -> Tree:
    tree = robot.limbs[0]
    return replace(
        tree,
        masses=np.array([*tree.masses[:-1], robot.mass]),
        coms=np.array([*tree.coms[:-1], robot.com]),
        inertias=np.array([*tree.inertias[:-1], robot.inertia]),
    )


def test_forces_of_redundant_drives_are_least() -> None:
    arrays, robot = ROBOTS["3-RRR on a hinge"], robot_of("3-RRR on a hinge")
    pose, twists = motion_of(arrays, 2)
    forces = robot.inverse_dynamics(pose, twists)
    jacobian = robot.inverse_kinematics_jacobians(pose)[0]
    free = np.linalg.svd(jacobian.T)[2][-1]  # drives against each other, the platform at rest
    assert abs(free @ forces[0]) < 1e-12 * np.abs(forces[0]).max()
    preload = random_stack(2, 3, 3)
    loaded = robot.inverse_dynamics(pose, twists, preload=preload)
    assert np.allclose(jacobian.T @ loaded[0], jacobian.T @ forces[0], rtol=0.0, atol=1e-12)
    assert free @ (loaded[0] - preload[0]) == pytest.approx(0.0, abs=1e-12)
    constant = robot.inverse_dynamics(pose, twists, preload=preload[0])
    padded = robot.inverse_dynamics(pose, twists, preload=[preload[0], 0.0 * preload[0]])
    assert relative_errors(constant, padded).max() < 1e-13


def test_high_orders_fall_back_on_the_published_formulas() -> None:
    arrays, robot = ROBOTS["3-RRR"], robot_of("3-RRR")
    pose, twists = motion_of(arrays, 8)
    high = robot.inverse_dynamics(pose, twists)
    assert high.shape == (9, 3)
    low = robot.inverse_dynamics(pose, np.ascontiguousarray(twists[:5]))
    assert relative_errors(high[:4], low).max() < 1e-12


def test_elastic_drives_take_motion_and_forces_as_those_of_serial_robots() -> None:
    arrays, robot = ROBOTS["3-RRR on a hinge"], robot_of("3-RRR on a hinge")
    pose, twists = motion_of(arrays, 2)
    state = robot.solve(pose, twists)
    motors = SeriesElastic([40.0, 50.0, np.inf], 0.002).feedforward(state.motion, state.forces)
    spring = np.array([40.0, 50.0]) * (motors.position[0] - state.motion[0])[:2]
    assert np.allclose(spring, state.forces[0, :2], rtol=1e-12, atol=0.0)
    expected = 0.002 * (state.motion[2] + np.array([1 / 40, 1 / 50, 0]) * state.forces[2]) + state.forces[0]
    assert np.allclose(motors.effort[0], expected, rtol=1e-13, atol=0.0)


def test_results_are_the_same_far_from_the_world_origin() -> None:
    near = gough_stewart(seed=3)
    away = np.eye(4)
    away[:3, 3] = (100.0, -50.0, 20.0)
    arguments = near.arguments()
    for limb, tree in zip(arguments["limbs"], near.limbs):
        moved = tree.moved(away)
        limb["screws"], limb["placements"] = moved.screws, moved.placements[:-1]
    arguments["platform"]["placement"] = away @ near.placement
    robot = ParallelRobot.from_screws(**arguments)
    pose, twists = motion_of(near, 2)
    expected = robot_of("gough-stewart, uneven").inverse_dynamics(pose, twists)
    # screws about a world origin 100 m away carry lengths to 1e-14 m only
    assert relative_errors(robot.inverse_dynamics(away @ pose, twists), expected).max() < 1e-9
