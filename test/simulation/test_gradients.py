"""Derivatives of simulated motions, beside differences of a plant that is written apart."""

from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from oracles.random_trees import Tree, random_tree
from refusals import assert_refused, misshapen, not_finite, refused

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.simulation.gradients import MotionParameters, ParametricSimulation
from hodyn_ros.simulation.simulation import runge_kutta

COUNT, STEP = 12, 0.01
KINDS = [one.name for one in fields(MotionParameters)]


def rebuilt(tree: Tree, parameters: MotionParameters) -> Robot:
    """Return a robot with other masses, and joints moved with all beyond them."""
    given: dict[str, Any] = tree.arguments()
    masses, coms, inertias = (np.array(given[name], dtype=float) for name in ("masses", "coms", "inertias"))
    screws, placements = (np.array(given[name], dtype=float) for name in ("screws", "placements"))
    shift = np.zeros((len(masses), 3))
    for j, (row, moved) in enumerate(zip(parameters.bodies, parameters.displacements)):
        mass, first, (xx, yy, zz, xy, xz, yz) = row[0], row[1:4], row[4:]
        com = first / mass
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        masses[j], coms[j] = mass, com
        inertias[j] = about_origin - mass * (com @ com * np.eye(3) - np.outer(com, com))
        parent = tree.parents[j]
        axes = placements[parent][:3, :3] if parent >= 0 else np.eye(3)
        shift[j] = axes @ moved + (shift[parent] if parent >= 0 else 0.0)
    screws[:, 3:] += np.cross(shift, screws[:, :3])
    placements[:, :3, 3] += shift
    given |= {"masses": masses, "coms": coms, "inertias": inertias}
    return Robot.from_screws(**given | {"screws": screws, "placements": placements})


def motion_of(tree: Tree, elastic: bool, start: Array, efforts: Array, parameters: MotionParameters) -> Array:
    """Simulate with the calls of a robot that is built anew."""
    robot, n, states = rebuilt(tree, parameters), tree.n_joints, [start]
    p = parameters
    for effort in efforts:

        def rates(flat: Array, _: float, effort: Array = effort) -> Array:
            position, velocity = flat.reshape(2, -1)
            q, qd = position[:n], velocity[:n]
            if not elastic:
                mass = robot.mass_matrix(q[None])[0] + np.diag(p.motor_inertia)
                still = robot.inverse_dynamics(np.array([q, qd, np.zeros(n)]))[0]
                return np.concatenate(
                    [velocity, np.linalg.solve(mass, effort - p.link_friction * qd - still)]
                )
            theta, thetad = position[n:], velocity[n:]
            spring = p.stiffness * (theta - q) + p.spring_damping * (thetad - qd)
            links = robot.forward_dynamics(np.array([q, qd]), (spring - p.link_friction * qd)[None])[0]
            motors = (effort - spring - p.motor_friction * thetad) / p.motor_inertia
            return np.concatenate([velocity, links, motors])

        states.append(runge_kutta(rates, states[-1].ravel(), STEP, 1).reshape(start.shape))
    return np.array(states)


@pytest.mark.parametrize("elastic", [False, True])
def test_they_are_those_of_a_plant_written_apart(elastic: bool) -> None:
    tree, rng = random_tree(4, 3, branching=0.5), np.random.default_rng(1)
    n = tree.n_joints
    robot = Robot.from_screws(**tree.arguments())
    simulation = ParametricSimulation(robot, elastic=elastic)
    drives = rng.uniform(0.2, 1.0, (5, n)) * np.array([[0.5], [0.3], [0.2], [20.0], [0.5]])
    parameters = replace(MotionParameters.of(robot), **dict(zip(KINDS[2:], drives)))
    start, efforts = rng.uniform(-0.5, 0.5, (2, simulation.width)), rng.normal(size=(COUNT, n))
    states = simulation.simulate(start, efforts, STEP, parameters)
    right = motion_of(tree, elastic, start, efforts, parameters)
    np.testing.assert_allclose(states, right, rtol=0, atol=1e-11 * np.abs(right).max())
    slopes = rng.normal(size=states.shape)
    found = simulation.gradient(states, efforts, STEP, parameters, slopes)

    def figure(start: Array, efforts: Array, parameters: MotionParameters) -> float:
        return float((motion_of(tree, elastic, start, efforts, parameters) * slopes).sum())

    def along(beside: Any) -> float:
        odd = [beside(k) - beside(-k) for k in (1, 2, 3)]
        return float((45.0 * odd[0] - 9.0 * odd[1] + odd[2]) / (60.0 * 1e-3))

    used = KINDS if elastic else KINDS[:4]
    for kind in used:
        value, slope = getattr(parameters, kind), getattr(found.parameters, kind)
        direction = rng.normal(size=value.shape) * np.maximum(np.abs(value), 0.05)
        difference = along(
            lambda k, kind=kind, value=value, d=direction: figure(
                start, efforts, replace(parameters, **{kind: value + 1e-3 * k * d})
            )
        )
        scale = np.abs(slope * direction).sum()
        assert abs((slope * direction).sum() - difference) <= 1e-8 * scale, kind
    for kind in KINDS[len(used) :]:
        assert not getattr(found.parameters, kind).any()
    push, move = rng.normal(size=efforts.shape), rng.normal(size=start.shape)
    by_effort = along(lambda k: figure(start, efforts + 1e-3 * k * push, parameters))
    assert abs((found.efforts * push).sum() - by_effort) <= 1e-8 * np.abs(found.efforts * push).sum()
    by_start = along(lambda k: figure(start + 1e-3 * k * move, efforts, parameters))
    assert abs((found.start * move).sum() - by_start) <= 1e-8 * np.abs(found.start * move).sum()


def test_parameters_are_those_of_the_robot() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    found = MotionParameters.of(robot)
    np.testing.assert_array_equal(found.stiffness, robot.drive_train.stiffness)
    np.testing.assert_array_equal(found.bodies.ravel(), robot.dynamic_parameters())
    assert ParametricSimulation(robot).width == 14


def test_what_cannot_be_says_so() -> None:
    tree = random_tree(4, 2)
    robot = Robot.from_screws(**tree.arguments())
    simulation, parameters = ParametricSimulation(robot), MotionParameters.of(robot)
    states = simulation.simulate(np.zeros((2, 2)), np.zeros((3, 2)), 0.01, parameters)
    assert_refused(
        (lambda: simulation.gradient(states, np.zeros((3, 2)), 0.01, parameters, np.zeros((3, 2, 2))),
         misshapen("the slopes", (3, 2, 2), "(4, 2, 2)")),
        (lambda: simulation.simulate(np.zeros((2, 2)), np.zeros((3, 2)), 0.0, parameters),
         "the step must be positive and finite, found 0.0 s"),
    )  # fmt: skip
    elastic = ParametricSimulation(robot, elastic=True)
    call = partial(elastic.simulate, np.zeros((2, 4)), np.zeros((3, 2)), 0.01, parameters)
    refused(call, not_finite("the stiffness"))
    call = partial(ParametricSimulation, Robot.load(share.find("config", "palletiser.yaml")))
    refused(call, "has loops or a floating base")
