"""What the calls of a robot with couplings or loops are given: the motion of its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, n_axes, real_array
from hodyn_ros.codegen.sample_loop import each_sample
from hodyn_ros.dynamics.motion_stack import check_order, check_twists, joint_rows, required_base
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_Result = TypeVar("_Result")


class LoopedInputs(NamedTuple):
    """What a call of a robot with loops takes, checked; of a batch with an axis of samples in front."""

    y: Array  # (orders + 1, k) the motion of the joints that are coordinates
    leader: BaseMotion | None = None  # that of platform or base, with spatial twists
    wrenches: Sequence[AppliedWrench] = ()
    preload: Array | None = None  # (order + 1, driven): what efforts of redundant drives should come near

    @property
    def orders(self) -> int:
        """The highest derivative of the coordinates."""
        return self.y.shape[-2] - 1

    @property
    def n_samples(self) -> int:
        """How many samples there are; zero where there is no batch."""
        return len(self.y) if self.y.ndim == 3 else 0

    def one(self, i: int) -> LoopedInputs:
        """Return one sample of a batch."""
        return self._replace(y=self.y[i], leader=sample_of(self.leader, i))

    def each(self, compute: Callable[[LoopedInputs], _Result]) -> list[_Result]:
        """Return what is computed of each sample of a batch; errors name theirs."""
        return each_sample(self.n_samples, lambda i: compute(self.one(i)))

    def arrays(self, order: int, *further: Array) -> list[Array]:
        """Return what code takes: motions, what it takes `further`, wrenches up to an order, a preload."""
        y, leader, wrenches, preload = self
        arrays = [y]
        if leader is not None:
            arrays += [leader.pose, np.ascontiguousarray(leader.twists[..., : y.shape[-2] - 1, :])]
        arrays += further
        if wrenches:
            arrays += [wrench.up_to(order) for wrench in wrenches]
        if preload is not None:
            arrays.append(preload)
        return arrays


def looped_inputs(
    closure: Closure,
    q: ArrayLike | None,
    base: BaseMotion | None,
    rates: int,
    wrenches: Sequence[AppliedWrench] = (),
    preload: ArrayLike | None = None,
    *,
    alone: bool = False,
) -> LoopedInputs:
    """Check the motion of the independent joints, and of platform or base; order r needs r + `rates`.

    `q` (order + rates + 1, k), of a batch (N, ...), or None where no joint is a coordinate; joints or base
    may be the same for all samples. With `alone`, one sample is taken. Raises InputError saying what was
    expected.
    """
    name, k = closure.tree.name, len(closure.joints)
    base = _leading(closure, base)
    if q is None:
        if k or base is None:
            raise InputError(
                f"the coordinates of robot {name!r} are the joints "
                f"{[closure.tree.joint_names[j] for j in closure.joints]}; give their motion"
            )
        check_twists(base, rates)
        q = np.zeros((base.orders + 1, 0))
    stack = joint_rows(k, q, rates)
    check_order(stack.shape[-2] - 1 - rates, "a motion of shape {} has order", stack.shape)
    check_finite("the motion", stack)
    batches = stack.shape[:-2] if base is None else stack.shape[:-2] + base.batch
    count = _number(set(batches)) if batches else 0
    if base is not None:
        check_twists(base, stack.shape[-2] - 1)
        base = base.in_representation("spatial")
    if count and alone:
        raise InputError(f"this takes one sample; the motion, or that of the base, holds {count}")
    y = np.broadcast_to(stack, (count, *stack.shape)) if count and stack.ndim == 2 else stack
    rows = None if preload is None else preload_rows(closure, preload, y.shape[-2] - 1 - rates)
    return LoopedInputs(y, base, wrenches, rows)


def sample_of(leader: BaseMotion | None, i: int) -> BaseMotion | None:
    """Return the motion of platform or base at one sample of a batch."""
    if leader is None or not leader.batch:
        return leader
    return leader.one(i)


def samples(*arguments: Any) -> list[tuple[Any, ...]]:
    """Return the arguments of a call on a batch one by one: those without samples are the same for all.

    Arrays with three axes have samples, and motions of bases. Nothing is returned where there is no batch.
    Raises InputError for a batch without samples, and for two numbers of them.
    """

    def count(one: Any) -> int | None:
        if isinstance(one, BaseMotion):
            return one.batch[0] if one.batch else None
        return len(one) if one is not None and n_axes(one) == 3 else None

    counts = {result for one in arguments if (result := count(one)) is not None}
    if not counts:
        return []
    return [
        tuple(
            one if count(one) is None else sample_of(one, i) if isinstance(one, BaseMotion) else one[i]
            for one in arguments
        )
        for i in range(_number(counts))
    ]


def drive_rows(closure: Closure, efforts: ArrayLike, base_wrench: ArrayLike | None, count: int = 0) -> Array:
    """Return efforts (order + 1, efforts): the wrench on a base that moves freely, then the drives'.

    Of a batch of `count` samples (N, order + 1, efforts), either given once for all or one for each.
    """
    n, batch = len(closure.driven), (count,) if count else ()
    shape = f"(order + 1, {n})" + (f" or (N, order + 1, {n})" if count else "")
    drives = real_array("the torques", efforts, shape)
    if drives.ndim not in (2, 2 + len(batch)) or drives.shape[-1] != n or not drives.shape[-2]:
        raise ShapeError("the torques", shape, drives.shape)
    if drives.ndim == 3 and len(drives) != count:
        raise InputError(
            f"the torques: a batch of {count} takes as many, or one for all; found {len(drives)}"
        )
    orders = drives.shape[-2]
    check_order(orders - 1, "torques of shape {} have order", drives.shape)
    check_finite("the torques", drives)
    parts = [drives]
    if closure.base_prescribed:
        push = np.zeros((orders, 6)) if base_wrench is None else base_wrench
        each = batch if n_axes(push) == 3 else ()
        parts = [finite_array("the base wrench", push, (*each, orders, 6)), drives]
    elif base_wrench is not None:
        raise InputError(f"robot {closure.tree.name!r} has no base to push; give wrenches on its bodies")
    return np.concatenate([np.broadcast_to(part, (*batch, *part.shape[-2:])) for part in parts], axis=-1)


def preload_rows(closure: Closure, preload: ArrayLike, order: int) -> Array:
    """Return a preload (order + 1, driven), filled up with zeros; refused where no drive is redundant."""
    n = len(closure.driven)
    if closure.base_prescribed or n == closure.n_coordinates:
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
        raise ShapeError(name, f"({n},) or (orders, {n})", np.shape(values))
    check_finite(name, rows)
    return rows


def prescribed_base(closure: Closure, base: BaseMotion | None, orders: int) -> BaseMotion | None:
    """Return the motion of a prescribed base with spatial twists; InputError without enough of them."""
    if not closure.base_prescribed:
        raise InputError(
            f"robot {closure.tree.name!r} has no prescribed base; its drives alone say how it moves"
        )
    base = _leading(closure, base)
    assert base is not None
    if base.batch:
        raise InputError("base holds motions of several samples; this takes one")
    check_twists(base, orders)
    return base.in_representation("spatial")


def _leading(closure: Closure, base: BaseMotion | None) -> BaseMotion | None:
    """Return the motion of platform or base, of those that have one; InputError where it is missing."""
    moves = "has a floating base" if closure.base_prescribed else ""
    if closure.platform is not None:
        moves = f"is moved by its platform {closure.tree.body_names[closure.platform.body]!r}"
    return required_base(closure.tree.name, base, moves)


def batch_size(arrays: Sequence[Array], count: int) -> int:
    """Return how many samples so many arrays (N, rows, columns) hold; InputError for others."""
    if len(arrays) != count or any(n_axes(array) != 3 for array in arrays):
        raise InputError(f"expected batches (N, rows, columns), {count} in all, found {len(arrays)} arrays")
    return _number({len(array) for array in arrays})


def _number(counts: Collection[int]) -> int:
    """Return the one number of samples; InputError for several, and for none."""
    if len(counts) > 1 or 0 in counts:
        raise InputError(
            f"a batch holds one sample or more, as many of each argument; found {sorted(counts)}"
        )
    return next(iter(counts))
