"""What the calls of a robot with couplings or loops are given: the motion of its independent coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, real_array
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_HIGHEST_ORDER = 30


def coordinate_motion(
    closure: Closure, q: ArrayLike | None, base: BaseMotion | None, rates: int
) -> tuple[Array, BaseMotion | None]:
    """Check the motion of the independent joints, and of platform or base; order r needs r + `rates`.

    `q` (order + rates + 1, k), or None where no joint is a coordinate. Returns the joints' motion, and that
    of platform or base with as many spatial twists as needed. Raises InputError saying what was expected.
    """
    name, k = closure.tree.name, len(closure.joints)
    _check_base(closure, base)
    if q is None:
        if k or base is None:
            raise InputError(
                f"the coordinates of robot {name!r} are the joints "
                f"{[closure.tree.joint_names[j] for j in closure.joints]}; give their motion"
            )
        if len(base.twists) < rates:
            raise InputError(
                f"this needs {rates} base twists (the twist and its derivatives), found {len(base.twists)}"
            )
        q = np.zeros((len(base.twists) + 1, 0))
    shape = f"(order + {rates + 1}, {k})"
    stack = real_array("the motion", q, shape)
    if stack.ndim != 2 or stack.shape[1] != k or len(stack) <= rates:
        what = ("positions", "velocities", "accelerations")[: rates + 1]
        raise InputError(
            f"the motion must have shape {shape}: {', '.join(what)} at least; found {stack.shape}"
        )
    if len(stack) - 1 - rates > _HIGHEST_ORDER:
        raise InputError(
            f"a motion of shape {stack.shape} has order {len(stack) - 1 - rates}, and {_HIGHEST_ORDER} is "
            "the highest there is; the samples of a batch stand before the derivatives"
        )
    check_finite("the motion", stack)
    if base is None:
        return stack, None
    needed = len(stack) - 1
    if len(base.twists) < needed:
        raise InputError(
            f"this needs {needed} base twists (the twist and its derivatives), found {len(base.twists)}"
        )
    return stack, base.in_representation("spatial")


def coordinate_motions(
    closure: Closure, q: ArrayLike | None, base: BaseMotion | None, rates: int
) -> tuple[int, Array, BaseMotion | None]:
    """Check the motions of a batch as `coordinate_motion` does; joints or base may be the same for all.

    Returns the number of samples, zero where there is no batch, the motion of the joints (N, ...) and that of
    platform or base, as many or one. InputError for no samples, and for two numbers of them.
    """
    joints = None if q is None or np.ndim(q) != 3 else real_array("the motion", q, "(N, orders, joints)")
    of_base = isinstance(base, BaseMotion) and base.batch
    counts = sorted({*([] if joints is None else [len(joints)]), *(base.batch if base and of_base else [])})
    if not counts:
        return 0, *coordinate_motion(closure, q, base, rates)
    if len(counts) > 1 or not counts[0]:
        raise InputError(f"a batch holds one sample or more, as many of a base as of joints; found {counts}")
    first = base.one(0) if base is not None and of_base else base
    y, leader = coordinate_motion(closure, q if joints is None else joints[0], first, rates)
    if joints is not None:
        check_finite("the motion", joints)
    if base is not None and of_base:
        leader = base.in_representation("spatial")
    return counts[0], np.broadcast_to(y, (counts[0], *y.shape)) if joints is None else joints, leader


def sample_of(leader: BaseMotion | None, i: int) -> BaseMotion | None:
    """Return the motion of platform or base at one sample of a batch."""
    if leader is None or not leader.batch:
        return leader
    return leader.one(i)


def count_of(y: Array) -> int:
    """Return how many samples a motion of the coordinates has; zero of one that is no batch."""
    return len(y) if y.ndim == 3 else 0


def spatial_arrays(leader: BaseMotion | None, orders: int) -> list[Array]:
    """Return the pose of platform or base, and so many spatial twists, as code takes them; none without."""
    if leader is None:
        return []
    return [leader.pose, np.ascontiguousarray(leader.in_representation("spatial").twists[..., :orders, :])]


def samples(*arguments: Any) -> list[tuple[Any, ...]]:
    """Return the arguments of a call on a batch one by one: those without samples are the same for all.

    Arrays with three axes have samples, and motions of bases. Nothing is returned where there is no batch.
    Raises InputError for a batch without samples, and for two numbers of them.
    """

    def count(one: Any) -> int | None:
        if isinstance(one, BaseMotion):
            return one.batch[0] if one.batch else None
        return len(one) if one is not None and np.ndim(one) == 3 else None

    counts = {result for one in arguments if (result := count(one)) is not None}
    if not counts:
        return []
    if len(counts) > 1 or 0 in counts:
        raise InputError(
            f"a batch holds one sample or more, as many of each argument; found {sorted(counts)}"
        )
    return [
        tuple(
            one if count(one) is None else sample_of(one, i) if isinstance(one, BaseMotion) else one[i]
            for one in arguments
        )
        for i in range(counts.pop())
    ]


def drive_rows(closure: Closure, efforts: ArrayLike, base_wrench: ArrayLike | None) -> Array:
    """Return efforts (order + 1, efforts): the wrench on a base that moves freely, then the drives'."""
    n = len(closure.driven)
    drives = real_array("the torques", efforts, f"(order + 1, {n})")
    if drives.ndim != 2 or drives.shape[1] != n or not len(drives):
        raise InputError(f"the torques must have shape (order + 1, {n}), found {drives.shape}")
    if len(drives) > _HIGHEST_ORDER + 1:
        raise InputError(f"torques of shape {drives.shape} have an order above {_HIGHEST_ORDER}")
    check_finite("the torques", drives)
    if not closure.base_given:
        if base_wrench is not None:
            raise InputError(f"robot {closure.tree.name!r} has no base to push; give wrenches on its bodies")
        return drives
    shape = (len(drives), 6)
    wrench = np.zeros(shape) if base_wrench is None else finite_array("the base wrench", base_wrench, shape)
    return np.concatenate([wrench, drives], axis=1)


def drive_row_samples(
    closure: Closure, count: int, efforts: ArrayLike, base_wrench: ArrayLike | None
) -> Array:
    """Return efforts (N, order + 1, efforts) of a batch as `drive_rows` does; one for all or one for each.

    Of no batch (`count` 0) what `drive_rows` returns.
    """
    if not count:
        return drive_rows(closure, efforts, base_wrench)
    parts: list[Array | None] = []
    for name, values in (("the torques", efforts), ("the base wrench", base_wrench)):
        whole = None if values is None or np.ndim(values) != 3 else real_array(name, values, "(N, ...)")
        if whole is not None and len(whole) != count:
            raise InputError(f"{name}: a batch of {count} takes as many, or one for all; found {len(whole)}")
        if whole is not None:
            check_finite(name, whole)
        parts.append(whole)
    drives, pushes = parts
    first = drive_rows(
        closure, efforts if drives is None else drives[0], base_wrench if pushes is None else pushes[0]
    )
    result = np.tile(first, (count, 1, 1))
    if drives is not None:
        result[..., first.shape[1] - drives.shape[2] :] = drives
    if pushes is not None:
        result[..., :6] = pushes
    return result


def preload_rows(closure: Closure, preload: ArrayLike | None, order: int) -> Array | None:
    """Return a preload (order + 1, driven), filled up with zeros; refused where no drive is redundant."""
    if preload is None:
        return None
    n = len(closure.driven)
    if closure.base_given or n == closure.n_coordinates:
        raise InputError(
            f"a preload needs more drives than coordinates; robot {closure.tree.name!r} has {n} of both"
        )
    rows = drive_values("the preload", closure, preload)
    result = np.zeros((order + 1, n))
    result[: len(rows)] = rows[: order + 1]
    return result


def drive_values(name: str, closure: Closure, values: ArrayLike) -> Array:
    """Return values of the drives, (driven,) or (orders, driven), as the latter."""
    n = len(closure.driven)
    rows = real_array(name, values, f"({n},) or (orders, {n})")
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != n or not len(rows):
        raise InputError(f"{name} must have shape ({n},) or (orders, {n}), found {np.shape(values)}")
    check_finite(name, rows)
    return rows


def given_base(closure: Closure, base: BaseMotion | None, orders: int) -> BaseMotion | None:
    """Return the motion of a prescribed base with spatial twists; InputError without enough of them."""
    if not closure.base_given:
        raise InputError(
            f"robot {closure.tree.name!r} has no prescribed base; its drives alone say how it moves"
        )
    _check_base(closure, base)
    assert base is not None
    if len(base.twists) < orders:
        raise InputError(f"this needs {orders} base twists, found {len(base.twists)}")
    return base.in_representation("spatial")


def _check_base(closure: Closure, base: BaseMotion | None) -> None:
    name = closure.tree.name
    if base is not None and not isinstance(base, BaseMotion):
        raise InputError(f"base must be a BaseMotion, found {type(base).__name__}")
    if base is not None and base.batch:
        raise InputError("base holds motions of several samples; robots with loops take one")
    if closure.leader is None:
        if base is not None:
            raise InputError(f"robot {name!r} has a fixed base; a base motion does not apply")
    elif base is None:
        body = closure.tree.body_names[closure.leader]
        what = "has a floating base" if closure.base_given else f"is moved by its platform {body!r}"
        raise InputError(f"robot {name!r} {what}; give its motion as base=BaseMotion(...)")
