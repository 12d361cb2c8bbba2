"""A robot with drives of any kind, simulated step by step: links and motors together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import ceil
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.checks import finite_array, shaped_array
from hodyn_ros.control.links import BaseAt
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernels import driven_step
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.simulation.plant import Law, Plant

# Step times angular frequency. Runge-Kutta's fourth order is stable up to 2.8; at 0.3 it turns an oscillation
# by 7e-5 too little in each radian, and takes 5e-6 of its amplitude in each step.
STEP_LIMIT = 0.3

_DECAY = 1.5  # step times rate of decay at most, where damping is faster than the springs
_LONGEST_STEP = 2e-3  # [s], for links that no spring makes quick
# Where so many of its steps do not suffice for a millisecond, an integrator for stiff equations is quicker.
_MOST_PLAIN_STEPS, _MOST_COMPILED_STEPS = 8, 100
_RTOL, _ATOL = 1e-6, 1e-9
# The rates change when the robot moves; looked at as often as this [s], they follow any real motion.
_AGE = 0.1
# Bodies up to which a step is compiled to straight-line code; beyond, that takes more than some seconds.
_COMPILED_BODIES = 20


# Takes a state, efforts that are held, and a step [s]; returns the state after it.
Kernel = Callable[[Array, Array, Array], Array]
Method = Literal["Radau", "BDF", "LSODA", "DOP853", "RK45"]
Found = TypeVar("Found")


class RobotSimulation:
    """Links and motors of a robot, moved on in time by the efforts of its motors.

    Any robot that a `Plant` is: with linear springs and rigid drives Spong's model of elastic joints (J. Dyn.
    Sys. Meas. Control 109(4), 1987). `start` (k,) [rad or m] are the coordinates of `Links`, the joints of a
    tree, and `velocity` (k,) their rates, zero by default. The motors start where the springs hold gravity,
    as fast as their joints: at rest this is the static equilibrium under `gravity_effort()`. Or `start` is a
    motion up to its snap (5 or more, k), which the robot can follow from there on at once, its damped springs
    on their slow manifold, joints of variable stiffness with `stiffness` (orders - 2, n). `damping` (n,) or
    one for all [N.m s/rad] acts beside springs that have none of their own; `base` is the motion of a base
    that is prescribed, by time [s].

    `advance` takes steps of Runge-Kutta's fourth order, none longer than `step_limit` divided by the highest
    angular frequency of the springs; those of a tree are compiled, unless `compiled` is false. Where damping
    or friction make the equations stiff, SciPy's LSODA takes over. `follow` integrates as exactly
    as it is asked to, also under a law that is continuous.
    """

    _state: Array
    _measurement: Measurement
    _joints: Array | None  # of all joints, once they were asked for

    def __init__(
        self,
        robot: Robot,
        start: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike = 0.0,
        base: BaseAt | None = None,
        compiled: bool = True,
        step_limit: float = STEP_LIMIT,
    ) -> None:
        if not 0.0 < step_limit <= 2.0:
            raise InputError(f"step_limit must lie between 0 and 2, found {step_limit}")
        self.plant = Plant(robot, damping, base)
        self.robot = self.plant.robot
        self._step_limit = float(step_limit)
        plain = robot.is_arm and self.plant.rotors is None
        self._compiles = compiled and plain and robot.tree.n_bodies <= _COMPILED_BODIES
        self.time = 0.0  # [s]
        self._names = robot.coordinates
        if np.ndim(start) == 2:
            self.state = self.plant.consistent_state(start, stiffness)
            self._effort = np.zeros(self.plant.train.n_motors)
        else:
            self._start(self._checked("position", start), self._checked("velocity", velocity))

    def stand(self, position: ArrayLike | None = None) -> None:
        """Let the robot stand still, its springs in balance with gravity, as brakes leave it.

        Where it is, or at `position` (k,).
        """
        place = self.coordinates if position is None else self._checked("position", position)
        self._start(place, np.zeros(len(place)))

    def halt(self) -> None:
        """Let links and motors stand where they are, without velocity, springs bent as they are."""
        self._joints = self.joints * [[1.0], [0.0]]  # found again, loops that hardly close might not
        self._state = self._state.copy()
        self._state[len(self._state) // 2 :] = 0.0
        seen = self._measurement
        self._measurement = seen._replace(
            velocity=0.0 * seen.velocity, motor_velocity=0.0 * seen.motor_velocity
        )

    def _start(self, position: Array, velocity: Array) -> None:
        plant, time = self.plant, self.time
        at_rest = np.zeros((5, plant.links.size))
        at_rest[0] = position
        drives = plant.links.drives(at_rest, time)
        motors = plant.train.feedforward(drives.motion, drives.efforts)
        moving = np.stack([position, velocity, 0.0 * velocity])
        speeds = plant.links.drives(moving, time).motion[1][list(plant.train.motor_joints)]
        self.state = plant.pack(position, velocity, motors.position[0], speeds)
        self._effort = motors.effort[0]

    @property
    def state(self) -> Array:
        """The state (size,) of the plant at this time."""
        return self._state

    @state.setter
    def state(self, state: ArrayLike) -> None:
        self._state = finite_array("the state", state, (self.plant.size,))
        self._measurement = self.plant.unpack(self._state, self.time)
        self._joints = None
        self._quickest_time = -np.inf

    @property
    def measurement(self) -> Measurement:
        """The exact state, as sensors at driven joints and motors show it."""
        return self._measurement

    @property
    def coordinates(self) -> Array:
        """The coordinates (k,) of the links: the joints of a tree [rad or m]."""
        return self.plant.coordinates(self._state)[0].copy()

    @property
    def position(self) -> Array:
        """Positions of the driven joints (n,) [rad or m]."""
        return self.measurement.position.copy()

    @property
    def velocity(self) -> Array:
        """Velocities of the driven joints (n,) [rad/s or m/s]."""
        return self.measurement.velocity.copy()

    @property
    def motor_position(self) -> Array:
        """Positions of the motors, reflected to the links (motors,) [rad or m]."""
        return self.measurement.motor_position.copy()

    @property
    def motor_velocity(self) -> Array:
        """Velocities of the motors, reflected to the links (motors,) [rad/s or m/s]."""
        return self.measurement.motor_velocity.copy()

    @property
    def motor_effort(self) -> Array:
        """The efforts (motors,) that `advance` was last called with [N.m or N]."""
        return self._effort.copy()

    @property
    def link_effort(self) -> Array:
        """What torque sensors between drives and links show (n,) [N.m or N].

        The spring of an elastic joint; at a rigid joint the last motor effort, part of which moves the motor.
        """
        return self.plant.link_torque(self.measurement, self._effort)

    @property
    def joints(self) -> Array:
        """Positions and velocities (2, N) of all joints of the robot, driven or not [rad or m, /s]."""
        if self._joints is None:
            self._joints = self._joints_at(self._state, self.time)
        return self._joints.copy()

    def _joints_at(self, state: Array, time: float) -> Array:
        motion = np.stack(self.plant.coordinates(state))
        return self.robot.joint_motion(*self.plant.links.robot_arguments(motion, time))

    def gravity_effort(self) -> Array:
        """Return the motor efforts (motors,) [N.m or N] that hold the links where they are."""
        return self.plant.holding(self.coordinates, self.time)

    def highest_frequency(self) -> float:
        """Return the highest angular frequency of the springs [rad/s] where the links are; 0 without any."""
        return self.plant.quickest(self._state, self.time)[0]

    def advance(self, duration: float, motor_effort: ArrayLike) -> None:
        """Let `duration` [s] pass under `motor_effort` (motors,) [N.m or N], held meanwhile.

        Raises InputError for a negative duration, a wrong number of efforts, or numbers that are not finite;
        and where a spring leaves its table, the robot comes to a pose that is singular or out of reach, or
        flies apart. The state is that of before then.
        """
        effort = self._numbers("motor_effort", motor_effort, self.plant.train.motor_names)
        if not 0.0 <= duration < np.inf:
            raise InputError(f"the duration must be finite and not negative, found {duration} s")
        self._effort = effort
        if duration == 0.0:
            return
        if self.time - self._quickest_time >= _AGE:
            self._quickest, self._quickest_time = self.plant.quickest(self._state, self.time), self.time
        frequency, decay = self._quickest
        largest = 0.5 * (decay + np.hypot(decay, 2.0 * frequency))  # no eigenvalue lies further from zero
        accurate = duration * max(frequency / self._step_limit, 1.0 / _LONGEST_STEP)
        stable = duration * largest / _DECAY
        most = _MOST_COMPILED_STEPS if self._compiles else _MOST_PLAIN_STEPS
        if stable > max(accurate, most * max(1.0, 1e3 * duration)):
            states = self._integrated(effort, duration, np.array([duration]))
            self._arrive(states[0], duration)
        else:
            self._arrive(self._stepped(duration, effort, ceil(max(accurate, stable))), duration)

    def warm_up(self) -> None:
        """Compile what `advance` needs; everything stays as it is."""
        state, time, effort = self.state, self.time, self._effort
        self.advance(1e-3, effort)
        self.time, self._effort = time, effort
        self.state = state

    def follow(
        self,
        effort: Array | Law,
        duration: float,
        times: ArrayLike = (),
        *,
        method: Method = "LSODA",
        rtol: float = 1e-8,
        atol: float = 1e-10,
        max_step: float = 0.01,
    ) -> Array:
        """Let `duration` [s] pass under efforts (motors,) that are held, or a law without delay or sampling.

        `times` (N,) [s] from now, increasing; returns the states (N, size) there. `method`, `rtol` and `atol`
        as in `scipy.integrate.solve_ivp`: Radau, BDF and LSODA for springs that are stiff or heavily damped.
        `max_step` [s] keeps it from leaping off from rest, where all rates are zero. Raises InputError where
        it does not arrive, or the robot comes to a pose that is singular or out of reach.
        """
        if not 0.0 <= duration < np.inf:
            raise InputError(f"the duration must be finite and not negative, found {duration} s")
        if duration == 0.0:
            return np.empty((0, self.plant.size))
        wanted = np.append(np.asarray(times, dtype=np.float64), duration)
        states = self._integrated(effort, duration, wanted, method, rtol, atol, max_step)
        self._arrive(states[-1], duration)
        return states[:-1]

    def _arrive(self, state: Array, duration: float) -> None:
        time = self.time + duration
        measurement = self._ends_with_one_line(lambda: self.plant.unpack(state, time))
        loops = self.robot.closure is not None  # which may have opened
        joints = self._ends_with_one_line(lambda: self._joints_at(state, time)) if loops else None
        self._state, self.time, self._measurement, self._joints = state, time, measurement, joints

    def _integrated(
        self,
        effort: Array | Law,
        duration: float,
        times: Array,
        method: Method = "LSODA",
        rtol: float = _RTOL,
        atol: float = _ATOL,
        max_step: float = 0.01,
    ) -> Array:
        """Return the states (N, size) at `times` (N,) from now on."""
        from scipy.integrate import solve_ivp  # takes a moment

        plant, start = self.plant, self.time

        def rates(elapsed: float, state: Array) -> Array:
            time = start + elapsed
            try:
                return plant.rates(state, effort, time)
            except (ConvergenceError, SingularError) as error:
                raise InputError(f"the simulation ends at {time:g} s: {error}") from error

        options = {"method": method, "rtol": rtol, "atol": atol, "max_step": max_step}
        solution = solve_ivp(rates, (0.0, duration), self._state, t_eval=times, **options)
        if not solution.success or not np.isfinite(solution.y[:, -1]).all():
            raise InputError(f"the simulation ends at {start + solution.t[-1]:g} s: {solution.message}")
        return np.ascontiguousarray(solution.y.T)

    def _stepped(self, duration: float, effort: Array, count: int) -> Array:
        step = self._compiled_steps if self._compiles else self._plain_steps
        state = self._ends_with_one_line(lambda: step(effort, duration / count, count))
        if not np.isfinite(state).all():
            raise InputError(f"the robot flies apart at {self.time:g} s; the efforts are too large")
        return state

    def _ends_with_one_line(self, compute: Callable[[], Found]) -> Found:
        try:
            return compute()
        except (ConvergenceError, SingularError) as error:
            raise InputError(f"the simulation ends at {self.time:g} s: {error}") from error

    @cached_property
    def _kernel(self) -> Kernel:
        plant = self.plant
        moving = plant.size // 2 - plant.links.size
        armature = plant.armature.tolist()
        return driven_step(self.robot.tree, plant.traced, armature, moving, plant.train.n_motors).function

    def _compiled_steps(self, effort: Array, step: float, count: int) -> Array:
        state, efforts, duration = self._state.reshape(2, -1), effort[None], np.array([[step]])
        for _ in range(count):
            state = self._kernel(state, efforts, duration)
            if len(state) > 2:  # drives have conditions
                if state[2, 0] != 0.0:
                    return self._plain_steps(effort, step, count)  # which says why, in words
                state = state[:2]
        return state.ravel()

    def _plain_steps(self, effort: Array, step: float, count: int) -> Array:
        plant, start = self.plant, self.time
        return runge_kutta(lambda now, t: plant.rates(now, effort, start + t), self._state, step, count)

    def _checked(self, name: str, values: ArrayLike | None) -> Array:
        return np.zeros(len(self._names)) if values is None else self._numbers(name, values, self._names)

    @staticmethod
    def _numbers(name: str, values: ArrayLike, names: tuple[str, ...]) -> Array:
        array = shaped_array(name, values, (len(names),)).copy()
        if not np.isfinite(array).all():
            faulty = int(np.flatnonzero(~np.isfinite(array))[0])
            raise InputError(f"{name} holds {array[faulty]} for {names[faulty]!r}; give finite numbers")
        return array


def runge_kutta(rates: Callable[[Array, float], Array], state: Array, step: float, count: int) -> Array:
    """Return the state after `count` steps of `step` [s].

    `rates` gives its time derivative from the state and the time since the start [s].
    """
    for i in range(count):
        time = i * step
        first = rates(state, time)
        second = rates(state + 0.5 * step * first, time + 0.5 * step)
        third = rates(state + 0.5 * step * second, time + 0.5 * step)
        fourth = rates(state + step * third, time + step)
        state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return state
