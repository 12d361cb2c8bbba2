"""Stiffness from resonances, of joints whose motors alone are measured.

A motor that vibrates moves its link through the spring, and near `sqrt(K / M)` the link holds it: there the
effort of the motor says what the spring is. About a pose with the mass matrix M, all joints together,

    effort(w) = (-w^2 J + i w D + Z - Z (Z + G - w^2 M)^-1 Z) theta(w),     Z = K + i w d

with the gradient G of gravity and diagonal J, D, K, d (M. W. Spong, J. Dyn. Sys. Meas. Control 109(4), 1987,
linearised; springs may be damped). M and G are those of the identified bodies; the rest is fitted to spectra
of short pieces of the recording, of splines at the recorded stamps, with the noise of both channels, that of
theta as seen through the model. What friction does is taken off the efforts before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.recording import Channel
from hodyn_ros.identification.smoothing import Smooth, moving_frequency, smooth
from hodyn_ros.identification.torque_model import TorqueModel

_ABOVE = 2.0  # times the highest frequency of the motion, above which vibration is looked at
_FASTEST = 0.3  # share of the sampling rate up to which it is
_PERIODS = 12.0  # of the slowest vibration in one piece
_PIECE = 1.5, 8.0  # [s] that a piece lasts at least and at most
_MOST_PIECES = 16
_LOUD = 10.0  # times the power of the noise from which on a line of the spectrum says something
_LINES = 10  # that have to
_CHANGE = 0.15  # by which the inertia at a joint may change in a piece
_STIFFEST = 80.0  # logarithm of a stiffness that is as good as rigid, so that none overflows
_SHARE = 0.5  # of the effort in the band that the model has to explain
_CLEAR = 25.0  # by which a rigid joint explains less, in variances of the noise
_CERTAIN = 0.5  # deviation of a stiffness over the stiffness, below which it is known
_FINE = 6.0  # samples of splines in a period of the bandwidth
_LINEARISED = 0.01  # of a stiffness, by which the linear model may be wrong
_NOISE_BANDWIDTH = 1.94  # of the window sin^4, in lines
_TRIED = 40  # resonances in the band, for a start
_ROUGH = 100.0  # times the noise that a start may leave without counting much
_WHY = "not identifiable from this recording, because "


@dataclass(frozen=True)
class Resonance:
    """What the vibration of one joint says; `reason` why it says nothing."""

    stiffness: float = np.nan  # [N·m/rad]
    deviation: float = np.nan
    damping: float = 0.0  # of the spring [N·m·s/rad]
    damping_deviation: float = 0.0
    reason: str = ""


@dataclass(frozen=True, eq=False)
class _Spectra:
    """Pieces of a recording: w pieces, f frequencies, n joints."""

    band: str  # in words
    frequencies: Array  # (f,) [rad/s]
    motors: Array  # (w, f, n) complex
    efforts: Array  # (w, f, n) complex
    masses: Array  # (w, n, n)
    gravity: Array  # (w, n, n) of its efforts by positions
    motor_noise: Array  # (n,) variances of one line
    effort_noise: Array  # (n,)


def resonances(model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns) -> dict[int, Resonance]:
    """Return what each joint without encoders on both sides of its gear says of its spring."""
    joints = [j for j in range(model.n) if j not in data.elastic]
    results = {j: reason for j in joints if (reason := _unmeasured(data, j)) is not None}
    left = [j for j in joints if j not in results]
    if not left:
        return results
    try:
        if data.recording.coupled.any():
            raise InputError("motors turn with more than one joint")
        if len(left) + len(data.elastic) < model.n:
            raise InputError("the other joints are not all measured at their motors")
        spectra = _spectra(model, data, parameters, unknowns)
    except InputError as error:
        return results | {j: Resonance(reason=f"{_WHY}{error}") for j in left}
    band = spectra.band
    pushed = (np.abs(spectra.efforts) ** 2 > _LOUD * spectra.effort_noise).any(axis=0)
    moved = (np.abs(spectra.motors) ** 2 > _LOUD * spectra.motor_noise).any(axis=0)
    loud = np.count_nonzero(pushed & moved, axis=0)
    quiet = [j for j in left if loud[j] < _LINES]
    for j in quiet:
        why = (
            f"between {band}, where a spring would show, its motor hardly moves; shake it there about one "
            "pose (a sweep of frequencies), or record an encoder at the link"
        )
        results[j] = Resonance(reason=_WHY + why)
    left = [j for j in left if j not in quiet]
    return results | _Fit(model, spectra, parameters, left).resonances() if left else results


def _unmeasured(data: Data, joint: int) -> Resonance | None:
    recording = data.recording
    if not recording.at_motor:
        why = "its efforts were measured behind the spring"
    elif not recording.efforts.measured[joint]:
        why = "its effort was not measured"
    elif recording.motors is None or not recording.motors.measured[joint]:
        why = "there is an encoder on one side of the gear only, and not at the motor, where resonances show"
    else:
        return None
    return Resonance(reason=f"{_WHY}{why}; record encoders on both sides")


def _spectra(model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns) -> _Spectra:
    """Return spectra above the motion of pieces in which the inertia hardly changes.

    Raises InputError where there are none, and where stamps leave gaps.
    """
    recording = data.recording
    assert recording.motors is not None and data.motors is not None  # or joints would not be measured there
    slowest = _ABOVE * moving_frequency(data.motors, recording.motors.times)
    rate = min(recording.motors.rate, recording.efforts.rate)
    fastest = _FASTEST * rate
    if slowest > 0.5 * fastest:
        raise InputError(
            f"samples at {rate:.3g} Hz leave no room above the motion, which has {slowest / _ABOVE:.3g} Hz; "
            "record faster, or encoders at the links"
        )
    begin, end = recording.interval
    length = min(float(np.clip(_PERIODS / slowest, *_PIECE)), 0.5 * (end - begin))
    count = min(_MOST_PIECES, int(2.0 * (end - begin - length) / length) + 1)
    starts = begin + (end - begin - length) * np.linspace(0.0, 1.0, max(count, 2))
    frequencies = np.arange(np.ceil(1.5 * slowest * length), fastest * length) / length
    lines = 2.0 * np.pi * frequencies
    slow = smooth(recording.motors, slowest)
    motors = smooth(recording.motors, fastest)
    acted = recording.efforts.times - unknowns.effort_delay
    calm = Channel(acted, recording.efforts.values - _friction(model, parameters, motors, acted))
    efforts, under = smooth(calm, fastest), smooth(calm, slowest)
    robot = model.with_links(parameters)
    masses, gravity, pieces = [], [], []
    for start in starts:
        q = slow.sample(np.linspace(start, start + length, 9), 0)[0]
        inertias = np.asarray(robot.mass_matrix(q[:, None]))[:, 0]
        at_joint = np.diagonal(inertias, axis1=1, axis2=2)
        if (np.ptp(at_joint, axis=0) < 2.0 * _CHANGE * at_joint.mean(axis=0)).all():
            masses.append(inertias.mean(axis=0))
            gravity.append(_gravity_gradient(robot, q.mean(axis=0)))
            pairs = ((motors, slow), (efforts, under))
            pieces.append([_lines(whole, slower, start, length, lines) for whole, slower in pairs])
    if not pieces:
        raise InputError("the pose changes too fast beside the vibration; shake the joints about one pose")
    theta, tau = (np.stack([piece[k] for piece in pieces]) for k in range(2))
    noises = (_noise(recording.motors, motors, length), _noise(calm, efforts, length))
    band = f"{slowest:.3g} and {fastest:.3g} Hz"
    return _Spectra(band, lines, theta, tau, np.stack(masses), np.stack(gravity), *noises)


def _gravity_gradient(robot: Robot, q: Array) -> Array:
    """Return how the efforts of gravity change with positions (n, n) about q (n,)."""
    step = 1e-4
    moved = np.zeros((2 * len(q), 3, len(q)))
    moved[:, 0] = q + step * np.concatenate([np.eye(len(q)), -np.eye(len(q))])
    efforts = robot.inverse_dynamics(moved)[:, 0]
    return np.asarray((efforts[: len(q)] - efforts[len(q) :]).T / (2.0 * step))


def _noise(channel: Channel, fitted: Smooth, length: float) -> Array:
    """Return the variance (n,) of the noise of one line of a piece, from what a spline leaves of samples."""
    residual = channel.values - fitted.sample(channel.times, 0)[0]
    variance = residual.var(axis=0) / fitted.free(len(channel.times))
    return np.asarray(variance * _NOISE_BANDWIDTH / (channel.rate * length))


def _friction(model: TorqueModel, parameters: Array, motors: Smooth, times: Array) -> Array:
    """Return the Coulomb friction (N, n) of the motion with its vibration."""
    speed = motors.sample(times, 1)[1]
    transition = np.array([s.motor_friction.transition for s in model.specs])
    return np.asarray(parameters[model.place(2)] * speed / np.sqrt(speed**2 + transition**2))


def _lines(whole: Smooth, slow: Smooth, start: float, length: float, lines: Array) -> Array:
    """Return the spectrum (f, n) of a piece without slow motion, under the window sin^4."""
    count = int(np.ceil(_FINE * whole.bandwidth * length))
    times = start + length * np.arange(count) / count
    values = whole.sample(times, 0)[0] - slow.sample(times, 0)[0]
    weights = np.sin(np.pi * (times - start) / length) ** 4 / (0.375 * count)
    return np.asarray((np.exp(-1j * np.outer(lines, times)) * weights) @ values)


class _Fit:
    """Unknowns x: for each joint the logarithm of K, damping d / K [s], J and D over the file's J."""

    def __init__(self, model: TorqueModel, spectra: _Spectra, parameters: Array, joints: list[int]) -> None:
        self.spectra, self.joints, self.band = spectra, joints, spectra.band
        self.n = model.n
        inertia = np.maximum(parameters[model.place(0)], 1e-9)
        self.inertia = np.where(inertia > 1e-9, inertia, [max(s.motor_inertia, 1e-3) for s in model.specs])
        self.names = model.robot.joint_names
        middle = np.sqrt(spectra.frequencies[0] * spectra.frequencies[-1])
        at_joint = np.diagonal(spectra.masses, axis1=1, axis2=2).mean(axis=0)
        nominal = np.array([s.stiffness for s in model.specs])
        start = np.where(np.isfinite(nominal), nominal, middle**2 * at_joint)
        self.start = np.stack([np.log(start), np.full(self.n, 1e-4), np.ones(self.n), np.zeros(self.n)])
        self.at_joint = at_joint

    def _response(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Return efforts over motor positions (w, f, n, n), and what these change with, of the springs.

        With A = (Z + G - w^2 M)^-1 the change by Z_j is column j of `I - Z A` times row j of `I - A Z`.
        """
        data, w, places = self.spectra, self.spectra.frequencies, np.arange(self.n)
        log, loss, inertia, drag = x.reshape(4, self.n)
        spring = np.exp(np.minimum(log, _STIFFEST)) * (1.0 + 1j * w[:, None] * loss)  # (f, n)
        moved = data.gravity[:, None] - (w**2)[:, None, None] * data.masses[:, None] + 0j
        moved[..., places, places] += spring
        inverse = np.linalg.inv(moved)
        left = np.eye(self.n) - spring[:, :, None] * inverse
        right = np.eye(self.n) - inverse * spring[:, None, :]
        response = left * spring[:, None, :]
        own = -(w**2)[:, None] * self.inertia * inertia + 1j * w[:, None] * self.inertia * drag
        response[..., places, places] += own
        return response, left, right, spring

    def _residual(self, x: Array) -> Array:
        """Return what is not explained over its noise (2 w f n,), real and imaginary parts."""
        response, *_ = self._response(x)
        return _split(self._missed(response) * self._weights(response))

    def _missed(self, response: Array) -> Array:
        predicted = np.einsum("wfij,wfj->wfi", response, self.spectra.motors)
        return np.asarray(self.spectra.efforts - predicted)

    def _weights(self, response: Array) -> Array:
        seen = np.abs(response) ** 2 @ self.spectra.motor_noise
        return np.asarray(1.0 / np.sqrt(self.spectra.effort_noise + seen))

    def _jacobian(self, x: Array) -> Array:
        """Return the derivatives of `_residual` (2 w f n, 4 n); weights change with the springs as well."""
        data, w, n = self.spectra, self.spectra.frequencies, self.n
        response, left, right, spring = self._response(x)
        missed, weights = self._missed(response), self._weights(response)
        result = np.zeros((*missed.shape, 4, n), dtype=complex)
        for j in range(n):
            column, row = left[..., j], right[..., j, :]
            through = np.einsum("wfj,wfj->wf", row, data.motors)
            noise = np.einsum("wfij,wfj->wfi", response.conj(), row * data.motor_noise)
            of_log = spring[:, j]
            of_loss = 1j * w * np.exp(min(x[j], _STIFFEST))
            for k, change in enumerate((of_log, of_loss)):
                moved = column * change[:, None]
                of_weight = -(weights**3) * (moved * noise).real
                result[..., k, j] = -weights * moved * through[..., None] + missed * of_weight
            own = weights[..., j] * data.motors[..., j] * self.inertia[j]
            for k, change in ((2, -(w**2)), (3, 1j * w)):
                of_weight = -(weights[..., j] ** 3) * data.motor_noise[j] * self.inertia[j]
                of_weight = of_weight * (change * response[..., j, j].conj()).real
                result[..., j, k, j] = -own * change + missed[..., j] * of_weight
        return np.stack([_split(result[..., k, j]) for k in range(4) for j in range(n)], axis=1)

    def _solved(self, start: Array, held: int | None = None) -> Array:
        """Return the unknowns that explain most; the stiffness of a joint may be held."""
        moving = np.arange(4 * self.n) != (-1 if held is None else held)

        def whole(part: Array) -> Array:
            x = start.copy()
            x[moving] = part
            return x

        solution = least_squares(
            lambda part: self._residual(whole(part)),
            start[moving],
            jac=lambda part: self._jacobian(whole(part))[:, moving],
            x_scale="jac",
            loss="soft_l1",
            f_scale=3.0,
            max_nfev=40,
        )
        return whole(solution.x)

    def _scanned(self, x: Array) -> Array:
        """Return unknowns with the best of stiffnesses that resonate in the band, joint after joint."""
        w = self.spectra.frequencies
        for _ in range(2):
            for j in self.joints:
                tried = [x]
                for each in np.geomspace(w[0], 2.0 * w[-1], _TRIED):
                    other = x.copy()
                    other[j], other[self.n + j] = np.log(each**2 * self.at_joint[j]), 0.1 / each
                    tried.append(other)
                costs = [np.log1p(self._residual(each) ** 2 / _ROUGH).sum() for each in tried]
                x = tried[int(np.argmin(costs))]
        return x

    def resonances(self) -> dict[int, Resonance]:
        """Return what the joints' vibration says."""
        x = self._solved(self._scanned(self.start.ravel()))
        left, jacobian = self._residual(x), self._jacobian(x)
        scale = _NOISE_BANDWIDTH * max(2.0 * float(np.mean(left**2)), 1e-300)
        size = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
        inverse = np.linalg.pinv((jacobian / size).T @ (jacobian / size), hermitian=True)
        deviation = np.sqrt(scale * np.diag(inverse)) / size
        return {j: self._of_joint(x, deviation, scale, j) for j in self.joints}

    def _of_joint(self, x: Array, deviation: Array, scale: float, j: int) -> Resonance:
        stiffness, width = float(np.exp(x[j])), float(np.hypot(deviation[j], _LINEARISED))
        response, *_ = self._response(x)
        weight = self._weights(response)[:, :, j]
        missed = float(np.sum(np.abs(weight * self._missed(response)[:, :, j]) ** 2))
        whole = float(np.sum(np.abs(weight * self.spectra.efforts[:, :, j]) ** 2))
        if missed > _SHARE * whole:
            why = (
                f"of its effort between {self.band} the vibration of the motors explains "
                f"{100.0 * max(0.0, 1.0 - missed / whole):.0f} % only; shake it there about one pose"
            )
            return Resonance(reason=_WHY + why)
        stiff = x.copy()
        stiff[j] = np.log(1e4 * self.spectra.frequencies[-1] ** 2 * self.at_joint[j])
        rigid, ours = self._residual(self._solved(stiff, j)), self._residual(x)
        if width > _CERTAIN or float(rigid @ rigid - ours @ ours) < _CLEAR * scale:
            why = f"between {self.band} its motor vibrates as with a rigid joint; its resonance lies higher"
            return Resonance(reason=_WHY + why + ", or the link is hardly moved")
        loss, loss_width = float(x[self.n + j]), float(deviation[self.n + j])
        return Resonance(stiffness, stiffness * width, stiffness * loss, stiffness * loss_width)


def _split(values: Array) -> Array:
    components = values.ravel()
    return np.concatenate([components.real, components.imag])
