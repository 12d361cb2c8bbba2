"""Recordings that cannot be of the robot as its file says: units, gears, signs, joints that are swapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hodyn_ros.errors import InputError
from hodyn_ros.identification.estimate import Data
from hodyn_ros.identification.torque_model import Motion, TorqueModel
from hodyn_ros.lie.jets import Array

_TURN = 4.0 * np.pi  # [rad] that no joint with limits moves over
_ALIKE = (
    0.01  # by which the slope of one encoder over the other may differ from one, beside what springs give
)
_MOVES = 0.02  # [rad or m] by which a joint moves at least, so that deflections do not count beside it
_BETTER = (
    0.4  # of the variance that another order or sign leaves of each effort, at most, to be the right one
)
_WELL = 0.1  # of the variance of each effort that is left where nothing can be wrong
_INSTANTS = 150  # at which orders and signs are tried
_CLEAR = 0.8  # correlation from which on two channels belong together
_WRONG = (0.2, 5.0)  # efforts over those of the file, beyond which units are in doubt


def check_plausible(model: TorqueModel, data: Data) -> None:
    """Raise InputError, in one line that names the joint and the mend, for what cannot be."""
    _check_positions(model, data)
    if len(data.elastic):
        _check_gears(model, data)
    _check_orders_and_signs(model, data)
    _check_units(model, data)


def _check_positions(model: TorqueModel, data: Data) -> None:
    limits = model.robot.limits
    motion = data.motion(data.effort_times, np.zeros(model.n))
    for j, name in enumerate(model.robot.joint_names):
        lower, upper = limits.position_lower[j], limits.position_upper[j]
        low, high = motion.q[:, j].min(), motion.q[:, j].max()
        if np.isfinite(upper - lower) and high - low > max(_TURN, 2.0 * (upper - lower)):
            raise InputError(
                f"joint {name!r} moves over {high - low:.4g} rad, but its limits are {upper - lower:.4g} rad "
                "apart; are these degrees, or turns of the rotor? Give position_scale (0.0174533 for degrees)"
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
        others = np.column_stack([loads[:, i], motion.qd[:, j], np.ones(len(links))])
        columns = np.column_stack([links[:, i], others])
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        fit = np.linalg.lstsq(columns / size, motors[:, i], rcond=None)[0] / size
        slope, bent = float(fit[0]), float(np.std(loads[:, i] * fit[1]) / np.std(links[:, i]))
        if slope < 0.0:
            raise InputError(
                f"motor and link of joint {names[j]!r} move against each other (slope {slope:.4g}); turn the "
                "sign of one with position_scale or motor_position_scale"
            )
        if abs(slope - 1.0) > _ALIKE + 0.5 * bent:
            raise InputError(
                f"the motor of joint {names[j]!r} moves {slope:.6g} times as far as its link; positions of "
                "motors are reflected to the link side: the gear ratio that was used is too small by as much"
            )


def _check_units(model: TorqueModel, data: Data) -> None:
    """Hold the sizes of efforts against those of the file: currents, or torques of the rotors."""
    motion = data.motion(data.effort_times, np.zeros(model.n))
    for j, (effort, told) in _explained(model, data, motion, data.efforts).items():
        slope = effort @ told / max(float(told @ told), 1e-300)
        if 1.0 - _left(effort, told) > _CLEAR**2 and not _WRONG[0] < slope < _WRONG[1]:
            ratio = model.specs[j].gear_ratio
            said = f", whose gear ratio is {ratio:g}," if ratio != 1.0 else ""
            raise InputError(
                f"efforts of joint {model.robot.joint_names[j]!r} are {slope:.3g} times those of the file; "
                f"are they currents, torques of the rotor{said}, or the efforts of another joint? Give "
                "effort_scale, N·m at the link for each unit, or mend the order of the joints"
            )


def _check_orders_and_signs(model: TorqueModel, data: Data) -> None:
    """Ask whether efforts suit the file far better with joints in another order, or one turned round."""
    if not data.recording.efforts.measured.all():
        return
    step = max(1, len(data.effort_times) // _INSTANTS)
    motion = data.motion(data.effort_times[::step], np.zeros(model.n))
    efforts = data.efforts[::step]

    def left(of: Motion, measured: Array) -> Array:
        pairs = _explained(model, data, of, measured)
        return np.array([_left(*pairs[j]) for j in range(model.n)])

    usual = left(motion, efforts)
    found = []
    for order, signs, said in () if usual.max() < _WELL else _mistakes(model.robot.joint_names):
        moved = Motion(*(signs * getattr(motion, each.name)[:, order] for each in fields(Motion)))
        turned = signs * efforts[:, order]
        touched = (order != np.arange(model.n)) | (signs < 0.0)
        for of, measured, what in (
            (motion, turned, "efforts"),
            (moved, efforts, "positions"),
            (moved, turned, "positions and efforts"),
        ):
            now = left(of, measured)
            clear = (now[touched] < np.minimum(1.0 - _CLEAR**2, _BETTER * usual[touched])).all()
            if clear and now.mean() < usual.mean():
                found.append((float(np.log(now).mean()), said.format(what)))
    if found:
        raise InputError(min(found, key=lambda pair: pair[0])[1])


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


def _explained(
    model: TorqueModel, data: Data, motion: Motion, efforts: Array
) -> dict[int, tuple[Array, Array]]:
    """Return efforts of joints, measured and by the file, without what friction and an offset may be."""
    columns = model.columns(motion, data.recording.at_motor)
    told = columns @ model.prior
    found = {}
    for j in np.flatnonzero(data.recording.efforts.measured).tolist():
        nuisance = columns[:, j, [model.place(kind).start + j for kind in (1, 2, 3)]]
        found[j] = _without(nuisance, efforts[:, j]), _without(nuisance, told[:, j])
    return found


def _left(effort: Array, told: Array) -> float:
    """Return the share of the variance of an effort that the file does not explain."""
    size = float(np.linalg.norm(effort) * np.linalg.norm(told))
    return max(1.0 - max(float(effort @ told) / max(size, 1e-300), 0.0) ** 2, 1e-12)


def _without(nuisance: Array, values: Array) -> Array:
    """Return values (N,) without what columns (N, k) explain."""
    return np.asarray(values - nuisance @ np.linalg.lstsq(nuisance, values, rcond=None)[0])
