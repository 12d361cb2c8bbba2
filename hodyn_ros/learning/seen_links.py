"""Where links are that have no encoder: seen from their motors through the model of springs and links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.smoothing import LowPass

_ROUNDS = 4  # each shrinks what is left by a tenth or more
_CONTRACTION = 0.3  # of one of them at the bandwidth
_LOAD = np.array([2.0, 0.4, 0.4, 0.4])  # mass [kg] and first moments [kg m] that would surprise nobody
_FRICTION = 0.1  # likewise, of the efforts that are seen
_TURNS_OVER = 0.05  # of the largest speed, at which friction has half its size


@dataclass(frozen=True, eq=False)
class SeenLinks:
    """Links as the motors show them, and what of their load was found besides."""

    links: Array  # (N, n) [rad or m]
    load: Array  # (4,) mass [kg] and first moments [kg m] on the last body beside what the file says
    bandwidth: float  # [Hz] up to which links are seen


def seen_links(
    robot: Robot, times: Array, motors: Array, efforts: Array, bandwidth: float, used: NDArray[np.bool_]
) -> SeenLinks:
    """Return the links from positions and efforts (N, n) of the motors at `times` (N,) [s].

    `q = theta - K^-1 tau(q, q', q'')` by fixed-point iteration on what is slower than a bandwidth, lowered
    where springs are too soft for it to converge. tau is that of the model and of a load on the last body,
    which, beside friction, makes of the motors' efforts what the model does not: `tau_m - B theta'' - tau`
    by least squares, with deviations of what is usual as a prior. How stiff springs are does not show here.
    Samples that are not `used` (N,) do not count.
    """
    train = robot.require_drives()
    soft = train.elastic
    compliance = np.where(soft, 1.0 / train.stiffness, 0.0)
    some = np.ascontiguousarray(motors[:: max(1, len(motors) // 20), None])
    mass = np.diagonal(robot.mass_matrix(some)[:, 0], axis1=1, axis2=2).max(axis=0)
    fastest = np.sqrt(_CONTRACTION / max(float((mass * compliance).max()), 1e-12)) / (2.0 * np.pi)
    band = min(bandwidth, float(fastest))
    low = LowPass(times, band, used)

    def motion(values: Array) -> Array:
        spline = low.spline(values)
        return np.ascontiguousarray(np.stack([spline(times, nu=k) for k in range(3)], axis=1))

    of_motors, load = motion(motors), np.zeros(4)
    links, extra = of_motors, np.zeros_like(motors)
    acting = low(efforts) - train.motor_inertia * of_motors[:, 2]
    for _ in range(_ROUNDS):
        torques = robot.inverse_dynamics(links)[:, 0]
        columns = robot.regressor(links)[:, 0, :, -10:-6]
        load = _load(acting - torques, columns, of_motors[:, 1], low, used)
        extra = columns @ load
        links = motion(of_motors[:, 0] - compliance * (torques + extra))
    return SeenLinks(links[:, 0], load, band)


def _load(rest: Array, columns: Array, speeds: Array, low: LowPass, used: NDArray[np.bool_]) -> Array:
    """Return the load (4,) that best explains, beside friction of each motor, what is left (N, n)."""
    n = rest.shape[1]
    blocks, rows = [], []
    scale = np.sqrt(np.mean(rest[used] ** 2, axis=0)) + 1e-12
    for j in range(n):
        fast = np.abs(speeds[:, j]).max()
        rub = low(
            np.stack([np.tanh(speeds[:, j] / (_TURNS_OVER * fast + 1e-12)), speeds[:, j] / (fast + 1e-12)], 1)
        )
        block = np.zeros((int(used.sum()), 4 + 2 * n))
        block[:, :4] = columns[used, j]
        block[:, 4 + 2 * j : 6 + 2 * j] = rub[used]
        blocks.append(block / scale[j])
        rows.append(rest[used, j] / scale[j])
    prior = np.concatenate([1.0 / _LOAD, np.repeat(1.0 / scale, 2)])
    strength = np.sqrt(0.01 * float(used.sum()))
    A = np.vstack([*blocks, strength * np.diag(prior)])
    solution = np.linalg.lstsq(A, np.concatenate([*rows, np.zeros(len(prior))]), rcond=None)[0]
    return np.asarray(solution[:4])
