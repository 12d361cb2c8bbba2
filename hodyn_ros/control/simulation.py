"""A robot with elastic joints, simulated: links and motors together, driven by the motors' efforts."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.control.runge_kutta import runge_kutta
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine import kernels
from hodyn_ros.errors import InputError
from hodyn_ros.model.drives import Drives
from hodyn_ros.se3 import Array

# Takes a state (4, n), the motor effort (n,) held meanwhile, a step [s] and the number of steps; returns the
# state after them.
Kernel = Callable[[Array, Array, float, int], Array]

# Step times angular frequency. Runge-Kutta's fourth order is stable up to 2.8; at 0.3 it turns an oscillation
# by 7e-5 too little in each radian, and takes 5e-6 of its amplitude in each step.
STEP_LIMIT = 0.3

# The frequencies change when the arm moves; looked at as often as this [s], they follow any real motion.
_FREQUENCY_AGE = 0.02

# Bodies up to which a step is compiled to straight-line code; beyond, that takes more than some seconds.
COMPILED_BODIES = 20


class ElasticJointSimulation:
    """The state of a robot with elastic and rigid joints, advanced in time under motor efforts.

        M(q) q'' + h(q, q') = u,    B theta'' = tau - u,    u = K (theta - q) + D (theta' - q')

    Spong's model of elastic joints (J. Dyn. Sys. Meas. Control 109(4), 1987) with `damping` D beside the
    springs, (n,) or one for all [N.m s/rad], none by default. The motor of a rigid joint moves with its link
    and adds its inertia there. Runge-Kutta steps of fourth order, none longer than `step_limit` divided by
    the highest angular frequency of the springs.

    `robot` with a fixed base; without drives, all joints are rigid and all motors without inertia.
    `position` (n,) [rad or m] and `velocity` (n,) [rad/s or m/s], zero by default, of the links. The motors
    start where the springs hold gravity, `theta = q + K^-1 g(q)`, as fast as the links: at zero velocity this
    is the static equilibrium under `gravity_effort()`. Without `compiled` the steps are those of
    `numpy_kernel`.
    """

    def __init__(
        self,
        robot: Robot,
        position: ArrayLike,
        *,
        velocity: ArrayLike | None = None,
        damping: ArrayLike = 0.0,
        compiled: bool = True,
        step_limit: float = STEP_LIMIT,
    ) -> None:
        if robot.model.floating_base:
            raise InputError(
                f"robot {robot.name!r} has a floating base; only robots on the ground are simulated"
            )
        if not 0.0 < step_limit <= 2.0:
            raise InputError(f"step_limit must lie between 0 and 2, found {step_limit}")
        if robot.drives is not None and robot.actuation is None:
            raise InputError(
                f"robot {robot.name!r} has friction, or springs that are damped or not linear; "
                "simulate it with hodyn_ros.control.plant"
            )
        n = robot.n_joints
        self.robot = robot
        self.time = 0.0
        self._step_limit = float(step_limit)
        self._equations = _Equations(robot, self._checked("damping", np.broadcast_to(damping, (n,))))
        self._effort = np.zeros(n)
        q = self._checked("position", position)
        qd = np.zeros(n) if velocity is None else self._checked("velocity", velocity)
        self._state = self._balanced(q, qd)
        fits = robot.model.n_bodies <= COMPILED_BODIES
        self._kernel = _compiled_kernel(self._equations) if compiled and fits else self.numpy_kernel
        self._highest_frequency, self._frequency_time = self.highest_frequency(), 0.0

    def stand(self) -> None:
        """Let the robot stand still where it is, its springs in balance with gravity, as brakes leave it."""
        self._state = self._balanced(self._state[0], np.zeros(self.robot.n_joints))

    def _balanced(self, q: Array, qd: Array) -> Array:
        return np.stack([q, qd, q + self._equations.compliance * self._equations.gravity(q), qd])

    @property
    def position(self) -> Array:
        """Positions of the links (n,) [rad or m]."""
        return self._state[0].copy()

    @property
    def velocity(self) -> Array:
        """Velocities of the links (n,) [rad/s or m/s]."""
        return self._state[1].copy()

    @property
    def motor_position(self) -> Array:
        """Positions of the motors, reflected to the links (n,) [rad or m]."""
        return self._state[2].copy()

    @property
    def motor_velocity(self) -> Array:
        """Velocities of the motors, reflected to the links (n,) [rad/s or m/s]."""
        return self._state[3].copy()

    @property
    def motor_effort(self) -> Array:
        """The motor effort (n,) that `advance` was last called with [N.m or N]."""
        return self._effort.copy()

    @property
    def link_effort(self) -> Array:
        """What a torque sensor between drive and link shows (n,) [N.m or N].

        The spring of an elastic joint; at a rigid joint the last motor effort, part of which moves the motor.
        """
        return self._equations.link_effort(self._state, self._effort)

    def gravity_effort(self) -> Array:
        """Return the efforts (n,) [N.m or N] that hold the links against gravity where they are."""
        return self._equations.gravity(self._state[0])

    def highest_frequency(self) -> float:
        """Return the highest angular frequency of the springs [rad/s] where the links are; 0 without any."""
        return self._equations.highest_frequency(self._state[0])

    def advance(self, duration: float, motor_effort: ArrayLike) -> None:
        """Let `duration` [s] pass under `motor_effort` (n,) [N.m or N], held meanwhile.

        Raises InputError for a negative duration, a wrong number of efforts, or numbers that are not finite.
        """
        effort = self._checked("motor_effort", motor_effort)
        if not 0.0 <= duration < np.inf:
            raise InputError(f"the duration must be finite and not negative, found {duration} s")
        self._effort = effort
        if duration == 0.0:
            return
        if self.time - self._frequency_time >= _FREQUENCY_AGE:
            self._highest_frequency, self._frequency_time = self.highest_frequency(), self.time
        count = max(1, ceil(duration * self._highest_frequency / self._step_limit))
        self._state = self._kernel(self._state, effort, duration / count, count)
        self.time += duration

    def numpy_kernel(self, state: Array, effort: Array, step: float, count: int) -> Array:
        """Return the state (4, n) after `count` Runge-Kutta steps of `step` [s], as plain as can be."""
        return runge_kutta(lambda now: self._equations.rates(now, effort), state, step, count)

    def _checked(self, name: str, values: ArrayLike) -> Array:
        array = np.array(values, dtype=np.float64)
        n = self.robot.n_joints
        if array.shape != (n,):
            raise InputError(f"{name} must have shape ({n},), one value per joint; found {array.shape}")
        if not np.isfinite(array).all():
            bad = int(np.flatnonzero(~np.isfinite(array))[0])
            joint = self.robot.joint_names[bad]
            raise InputError(f"{name} holds {array[bad]} for joint {joint!r}; give finite numbers")
        return array


class _Equations:
    """The equations of motion of a robot with its drives."""

    def __init__(self, robot: Robot, damping: Array) -> None:
        n = robot.n_joints
        if (damping < 0.0).any():
            bad = robot.joint_names[int(np.flatnonzero(damping < 0.0)[0])]
            raise InputError(f"the damping of joint {bad!r} is negative; give 0 or more")
        self.robot = robot
        self.drives = robot.drives or Drives(np.full(n, np.inf), np.zeros(n))
        self.elastic = np.isfinite(self.drives.stiffness)
        self.stiffness = np.where(self.elastic, self.drives.stiffness, 0.0)
        self.damping = np.where(self.elastic, damping, 0.0)
        self.compliance = 1.0 / self.drives.stiffness
        # A motor with a spring has a coordinate of its own, any other is part of its link.
        self.inverse_inertia = np.zeros(n)
        self.inverse_inertia[self.elastic] = 1.0 / self.drives.motor_inertia[self.elastic]
        self.armature = np.where(self.elastic, 0.0, self.drives.motor_inertia)

    def gravity(self, q: Array) -> Array:
        """Return g(q) (n,)."""
        return self._torques(np.stack([q, np.zeros_like(q), np.zeros_like(q)])[None])[0]

    def rates(self, state: Array, effort: Array) -> Array:
        """Return the time derivative of the state (4, n)."""
        q, qd, _, thetad = state
        link_effort = self.link_effort(state, effort)
        mass, bias = self._links(q, qd)
        qdd = np.linalg.solve(mass, link_effort - bias)
        thetadd = np.where(self.elastic, (effort - link_effort) * self.inverse_inertia, qdd)
        return np.stack([qd, qdd, thetad, thetadd])

    def link_effort(self, state: Array, effort: Array) -> Array:
        """Return what the drives put on the links (n,): springs with dampers, or rigid joints' motors."""
        q, qd, theta, thetad = state
        spring = self.stiffness * (theta - q) + self.damping * (thetad - qd)
        return np.where(self.elastic, spring, effort)

    def highest_frequency(self, q: Array) -> float:
        """Return the highest angular frequency of `d'' = -(B^-1 + M^-1) K d`, d = theta - q, [rad/s]."""
        if not self.elastic.any():
            return 0.0
        mass, _ = self._links(q, np.zeros_like(q))
        mobility = np.linalg.inv(mass) + np.diag(self.inverse_inertia)
        root = np.sqrt(self.stiffness[self.elastic])
        symmetric = root[:, None] * mobility[np.ix_(self.elastic, self.elastic)] * root
        return float(np.sqrt(np.linalg.eigvalsh(symmetric)[-1]))

    def _links(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """Return the mass matrix (n, n), rigid joints' motors included, and the torque (n,) at q'' = 0."""
        n = len(q)
        motions = np.zeros((n + 2, 3, n))
        motions[:, 0] = q
        motions[:n, 2] = np.eye(n)
        motions[n + 1, 1] = qd
        torques = self._torques(motions)
        return torques[:n] - torques[n] + np.diag(self.armature), torques[n + 1]

    def _torques(self, motions: Array) -> Array:
        """Return the torques (N, n) of a batch of motions (N, 3, n)."""
        return np.asarray(self.robot.inverse_dynamics(motions))[:, 0]


def _compiled_kernel(equations: _Equations) -> Kernel:
    step = kernels.elastic_joint_step(equations.robot.model, equations.drives, equations.damping)
    runge_kutta_step = step.function

    def kernel(state: Array, effort: Array, step: float, count: int) -> Array:
        efforts, duration = effort[None], np.array([[step]])
        for _ in range(count):
            state = runge_kutta_step(state, efforts, duration)
        return state

    return kernel
