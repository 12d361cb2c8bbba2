"""Feedback linearisation of the planar 3-RRR: two freedoms, three elastic drives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hodyn_ros import ConvergenceError, InputError, ParallelRobot, share
from hodyn_ros.control.parallel_linearisation import ParallelLinearisation
from hodyn_ros.control.parallel_plant import ParallelPlant
from hodyn_ros.control.stiff_simulation import StiffSimulation
from hodyn_ros.control.translating_platform import TranslatingPlatform
from hodyn_ros.trajectory import WaypointSpline

Array = NDArray[np.float64]

POLES = [-25.0, -30.0 + 12.0j, -30.0 - 12.0j, -45.0]
PRELOAD_POLES = [-20.0, -35.0]
MOTION = WaypointSpline([0.0, 0.4, 0.8], [[-0.05, -0.03], [0.05, 0.04], [-0.05, -0.03]])


@pytest.fixture(scope="module")
def robot() -> ParallelRobot:
    return ParallelRobot.from_config(share.find("config", "planar_3rrr.yaml"))


def test_coordinates_of_the_platform(robot: ParallelRobot) -> None:
    platform = TranslatingPlatform(robot)
    motion = MOTION.sample(0.13, 4)
    drives = platform.drives(motion)
    assert np.allclose(platform.locate(drives.positions[0], np.zeros(2)), motion[0], rtol=0.0, atol=1e-13)
    positions, jacobian = platform.jacobian(motion[0])
    assert np.allclose(positions, drives.positions[0], rtol=0.0, atol=1e-12)
    assert np.allclose(jacobian @ motion[1], drives.positions[1], rtol=1e-10)
    found = platform.acceleration(motion[0], motion[1], drives.forces[0])
    assert np.allclose(found, motion[2], rtol=1e-9)
    with pytest.raises(ConvergenceError, match="no platform position|does not reach"):
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
    with pytest.raises(InputError, match="can turn"):
        TranslatingPlatform(ParallelRobot.from_config(share.find("config", "gough_stewart_6ups.yaml")))
    with pytest.raises(InputError, match="must have springs"):
        TranslatingPlatform(ParallelRobot(robot.model))
    with pytest.raises(InputError, match=r"preload must have shape \(3,\)"):
        ParallelLinearisation(robot, POLES, PRELOAD_POLES, preload=[1.0])
    with pytest.raises(InputError, match=r"\(5, 2\)"):
        law = ParallelLinearisation(robot, POLES, PRELOAD_POLES)
        plant = ParallelPlant(robot)
        law.efforts(np.zeros((4, 2)), plant.unpack(plant.consistent_state(np.zeros((5, 2)))))
