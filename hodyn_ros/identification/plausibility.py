"""Recordings that cannot be of the robot as its file says: units, gears, signs, joints that are swapped."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from hodyn_ros.errors import InputError
from hodyn_ros.identification.estimate import Data
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.lie.jets import Array

_TURN = 4.0 * np.pi  # [rad] that no joint with limits moves over
_ALIKE = 0.05  # by which the slope of one encoder over the other may differ from one
_MOVES = 0.02  # [rad or m] by which a joint moves at least, so that deflections do not count beside it
_CLEAR = 0.8  # correlation from which on two channels belong together
_WRONG = (0.05, 20.0)  # efforts over those of the file, beyond which units are in doubt


def check_plausible(model: TorqueModel, data: Data) -> None:
    """Raise InputError, in one line that names the joint and the mend, for what cannot be."""
    _check_positions(model, data)
    if len(data.elastic):
        _check_gears(model, data)
    _check_efforts(model, data)


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
    slopes = (motors * links).sum(axis=0) / (links**2).sum(axis=0)
    moving = np.ptp(links, axis=0) > _MOVES
    for j, slope in zip(np.array(joints)[moving].tolist(), slopes[moving]):
        if slope < 0.0:
            raise InputError(
                f"motor and link of joint {names[j]!r} move against each other (slope {slope:.4g}); turn the "
                "sign of one with position_scale or motor_position_scale"
            )
        if abs(slope - 1.0) > _ALIKE:
            raise InputError(
                f"the motor of joint {names[j]!r} moves {slope:.6g} times as far as its link; positions of "
                "motors are reflected to the link side: the gear ratio that was used is too small by as much"
            )


def _check_efforts(model: TorqueModel, data: Data) -> None:
    """Hold efforts against those of the file: currents or rotor torques, signs, and joints in another order.

    Friction and offsets may be anything, so they are taken out on both sides first.
    """
    measured = np.flatnonzero(data.recording.efforts.measured)
    names = model.robot.joint_names
    motion = data.motion(data.effort_times, np.zeros(model.n))
    columns = model.columns(motion, data.recording.at_motor)
    told = (columns @ model.prior)[:, measured]
    efforts = data.efforts[:, measured]
    correlation = np.zeros((len(measured), len(measured)))
    slopes = np.zeros(len(measured))
    for i, j in enumerate(measured):
        nuisance = columns[:, j, [model.place(kind).start + j for kind in (1, 2, 3)]]
        effort, predicted = _without(nuisance, efforts[:, [i]])[:, 0], _without(nuisance, told)
        size = np.linalg.norm(effort) * np.linalg.norm(predicted, axis=0)
        correlation[i] = (effort @ predicted) / np.maximum(size, 1e-300)
        slopes[i] = effort @ predicted[:, i] / max(float(predicted[:, i] @ predicted[:, i]), 1e-300)
    _, order = linear_sum_assignment(-np.abs(correlation))
    for i, k in enumerate(order):
        crossed = min(abs(correlation[i, k]), abs(correlation[k, i]))
        straight = max(abs(correlation[i, i]), abs(correlation[k, k]))
        if i != k and order[k] == i and crossed > _CLEAR and straight < 0.5 * _CLEAR:
            raise InputError(
                f"the effort of joint {names[measured[i]]!r} is that of {names[measured[k]]!r} by the file, "
                "and the other way round; were these joints swapped in the recording?"
            )
    for i, j in enumerate(measured):
        if correlation[i, i] < -_CLEAR:
            raise InputError(
                f"the effort of joint {names[j]!r} has the opposite sign of what the file says (correlation "
                f"{correlation[i, i]:.2f}); turn it with effort_scale"
            )
        if correlation[i, i] > _CLEAR and not _WRONG[0] < slopes[i] < _WRONG[1]:
            ratio = model.specs[j].gear_ratio
            said = f", whose gear ratio is {ratio:g}," if ratio != 1.0 else ""
            raise InputError(
                f"efforts of joint {names[j]!r} are {slopes[i]:.3g} times those of the file; are they "
                f"currents, or torques of the rotor{said}? Give effort_scale, N·m at the link for each unit"
            )


def _without(nuisance: Array, values: Array) -> Array:
    """Return values (N, m) without what columns (N, k) explain."""
    return np.asarray(values - nuisance @ np.linalg.lstsq(nuisance, values, rcond=None)[0])
