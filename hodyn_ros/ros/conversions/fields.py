"""The float64[] fields of messages as arrays: lengths, gaps and values checked, joints put in order."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.ros.conversions.joint_order import JointOrder
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Array = NDArray[np.float64]
Places = NDArray[np.intp] | None  # what JointOrder.places returns


def float64s(values: Array) -> array[float]:
    """Return an array in the one form that rclpy passes on without looking at every number."""
    return array("d", values.tobytes())


def read_stack(
    rows: Sequence[array[float]],
    rest: array[float],
    fields: Sequence[str],
    higher: str,
    joints: JointOrder,
    places: Places,
) -> Array:
    """Return a stack (orders, n), joints as in the message, from a field per order and one for the rest.

    `rows` and `rest` are the values of the fields named `fields` and `higher`; `places` is only used to name
    the joint at fault. Raises Refused for a wrong length, a gap, and numbers that are not finite.
    """
    orders = _count_orders(rows, rest, fields, higher, len(joints))
    # joined as bytes: several times faster than an assignment per row at the few joints of a robot
    stack = np.frombuffer(b"".join([*rows, rest])).reshape(orders, len(joints))
    check_finite(stack, joints, places, fields)
    return stack


def in_model_order(stack: Array, places: Places) -> Array:
    """Return values (..., n) in the order of the model, C-contiguous."""
    return stack if places is None else np.take(stack, places, axis=-1)


def all_finite(values: Array) -> bool:
    """Return whether all numbers are finite."""
    # The sum of their squares tells at once, unless they are so large that it overflows.
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())


def check_finite(stack: Array, joints: JointOrder, places: Places, labels: Sequence[str]) -> None:
    """Raise Refused naming row and joint unless all of (rows, n) is finite."""
    if all_finite(stack):
        return
    row, column = (int(i) for i in np.argwhere(~np.isfinite(stack))[0])
    label = labels[row] if row < len(labels) else f"derivative {row}"
    joint = joints.names[column if places is None else int(np.flatnonzero(places == column)[0])]
    raise MessageRejected(
        Reason.NOT_FINITE, f"{label} holds {stack[row, column]} for joint {joint!r}; send finite numbers"
    )


def wrong_length(field: str, found: int, n: int) -> MessageRejected:
    """Return the refusal of a field that does not hold one value per joint."""
    return MessageRejected(
        Reason.WRONG_LENGTH, f"{field} holds {found} values for {n} joints; send one per joint, or none"
    )


def check_one_per_joint(field: str, values: Sequence[float], names: Sequence[str]) -> None:
    """Raise Refused unless a field holds one value for each joint of its message."""
    if len(values) != len(names):
        raise MessageRejected(
            Reason.WRONG_LENGTH,
            f"{field} holds {len(values)} values for {len(names)} joints; send one per joint",
        )


def position_not_finite(joint: str) -> MessageRejected:
    """Return the refusal of a position that is NaN or infinite."""
    return MessageRejected(
        Reason.NOT_FINITE, f"position of joint {joint!r} is not finite; send finite numbers"
    )


def read_sixes(values: array[float], field: str) -> Array:
    """Return twists or wrenches by order (orders, 6); raises Refused for bad lengths and numbers."""
    if len(values) % 6:
        raise MessageRejected(Reason.WRONG_LENGTH, f"{field} holds {len(values)} values; each order has six")
    stack = np.frombuffer(values).reshape(-1, 6)
    if not all_finite(stack):
        raise MessageRejected(Reason.NOT_FINITE, f"{field} holds NaN or infinite numbers; send finite ones")
    return stack


def _count_orders(
    rows: Sequence[array[float]], rest: array[float], fields: Sequence[str], higher: str, n: int
) -> int:
    orders = 0
    for place, (field, row) in enumerate(zip(fields, rows)):
        if not row:
            continue
        if len(row) != n:
            raise wrong_length(field, len(row), n)
        if place != orders:
            raise _gap(field, fields[orders])
        orders += 1
    if not rest:
        return orders
    if n == 0 or len(rest) % n:
        raise MessageRejected(
            Reason.WRONG_LENGTH,
            f"{higher} holds {len(rest)} values for {n} joints; send one per joint for each order",
        )
    if orders != len(fields):
        raise _gap(higher, fields[orders])
    return orders + len(rest) // n


def _gap(present: str, absent: str) -> MessageRejected:
    return MessageRejected(
        Reason.MISSING_DERIVATIVES,
        f"{present} is given but {absent} is empty; give the derivatives without gaps",
    )
