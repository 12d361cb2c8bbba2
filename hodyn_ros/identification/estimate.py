"""Least squares for everything at once: efforts and deflections tell of the same inertias.

    effort_j(t)     = (A p)_j (t - D)
    motor_j - link_j = (Y pi)_j / K_j + ...     as `deflection` has it

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

from hodyn_ros.array import Array
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.smoothing import Smooth, smooth
from hodyn_ros.identification.springs.curve import Curve
from hodyn_ros.identification.springs.deflection import (
    COMPLIANCE,
    DELAY,
    FRICTION,
    KINDS,
    coefficients,
    jacobian,
    parts,
    without_outliers,
)
from hodyn_ros.identification.torque_model import Motion, TorqueModel

MOST_ROWS = 20_000  # samples of a channel that are used; of longer recordings every second, third, ...
_OUTER, _INNER = 6, 6
_SLOW = 2.0 / 3.0  # of the bandwidth, up to which the delay of efforts is sought
_RESONANT = 8.0  # [Hz] below which joints hardly resonate
_HUBER = 3.0  # standard deviations from which on a residual counts less


@dataclass(eq=False)
class Unknowns:
    """What is sought: parameters p (P,), springs (6, e) of joints with two encoders, delay of efforts."""

    parameters: Array
    springs: Array  # rows as in `deflection`
    effort_delay: float  # [s]

    @property
    def vector(self) -> Array:
        """All in one row (P + 6 e + 1,)."""
        return np.concatenate([self.parameters, self.springs.ravel(), [self.effort_delay]])

    def moved(self, step: Array) -> Unknowns:
        """Return the unknowns a step further."""
        p = len(self.parameters)
        x = self.vector + step
        return Unknowns(x[:p], x[p:-1].reshape(self.springs.shape), float(x[-1]))


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
        scatter = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
        rms = float(np.sqrt(np.mean(residual**2)))
        robust = max(scatter, 1e-3 * rms, 1e-12)
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
        self.motor_noise = self._motor_noise()
        self.ripples = np.zeros(len(recording.joint_names))  # in a turn of each link; 0 where there are none
        self.curves: dict[int, Curve] = {}  # by joint, of springs that are no lines
        self._calm = without_outliers(recording.efforts, min(bands)) if self.elastic else recording.efforts

    def _motor_noise(self) -> Array:
        """Return the variances (n,) that noise of the motors' encoders has beside that of each link's sample.

        The spline through their samples keeps what is slow of it: among deflections it is alike from sample
        to sample, and as much at low frequencies as if each sample had it all.
        """
        motors, links = self.recording.motors, self.recording.links
        if motors is None or links is None or self.motors is None:
            return np.zeros(len(self.recording.joint_names))
        residual = motors.values - self.motors.sample(motors.times, 0)[0]
        period = np.median(np.diff(motors.times)) / np.median(np.diff(links.times))
        return np.asarray(np.nan_to_num(residual.var(axis=0)) * period)

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

    def springs(self, model: TorqueModel, now: Unknowns) -> list[Array]:
        """Return columns (N, bodies + 6) of what bends the springs, of each joint with two encoders."""
        late = self.late(now)
        motion = self.motion(self.link_times, late)
        loads = model.regressor(motion)
        halfway = self.motion(self.link_times, 0.5 * late).qd  # of the links at t - T / 2
        times = self.link_times + now.effort_delay
        recorded = self.recorded_positions()
        return [
            parts(
                loads[:, j],
                motion.motor_acceleration[:, j],
                np.interp(times, self._calm.times, self._calm.values[:, j]),
                halfway[:, j],
                recorded[:, j],
                self.ripples[j],
            )
            for j in self.elastic
        ]

    def recorded_positions(self) -> Array:
        """Return where the links were when their encoders were read (N, n), whatever the stamps say."""
        return self.motion(self.link_times, np.zeros(len(self.recording.joint_names))).q

    def late(self, now: Unknowns) -> Array:
        """Return the delays of the links' stamps (n,)."""
        late = np.zeros(len(self.recording.joint_names))
        late[self.elastic] = now.springs[DELAY]
        return late

    def _sampled(self, signal: Smooth | None, times: Array, delays: Array | None) -> Array:
        if signal is None:
            return np.full((3, len(times), len(self.recording.joint_names)), np.nan)
        return signal.sample(times, 2, delays)


def estimate(
    model: TorqueModel,
    data: Data,
    free: NDArray[np.bool_],
    prior_deviations: Array,
    progress: Callable[[float], None] | None = None,
) -> Estimate:
    """Return what fits best.

    `free` (P,) says which parameters may leave the prior, `prior_deviations` (P,) how far.
    """
    measured = np.flatnonzero(data.recording.efforts.measured).tolist()
    springs = np.zeros((KINDS, len(data.elastic)))
    springs[COMPLIANCE] = [1.0 / model.specs[j].stiffness for j in data.elastic]
    free_springs = np.ones(springs.shape, dtype=bool)
    free_springs[FRICTION:] = False  # `spring_terms` seeks them
    moving = np.concatenate([free, free_springs.ravel(), [True]])
    now = start = Unknowns(model.prior, springs, 0.0)
    groups: dict[int, Rows] = {}
    bends: dict[int, Rows] = {}
    normal = np.zeros((0, 0))
    for turn in range(_OUTER):
        groups, bends, systems = _linearised(model, data, now, measured, groups, bends)
        now, normal = _solved(model, systems, now, start, free, prior_deviations, moving)
        if progress is not None:
            progress((turn + 1) / _OUTER)
    groups, bends, systems = _linearised(model, data, now, measured, groups, bends)
    prior = _prior_information(prior_deviations, free, len(moving))
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
    systems: list[tuple[int, int, Array]] = []
    motion = data.motion(data.effort_times - now.effort_delay, data.late(now))
    columns = model.columns(motion, data.recording.at_motor)
    predicted = columns @ now.parameters
    rates = _slow_rates(predicted, data)
    rows_by_joint: dict[int, Rows] = {}
    for j in measured:
        rows = Rows(data.effort_times, data.efforts[:, j], predicted[:, j])
        _weigh_as_before(rows, groups.get(j), 0.1 * float(np.std(data.efforts[:, j])))
        rows_by_joint[j] = rows
        target = rows.measured - rates[:, j] * now.effort_delay
        systems.append((int(j), 0, _triangle([columns[:, j], -rates[:, [j]], target[:, None]], rows.scale)))
    bent: dict[int, Rows] = {}
    if len(data.elastic):
        for i, (j, part) in enumerate(zip(data.elastic, data.springs(model, now))):
            modelled = part @ coefficients(model, now.parameters, now.springs[:, i], j)
            rows = Rows(data.link_times, data.deflections[:, j], modelled)
            _weigh_as_before(rows, bends.get(j), float(np.std(data.deflections[:, j])))
            rows.repeated += data.motor_noise[j] / rows.sigma**2
            bent[j] = rows
            systems.append((j, 1 + i, _triangle([part, rows.measured[:, None]], rows.scale)))
    return rows_by_joint, bent, systems


def _slow_rates(predicted: Array, data: Data) -> Array:
    """Return rates (N, n) of predicted efforts, from which their delay follows.

    Of what is well below a bandwidth with room for resonances: near it, motion is cut off, and what is left
    of a resonance there looks like a delay of its own.
    """
    slow = _SLOW * min(data.bandwidths)
    if slow < _RESONANT:
        return np.asarray(np.gradient(predicted, data.effort_times, axis=0))
    return smooth(Channel(data.effort_times, predicted), slow).sample(data.effort_times, 1)[1]


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
    model: TorqueModel,
    systems: list[tuple[int, int, Array]],
    now: Unknowns,
    start: Unknowns,
    free: NDArray[np.bool_],
    prior_deviations: Array,
    moving: NDArray[np.bool_],
) -> tuple[Unknowns, Array]:
    """Solve the bilinear problem by Gauss-Newton; return the information of its rows as well."""
    p, size = len(now.parameters), len(moving)
    scale = np.ones(size)
    scale[:p] = np.where(free, prior_deviations, 1.0)
    normal = np.zeros((size, size))
    for _ in range(_INNER):
        blocks, residuals = [], []
        for joint, kind, triangle in systems:
            jacobians = np.zeros((len(triangle), size))
            if kind == 0:
                jacobians[:, :p], jacobians[:, -1] = triangle[:, :p], triangle[:, p]
                modelled = triangle[:, :p] @ now.parameters + triangle[:, p] * now.effort_delay
            else:
                i, part = kind - 1, triangle[:, :-1]
                jacobians[:, :-1] = jacobian(model, part, now.parameters, now.springs, i)
                modelled = part @ coefficients(model, now.parameters, now.springs[:, i], joint)
            blocks.append(jacobians)
            residuals.append(triangle[:, -1] - modelled)
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


def _prior_information(prior_deviations: Array, free: NDArray[np.bool_], size: int) -> Array:
    result = np.zeros((size, size))
    places = np.flatnonzero(free)
    result[places, places] = prior_deviations[places] ** -2
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
