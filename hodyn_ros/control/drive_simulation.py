"""A robot with drives of any kind, simulated step by step."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.control.drive_code import DriveCode
from hodyn_ros.control.plant import Plant
from hodyn_ros.control.runge_kutta import runge_kutta
from hodyn_ros.control.simulation import COMPILED_BODIES, ElasticJointSimulation
from hodyn_ros.control.stiff_simulation import StiffSimulation
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernels import driven_step
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array

# Step times angular frequency, and step times rate of decay: Runge-Kutta's fourth order is stable up to 2.8.
_TURN, _DECAY = 0.3, 1.5
_LONGEST_STEP = 2e-3  # [s], for links that no spring makes quick
# Where so many of its steps do not suffice for a millisecond, an integrator for stiff equations is quicker.
_MOST_PLAIN_STEPS, _MOST_COMPILED_STEPS = 8, 100
_RTOL, _ATOL = 1e-6, 1e-9
# The rates change when the robot moves; steps are short enough for what they become within this time [s].
_AGE = 0.1
_DIFFERENCE = 1e-6  # [rad, rad/s] for derivatives


class RobotSimulation(Protocol):
    """Links and motors of a robot, moved on in time by the efforts of its motors."""

    @property
    def position(self) -> Array:
        """Positions of the links (n,) [rad or m]."""

    @property
    def velocity(self) -> Array:
        """Velocities of the links (n,) [rad/s or m/s]."""

    @property
    def motor_position(self) -> Array:
        """Positions of the motors, reflected to the links (motors,) [rad or m]."""

    @property
    def motor_velocity(self) -> Array:
        """Velocities of the motors, reflected to the links (motors,) [rad/s or m/s]."""

    @property
    def link_effort(self) -> Array:
        """What a torque sensor between drive and link shows (n,) [N.m or N]."""

    def gravity_effort(self) -> Array:
        """Return the motor efforts (motors,) that hold the links against gravity where they are."""

    def stand(self) -> None:
        """Let the robot stand still where it is, its springs in balance with gravity, as brakes leave it."""

    def advance(self, duration: float, motor_effort: ArrayLike) -> None:
        """Let `duration` [s] pass under efforts (motors,), held meanwhile."""


class DriveSimulation:
    """A robot at rest at `position` (n,) [rad or m], with friction and springs of any kind.

    `damping` (n,) or one for all [N.m s/rad] acts beside springs that have none of their own. Steps are those
    of Runge-Kutta's fourth order, as short as springs and friction ask for, and compiled but for measured
    tables of springs; where the equations are stiff, SciPy's LSODA takes over.
    """

    def __init__(self, robot: Robot, position: ArrayLike, *, damping: ArrayLike = 0.0) -> None:
        self._plant = Plant(robot, damping)
        self._stand_at(finite_array("position", position, (robot.n_joints,)))
        self._steps_per_second, self._steps_time = self._needed_steps(), 0.0
        self._steps: Callable[[Array, float, int], Array] = self._plain_steps
        self._most_steps = _MOST_PLAIN_STEPS
        if robot.model.n_bodies <= COMPILED_BODIES and DriveCode.supports(self._plant.train):
            self._kernel = _compiled_step(self._plant)
            self._steps, self._most_steps = self._compiled_steps, _MOST_COMPILED_STEPS

    def stand(self) -> None:
        """Let the robot stand still where it is, its springs in balance with gravity, as brakes leave it."""
        self._stand_at(self.position)
        self._steps_time = 0.0

    def _stand_at(self, position: Array) -> None:
        at_rest = np.zeros((5, len(position)))
        at_rest[0] = position
        start = self._plant.consistent_state(at_rest)
        self._effort = self._holding(position)
        self._simulation = StiffSimulation(self._plant, start, method="LSODA", rtol=_RTOL, atol=_ATOL)

    @property
    def position(self) -> Array:
        """Positions of the links (n,) [rad or m]."""
        return self._simulation.measurement.position

    @property
    def velocity(self) -> Array:
        """Velocities of the links (n,) [rad/s or m/s]."""
        return self._simulation.measurement.velocity

    @property
    def motor_position(self) -> Array:
        """Positions of the motors, reflected to the links (motors,) [rad or m]."""
        return self._simulation.measurement.motor_position

    @property
    def motor_velocity(self) -> Array:
        """Velocities of the motors, reflected to the links (motors,) [rad/s or m/s]."""
        return self._simulation.measurement.motor_velocity

    @property
    def link_effort(self) -> Array:
        """What a torque sensor between drive and link shows (n,) [N.m or N]."""
        return self._plant.link_torque(self._simulation.state, self._effort)

    def gravity_effort(self) -> Array:
        """Return the motor efforts (motors,) that hold the links against gravity where they are."""
        return self._holding(self.position)

    def advance(self, duration: float, motor_effort: ArrayLike) -> None:
        """Let `duration` [s] pass under efforts (motors,), held meanwhile.

        Raises InputError for wrong arguments, and where a spring leaves its table or the robot flies apart.
        """
        self._effort = finite_array("motor_effort", motor_effort, (self._plant.train.n_motors,))
        simulation = self._simulation
        if simulation.time - self._steps_time >= _AGE:
            self._steps_per_second, self._steps_time = self._needed_steps(), simulation.time
        needed = duration * self._steps_per_second
        if not 0.0 < needed <= self._most_steps * max(1.0, 1e3 * duration):
            simulation.advance(duration, self._effort)
            return
        steps = ceil(needed)
        state = self._steps(simulation.state, duration / steps, steps)
        if not np.isfinite(state).all():
            raise InputError(f"the robot flies apart at {simulation.time:g} s; the efforts are too large")
        simulation.state = state
        simulation.time += duration

    def _compiled_steps(self, flat: Array, step: float, count: int) -> Array:
        n, half = self._plant.robot.n_joints, self._plant.size // 2
        state = np.concatenate([flat[:n], flat[2 * n : n + half], flat[n : 2 * n], flat[n + half :]])
        state = state.reshape(2, half)
        efforts, duration = self._effort[None], np.array([[step]])
        for _ in range(count):
            state = self._kernel(state, efforts, duration)
        return np.concatenate([state[:, :n].ravel(), state[:, n:].ravel()])

    def _plain_steps(self, state: Array, step: float, count: int) -> Array:
        return runge_kutta(lambda now: self._plant.rates(now, self._effort), state, step, count)

    def _needed_steps(self) -> float:
        """Return how many steps a second take: eigenvalues at a standstill, where friction is steepest."""
        plant, now = self._plant, self._simulation.measurement
        state = plant.pack(now.position, 0.0 * now.velocity, now.motor_position, 0.0 * now.motor_velocity)
        columns = [
            plant.rates(state + offset, self._effort) - plant.rates(state - offset, self._effort)
            for offset in _DIFFERENCE * np.eye(plant.size)
        ]
        values = np.linalg.eigvals(np.stack(columns, axis=1) / (2.0 * _DIFFERENCE))
        quickest = max(np.abs(values.imag).max() / _TURN, np.abs(values).max() / _DECAY)
        return float(max(quickest, 1.0 / _LONGEST_STEP))

    def _holding(self, position: Array) -> Array:
        at_rest = np.zeros((5, len(position)))
        at_rest[0] = position
        torques = self._plant.robot.inverse_dynamics(at_rest)
        efforts: Array = self._plant.train.feedforward(at_rest, torques).effort[0]
        return efforts


def _compiled_step(plant: Plant) -> Callable[[Array, Array, Array], Array]:
    code = DriveCode(plant.train, plant.damping)
    moving = plant.size // 2 - plant.robot.n_joints
    step = driven_step(plant.robot.model, code, plant.armature.tolist(), moving, plant.train.n_motors)
    return step.function


def simulation_of(robot: Robot, position: ArrayLike, *, damping: ArrayLike = 0.0) -> RobotSimulation:
    """Return the fastest simulation of a robot at rest at `position` (n,) [rad or m].

    Linear springs and rigid drives without friction, and robots without drives, are compiled.
    """
    if robot.drives is not None and robot.actuation is None:
        return DriveSimulation(robot, position, damping=damping)
    return ElasticJointSimulation(robot, position, damping=damping)
