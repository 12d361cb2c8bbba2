"""Least squares for everything at once: efforts and deflections tell of the same inertias.

    effort_j(t)     = (A p)_j (t - D)
    motor_j - link_j = (Y pi)_j / K_j + ...     as `deflection` has it

The second line is bilinear in inertias and compliances: encoders on both sides of a gear weigh the arm. Both
sides of an equation pass the same filter. Those of each joint have their own noise by frequency, estimated
from the residuals, which stays what it is while the unknowns are sought: weights that follow them all the way
may give up what is slow, and the size of all inertias with it. Outliers count less (Huber's weights).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.reversals import unexplained
from hodyn_ros.identification.smoothing import SAMPLES_PER_KNOT, LowPass, Smooth, smooth
from hodyn_ros.identification.springs.curve import Curve
from hodyn_ros.identification.springs.deflection import (
    COMPLIANCE,
    DELAY,
    FRICTION,
    KINDS,
    LAG,
    coefficients,
    jacobian,
    parts,
    without_outliers,
)
from hodyn_ros.identification.torque_model import Motion, TorqueModel

MOST_ROWS = 20_000  # samples of a channel that are used; of longer recordings every second, third, ...
_POSES = 20  # at which inertias are looked at
_FIRST_GUESS = 0.1  # of the noise, beside what is measured
_LOOKS = 5  # at samples about reversals, at most
_TURNS, _INNER = 10, 6  # linearisations after each look, and steps of each of them, at most
_CONVERGED = 0.05  # standard deviations that a turn moves an unknown at most, at the end
_SHARP = 1.0  # of friction whose turnover is left out
_SHAPE = 1.0, 1.0  # spreads of the logarithm of a transition speed about the file's, and of the sharpness
_LARGEST_STEP = 0.5  # of these, as friction is far from linear in them
_LONGEST_LAG = 3e-3  # [s] spread of D / K of a spring
_NEIGHBOURS = 20  # frequencies on either side, that noise is averaged over, and a quarter of those below
_HUBER = 3.0  # standard deviations from which on a residual counts less


@dataclass(eq=False)
class Unknowns:
    """What is sought.

    Parameters p (P,), springs (7, e) of joints with two encoders, the delay of efforts, and how friction
    turns over (2, n).
    """

    parameters: Array
    springs: Array  # rows as in `deflection`
    effort_delay: float  # [s]
    friction_shape: Array  # as in `TorqueModel`

    @property
    def vector(self) -> Array:
        """All in one row (P + 2 n + 7 e + 1,), logarithms of the transition speeds."""
        speed, sharpness = self.friction_shape
        springs = self.springs.ravel()
        return np.concatenate([self.parameters, np.log(speed), sharpness, springs, [self.effort_delay]])

    @property
    def of_shape(self) -> slice:
        """Where in the vector the friction's shape is."""
        return slice(len(self.parameters), len(self.parameters) + self.friction_shape.size)

    @property
    def of_springs(self) -> slice:
        """Where in the vector the springs are."""
        return slice(self.of_shape.stop, self.of_shape.stop + self.springs.size)

    def of_spring(self, kind: int, i: int) -> int:
        """Where in the vector a figure of the i-th spring is."""
        return self.of_springs.start + kind * self.springs.shape[1] + i

    def turning_sharply(self, model: TorqueModel, joints: NDArray[np.bool_]) -> Unknowns:
        """Return them with friction of some joints (n,) that turns over sharply at the speeds of the file."""
        sharp = np.vstack([model.friction_shape[0], np.full(model.n, _SHARP)])
        return replace(self, friction_shape=np.where(joints, sharp, self.friction_shape))

    def moved(self, step: Array) -> Unknowns:
        """Return the unknowns a step further."""
        x = self.vector + step
        springs = x[self.of_springs].reshape(self.springs.shape)
        speed, sharpness = x[self.of_shape].reshape(self.friction_shape.shape)
        shape = np.array([np.exp(speed), sharpness])
        return Unknowns(x[: len(self.parameters)], springs, float(x[-1]), shape)


class Key(NamedTuple):
    """Whose samples they are: the run's, the joint's effort, or the deflection of its spring."""

    run: int
    joint: int
    spring: int | None = None


@dataclass(frozen=True, eq=False)
class Noise:
    """What is not explained of one joint, by frequency, and from where on a sample is an outlier."""

    deviations: Array  # (m,) of amplitudes, or (1,) where it is white
    largest: float = np.inf  # residual of a sample


@dataclass(frozen=True, eq=False)
class Rows:
    """What one joint was measured to do, against what the unknowns say of it; both pass the same filter."""

    measured: Array
    predicted: Array
    low_pass: LowPass
    noise: Noise

    def white_noise(self) -> Noise:
        """Return the noise of the residuals as if it were alike at all frequencies."""
        residual = self.low_pass.spectrum(self.measured - self.predicted)
        return Noise(np.array([max(float(np.sqrt(np.mean(residual**2))), 1e-12)]))

    def noise_by_frequency(self, leverage: Array) -> Noise:
        """Return the noise of the residuals, of which the fit has taken a share, `leverage` (m,)."""
        residual = self.measured - self.predicted
        scatter = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
        largest = _HUBER * max(scatter, 1e-3 * float(np.sqrt(np.mean(residual**2))), 1e-12)
        amplitudes = self.low_pass.spectrum(np.clip(residual, -largest, largest))
        places = np.arange(len(amplitudes))
        width = _NEIGHBOURS + places // 4
        first, last = np.maximum(places - width, 0), np.minimum(places + width + 1, len(places))
        power, left = np.cumsum(np.pad([amplitudes**2, 1.0 - leverage], ((0, 0), (1, 0))), axis=1)
        # what a model lacks is slow: above it nothing is known better
        power = np.maximum.accumulate(
            (power[last] - power[first]) / np.maximum(left[last] - left[first], 1.0)
        )
        return Noise(np.sqrt(np.maximum(power, 1e-24)), largest)

    @property
    def without_outliers(self) -> Array:
        """What was measured, outliers as far from the prediction as others are at most (Huber)."""
        return self.predicted + np.clip(
            self.measured - self.predicted, -self.noise.largest, self.noise.largest
        )

    @property
    def sigma(self) -> float:
        """Standard deviation of what is not explained."""
        return float(np.std(self.measured - self.predicted))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unknowns with their covariance, and how they fit."""

    unknowns: Unknowns
    covariance: Array  # of all unknowns, those of the prior included
    information: Array  # (P, P) of the parameters, from the rows alone
    deflections: dict[int, Rows]  # of the first run, by joint
    elastic: list[int]  # (e,) joints with two encoders
    bandwidths: tuple[float, ...]


class Data:
    """A recording as smooth motion, and samples at the stamps of its efforts and link encoders.

    Efforts and deflections are compared below `bandwidths`, but what the model says of them follows from the
    motion as fast as the encoders tell it, and passes the same filter: friction at a reversal is over in
    milliseconds, and a motion that was smoothed before lingers there (errors in variables).
    """

    def __init__(self, recording: JointRecording, bandwidth: float | None = None) -> None:
        self.recording = recording
        self.motors = None if recording.motors is None else smooth(recording.motors, bandwidth)
        self.links = None if recording.links is None else smooth(recording.links, bandwidth)
        self.elastic: list[int] = np.flatnonzero(recording.both_sides).tolist()
        bands = [s.bandwidth for s in (self.motors, self.links) if s is not None]
        self.bandwidths = tuple(bands)
        self._fast_motors, self._fast_links = (
            None if channel is None else _as_fast_as_it_tells(channel, signal)
            for channel, signal in ((recording.motors, self.motors), (recording.links, self.links))
        )
        self.of_deflections = min(bands) if self._fast_motors is None else self._fast_motors.bandwidth
        self.fastest = min(s.bandwidth for s in (self._fast_motors, self._fast_links) if s is not None)
        begin, end = recording.interval
        margin = min(2.0 / min(bands), 0.1 * (end - begin))  # derivatives are poor at the ends
        self.interval = begin + margin, end - margin
        self.effort_times, self.efforts = self._rows(recording.efforts)
        self.link_times = np.empty(0)
        self.deflections = np.empty((0, len(recording.joint_names)))
        if len(self.elastic) and recording.links is not None and self._fast_motors is not None:
            self.link_times, links = self._rows(recording.links)
            self.deflections = self._fast_motors.sample(self.link_times, 0)[0] - links
        self.slow_effort = self._low_pass(self.effort_times)
        self.slow_efforts: dict[int, LowPass] = {}  # by joint, see `compare`
        self.slow_deflections: dict[int, LowPass] = {}
        self.reversals_left_out = np.zeros(len(recording.joint_names))  # share of the samples of each effort
        self.ripples = np.zeros(len(recording.joint_names))  # in a turn of each link; 0 where there are none
        self.curves: dict[int, Curve] = {}  # by joint, of springs that are no lines
        self._calm = without_outliers(recording.efforts, min(bands)) if self.elastic else recording.efforts

    def compare(self, model: TorqueModel) -> None:
        """Choose the frequencies up to which efforts and deflections are compared with the model.

        Efforts up to where noise of the encoders, twice differentiated, gives as much torque as noise of the
        efforts has; springs up to where the load swings on them. Beyond, noise of the model would be taken
        for motion, and inertias, damping and stiffness come out too small. An elastic joint with one encoder
        is compared below the bandwidth of the motion alone: above it motor and link may move apart.
        """
        some = self.effort_times[:: max(1, len(self.effort_times) // _POSES)]
        poses = self.motion(some, np.zeros(model.n)).q
        matrices = np.asarray(model.robot.mass_matrix(poses[:, None]))[:, 0]
        links = np.diagonal(matrices, axis1=1, axis2=2).max(axis=0)
        whole = links + model.prior[model.place(0)]
        encoder, period = self._encoder_noise()
        rate = 1.0 / float(np.median(np.diff(self.recording.efforts.times)))
        for j in np.flatnonzero(self.recording.efforts.measured).tolist():
            own = _white_part(self.recording.efforts.values[:, j])
            loud = own / (whole[j] * max(encoder[j], 1e-12)) * np.sqrt(1.0 / (rate * period))
            below = max(np.sqrt(loud) / (2.0 * np.pi), min(self.bandwidths))
            rigid = np.isinf(model.specs[j].stiffness)
            band = below if rigid or j in self.elastic else min(self.bandwidths)
            self.slow_efforts[j] = self._low_pass(self.effort_times, band)
        for j in self.elastic:
            swings = np.sqrt(model.specs[j].stiffness / links[j]) / (2.0 * np.pi)
            self.slow_deflections[j] = self._low_pass(self.link_times, swings)

    def _encoder_noise(self) -> tuple[Array, float]:
        """Return what encoders scatter about the fast motion (n,), and their period [s]."""
        pairs = ((self.recording.motors, self._fast_motors), (self.recording.links, self._fast_links))
        present = [(channel, fast) for channel, fast in pairs if channel is not None and fast is not None]
        noise = [
            np.std(channel.values - fast.sample(channel.times, 0)[0], axis=0) for channel, fast in present
        ]
        return np.nanmax(noise, axis=0), max(float(np.median(np.diff(each.times))) for each, _ in present)

    def leave_reversals_out(self, model: TorqueModel, now: Unknowns) -> NDArray[np.bool_]:
        """Leave samples of efforts out about reversals where friction is not the function of the velocity.

        Return of which motors or links (n,), whose friction then does not show how it turns over.
        """
        at_motor, times = self.recording.at_motor, self.effort_times
        motion = self.fast_motion(times - now.effort_delay, self.late(now))
        predicted = model.columns(motion, at_motor, now.friction_shape) @ now.parameters
        fast = self._low_pass(times, self.fastest)
        speeds, turned_by = model.rubbing(motion, at_motor)
        reach = round(0.5 * len(times) / (times[-1] - times[0]) / fast.bandwidth)
        independent = min(1.0, 2.0 * fast.bandwidth * (times[-1] - times[0]) / len(times))
        transitions, friction = model.friction_shape[0], np.abs(now.parameters[model.place(2)])
        hidden, shares = np.zeros(model.n, dtype=bool), self.reversals_left_out.copy()
        for j in np.flatnonzero(self.recording.efforts.measured).tolist():
            residual = fast(self.efforts[:, j] - predicted[:, j])
            out = ~self.slow_efforts[j].used
            for i in np.flatnonzero(turned_by[j]):
                of_one = unexplained(speeds[:, i], residual, transitions[i], friction[i], reach, independent)
                hidden[i] |= of_one.any()
                out |= of_one
            if out.mean() > shares[j]:
                shares[j] = out.mean()
                self.slow_efforts[j] = self._low_pass(times, self.slow_efforts[j].bandwidth, ~out)
        self.reversals_left_out = shares
        return hidden

    def _low_pass(
        self, times: Array, bandwidth: float | None = None, used: NDArray[np.bool_] | None = None
    ) -> LowPass:
        rate = (len(times) - 1) / (times[-1] - times[0])
        return LowPass(times, min(bandwidth or min(self.bandwidths), rate / (2.0 * SAMPLES_PER_KNOT)), used)

    def _rows(self, channel: Channel) -> tuple[Array, Array]:
        inside = (channel.times >= self.interval[0]) & (channel.times <= self.interval[1])
        step = max(1, -(-int(inside.sum()) // MOST_ROWS))
        return channel.times[inside][::step], channel.values[inside][::step]

    def motion(self, times: Array, delays: Array) -> Motion:
        """Return the motion at `times` by the clock of the motors; `delays` (n,) of the links' stamps."""
        return self._motion(self.links, self.motors, times, delays)

    def fast_motion(self, times: Array, delays: Array) -> Motion:
        """Return the motion with all that the encoders tell, vibration included."""
        return self._motion(self._fast_links, self._fast_motors, times, delays)

    def _motion(self, links: Smooth | None, motors: Smooth | None, times: Array, delays: Array) -> Motion:
        link = self._sampled(links, times, delays)
        motor = self._sampled(motors, times, None)
        q = np.where(np.isnan(link), motor, link)
        theta = np.where(np.isnan(motor), link, motor)
        return Motion(q[0], q[1], q[2], theta[1], theta[2])

    def springs(self, model: TorqueModel, now: Unknowns, fast: bool = False) -> list[Array]:
        """Return columns (N, bodies + 7) of what bends the springs, of each joint with two encoders."""
        late = self.late(now)
        moving = self.fast_motion if fast else self.motion
        motion = moving(self.link_times, late)
        loads = model.regressor(motion)
        halfway = moving(self.link_times, 0.5 * late).qd  # of the links at t - T / 2
        times = self.link_times + now.effort_delay
        recorded = self.recorded_positions()
        return [
            parts(
                loads[:, j],
                np.gradient(loads[:, j] @ now.parameters[: model.bodies], self.link_times),
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


def _white_part(samples: Array) -> float:
    """Return the standard deviation of white noise in samples (N,), by their second differences."""
    differences = np.diff(samples, 2)
    return max(1.4826 * float(np.median(np.abs(differences))) / np.sqrt(6.0), 1e-12)


def _as_fast_as_it_tells(channel: Channel, signal: Smooth | None) -> Smooth | None:
    try:
        fast = smooth(channel, beyond_motion=True)
    except InputError:  # gaps between stamps
        return signal
    return signal if signal is not None and signal.bandwidth > fast.bandwidth else fast


def estimate(
    model: TorqueModel,
    runs: Sequence[Data],
    free: NDArray[np.bool_],
    prior_deviations: Array,
    progress: Callable[[float], None] | None = None,
) -> Estimate:
    """Return what fits all runs best; their channels are those of the same joints.

    `free` (P,) says which parameters may leave the prior, `prior_deviations` (P,) how far.
    """
    data = runs[0]
    for each in runs:
        each.compare(model)
    springs = np.zeros((KINDS, len(data.elastic)))
    springs[COMPLIANCE] = [1.0 / model.specs[j].stiffness for j in data.elastic]
    free_springs = np.ones(springs.shape, dtype=bool)
    free_springs[FRICTION:] = False  # `spring_terms` seeks them
    of_shape = free[model.place(2)] * np.array(_SHAPE)[:, None]
    of_springs = np.where(free_springs, np.inf, 0.0)
    of_springs[LAG] = _LONGEST_LAG * springs[COMPLIANCE]
    spreads = np.concatenate([prior_deviations, of_shape.ravel(), of_springs.ravel(), [np.inf]])
    now = start = Unknowns(model.prior, springs, 0.0, model.friction_shape)
    noise: dict[Key, Noise] = {}
    for look in range(_LOOKS):
        for turn in range(_TURNS):
            rows, systems = _linearised(model, runs, now, noise)
            before = now.vector
            now, normal, covariance = _solved(model, systems, now, start, spreads)
            if look == 0:
                rows, _ = _linearised(model, runs, now, noise)
                noise = {key: each.white_noise() for key, each in rows.items()}
            if progress is not None:
                progress((look + (turn + 1) / _TURNS) / _LOOKS)
            if (np.abs(now.vector - before) <= _CONVERGED * np.sqrt(np.diag(covariance))).all():
                break
        rows, systems = _linearised(model, runs, now, noise, whole=True)
        leverages = {key: _leverage(model, key, of_one, now, covariance) for key, of_one in systems}
        noise = {key: each.noise_by_frequency(leverages[key]) for key, each in rows.items()}
        left_out = [each.reversals_left_out for each in runs]
        hidden = np.logical_or.reduce([each.leave_reversals_out(model, now) for each in runs])
        if look > 1 and np.array_equal([each.reversals_left_out for each in runs], left_out):
            break
        now, start = now.turning_sharply(model, hidden), start.turning_sharply(model, hidden)
        spreads[now.of_shape] *= np.tile(~hidden, 2)
    bent = {j: rows[Key(0, j, i)] for i, j in enumerate(data.elastic)}
    bandwidths = tuple(band for each in runs for band in each.bandwidths)
    p = len(free)
    return Estimate(now, covariance, normal[:p, :p], bent, data.elastic, bandwidths)


def _linearised(
    model: TorqueModel,
    runs: Sequence[Data],
    now: Unknowns,
    noise: Mapping[Key, Noise],
    whole: bool = False,
) -> tuple[dict[Key, Rows], list[tuple[Key, Array]]]:
    """Return residuals of all runs, and their rows: as triangles by QR, or the `whole` of them."""
    systems: list[tuple[Key, Array]] = []
    all_rows: dict[Key, Rows] = {}

    def rows_of(key: Key, samples: Array, modelled: Array, low_pass: LowPass) -> Rows:
        guess = Noise(np.array([_FIRST_GUESS * np.std(samples)]))
        all_rows[key] = Rows(samples, modelled, low_pass, noise.get(key, guess))
        return all_rows[key]

    for run, data in enumerate(runs):
        motion = data.fast_motion(data.effort_times - now.effort_delay, data.late(now))
        at_motor = data.recording.at_motor
        columns = model.columns(motion, at_motor, now.friction_shape)
        turning = model.shape_columns(motion, at_motor, now.parameters, now.friction_shape)
        predicted = columns @ now.parameters
        rates = np.gradient(predicted, data.effort_times, axis=0)
        for j in np.flatnonzero(data.recording.efforts.measured).tolist():
            rows = rows_of(Key(run, j), data.efforts[:, j], predicted[:, j], data.slow_efforts[j])
            known = turning[:, j] @ now.vector[now.of_shape] - rates[:, j] * now.effort_delay
            target = rows.without_outliers + known
            parts = [columns[:, j], turning[:, j], -rates[:, [j]], target[:, None]]
            systems.append((Key(run, j), _amplitudes(parts, rows, whole)))
        for i, (j, part) in enumerate(zip(data.elastic, data.springs(model, now, fast=True))):
            modelled = part @ coefficients(model, now.parameters, now.springs[:, i], j)
            # encoders are set to zero anew each time that a robot is switched on: later runs have means of
            # their own
            first = 0 if run == 0 or whole else 1
            rows = rows_of(Key(run, j, i), data.deflections[:, j], modelled, data.slow_deflections[j])
            parts = [part, rows.without_outliers[:, None]]
            systems.append((Key(run, j, i), _amplitudes(parts, rows, whole, first)))
    return all_rows, systems


def _amplitudes(parts: list[Array], rows: Rows, whole: bool, first: int = 0) -> Array:
    """Return amplitudes of samples (N, k) from the `first` on, over the noise.

    All of them (m, k) where `whole`, else a triangle that tells the same of the unknowns.
    """
    samples = np.concatenate(parts, axis=1)
    used = np.flatnonzero(samples.any(axis=0) | (np.arange(samples.shape[1]) == samples.shape[1] - 1))
    amplitudes = rows.low_pass.spectrum(samples[:, used]) / rows.noise.deviations[:, None]
    small = amplitudes if whole else np.linalg.qr(amplitudes[first:], mode="r")
    result = np.zeros((len(small), samples.shape[1]))
    result[:, used] = small
    return result


def _solved(
    model: TorqueModel,
    systems: list[tuple[Key, Array]],
    now: Unknowns,
    start: Unknowns,
    spreads: Array,
) -> tuple[Unknowns, Array, Array]:
    """Solve the bilinear problem by Gauss-Newton.

    Return the unknowns, the information of the rows alone, and the covariance.
    `spreads` are those of all unknowns about the prior: zero where they are held, infinite where it says
    nothing.
    """
    size = len(spreads)
    moving = spreads > 0.0
    pull = np.diag(1.0 / spreads[moving])
    normal = np.zeros((size, size))
    for _ in range(_INNER):
        blocks, residuals = [], []
        x = now.vector
        for key, triangle in systems:
            block = _by_unknowns(model, key, triangle, now)
            if key.spring is None:
                modelled = block @ x
            else:
                spring = now.springs[:, key.spring]
                modelled = triangle[:, :-1] @ coefficients(model, now.parameters, spring, key.joint)
            blocks.append(block)
            residuals.append(triangle[:, -1] - modelled)
        rows = np.concatenate(blocks)
        normal = rows.T @ rows
        system = np.concatenate([rows[:, moving], pull])
        right = np.concatenate([*residuals, pull @ (start.vector - x)[moving]])
        size_of = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
        step = np.zeros(size)
        step[moving] = np.linalg.lstsq(system / size_of, right, rcond=1e-13)[0] / size_of
        step[now.of_shape] = np.clip(step[now.of_shape], -_LARGEST_STEP, _LARGEST_STEP)
        now = now.moved(step)
    return now, normal, _covariance(normal, spreads)


def _by_unknowns(model: TorqueModel, key: Key, rows: Array, now: Unknowns) -> Array:
    """Return derivatives of rows, of which the last column is what was measured, by all unknowns."""
    p, known = len(now.parameters), now.of_shape.stop
    result = np.zeros((len(rows), len(now.vector)))
    if key.spring is None:
        result[:, :known], result[:, -1] = rows[:, :known], rows[:, known]
    else:
        of_all = jacobian(model, rows[:, :-1], now.parameters, now.springs, key.spring)
        result[:, :p], result[:, now.of_springs] = of_all[:, :p], of_all[:, p:]
    return result


def _leverage(model: TorqueModel, key: Key, rows: Array, now: Unknowns, covariance: Array) -> Array:
    """Return the share of each row's noise (m,) that the fit takes for motion."""
    block = _by_unknowns(model, key, rows, now)
    return np.minimum(np.einsum("ki,ij,kj->k", block, covariance, block), 1.0)


def _covariance(normal: Array, spreads: Array) -> Array:
    """Return the covariance of all unknowns, from the information of rows and prior."""
    moving = np.ix_(spreads > 0.0, spreads > 0.0)
    covariance = np.zeros_like(normal)
    with np.errstate(divide="ignore"):
        covariance[moving] = _inverse((normal + np.diag(spreads**-2.0))[moving])
    return covariance


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
