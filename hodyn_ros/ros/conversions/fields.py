"""Fields of messages as arrays: lengths, gaps and values checked, joints in the order of the model."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from reprlib import Repr

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Places = NDArray[np.intp] | None  # what JointOrder.places returns

# A robot of a hundred joints, or a name of a thousand letters, must not fill the screen.
_SHOWN = 12
_short = Repr()
_short.maxstring = 80


class JointOrder:
    """The joints of the model in its order; finds how the names of a message, in any order, map onto them.

    >>> joints = JointOrder(["a", "b", "c"])
    >>> joints.places(["c", "a", "b"])
    array([1, 2, 0])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self._known = frozenset(self.names)
        if len(self._known) != len(self.names):
            raise ModelError(f"the joint names of the model must differ, found {list(self.names)}")
        # A stream repeats its names; the last answer saves looking them up a thousand times a second.
        self._last: list[str] = list(self.names)
        self._last_places: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def places(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        """Return `p` (n,) with `values[..., p]` in the order of the model; None where it is that already.

        Raises MessageRejected when a joint is unknown, missing or named twice.
        """
        if names == self._last:
            return self._last_places
        names = list(names)
        if not names:
            raise MessageRejected(
                Reason.NO_NAMES, f"joint_names is empty; the model expects {self.listing()}"
            )
        if not self._known.issuperset(names):
            unknown = next(name for name in names if name not in self._known)
            raise MessageRejected(
                Reason.UNKNOWN_JOINT,
                f"joint {_short.repr(unknown)} is unknown; the model expects {self.listing()}",
            )
        if (twice := repeated(names)) is not None:
            raise MessageRejected(
                Reason.REPEATED_JOINT, f"joint {twice!r} is named twice in the message; name it once"
            )
        places = {name: place for place, name in enumerate(names)}
        if len(names) != len(self.names):
            missing = next(name for name in self.names if name not in places)
            raise MessageRejected(
                Reason.MISSING_JOINT,
                f"joint {missing!r} is missing from the message; the model expects {self.listing()}",
            )
        order = np.array([places[name] for name in self.names], dtype=np.intp)
        self._last = names
        self._last_places = None if tuple(names) == self.names else order
        return self._last_places

    def listing(self) -> str:
        """Return the names for a log line, cut where there are very many."""
        shown = ", ".join(repr(name) for name in self.names[:_SHOWN])
        rest = f", ... {len(self.names)} in all" if len(self.names) > _SHOWN else ""
        return f"[{shown}{rest}]"


def repeated(names: Sequence[str]) -> str | None:
    """Return the first name that comes a second time, None where all differ."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


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
    the joint at fault. Raises MessageRejected for a wrong length, a gap, and numbers that are not finite.
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
    # vdot, unlike dot, does not warn of that.
    numbers = values.ravel()
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def check_finite(stack: Array, joints: JointOrder, places: Places, labels: Sequence[str]) -> None:
    """Raise MessageRejected naming row and joint unless all of (rows, n) is finite."""
    if all_finite(stack):
        return
    row, column = (int(i) for i in np.argwhere(~np.isfinite(stack))[0])
    label = labels[row] if row < len(labels) else f"derivative {row}"
    joint = joints.names[column if places is None else int(np.flatnonzero(places == column)[0])]
    raise MessageRejected(
        Reason.NOT_FINITE, f"{label} holds {stack[row, column]} for joint {joint!r}; send finite numbers"
    )


def wrong_length(field: str, found: int, n: int) -> MessageRejected:
    """Return the rejection of a field that does not hold one value per joint."""
    return MessageRejected(
        Reason.WRONG_LENGTH, f"{field} holds {found} values for {n} joints; send one per joint, or none"
    )


def check_one_per_joint(field: str, values: Sequence[float], names: Sequence[str]) -> None:
    """Raise MessageRejected unless a field holds one value for each joint of its message."""
    if len(values) != len(names):
        raise MessageRejected(
            Reason.WRONG_LENGTH,
            f"{field} holds {len(values)} values for {len(names)} joints; send one per joint",
        )


def position_not_finite(joint: str) -> MessageRejected:
    """Return the rejection of a position that is NaN or infinite."""
    return MessageRejected(
        Reason.NOT_FINITE, f"position of joint {joint!r} is not finite; send finite numbers"
    )


def read_sixes(values: array[float], field: str) -> Array:
    """Return twists or wrenches by order (orders, 6); raises MessageRejected for bad lengths and numbers."""
    return read_rows(values, field, 6, "component")


def read_rows(values: array[float], field: str, count: int, of: str) -> Array:
    """Return what `count` things of a kind have by order (orders, count); raises as `read_sixes`."""
    if len(values) % count if count else len(values):
        raise MessageRejected(
            Reason.WRONG_LENGTH,
            f"{field} holds {len(values)} values, which are not by order one for each of {count} {of}s",
        )
    stack = np.frombuffer(values).reshape(-1, count) if count else np.empty((0, 0))
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
