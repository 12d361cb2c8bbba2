"""Feedback linearisation of parallel robots: more drives than freedoms, and platforms that turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.parallel_robots import Parallel, gough_stewart, planar_3rrr

from hodyn_ros import BaseMotion, ConvergenceError, InputError, ParallelRobot, share
from hodyn_ros.control.parallel_linearisation import ParallelLinearisation
from hodyn_ros.control.parallel_plant import ParallelPlant
from hodyn_ros.control.platform_coordinates import PlatformCoordinates
from hodyn_ros.control.stiff_simulation import StiffSimulation
from hodyn_ros.model.drives import Drives
from hodyn_ros.trajectory import WaypointSpline

pytestmark = pytest.mark.thorough

Array = NDArray[np.float64]

POLES = [-25.0, -30.0 + 12.0j, -30.0 - 12.0j, -45.0]
PRELOAD_POLES = [-20.0, -35.0]
MOTION = WaypointSpline([0.0, 0.4, 0.8], [[-0.05, -0.03], [0.05, 0.04], [-0.05, -0.03]])


@pytest.fixture(scope="module")
def robot() -> ParallelRobot:
    return ParallelRobot.from_config(share.find("config", "planar_3rrr.yaml"))


def test_coordinates_of_the_platform(robot: ParallelRobot) -> None:
    platform = PlatformCoordinates(robot)
    motion = MOTION.sample(0.13, 4)
    drives = platform.drives(motion)
    assert np.allclose(platform.locate(drives.positions[0], np.zeros(2)), motion[0], rtol=0.0, atol=1e-13)
    positions, jacobian = platform.jacobian(motion[0])
    assert np.allclose(positions, drives.positions[0], rtol=0.0, atol=1e-12)
    assert np.allclose(jacobian @ motion[1], drives.positions[1], rtol=1e-10)
    found = platform.acceleration(motion[0], motion[1], drives.forces[0])
    assert np.allclose(found, motion[2], rtol=1e-9)
    with pytest.raises(ConvergenceError, match="no pose of the platform|does not reach"):
        platform.locate(np.array([40.0, -30.0, 2.0]), np.zeros(2))


def test_with_exact_model_and_state_tracking_is_that_of_the_integrator(robot: ParallelRobot) -> None:
    plant, law = ParallelPlant(robot), ParallelLinearisation(robot, POLES, PRELOAD_POLES)
    start = plant.consistent_state(MOTION.sample(0.0, 4))
    simulation = StiffSimulation(plant, start, method="DOP853", rtol=1e-7, atol=1e-10)
    times = np.linspace(0.02, 0.38, 10)
    states = simulation.follow(lambda t, m: law.efforts(MOTION.sample(t, 4), m), 0.4, times)
    assert np.abs(states[:, :2] - MOTION.sample(times, 0)[:, 0]).max() <= 1e-9  # m


def test_the_closed_loop_has_the_poles_asked_for(robot: ParallelRobot) -> None:
    """At rest, by differences of the equations: two times the poles of the position, once of the preload."""
    plant, law = ParallelPlant(robot), ParallelLinearisation(robot, POLES, PRELOAD_POLES)
    goal = np.zeros((5, 2))
    goal[0] = [0.06, -0.02]
    state = plant.consistent_state(goal)

    def rates(x: Array) -> Array:
        return plant.rates(x, law.efforts(goal, plant.unpack(x)))

    step = 1e-5
    columns = [(rates(state + step * e) - rates(state - step * e)) / (2.0 * step) for e in np.eye(plant.size)]
    found = np.linalg.eigvals(np.stack(columns, axis=1))
    expected = [*POLES, *POLES, *PRELOAD_POLES]
    characteristic, wanted = np.poly(found), np.poly(expected)
    assert np.allclose(characteristic, wanted, rtol=1e-3)


def test_a_preload_is_reached_without_moving_the_platform(robot: ParallelRobot) -> None:
    wanted = np.array([0.3, 0.3, 0.3])
    plant = ParallelPlant(robot)
    law = ParallelLinearisation(robot, POLES, PRELOAD_POLES, preload=wanted)
    goal = np.zeros((5, 2))
    simulation = StiffSimulation(plant, plant.consistent_state(goal), method="DOP853", rtol=1e-8, atol=1e-11)
    simulation.follow(lambda t, m: law.efforts(goal, m), 0.6)
    x, _, theta, _ = plant.split(simulation.state)
    assert np.abs(x).max() <= 1e-9
    positions, jacobian = plant.platform.jacobian(x)
    forces = 40.0 * (theta - positions)
    # the part of the preload that moves nothing
    null = np.linalg.svd(jacobian.T)[2][-1]
    assert np.allclose(forces, null * (null @ wanted), rtol=1e-3, atol=1e-4)
    assert np.abs(forces).max() > 0.1


def test_what_does_not_fit_is_refused(robot: ParallelRobot) -> None:
    with pytest.raises(InputError, match="must have springs"):
        PlatformCoordinates(ParallelRobot(robot.model))
    with pytest.raises(InputError, match="3 drives for 2 freedoms; give the two preload_poles"):
        ParallelLinearisation(robot, POLES)
    with pytest.raises(InputError, match="as many freedoms as drives, 3; leave out"):
        ParallelLinearisation(elastic(planar_3rrr(0.3), 200.0, 0.05), POLES, PRELOAD_POLES)
    with pytest.raises(InputError, match=r"preload must have shape \(3,\)"):
        ParallelLinearisation(robot, POLES, PRELOAD_POLES, preload=[1.0])
    with pytest.raises(InputError, match=r"\(5, 2\)"):
        law = ParallelLinearisation(robot, POLES, PRELOAD_POLES)
        plant = ParallelPlant(robot)
        law.efforts(np.zeros((4, 2)), plant.unpack(plant.consistent_state(np.zeros((5, 2)))))


# platforms that turn


def elastic(figures: Parallel, stiffness: float, motor_inertia: float) -> ParallelRobot:
    model = ParallelRobot.from_screws(**figures.arguments()).model
    n = model.n_driven
    return ParallelRobot(model, None, Drives(np.full(n, stiffness), np.full(n, motor_inertia)))


class Turning(NamedTuple):
    robot: ParallelRobot
    motion: WaypointSpline  # of the coordinates

    @classmethod
    def of(cls, robot: ParallelRobot, start: list[float], end: list[float]) -> Turning:
        return cls(robot, WaypointSpline([0.0, 0.4, 0.8], [start, end, start]))


TURNING = {
    "6-UPS": Turning.of(
        elastic(gough_stewart(), 1e5, 2.0),
        [-0.2, 0.15, 0.1, 0.0, 0.02, 0.0],
        [0.25, -0.1, 0.3, 0.03, -0.02, 0.04],
    ),
    "planar 3-RRR": Turning.of(elastic(planar_3rrr(0.3), 200.0, 0.05), [-0.2, 0.0, 0.01], [0.4, 0.03, 0.02]),
}


@pytest.mark.parametrize("name", TURNING)
def test_coordinates_of_a_platform_that_turns(name: str) -> None:
    robot, motion = TURNING[name]
    platform = PlatformCoordinates(robot)
    wanted = motion.sample(0.13, 4)
    pose, twists = platform.pose(wanted[0]), platform.twists(wanted)
    for frame in ("body", "world"):
        given = BaseMotion(pose, twists, frame="body").in_frame(frame)  # type: ignore[arg-type]
        assert np.allclose(platform.motion(given), wanted, rtol=1e-11, atol=1e-11)
    drives = platform.drives(wanted)
    assert np.allclose(drives.forces, robot.inverse_dynamics(pose, twists), rtol=1e-12)
    assert np.allclose(platform.locate(drives.positions[0], 0.0 * wanted[0]), wanted[0], rtol=0.0, atol=1e-13)
    positions, jacobian = platform.jacobian(wanted[0])
    assert np.allclose(positions, drives.positions[0], rtol=0.0, atol=1e-13)
    assert np.allclose(jacobian @ wanted[1], drives.positions[1], rtol=1e-11, atol=1e-12)
    found = platform.acceleration(wanted[0], wanted[1], drives.forces[0])
    assert np.allclose(found, wanted[2], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", TURNING)
def test_a_platform_that_turns_is_tracked_to_the_tolerance_of_the_integrator(name: str) -> None:
    robot, motion = TURNING[name]
    plant, law = ParallelPlant(robot), ParallelLinearisation(robot, POLES)
    coordinates = plant.platform

    def desired(t: float) -> BaseMotion:
        x = motion.sample(t, 4)
        return BaseMotion(coordinates.pose(x[0]), coordinates.twists(x), frame="body")

    start = plant.consistent_state(motion.sample(0.0, 4))
    simulation = StiffSimulation(plant, start, method="DOP853", rtol=1e-8, atol=1e-11)
    times = np.linspace(0.02, 0.28, 10)
    states = simulation.follow(lambda t, m: law.efforts(desired(t), m), 0.3, times)
    assert np.abs(states[:, : robot.n_dof] - motion.sample(times, 0)[:, 0]).max() <= 1e-9  # m, rad


@pytest.mark.parametrize("name", TURNING)
def test_errors_of_a_platform_that_turns_have_the_poles_asked_for(name: str) -> None:
    """Disturb the start by 0.1 rad, and fit the response: the error is linear however large it is."""
    robot, motion = TURNING[name]
    plant, law = ParallelPlant(robot), ParallelLinearisation(robot, POLES)
    start = motion.sample(0.0, 4)
    start[0] += (
        np.where(np.arange(robot.n_dof) < robot.n_dof // 2, 0.1, 0.01) * [1, -1, 1, 1, -1, 1][: robot.n_dof]
    )
    step, count, degree = 0.008, 24, 4
    times = step * np.arange(1, count + 1)
    simulation = StiffSimulation(
        plant, plant.consistent_state(start), method="DOP853", rtol=1e-10, atol=1e-13
    )
    states = simulation.follow(lambda t, m: law.efforts(motion.sample(t, 4), m), times[-1] + step, times)
    errors = states[:, : robot.n_dof] - motion.sample(times, 0)[:, 0]
    windows = np.concatenate([errors[i : count - degree + i].reshape(-1, 1) for i in range(degree)], axis=1)
    weights, *_ = np.linalg.lstsq(windows, errors[degree:].reshape(-1), rcond=None)
    measured = np.log(np.roots([1.0, *-weights[::-1]]).astype(complex)) / step
    for pole in POLES:
        assert np.abs(measured - pole).min() <= 0.01 * abs(pole)
