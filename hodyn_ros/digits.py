"""How many digits an answer has left, and the one rule by which calls refuse it.

Near a singular pose derivatives lose digits, the more the higher their order. How many are left is found by
trial: the same computation of input that differs by its rounding, begun elsewhere where it iterates, goes
through other roundings; what comes out differs by about the error. So a result is judged without a word about
how it was found. Where a call has compiled code, and that says that a pose is near no singular one, nothing
is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import SingularError

FEWEST = 6.0  # digits; with fewer left a call refuses
DRAWS = 3
CLOSING = 2.0  # gain of robots with loops: numbers that close them are rounded once, the same in every trial
BEGIN = 1e-7  # [rad], and of the robot's size: how far off iterations begin, besides
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of the input, and of what the robot was made from
_FULL = -float(np.log10(np.finfo(np.float64).eps))
_ROW = 0.1  # share of the rounding of the largest number of a row that small ones may differ by as well
_NATURAL = 0.01  # share of what is natural for such a motion that results are measured by where they vanish


class Accuracy(NamedTuple):
    """How wrong the parts of an answer may be, joints and base for example, by derivative order."""

    errors: Array  # (parts, orders): estimates of the largest error, in the units of the answer
    sizes: Array  # (parts, orders): what they are measured by, the largest number where that does not vanish

    @property
    def digits(self) -> Array:
        """Digits (orders,) that are left of the least accurate part, at most 15.7."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(self.errors > 0.0, self.errors / self.sizes, 0.0)
            left = -np.log10(np.maximum(np.nan_to_num(shares, nan=np.inf, posinf=1e300), 10.0**-_FULL))
        result: Array = np.maximum(left, 0.0).min(axis=0)
        return result

    @property
    def holds(self) -> int:
        """The highest order up to which enough digits are left, -1 where there is none."""
        few = np.flatnonzero(self.digits < FEWEST)
        return int(few[0]) - 1 if len(few) else self.errors.shape[1] - 1


def accuracy(
    computed: Sequence[Array],
    of_rounded_input: Sequence[Sequence[Array] | None],
    natural: Sequence[Array],
    gain: float = 1.0,
) -> Accuracy:
    """Estimate the accuracy of the parts of an answer, each with the order on its first axis.

    `others`: the same of input that was rounded, None where that cannot be computed; `natural` (orders,) of
    each part: what is natural for such a motion; `gain`: by how much more than by these an answer may be off.
    """
    rows = [sizes_by_order(part) for part in computed]
    errors = np.array([10.0**-_FULL * row for row in rows])
    for other in of_rounded_input:
        apart = np.full(errors.shape, np.inf)
        if other is not None:
            for p, (part, beside) in enumerate(zip(computed, other)):
                apart[p] = gain * sizes_by_order(beside - part)
        errors = np.maximum(errors, np.nan_to_num(apart, nan=np.inf, posinf=np.inf))
    sizes = np.maximum(np.array(rows), _NATURAL * np.array(natural))
    return Accuracy(errors, sizes)


def moving_rows(poses: Array, twists: Array) -> Array:
    """Return poses and the derivatives of their twists as rows by order, a part of an answer."""
    width = twists[:1].size
    rows = np.zeros((len(twists) + 1, max(poses.size, width)))
    rows[0, : poses.size] = poses.ravel()
    rows[1:, :width] = twists.reshape(len(twists), width)
    return rows


def sizes_by_order(part: Array) -> Array:
    """Return the largest number of each order, which is on the first axis."""
    result: Array = np.abs(part).reshape(len(part), -1 if part.size else 0).max(axis=1, initial=0.0)
    return result


def rounded(values: Array, rng: np.random.Generator, floor: Array | float = 0.0, own: float = 1.0) -> Array:
    """Return an array whose numbers differ by their rounding, those of the first row by that of `floor`.

    By so many times as much as what the answer is computed from besides has its `own` rounding.
    """
    sizes = np.abs(values)
    sizes = sizes + _ROW * sizes.max(axis=-1, keepdims=True, initial=0.0)
    if sizes.size:
        sizes[..., 0, :] = np.maximum(sizes[..., 0, :], floor)
    result: Array = values + _ROUNDING * own * sizes * rng.uniform(-1.0, 1.0, values.shape)
    return result


def rounded_pose(pose: Array, rng: np.random.Generator) -> Array:
    """Return homogeneous matrices (..., 4, 4) that differ by their rounding, of turns and of shifts apart."""
    result = pose.copy()
    result[..., :3, :3] = rounded(pose[..., :3, :3], rng)
    result[..., :3, 3:] = np.swapaxes(rounded(np.swapaxes(pose[..., :3, 3:], -1, -2), rng), -1, -2)
    return result


def natural_rates(rates: Sequence[float] | Array, orders: int) -> Array:
    """Return the sizes (orders,) of a motion's derivatives, from zero on, that are natural for one as fast.

    As fast as its derivatives up to there are. `rates`: the sizes of the derivatives of the motion, from the
    first on.
    """
    speeds = [float(rate) ** (1.0 / k) for k, rate in enumerate(rates, 1)]
    with np.errstate(over="ignore"):  # numbers that are far too large are as natural as any
        return np.array([np.float64(max(speeds[:k], default=0.0)) ** k for k in range(orders)])


_asked: ContextVar[bool] = ContextVar("asked", default=False)


@contextmanager
def asked_for() -> Iterator[None]:
    """Let calls return what they would refuse, as long as their accuracy is asked for."""
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def is_asked_for() -> bool:
    """Whether calls are to return what they would refuse."""
    return _asked.get()


def refuse_without_digits(
    reached: Accuracy, what: str, instead: str, why: str = "the pose is too close to a singular one"
) -> None:
    """Raise SingularError where fewer digits are left than `FEWEST`.

    `what`: the answer in words; `instead`: what to do besides asking for fewer orders.
    """
    if is_asked_for():
        return
    digits, holds = reached.digits, reached.holds
    if holds == len(digits) - 1:
        return
    first = holds + 1
    less = f"ask for order {holds} at most, or " if holds >= 0 else ""
    raise SingularError(
        f"{what} has {digits[first]:.1f} digits left at order {first}, fewer than {FEWEST:g}: {why}; "
        f"{less}{instead}",
        float(10.0 ** (_FULL - digits[first])),
        order=holds,
    )
