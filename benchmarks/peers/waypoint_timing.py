"""How MoveIt times a path by default: as fast as accelerations allow, then smooth by ruckig."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.stopwatch import Array
from hodyn_ros.trajectory import WaypointSpline

_GRID = 1000  # intervals of toppra
_STEP = 0.1  # [s] between waypoints, MoveIt's `resample_dt`
_STRETCH = 1.02  # of the duration at a time; MoveIt takes 1.1
_MOST = 200  # times
_REACHED = 1e-6  # of a step


class UnreachedError(Exception):
    """No duration is found at which all waypoints are reached in time."""


def toppra_path(path: WaypointSpline) -> Any:
    """Return a spline of ours as toppra takes it."""
    toppra = import_module("toppra")
    toppra.setup_logging("WARNING")

    class Path(toppra.interpolator.AbstractGeometricPath):  # type: ignore[name-defined]
        dof = path.n_joints
        path_interval = np.array([0.0, path.duration])
        waypoints = path.times, path.positions

        def __call__(self, place: Array, order: int = 0) -> Array:
            inside = np.clip(np.atleast_1d(place), 0.0, path.duration)
            values = path.sample(inside, order)[:, order]
            return values if np.ndim(place) else values[0]

    return Path()


def toppra_search(path: WaypointSpline, limits: list[Any]) -> Any:
    """Return toppra's search along a spline."""
    algorithm = import_module("toppra.algorithm")
    grid = np.linspace(0.0, path.duration, _GRID + 1)
    return algorithm.TOPPRA(limits, toppra_path(path), gridpoints=grid, solver_wrapper="seidel")


def time_optimal_waypoints(path: WaypointSpline, velocity: Array, acceleration: Array) -> tuple[float, Array]:
    """Return the time between waypoints [s] and these (N, 3, n), as fast as both limits allow.

    It is the one of MoveIt's TOTG (Kunz & Stilman, RSS 2012), found by toppra.
    """
    constraint = import_module("toppra.constraint")
    velocities, accelerations = (np.stack([-one, one], axis=1) for one in (velocity, acceleration))
    inside = constraint.DiscretizationType.Interpolation
    limits = [
        constraint.JointVelocityConstraint(velocities),
        constraint.JointAccelerationConstraint(accelerations, discretization_scheme=inside),
    ]
    motion = toppra_search(path, limits).compute_trajectory(0.0, 0.0)
    count = max(1, round(motion.duration / _STEP))
    times = np.linspace(0.0, motion.duration, count + 1)
    rows = np.stack([motion(times, order) for order in range(3)], axis=1)
    rows[[0, -1], 1:] = 0.0  # at rest
    return float(motion.duration) / count, rows


class Smoothed:
    """Waypoints joined by ruckig in steps of equal time, which last longer until each is reached in time.

    As MoveIt's AddRuckigTrajectorySmoothing checks it; between waypoints the motion is ruckig's own, which is
    smoother than the splines that a controller would put there. Raises UnreachedError.
    """

    def __init__(
        self, step: float, waypoints: Array, velocity: Array, acceleration: Array, jerk: Array
    ) -> None:
        ruckig = import_module("ruckig")
        n = waypoints.shape[2]
        search, asked = ruckig.Ruckig(n), ruckig.InputParameter(n)
        asked.max_velocity, asked.max_acceleration = (
            (1.001 * velocity).tolist(),
            (1.001 * acceleration).tolist(),
        )
        asked.max_jerk = jerk.tolist()
        slower = 1.0
        for _ in range(_MOST):
            self.step = slower * step
            scaled = waypoints / slower ** np.arange(3.0)[:, None]
            # toppra keeps accelerations at its grid alone
            scaled[:, 1:] = scaled[:, 1:].clip(
                -np.stack([velocity, acceleration]), np.stack([velocity, acceleration])
            )
            self._parts: list[Any] = []
            for before, after in zip(scaled[:-1], scaled[1:]):
                part = ruckig.Trajectory(n)
                (asked.current_position, asked.current_velocity, asked.current_acceleration) = before.tolist()
                (asked.target_position, asked.target_velocity, asked.target_acceleration) = after.tolist()
                asked.minimum_duration = self.step
                if search.calculate(asked, part) < 0 or part.duration > self.step * (1.0 + _REACHED):
                    break
                self._parts.append(part)
            else:
                self.duration = self.step * len(self._parts)
                return
            slower *= _STRETCH
        raise UnreachedError

    def sample(self, times: Array) -> Array:
        """Return positions to accelerations (N, 3, n)."""
        parts = np.clip((times / self.step).astype(np.intp), 0, len(self._parts) - 1)
        since = np.minimum(times - parts * self.step, self.step)
        return np.array([self._parts[part].at_time(time)[:3] for part, time in zip(parts, since)])
