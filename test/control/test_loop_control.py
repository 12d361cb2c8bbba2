"""Control of robots with couplings and loops, and of platforms: feedback linearisation and regulation."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from linkages import elastic_delta, shipped, with_drives
from refusals import assert_refused, misshapen, refused
from sweeps import some

from hodyn_ros import InputError, Robot
from hodyn_ros.array import Array
from hodyn_ros.control.feedback_linearisation import FeedbackLinearisation
from hodyn_ros.control.links import Links
from hodyn_ros.control.passivity_control import PassivityRegulator
from hodyn_ros.simulation.closed_loop import run_loop
from hodyn_ros.simulation.plant import Plant
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline

pytestmark = pytest.mark.thorough


POLES = [-25.0, -30.0 + 12.0j, -30.0 - 12.0j, -45.0]
PRELOAD_POLES = [-20.0, -35.0]


class Case(NamedTuple):
    robot: Robot
    motion: WaypointSpline  # of the coordinates
    preload_poles: list[float] | None = None


@cache
def case(name: str) -> Case:
    """Return a robot on springs, and a motion that turns what can turn."""
    if name == "delta":
        return Case(elastic_delta(), through([0.05, 0.02, -0.03], [-0.04, 0.06, 0.01]))
    robot = shipped(f"{name}.yaml")
    if name == "planar_3rrr":  # three drives for two freedoms
        return Case(with_drives(robot, 40.0, 0.01), through([-0.05, -0.03], [0.05, 0.04]), PRELOAD_POLES)
    start, end = [-0.2, 0.15, 0.1, 0.0, 0.02, 0.0], [0.25, -0.1, 0.3, 0.03, -0.02, 0.04]
    return Case(with_drives(robot, 1e5, 2.0), through(start, end))


def through(start: list[float], end: list[float]) -> WaypointSpline:
    return WaypointSpline([0.0, 0.4, 0.8], [start, end, start])


CASES = ["delta", "planar_3rrr", "gough_stewart_6ups"]


@pytest.mark.parametrize("name", some(CASES, "delta", "planar_3rrr"))
def test_with_exact_model_and_state_tracking_is_that_of_the_integrator(name: str) -> None:
    robot, motion, idle = case(name)
    law = FeedbackLinearisation.from_poles(robot, POLES, idle)
    began = 0.14  # in the middle, where it is fast
    simulation = RobotSimulation(robot, motion.sample(began, 4))
    times, tolerances = np.linspace(0.01, 0.05, 3), {"rtol": 1e-8, "atol": 1e-11}
    states = simulation.follow(
        lambda t, m: law.efforts(motion.sample(began + t, 4), m), 0.06, times, method="DOP853", **tolerances
    )
    found = np.array([simulation.plant.coordinates(state)[0] for state in states])
    assert np.abs(motion.sample(began + 0.06, 0) - motion.sample(began, 0)).max() > 0.01
    assert np.abs(found - motion.sample(began + times, 0)[:, 0]).max() <= 1e-9  # m, rad


@pytest.mark.parametrize("name", some(CASES, "delta", "planar_3rrr"))
def test_the_closed_loop_has_the_poles_asked_for(name: str) -> None:
    """At rest, by differences of the equations: the poles once for each coordinate, and of the preload."""
    robot, motion, idle = case(name)
    plant, law = Plant(robot), FeedbackLinearisation.from_poles(robot, POLES, idle)
    goal = np.zeros((5, plant.links.size))
    goal[0] = motion.sample(0.3, 0)[0]
    state = plant.consistent_state(goal)

    def rates(x: Array) -> Array:
        return plant.rates(x, law.efforts(goal, plant.unpack(x)))

    step = 1e-5
    columns = [(rates(state + step * e) - rates(state - step * e)) / (2.0 * step) for e in np.eye(plant.size)]
    # whose powers of the largest pole would leave nothing of many small ones: the minimal polynomial instead
    matrix, size = np.stack(columns, axis=1) / 40.0, np.eye(plant.size)
    wanted = size
    for pole in [*POLES, *(idle or [])]:
        wanted = wanted @ (matrix - pole / 40.0 * size)
    scale = np.prod([np.linalg.norm(matrix - pole / 40.0 * size, 2) for pole in [*POLES, *(idle or [])]])
    assert np.abs(wanted).max() <= 1e-6 * scale


def test_a_platform_may_be_given_by_its_pose_and_twists() -> None:
    robot, motion, idle = case("planar_3rrr")
    law, links, x = FeedbackLinearisation.from_poles(robot, POLES, idle), Links(robot), motion.sample(0.13, 4)
    _, platform = links.robot_arguments(x)
    measured = Plant(robot).unpack(Plant(robot).consistent_state(motion.sample(0.12, 4)))
    for given in (platform, platform.in_representation("spatial")):
        np.testing.assert_allclose(law.efforts(given, measured), law.efforts(x, measured), rtol=1e-8)
    with pytest.raises(InputError, match="joints are coordinates"):
        FeedbackLinearisation.from_poles(elastic_delta(), POLES).efforts(platform, measured)


def test_a_preload_is_reached_without_moving_the_platform() -> None:
    robot, _, _ = case("planar_3rrr")
    wanted = np.array([0.3, 0.3, 0.3])
    law = FeedbackLinearisation.from_poles(robot, POLES, [-60.0, -90.0], preload=wanted)
    goal = np.zeros((5, 2))
    simulation = RobotSimulation(robot, goal)
    simulation.follow(lambda t, m: law.efforts(goal, m), 0.18, method="DOP853", rtol=1e-8, atol=1e-11)
    assert np.abs(simulation.coordinates).max() <= 1e-9
    plant, forces = simulation.plant, simulation.link_effort
    null = np.linalg.svd(plant.links.inertia(simulation.coordinates)[1].T)[2][-1]
    # the part of the preload that moves nothing
    np.testing.assert_allclose(forces, null * (null @ wanted), rtol=1e-3, atol=1e-4)
    assert np.abs(forces).max() > 0.1


def test_a_delta_on_springs_comes_exactly_to_its_goal() -> None:
    robot, goal = elastic_delta(), np.array([0.02, -0.03, -0.04])
    law = PassivityRegulator(robot, 40.0, 1.5)
    simulation = RobotSimulation(robot, np.zeros(3), damping=1.0)
    run_loop(simulation, lambda t, m: law.regulate(goal, m).effort, 1.5, 2e-3)
    assert np.abs(simulation.coordinates - goal).max() < 1e-6


def test_what_does_not_fit_is_refused() -> None:
    redundant, delta = case("planar_3rrr").robot, elastic_delta()
    assert_refused(
        (lambda: FeedbackLinearisation.from_poles(redundant, POLES),
         "3 drives for 2 coordinates; give the two preload_poles"),
        (lambda: FeedbackLinearisation.from_poles(delta, POLES, PRELOAD_POLES),
         "as many coordinates as drives, 3; leave out"),
        (lambda: FeedbackLinearisation.from_poles(redundant, POLES, PRELOAD_POLES, [1.0]),
         misshapen("preload", (1,), "(3,)")),
    )  # fmt: skip
    plant, law = Plant(delta), FeedbackLinearisation.from_poles(delta, POLES)
    state = plant.unpack(plant.consistent_state(np.zeros((5, 3))))
    refused(lambda: law.efforts(np.zeros((4, 3)), state), misshapen("the desired motion", (4, 3)))
    assert_refused(
        (lambda: PassivityRegulator(redundant, 1.0, 1.0),
         "more drives than coordinates, which is not regulated"),
        (lambda: FeedbackLinearisation.from_poles(shipped("humanoid_leg.yaml"), POLES),
         "'humanoid_leg' has a floating base, which no motor holds"),
    )  # fmt: skip
