"""Recordings that cannot be of the robot as its file says: units, gears, signs, joints that are swapped.

What is refused has to be plainer than what may be wrong anyhow, by three standard deviations; else it is a
warning. As residuals are alike from sample to sample, many samples make none of these smaller:

- inertias of the file. A joint that turns a symmetric tool moves little, and its file may be wrong by more
  than all of it;
- friction, whose shape is known to a share of it. It is nearly all that such a joint has;
- what is left of the efforts when inertias and friction are as they fit best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, stdtrit

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.estimate import Estimate
from hodyn_ros.identification.least_squares.residuals import correlation_length
from hodyn_ros.identification.torque_model import Motion, TorqueModel

_TURN = 4.0 * np.pi  # [rad] that no joint with limits moves over
_ALIKE = 0.01  # by which the slope of one encoder over the other may be off one, beside what springs give
_MOVES = 0.02  # [rad or m] by which a joint moves at least, so that deflections do not count beside it
_BETTER = 0.4  # of the variance that another order or sign may leave of each effort, to be the right one
_WELL = 0.1  # of the variance of each effort that is left where nothing can be wrong
_INSTANTS = 150  # at which orders and signs are tried
_CLEAR = 0.8  # correlation from which on two channels belong together
_WRONG = (0.2, 5.0)  # efforts over those of the file, beyond which units are in doubt
_SIGMA = 3.0  # standard deviations that are plain
_DRIVES = 0.1  # of the effort times the speed: the power of friction that drives a joint as none does
_FILE = 0.1  # of the mass of a body and its moments: their standard deviations in a file
_OFTEN = 1e-3  # share of samples at a limit, from which on it is said
_SHAPE = 0.1  # of friction, by which its shape is another one


def check_plausible(model: TorqueModel, data: Data) -> list[str]:
    """Return warnings; raise InputError, naming in one line the joint and the mend, for what cannot be."""
    _check_positions(model, data)
    if len(data.elastic):
        _check_gears(model, data)
    return _check_orders_and_signs(model, data) + _check_units(model, data) + _at_limits(model, data)


def _at_limits(model: TorqueModel, data: Data) -> list[str]:
    """Say how often efforts are at the limits of drives: a command beyond them is not what acted."""
    train, limits = model.robot.drive_train, model.robot.limits.effort
    limits = limits if train is None else train.effort_limits(limits)
    counts = data.recording.at_limits(limits).sum(axis=0)
    samples = len(data.recording.efforts.times)
    return [
        f"efforts of joint {name!r} are at the limit of its drive, {limit:g} N·m or N, in {count} of "
        f"{samples} samples; what acted is right, what was commanded is not: then leave these parts out"
        for name, limit, count in zip(model.robot.joint_names, limits, counts)
        if count > _OFTEN * samples
    ]


def _check_positions(model: TorqueModel, data: Data) -> None:
    limits = model.robot.limits
    motion = data.motion(data.effort_times, np.zeros(model.n))
    for j, name in enumerate(model.robot.joint_names):
        lower, upper = limits.position_lower[j], limits.position_upper[j]
        low, high = motion.q[:, j].min(), motion.q[:, j].max()
        slides = model.robot.tree.slides(name)
        if np.isfinite(upper - lower) and high - low > max(0.0 if slides else _TURN, 2.0 * (upper - lower)):
            unit, doubt = ("m", "mm") if slides else ("rad", "degrees")
            scale = "0.001 for mm" if slides else "0.0174533 for degrees"
            raise InputError(
                f"joint {name!r} moves over {high - low:.4g} {unit}, but its limits are {upper - lower:.4g} "
                f"{unit} apart; are these {doubt}, or turns of the rotor? Give position_scale ({scale})"
            )


def _check_gears(model: TorqueModel, data: Data) -> None:
    """Hold motors against links: slopes away from one, negative ones, and joints in another order."""
    names = model.robot.joint_names
    joints = data.elastic
    motion = data.motion(data.link_times, np.zeros(model.n))
    link = motion.q[:, joints]
    motor = link + data.deflections[:, joints]
    links, motors = link - link.mean(axis=0), motor - motor.mean(axis=0)
    correlation = (motors.T @ links) / np.outer(np.linalg.norm(motors, axis=0), np.linalg.norm(links, axis=0))
    _, order = linear_sum_assignment(-np.abs(correlation))
    for i, k in enumerate(order):
        alike = abs(correlation[i, k]) > _CLEAR and abs(correlation[i, i]) < _CLEAR
        if i != k and alike and np.ptp(links[:, i]) > _MOVES:
            raise InputError(
                f"the motor of joint {names[joints[i]]!r} moves as the link of {names[joints[k]]!r} does; "
                "were joints swapped in the recording?"
            )
    still = Motion(motion.q, motion.qd, motion.qdd, motion.qd, motion.qdd)
    loads = model.regressor(still)[:, joints] @ model.prior[: model.bodies]
    for i, j in enumerate(joints):
        if np.ptp(links[:, i]) <= _MOVES:
            continue
        regressors = np.column_stack([loads[:, i], motion.qd[:, j], np.ones(len(links))])
        columns = np.column_stack([links[:, i], regressors])
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        fit = np.linalg.lstsq(columns / size, motors[:, i], rcond=None)[0] / size
        slope, bent = float(fit[0]), float(np.std(loads[:, i] * fit[1]) / np.std(links[:, i]))
        doubt = _doubt(links[:, i], regressors, motors[:, i] - columns @ fit)
        if slope < -doubt:
            raise InputError(
                f"motor and link of joint {names[j]!r} move against each other (slope {slope:.4g}); turn the "
                "sign of one with position_scale or motor_position_scale"
            )
        if abs(slope - 1.0) > _ALIKE + 0.5 * bent + doubt:
            raise InputError(
                f"the motor of joint {names[j]!r} moves {slope:.6g} times as far as its link; positions of "
                "motors are reflected to the link side: the gear ratio that was used is too small by as much"
            )


def _check_units(model: TorqueModel, data: Data) -> list[str]:
    """Hold the sizes of efforts against those of the file: currents, or torques of the rotors."""
    motion = data.motion(data.effort_times, np.zeros(model.n))
    doubts = []
    comparison = _Comparison(model, data, motion)
    for j, pair in comparison.pairs(motion, data.efforts).items():
        slope = pair.slope
        if pair.left >= 1.0 - _CLEAR**2 or _WRONG[0] < slope < _WRONG[1]:
            continue
        ratio = model.specs[j].gear_ratio
        said = f", whose gear ratio is {ratio:g}" if ratio != 1.0 else ""
        text = (
            f"efforts of joint {model.robot.joint_names[j]!r} are {slope:.3g} times those of the file; "
            f"are they currents, torques of the rotor{said}, or the efforts of another joint? Give "
            "effort_scale, N·m at the link for each unit, or mend the order of the joints"
        )
        if comparison.deviations(j, pair, (slope - 1.0) * pair.predicted) > _SIGMA:
            raise InputError(text)
        doubts.append(text)
    return doubts


def _check_orders_and_signs(model: TorqueModel, data: Data) -> list[str]:
    """Ask whether efforts suit the file far better with joints in another order, or one turned round."""
    if not data.recording.efforts.measured.all():
        return []
    step = max(1, len(data.effort_times) // _INSTANTS)
    motion = data.motion(data.effort_times[::step], np.zeros(model.n))
    efforts = data.efforts[::step]
    comparison = _Comparison(model, data, motion)
    usual = comparison.pairs(motion, efforts)
    left = np.array([usual[j].left for j in range(model.n)])
    asked = np.stack([usual[j].predicted for j in range(model.n)], axis=1)
    refused: list[tuple[float, str]] = []
    doubted: list[tuple[float, str]] = []
    for order, signs, said in () if left.max() < _WELL else _mistakes(model.robot.joint_names):
        moved = Motion(*(signs * getattr(motion, each.name)[:, order] for each in fields(Motion)[:-1]))
        turned, asked_turned = signs * efforts[:, order], signs * asked[:, order]
        touched = np.flatnonzero((order != np.arange(model.n)) | (signs < 0.0))
        for of, measured, before, what in (
            (motion, turned, asked_turned, "efforts"),
            (moved, efforts, asked, "positions"),
            (moved, turned, asked_turned, "positions and efforts"),
        ):
            pairs = comparison.pairs(of, measured)
            now = np.array([pairs[j].left for j in range(model.n)])
            better = (now[touched] < np.minimum(1.0 - _CLEAR**2, _BETTER * left[touched])).all()
            if better and now.mean() < left.mean():
                apart = [
                    comparison.deviations(j, pairs[j], pairs[j].predicted - before[:, j])
                    for j in touched.tolist()
                ]
                suspects = refused if np.linalg.norm(apart) > _SIGMA else doubted
                suspects.append((float(np.log(now).mean()), said.format(what)))
    if refused:
        raise InputError(min(refused, key=lambda pair: pair[0])[1])
    return [min(doubted, key=lambda pair: pair[0])[1]] if doubted else []


def check_friction(model: TorqueModel, data: Data, estimated: Estimate) -> None:
    """Raise InputError where what was found as friction drives a joint, instead of braking it.

    A joint that turns a symmetric tool has little but friction, and no file says how much: what has the wrong
    sign shows when all is found, as friction below zero. That counts which changes with the direction: of a
    joint that goes one way it may be an offset as well, and what holds it at rest may have any sign.
    """
    if model.kinds > 4:  # several figures of friction, of which one may be below zero
        return
    now = estimated.unknowns
    motion = data.fast_motion(data.acted(now.effort_delay), data.late(now))
    at_motor = data.recording.at_motor
    columns = model.columns(motion, at_motor, now.friction_shape, now.parameters)
    speeds, _ = model.rubbing(motion, at_motor)
    for j in np.flatnonzero(data.recording.efforts.measured).tolist():
        places = [model.place(kind).start + j for kind in (1, 2)]
        speed, size = speeds[:, j], np.abs(speeds[:, j])
        either_way = speed - size * (speed.sum() / max(size.sum(), 1e-300))
        of_figures = (either_way[:, None] * columns[:, j, places]).mean(axis=0)
        power = float(of_figures @ now.parameters[places])
        deviation = float(np.sqrt(of_figures @ estimated.covariance[np.ix_(places, places)] @ of_figures))
        if power < -max(_DRIVES * _rms(speed) * float(np.std(data.efforts[:, j])), _SIGMA * deviation):
            raise InputError(
                f"efforts of joint {model.robot.joint_names[j]!r} have friction that drives it, "
                f"{now.parameters[places[1]]:.3g} N·m or N; do its efforts, or its positions, have the wrong "
                "sign? Mend it with scale -1 of their column"
            )


class _Pair(NamedTuple):
    """The effort of a joint, measured (N,) and by the file (N,), without friction and an offset."""

    effort: Array
    predicted: Array
    friction: float  # RMS of the friction that fits best

    @property
    def left(self) -> float:
        """The share of the variance of the effort that the file does not explain."""
        size = float(np.linalg.norm(self.effort) * np.linalg.norm(self.predicted))
        return max(1.0 - max(float(self.effort @ self.predicted) / max(size, 1e-300), 0.0) ** 2, 1e-12)

    @property
    def slope(self) -> float:
        """How many times the effort is that of the file."""
        return float(self.effort @ self.predicted) / max(float(self.predicted @ self.predicted), 1e-300)


class _Comparison:
    """Efforts that are measured against those of the file, from a motion as it was recorded."""

    def __init__(self, model: TorqueModel, data: Data, motion: Motion) -> None:
        self._model, self._at_motor = model, data.recording.at_motor
        self._joints = np.flatnonzero(data.recording.efforts.measured).tolist()
        columns, ones = model.columns(motion, self._at_motor), np.ones(model.n)
        body_deviations = model.scales(ones, ones, ones, _FILE)[: model.bodies]
        # what each figure of a body may add to the effort (N, bodies), by joint
        self._errors = {
            j: _without(self._own(columns, j), columns[:, j, : model.bodies] * body_deviations)
            for j in self._joints
        }

    def pairs(self, motion: Motion, efforts: Array) -> dict[int, _Pair]:
        """Return what is measured (N, n), and told of a motion, by joint."""
        columns = self._model.columns(motion, self._at_motor)
        predicted = columns @ self._model.prior
        return {j: _pair(self._own(columns, j), efforts[:, j], predicted[:, j]) for j in self._joints}

    def deviations(self, j: int, pair: _Pair, apart: Array) -> float:
        """Return how many standard deviations two opinions of an effort are apart (N,)."""
        size = max(float(np.linalg.norm(apart)), 1e-300)
        of_file = np.linalg.norm(apart @ self._errors[j]) / size / np.sqrt(len(apart))
        left = _rms(pair.effort - pair.slope * pair.predicted)
        doubt = np.linalg.norm([of_file, _SHAPE * pair.friction, left])
        return _rms(apart) / max(float(doubt), 1e-300)

    def _own(self, columns: Array, j: int) -> Array:
        """Return columns (N, k) of a joint's own: friction, offset, a rotor that its file does not name."""
        model = self._model
        kinds = [1, 2, 3]
        if self._at_motor and not model.specs[j].motor_inertia:
            kinds.append(0)
        return np.asarray(columns[:, j, [model.place(kind).start + j for kind in kinds]])


def _mistakes(names: Sequence[str]) -> Iterator[tuple[NDArray[np.intp], Array, str]]:
    """Yield orders (n,) and signs (n,) that would mend a mistake, and what to say of it."""
    n = len(names)
    for j, name in enumerate(names):
        signs = np.where(np.arange(n) == j, -1.0, 1.0)
        said = f"{{}} of joint {name!r} have the opposite sign of what the file says, or another zero; mend "
        yield np.arange(n), signs, said + "them with scale or offset of their columns"
    for i, k in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, k]] = k, i
        said = f"{{}} of joints {names[i]!r} and {names[k]!r} suit the file far better the other way round; "
        yield order, np.ones(n), said + "were these joints swapped in the recording?"
    for by in (1, -1) if n > 2 else ():
        order = np.roll(np.arange(n), by)
        said = "{} of the joints suit the file far better in the order "
        yield (
            order,
            np.ones(n),
            said + f"{[names[i] for i in order.tolist()]}; were joints swapped in the recording?",
        )


def _pair(own: Array, effort: Array, predicted: Array) -> _Pair:
    """Return efforts (N,) without what columns (N, k) of the joint's own explain."""
    pair = _Pair(_without(own, effort), _without(own, predicted), 0.0)
    remains = pair.effort - pair.slope * pair.predicted
    return pair._replace(friction=float(np.std(effort - pair.slope * predicted - remains)))


def _doubt(values: Array, beside: Array, residual: Array) -> float:
    """Return by how much the slope over values (N,) beside others (N, k) may be wrong, from residuals (N,).

    Residuals that are alike from sample to sample count as the fewer that they stand for, less one for each
    figure of the fit. Of few, three standard deviations are Student's: a joint that comes to rest within two
    seconds leaves a dozen.
    """
    free = values - beside @ np.linalg.lstsq(beside, values, rcond=None)[0]
    length = correlation_length(residual)
    independent = max(len(residual) / length - beside.shape[1] - 1, 1.0)
    deviation = float(np.linalg.norm(residual)) / np.sqrt(independent)
    return float(stdtrit(independent, ndtr(_SIGMA))) * deviation / max(float(np.linalg.norm(free)), 1e-300)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _without(nuisance: Array, values: Array) -> Array:
    """Return values (N,) without what columns (N, k) explain."""
    return np.asarray(values - nuisance @ np.linalg.lstsq(nuisance, values, rcond=None)[0])
