"""Model predictive control of arms on springs: the snap of the links is sought, within what motors can."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import factorial
from typing import Protocol

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.control.predictive_horizon import CHAIN, Horizon, response, transition
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.extras import needed

# periods between the 20 nodes: as short as the springs are quick at first, then ever longer
STEPS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17)
_ITERATIONS = 150  # of the quadratic programme, a microsecond to six each
_SOLVED = 1
_PART = 35  # columns of a matrix that are multiplied at once


class DesiredMotion(Protocol):
    """What the links are to do: a `Trajectory`, or what is known of it so far."""

    n_joints: int

    def sample(self, t: float, order: int, /) -> Array:
        """Return positions and derivatives (order + 1, n) at a time [s]."""


@dataclass(frozen=True)
class PredictiveConfig:
    """What is chosen about the controller."""

    period: float = 1e-3  # [s] between two calls
    natural_frequency: float = 80.0  # [rad/s] of deviations, see `Horizon`
    velocity_lag: float = 0.0  # [s] age of measured velocities; half a period where they are differences
    steps: tuple[int, ...] = STEPS  # periods between nodes

    def __post_init__(self) -> None:
        for name in ("period", "natural_frequency"):
            value = getattr(self, name)
            if not 0.0 < value < np.inf:
                raise InputError(f"{name} must be positive and finite, found {value!r}")
        if not 0.0 <= self.velocity_lag < np.inf:
            raise InputError(f"velocity_lag must not be negative, found {self.velocity_lag!r}")
        if len(self.steps) < 2 or any(not isinstance(n, int) or n < 1 for n in self.steps):
            raise InputError(f"steps must be two or more positive whole numbers, found {self.steps!r}")


class PredictiveControl:
    """What the motors of an arm follow so that its links return to a motion, seen over 20 nodes ahead.

    Links q of joints with linear springs are flat outputs (De Luca & Book, Springer Handbook of Robotics
    (2016), section 11.1): their derivatives up to `q'''` are the state, and torques of the motors follow
    from them and the snap `q''''`,

        tau = Q - Q_ext + B (q'' + K^-1 Q''),   Q(q, q', q'') of inverse dynamics.

    So the stiff dynamics of springs is nowhere integrated: the deviation of each joint from the desired
    motion is a chain of four integrators, and all couplings are in the torques, linear in deviations with
    exact partial derivatives along the motion. In each period is solved, by the snaps of the deviations e,

        least  sum_k h_k (w^4 |e(t_k)|^2 + |(M + B)^-1 d tau(t_k)|^2) + what is left, see `Horizon`
        where  |tau(t_k)| <= limit   at each node

    with the states eliminated: a quadratic programme in 140 unknowns of an arm of seven joints, by DAQP
    (Arnstroem et al., IEEE TAC 67, 2022). The torque, and not the snap, is what costs: deviations are not
    decoupled by force, which wrong inertias would make unstable (feedback linearisation).

    The state is that of the measured links and springs. What is computed in one period acts in the next one;
    the measurement is led on to there. `external` (n,) [N.m] pushes the links from outside, as an observer
    says, and counts as constant. Needs the extra `mpc`. Raises InputError for robots with loops,
    floating bases, springs that are not linear, or friction.

    Attributes:
        failures: How often no solution came, so that the desired motion alone was passed on.
    """

    def __init__(self, robot: Robot, motion: DesiredMotion, config: PredictiveConfig | None = None) -> None:
        self.config = config = PredictiveConfig() if config is None else config
        train = robot.require_drives()
        if not robot.is_arm or not (train.linear and train.elastic.all()):
            raise InputError(
                f"robot {robot.name!r} is not for predictive control, which needs an arm on the ground "
                "without loops, all joints on linear springs, without friction"
            )
        n = robot.n_joints
        self._solve = needed("daqp").solve
        self.robot, self._n = robot, n
        self._inertia, self._stiffness = train.motor_inertia, train.stiffness
        self.limit = train.effort_limits(robot.limits.effort)
        self.horizon = Horizon(config.steps, config.period, config.natural_frequency)
        self.failures = 0
        self.follow(motion)
        self._kinds = np.zeros(self.horizon.count * n, dtype=np.int32)
        self._scale = np.ones((self.horizon.count, n))
        self._deviations = np.kron(self.horizon.cost, np.eye(n))
        hessian, _, _ = self._torques(self._table.rows(0))
        # unknowns that cost alike: snaps of a light wrist and of a heavy shoulder differ by 1e3
        self._scale = 1.0 / np.sqrt(np.diag(hessian)).reshape(self._scale.shape)
        self._deviations *= np.outer(self._scale, self._scale)

    def follow(self, motion: DesiredMotion) -> None:
        """Follow another motion from now on. Raises InputError for one of other joints."""
        if motion.n_joints != self._n:
            raise InputError(
                f"the motion is of {motion.n_joints} joints, robot {self.robot.name!r} has {self._n}"
            )
        self._table = _DesiredTable(self, motion)

    def answered(self, time: float) -> float:
        """Return the instant [s] that a measurement at `time` is answered for, 0.5 to 1.5 periods on."""
        return self._period_after(time) * self.config.period

    def compute(self, time: float, measured: Measurement, effort: Array, external: Array) -> Reference:
        """Return what motors follow one period after `time` [s]: positions (2, n), efforts (1, n).

        `measured` at `time`, `effort` (n,) [N.m] of the motors from then on until the answer acts.
        """
        motion = self.predict(time, measured, effort, external)
        if motion is None:
            motion = self._table.motion[self._table.rows(self._period_after(time))[0]]
        return self._reference(motion, external)

    def predict(self, time: float, measured: Measurement, effort: Array, external: Array) -> Array | None:
        """Return how the links are to move at `answered(time)`, q to q'''' (5, n); None without solution.

        Arguments as those of `compute`, which answers with what the motors follow for it.
        """
        period = self._period_after(time)
        rows = self._table.rows(period)
        motion: Array = self._table.motion[rows[0]].copy()
        ahead = period * self.config.period - time
        deviation = self._state(ahead, measured, effort, external) - motion[:CHAIN]
        snap = self._best_snap(rows, deviation, external)
        if snap is None:
            self.failures += 1
            return None
        motion[:CHAIN] += deviation
        motion[CHAIN] += snap
        return motion

    def _period_after(self, time: float) -> int:
        return round(time / self.config.period) + 1

    def desired(self, time: float) -> Reference:
        """Return what motors follow at `time` [s] where the links are on the desired motion, undisturbed."""
        row = self._table.rows(round(time / self.config.period))[0]
        return self._reference(self._table.motion[row], np.zeros(self._n))

    def _reference(self, motion: Array, external: Array) -> Reference:
        torques = self.robot.inverse_dynamics(motion)
        torques[0] -= external
        positions = motion[:2] + torques[:2] / self._stiffness
        efforts = self.motor_efforts(motion, torques)
        return Reference(positions, np.clip(efforts, -self.limit, self.limit)[None])

    def motor_efforts(self, motion: Array, torques: Array) -> Array:
        """Return the efforts (n,) for links that move (5, n) under torques (3, n)."""
        efforts: Array = torques[0] + self._inertia * (motion[2] + torques[2] / self._stiffness)
        return efforts

    def _state(self, ahead: float, measured: Measurement, effort: Array, external: Array) -> Array:
        """Return q to q''' (4, n) a time [s] after a measurement."""
        links = np.stack([measured.position, measured.velocity])
        springs = np.empty((3, self._n))
        springs[0] = self._stiffness * (measured.motor_position - measured.position)
        motors = (effort - springs[0]) / self._inertia
        springs[0] += external
        acceleration = self.robot.forward_dynamics(links, springs[:1])[0]
        lag = self.config.velocity_lag
        links[1] += lag * acceleration
        springs[1] = self._stiffness * (measured.motor_velocity + lag * motors - links[1])
        springs[2] = self._stiffness * (motors - acceleration)
        further = self.robot.forward_dynamics(links, springs)
        state: Array = transition(ahead) @ np.concatenate([links, further[:2]])
        state += response(ahead)[:, None] * further[2]
        return state

    def _best_snap(self, rows: Array, deviation: Array, external: Array) -> Array | None:
        """Return by how much the snap (n,) is to differ from that of the motion; None without solution."""
        table, horizon, n = self._table, self.horizon, self._n
        hessian, torques, weighed = self._torques(rows)
        drift = horizon.by_start[:-1].reshape(-1, CHAIN) @ deviation
        spent = np.matmul(table.by_state[rows], drift.reshape(horizon.count, CHAIN * n, 1))[..., 0]
        cost = self._accelerations(rows, spent[..., None])
        slope = np.einsum("i,ij->j", cost.ravel(), weighed)  # by no BLAS, so on one core
        slope += (self._scale * (horizon.slope @ deviation)).ravel()
        there = table.efforts[rows] - external + spent
        upper, lower = (self.limit - there).ravel(), (-self.limit - there).ravel()
        snaps, _, status, _ = self._solve(
            hessian, slope, torques, upper, lower, self._kinds, iter_limit=_ITERATIONS
        )
        return snaps[:n] * self._scale[0] if status == _SOLVED else None

    def _torques(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return second derivatives of the cost, torques by the unknowns, and these as they cost."""
        table, horizon, n = self._table, self.horizon, self._n
        count = horizon.count
        by_state = table.by_state[rows].reshape(count, n, CHAIN, n)
        by_snap = np.matmul(horizon.by_snap[:-1].transpose(0, 2, 1)[:, None], by_state)  # (node, joint, ...)
        each = np.arange(count)
        by_snap[each, :, each] += table.by_snap[rows]
        by_snap *= self._scale
        torques = by_snap.reshape(count, n, count * n)
        weighed = self._accelerations(rows, torques).reshape(count * n, -1)
        return self._deviations + _gram(weighed), torques.reshape(count * n, -1), weighed

    def _accelerations(self, rows: Array, torques: Array) -> Array:
        """Return torques (count, n, ...) at the nodes as accelerations of a rigid arm, by their weights."""
        roots = np.sqrt(self.horizon.lengths)[:, None, None]
        weighted: Array = roots * np.matmul(self._table.mobility[rows], torques)
        return weighted


def _gram(rows: Array) -> Array:
    """Return `A^T A` of a lower triangle of blocks, in parts so small that BLAS leaves them to one core."""
    product = np.empty_like(rows)
    starts = range(0, len(rows), _PART)
    for i in starts:
        right = rows[i:, i : i + _PART]
        for j in range(0, i + _PART, _PART):
            part = rows[i:, j : j + _PART].T @ right
            product[j : j + _PART, i : i + _PART] = part
            product[i : i + _PART, j : j + _PART] = part.T
    return product


class _DesiredTable:
    """The desired motion with its torques and their partial derivatives, at the periods of a horizon.

    Each instant is computed once, when it comes into sight; row `i % size` is that of period i.
    """

    def __init__(self, control: PredictiveControl, motion: DesiredMotion) -> None:
        self._control, self._source = control, motion
        n, size = control.robot.n_joints, int(control.horizon.places[-1]) + 1
        self._held = np.full(size, -1)
        self.motion = np.empty((size, CHAIN + 1, n))
        self.efforts = np.empty((size, n))
        self.by_state = np.empty((size, n, CHAIN * n))
        self.by_snap = np.empty((size, n, n))
        self.mobility = np.empty((size, n, n))  # (M + B)^-1

    def rows(self, period: int) -> Array:
        """Return the rows (count,) of the nodes from a period on."""
        periods = period + self._control.horizon.places
        rows: Array = periods % len(self._held)
        for i in np.flatnonzero(self._held[rows] != periods):
            self._fill(int(periods[i]), int(rows[i]))
        return rows

    def _fill(self, period: int, row: int) -> None:
        control, robot = self._control, self._control.robot
        inertia, n = control._inertia, robot.n_joints
        desired = self._source.sample(period * control.config.period, CHAIN)
        by = robot.inverse_dynamics_derivatives(desired)  # [r, k]: Q^(r) by q^(k)
        partials = by[0] + (inertia / control._stiffness)[:, None] * by[2]
        partials[2] += np.diag(inertia)
        self.motion[row] = desired
        self.efforts[row] = control.motor_efforts(desired, robot.inverse_dynamics(desired))
        self.by_state[row] = partials[:CHAIN].transpose(1, 0, 2).reshape(n, -1)
        self.by_snap[row] = partials[CHAIN]
        self.mobility[row] = np.linalg.inv(by[0, 2] + np.diag(inertia))
        self._held[row] = period


_KEPT = 1.0  # [s] of samples
_REACH = 0.02  # [s] that a sample is carried on by its derivatives, either way


class MotionPreview:
    """The samples of the last second, carried on by their derivatives to the instants between them.

    Whoever follows it some time later than the samples are meant knows all that comes within that time.
    """

    def __init__(self, n_joints: int) -> None:
        self.n_joints = n_joints
        self._times: list[float] = []
        self._samples: list[Array] = []

    def add(self, time: float, sample: Array) -> None:
        """Take a sample (orders, n) at a time [s] after all before."""
        self._times.append(time)
        self._samples.append(sample)
        if time - self._times[0] > 2.0 * _KEPT:  # seldom, as it moves all others
            first = bisect_left(self._times, time - _KEPT)
            del self._times[:first], self._samples[:first]

    def sample(self, t: float, order: int) -> Array:
        """Return positions and derivatives (order + 1, n) at a time [s]; InputError where none is near."""
        place = bisect_left(self._times, t)
        near = range(max(place - 1, 0), min(place + 1, len(self._times)))
        nearest = min(near, key=lambda k: abs(self._times[k] - t), default=None)
        if nearest is None or abs(t - self._times[nearest]) > _REACH:
            raise InputError(f"no sample of the desired motion lies within {_REACH:g} s of {t:.6g} s")
        h, rows = t - self._times[nearest], self._samples[nearest]
        powers = np.array([h**k / factorial(k) for k in range(len(rows))])
        return np.array([powers[: len(rows) - k] @ rows[k:] for k in range(order + 1)])
