"""Desired motions with one thing wrong each, and the reason for which they have to be rejected."""

from collections.abc import Callable

import numpy as np
from builtin_interfaces.msg import Time

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.messages import MOTION_FIELDS, time_message, write_desired_motion
from hodyn_ros.ros.streams.rejections import Reason

Rng = np.random.Generator
NEEDED = 5  # orders that efforts of order 2 need; the messages carry up to three more


def good_motion(rng: Rng, joint_names: tuple[str, ...], stamp: int) -> DesiredMotion:
    """Return a sound message with the joints in any order and more derivatives than needed."""
    names = [joint_names[i] for i in rng.permutation(len(joint_names))]
    stack = rng.uniform(-1.0, 1.0, (int(rng.integers(NEEDED, NEEDED + 4)), len(names)))
    return write_desired_motion(names, time_message(stamp), stack)


def malformed_motion(rng: Rng, joint_names: tuple[str, ...], stamp: int) -> tuple[DesiredMotion, Reason]:
    """Return a message that is good but for one thing, and what is wrong with it."""
    msg = good_motion(rng, joint_names, stamp)
    spoil, reason = SPOILERS[int(rng.integers(len(SPOILERS)))]
    spoil(rng, msg)
    return msg, reason


def _filled(rng: Rng, msg: DesiredMotion) -> str:
    """Return the name of a field that holds values, at random."""
    fields = [field for field in (*MOTION_FIELDS, "higher_derivatives") if len(getattr(msg, field))]
    return fields[int(rng.integers(len(fields)))]


def _place(rng: Rng, msg: DesiredMotion) -> int:
    return int(rng.integers(len(msg.joint_names)))


def _unknown(rng: Rng, msg: DesiredMotion) -> None:
    alien = ["", "nobody", " " + msg.joint_names[0], msg.joint_names[0] + "\n", "é", "x" * 10_000]
    msg.joint_names[_place(rng, msg)] = alien[int(rng.integers(len(alien)))]


def _missing(rng: Rng, msg: DesiredMotion) -> None:
    del msg.joint_names[_place(rng, msg)]


def _repeated(rng: Rng, msg: DesiredMotion) -> None:
    place = _place(rng, msg)
    other = (place + 1) % len(msg.joint_names)
    if rng.random() < 0.5:
        msg.joint_names[place] = msg.joint_names[other]
    else:
        msg.joint_names.append(msg.joint_names[other])


def _nameless(rng: Rng, msg: DesiredMotion) -> None:
    msg.joint_names = []


def _short(rng: Rng, msg: DesiredMotion) -> None:
    getattr(msg, _filled(rng, msg)).pop()


def _long(rng: Rng, msg: DesiredMotion) -> None:
    getattr(msg, _filled(rng, msg)).extend([0.0] * int(rng.integers(1, len(msg.joint_names))))


def _not_finite(rng: Rng, msg: DesiredMotion) -> None:
    field = getattr(msg, _filled(rng, msg))
    field[int(rng.integers(len(field)))] = [np.nan, np.inf, -np.inf][int(rng.integers(3))]


def _gap(rng: Rng, msg: DesiredMotion) -> None:
    del getattr(msg, MOTION_FIELDS[int(rng.integers(NEEDED))])[:]


def _too_few(rng: Rng, msg: DesiredMotion) -> None:
    for field in MOTION_FIELDS[int(rng.integers(NEEDED)) :]:
        del getattr(msg, field)[:]
    del msg.higher_derivatives[:]


def _base(rng: Rng, msg: DesiredMotion) -> None:
    msg.base_twists = [0.0] * 24


def _backwards(rng: Rng, msg: DesiredMotion) -> None:
    msg.header.stamp = Time(nanosec=int(rng.integers(1000)))


def _too_large(rng: Rng, msg: DesiredMotion) -> None:
    msg.velocities = [1e200] * len(msg.joint_names)


SPOILERS: tuple[tuple[Callable[[Rng, DesiredMotion], None], Reason], ...] = (
    (_unknown, Reason.UNKNOWN_JOINT),
    (_missing, Reason.MISSING_JOINT),
    (_repeated, Reason.REPEATED_JOINT),
    (_nameless, Reason.NO_NAMES),
    (_short, Reason.WRONG_LENGTH),
    (_long, Reason.WRONG_LENGTH),
    (_not_finite, Reason.NOT_FINITE),
    (_gap, Reason.MISSING_DERIVATIVES),
    (_too_few, Reason.MISSING_DERIVATIVES),
)
"""What is wrong with a message for a robot on the ground, whatever its joints."""

NODE_SPOILERS: tuple[tuple[Callable[[Rng, DesiredMotion], None], Reason], ...] = (
    (_base, Reason.BAD_BASE),
    (_backwards, Reason.TIME_BACKWARDS),
    (_too_large, Reason.RESULT_NOT_FINITE),
)
"""What only the node can see: it knows the robot, what came before, and what comes out."""
