"""Least squares for everything at once: efforts and deflections tell of the same inertias.

    effort_j(t)     = (A p)_j (t - D)
    motor_j - link_j = (Y pi)_j / K_j + d_j q_j' + o_j

The second line is bilinear in inertias and compliances: encoders on both sides of a gear weigh the arm. Rows
of each joint have their own noise, estimated from the residuals; outliers count less (Huber's weights), and
where residuals are alike from sample to sample, as those of a model that is not quite right are, the rows
count as the fewer independent ones that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.smoothing import Smooth, smooth
from hodyn_ros.identification.torque_model import Motion, TorqueModel
from hodyn_ros.lie.jets import Array

MOST_ROWS = 20_000  # samples of a channel that are used; of longer recordings every second, third, ...
_OUTER, _INNER = 6, 6
_HUBER = 3.0  # standard deviations from which on a residual counts less


@dataclass(eq=False)
class Unknowns:
    """What is sought: parameters p (P,), then of each joint with two encoders, and the delay of efforts."""

    parameters: Array
    compliances: Array  # (e,) [rad/(N·m)]
    delays: Array  # (e,) of the link's stamps behind the motor's [s]
    offsets: Array  # (e,) motor minus link without load [rad]
    effort_delay: float  # [s]

    @property
    def vector(self) -> Array:
        """All in one row (P + 3 e + 1,)."""
        return np.concatenate(
            [self.parameters, self.compliances, self.delays, self.offsets, [self.effort_delay]]
        )

    def moved(self, step: Array) -> Unknowns:
        """Return the unknowns a step further."""
        p, e = len(self.parameters), len(self.delays)
        x = self.vector + step
        return Unknowns(x[:p], x[p : p + e], x[p + e : p + 2 * e], x[p + 2 * e : p + 3 * e], float(x[-1]))


@dataclass(eq=False)
class Rows:
    """What one joint was measured to do, against what the unknowns say of it."""

    times: Array
    measured: Array
    predicted: Array
    sigma: float = 0.0  # standard deviation of the residual
    repeated: float = 1.0  # how many samples are worth one that is independent
    weights: Array = field(default_factory=lambda: np.ones(0))

    def weigh(self) -> None:
        """Estimate noise and weights from the residuals."""
        residual = self.measured - self.predicted
        spread = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
        rms = float(np.sqrt(np.mean(residual**2)))
        robust = max(spread, 1e-3 * rms, 1e-12)
        self.weights = np.minimum(1.0, _HUBER * robust / np.maximum(np.abs(residual), 1e-300))
        self.sigma = max(float(np.sqrt(np.mean(self.weights * residual**2))), 1e-12)
        self.repeated = correlation_length(residual * np.sqrt(self.weights))

    @property
    def scale(self) -> Array:
        """What rows are multiplied by (N,) so that their noise has the variance one."""
        return np.asarray(np.sqrt(self.weights) / (self.sigma * np.sqrt(self.repeated)))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unknowns with their covariance, and how they fit."""

    unknowns: Unknowns
    covariance: Array  # of all unknowns, those of the prior included
    information: Array  # (P, P) of the parameters, from the rows alone
    efforts: dict[int, Rows]  # by joint
    deflections: dict[int, Rows]
    elastic: list[int]  # (e,) joints with two encoders
    bandwidths: tuple[float, ...]


class Data:
    """A recording as smooth motion and rows at the stamps of its efforts and link encoders."""

    def __init__(self, recording: JointRecording, bandwidth: float | None = None) -> None:
        self.recording = recording
        self.motors = None if recording.motors is None else smooth(recording.motors, bandwidth)
        self.links = None if recording.links is None else smooth(recording.links, bandwidth)
        self.elastic: list[int] = np.flatnonzero(recording.both_sides).tolist()
        bands = [s.bandwidth for s in (self.motors, self.links) if s is not None]
        self.bandwidths = tuple(bands)
        begin, end = recording.interval
        margin = min(2.0 / min(bands), 0.1 * (end - begin))  # derivatives are poor at the ends
        self.interval = begin + margin, end - margin
        self.effort_times, self.efforts = self._rows(recording.efforts)
        self.link_times = np.empty(0)
        self.deflections = np.empty((0, len(recording.joint_names)))
        if len(self.elastic) and recording.links is not None and self.motors is not None:
            self.link_times, links = self._rows(recording.links)
            self.deflections = self.motors.sample(self.link_times, 0)[0] - links

    def _rows(self, channel: Channel) -> tuple[Array, Array]:
        inside = (channel.times >= self.interval[0]) & (channel.times <= self.interval[1])
        step = max(1, -(-int(inside.sum()) // MOST_ROWS))
        return channel.times[inside][::step], channel.values[inside][::step]

    def motion(self, times: Array, delays: Array) -> Motion:
        """Return the motion at `times` by the clock of the motors; `delays` (n,) of the links' stamps."""
        link = self._sampled(self.links, times, delays)
        motor = self._sampled(self.motors, times, None)
        q = np.where(np.isnan(link), motor, link)
        theta = np.where(np.isnan(motor), link, motor)
        return Motion(q[0], q[1], q[2], theta[1], theta[2])

    def _sampled(self, signal: Smooth | None, times: Array, delays: Array | None) -> Array:
        if signal is None:
            return np.full((3, len(times), len(self.recording.joint_names)), np.nan)
        return signal.sample(times, 2, delays)


def estimate(
    model: TorqueModel,
    data: Data,
    free: NDArray[np.bool_],
    spread: Array,
    progress: Callable[[float], None] | None = None,
) -> Estimate:
    """Return what fits best; `free` (P,) says which parameters may leave the prior, `spread` (P,) how far."""
    measured = np.flatnonzero(data.recording.efforts.measured).tolist()
    e = len(data.elastic)
    stiffness = np.array([model.specs[j].stiffness for j in data.elastic])
    start = Unknowns(model.prior, 1.0 / stiffness, np.zeros(e), np.zeros(e), 0.0)
    now = start
    groups: dict[int, Rows] = {}
    bends: dict[int, Rows] = {}
    normal = np.zeros((0, 0))
    for turn in range(_OUTER):
        groups, bends, systems = _linearised(model, data, now, measured, groups, bends)
        now, normal = _solved(systems, now, start, free, spread)
        if progress is not None:
            progress((turn + 1) / _OUTER)
    groups, bends, systems = _linearised(model, data, now, measured, groups, bends)
    moving = np.r_[free, np.ones(3 * e + 1, dtype=bool)]
    prior = _prior_information(spread, free, len(moving))
    covariance = np.zeros((len(moving), len(moving)))
    covariance[np.ix_(moving, moving)] = _inverse((normal + prior)[np.ix_(moving, moving)])
    p = len(free)
    return Estimate(now, covariance, normal[:p, :p], groups, bends, data.elastic, data.bandwidths)


def _linearised(
    model: TorqueModel,
    data: Data,
    now: Unknowns,
    measured: list[int],
    groups: dict[int, Rows],
    bends: dict[int, Rows],
) -> tuple[dict[int, Rows], dict[int, Rows], list[tuple[int, int, Array]]]:
    """Return residuals of each joint, and their rows, compressed to triangles by QR."""
    late = np.zeros(model.n)
    late[data.elastic] = now.delays
    systems: list[tuple[int, int, Array]] = []
    motion = data.motion(data.effort_times - now.effort_delay, late)
    columns = model.columns(motion, data.recording.at_motor)
    predicted = columns @ now.parameters
    rates = np.gradient(predicted, data.effort_times, axis=0)
    found: dict[int, Rows] = {}
    for j in measured:
        rows = Rows(data.effort_times, data.efforts[:, j], predicted[:, j])
        _weigh_as_before(rows, groups.get(j), 0.1 * float(np.std(data.efforts[:, j])))
        found[j] = rows
        target = rows.measured - rates[:, j] * now.effort_delay
        systems.append((int(j), 0, _triangle([columns[:, j], -rates[:, [j]], target[:, None]], rows.scale)))
    bent: dict[int, Rows] = {}
    if len(data.elastic):
        motion = data.motion(data.link_times, late)
        loads = model.regressor(motion)
        halfway = data.motion(data.link_times, 0.5 * late).qd  # of the links at t - d / 2
        for i, j in enumerate(data.elastic):
            torque = loads[:, j] @ now.parameters[: model.bodies]
            told = now.compliances[i] * torque + now.delays[i] * halfway[:, j] + now.offsets[i]
            rows = Rows(data.link_times, data.deflections[:, j], told)
            _weigh_as_before(rows, bends.get(j), float(np.std(data.deflections[:, j])))
            bent[j] = rows
            parts = [loads[:, j], halfway[:, [j]], np.ones((len(torque), 1)), rows.measured[:, None]]
            systems.append((int(j), 1 + i, _triangle(parts, rows.scale)))
    return found, bent, systems


def _weigh_as_before(rows: Rows, before: Rows | None, first: float) -> None:
    if before is None:
        rows.sigma, rows.weights = first, np.ones(len(rows.times))
    else:
        rows.weigh()


def _triangle(parts: list[Array], scale: Array) -> Array:
    """Return a triangle that tells of the unknowns what weighted rows (N, k) tell; most of them are zero."""
    rows = np.concatenate(parts, axis=1) * scale[:, None]
    used = np.flatnonzero(rows.any(axis=0) | (np.arange(rows.shape[1]) == rows.shape[1] - 1))
    small = np.linalg.qr(rows[:, used], mode="r")
    result = np.zeros((len(small), rows.shape[1]))
    result[:, used] = small
    return result


def _solved(
    systems: list[tuple[int, int, Array]],
    now: Unknowns,
    start: Unknowns,
    free: NDArray[np.bool_],
    spread: Array,
) -> tuple[Unknowns, Array]:
    """Solve the bilinear problem by Gauss-Newton; return the information of its rows as well."""
    p, e = len(now.parameters), len(now.delays)
    size = p + 3 * e + 1
    moving = np.r_[free, np.ones(3 * e + 1, dtype=bool)]
    scale = np.r_[np.where(free, spread, 1.0), np.ones(3 * e + 1)]
    normal = np.zeros((size, size))
    for _ in range(_INNER):
        blocks, residuals = [], []
        for _, kind, triangle in systems:
            jacobian = np.zeros((len(triangle), size))
            if kind == 0:
                jacobian[:, :p], jacobian[:, -1] = triangle[:, :p], triangle[:, p]
                told = triangle[:, :p] @ now.parameters + triangle[:, p] * now.effort_delay
            else:
                i, bodies = kind - 1, triangle.shape[1] - 3
                load = triangle[:, :bodies] @ now.parameters[:bodies]
                jacobian[:, :bodies] = now.compliances[i] * triangle[:, :bodies]
                jacobian[:, p + i], jacobian[:, p + e + i] = load, triangle[:, bodies]
                jacobian[:, p + 2 * e + i] = triangle[:, bodies + 1]
                told = now.compliances[i] * load + triangle[:, bodies] * now.delays[i]
                told = told + triangle[:, bodies + 1] * now.offsets[i]
            blocks.append(jacobian)
            residuals.append(triangle[:, -1] - told)
        rows = np.concatenate(blocks)
        normal = rows.T @ rows
        held = np.diag(1.0 / scale)[:p][free]
        pulled = ((start.parameters - now.parameters) / scale[:p])[free]
        system = np.concatenate([rows, held])[:, moving]
        size_of = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
        step = np.zeros(size)
        right = np.concatenate([*residuals, pulled])
        step[moving] = np.linalg.lstsq(system / size_of, right, rcond=1e-13)[0] / size_of
        now = now.moved(step)
    return now, normal


def _prior_information(spread: Array, free: NDArray[np.bool_], size: int) -> Array:
    result = np.zeros((size, size))
    places = np.flatnonzero(free)
    result[places, places] = spread[places] ** -2
    return result


def _inverse(information: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    return np.asarray(
        np.linalg.pinv(information * np.outer(scale, scale), hermitian=True) * np.outer(scale, scale)
    )


def correlation_length(residual: Array) -> float:
    """Return by how many times the variance of a mean is larger than if samples were independent.

    One plus twice the sum of autocorrelations up to where they fall below 0.05 (Bartlett, 1946).
    """
    centred = residual - residual.mean()
    size = 1 << (2 * len(centred) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(power, size)[: len(centred)]
    if correlation[0] <= 0.0:
        return 1.0
    correlation = correlation / correlation[0]
    ends = np.flatnonzero(correlation < 0.05)
    until = int(ends[0]) if len(ends) else len(correlation)
    return float(1.0 + 2.0 * correlation[1:until].sum())
