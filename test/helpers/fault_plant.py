"""A robot that differs from what a guard knows of it: motors, springs, friction, load, and what it hits."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.model.drive_spec import series_elastic
from hodyn_ros.simulation.simulation import RobotSimulation

DAMPING = 2e-4  # [s] times the stiffness of a spring


@dataclass(frozen=True)
class Differences:
    """How a robot differs from its file; joints are counted from 0.

    `turned` motors give the opposite effort; `swapped` ones each other's. `weak` joints give no more than
    `most` [N.m]. `friction` and `stiffness` are times those of the file, `payload` [kg] sits at the flange,
    and `blocked` links seize. `push` [N.m] acts besides at the motors of `pushed` joints.
    """

    turned: tuple[int, ...] = ()
    swapped: tuple[int, ...] = ()
    weak: tuple[int, ...] = ()
    most: float = np.inf
    friction: float = 1.0
    stiffness: float = 1.0
    payload: float = 0.0
    blocked: tuple[int, ...] = ()
    pushed: tuple[int, ...] = ()
    push: float = 0.0

    @cached_property
    def cap(self) -> Array:
        """[N.m] what each motor gives at most."""
        return np.where(np.isin(np.arange(7), self.weak), self.most, np.inf)

    def delivered(self, efforts: Array) -> Array:
        """Return what the motors give when they are told `efforts` (n,)."""
        if not self.turned and not self.swapped and not self.pushed:
            return efforts
        found = efforts.copy()
        found[list(self.swapped)] = efforts[list(self.swapped[::-1])]
        found[list(self.turned)] *= -1.0
        found[list(self.pushed)] += self.push
        return found

    def continued(self, kind: str, simulation: RobotSimulation, before: Differences) -> RobotSimulation:
        """Return a simulation of this robot that goes on from where another one is.

        A spring that has changed carries the same torque as before: the motor's shaft has slipped.
        """
        if (self.stiffness, self.payload) == (before.stiffness, before.payload):
            return simulation
        new = copy.copy(_simulation(kind, self.stiffness, self.payload))
        state = simulation.state.copy()
        if kind != "efforts":
            state[7:14] = state[:7] + (state[7:14] - state[:7]) * (before.stiffness / self.stiffness)
        new.time, new.state = simulation.time, state
        return new


SOUND = Differences()


@cache
def _simulation(kind: str, stiffness: float, payload: float) -> RobotSimulation:
    """To be copied, as it takes a while to compile; friction is the bench's to add.

    Rigid drives for "efforts", which carry the weight that they know of themselves: so gravity acts there
    with a payload only, and the bench adds what the drives carry.
    """
    weightless = kind == "efforts" and not payload
    path = share.find("config", "panda.yaml")
    robot = Robot.load(path, gravity=[0.0, 0.0, 0.0]) if weightless else Robot.load(path)
    train = robot.require_drives()
    springs = np.full(7, np.inf) if kind == "efforts" else stiffness * train.stiffness
    if payload:
        robot = robot.with_tree(Payload(payload, body="panda_link8").on_tree(robot))
    robot = robot.with_drives(series_elastic(springs, train.motor_inertia))
    simulation = RobotSimulation(robot, np.zeros(7), damping=robot.require_drives().damping(DAMPING))
    simulation.warm_up()
    return simulation


def resting(kind: str, position: Array, differs: Differences = SOUND) -> RobotSimulation:
    """The robot at rest, its motors where springs hold its weight."""
    new = copy.copy(_simulation(kind, differs.stiffness, differs.payload))
    new.stand(position)
    return new


def weight(kind: str, position: Array) -> Array:
    """Return the efforts (n,) that hold the robot still, as its file has it."""
    found: Array = _simulation(kind, 1.0, 0.0).plant.holding(position)
    return found


def friction(velocity: Array, viscous: Array, coulomb: Array, transition: float) -> Array:
    """Return the friction (n,) of drives, by the law of their files."""
    return viscous * velocity + coulomb * velocity / np.hypot(velocity, transition)


def block(simulation: RobotSimulation, before: Array, joints: tuple[int, ...]) -> None:
    """Let some links of a robot seize in a step, from the state `before` (size,), and stand from then on.

    An impulse at these joints slows them down, and changes the other links by what couples their masses.
    """
    state, half, held = simulation.state.copy(), len(before) // 2, list(joints)
    was = before[half : half + 7][held]
    wanted = np.where(np.abs(was) > _CREEPS, was * np.exp(-1e-3 / _SEIZES), 0.0)
    mass, _ = simulation.plant.links.inertia(state[:7])
    inverse = np.linalg.inv(mass)
    impulse = np.linalg.solve(inverse[np.ix_(held, held)], wanted - state[half : half + 7][held])
    state[half : half + 7] += inverse[:, held] @ impulse
    state[held] = before[held] + 5e-4 * (was + wanted)
    looked_at = simulation._quickest_time  # how stiff it is has not changed, and takes long to find
    simulation.state, simulation._quickest_time = state, looked_at


_SEIZES, _CREEPS = 0.05, 0.01  # [s], [rad/s]
