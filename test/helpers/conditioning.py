"""Bounds that follow from conditioning: what one rounding of all that goes in does to what comes out.

A bound that is a number holds on the processor that it was tried on; another one rounds otherwise, and an
ill-conditioned problem, such as a platform on legs that nearly depend on each other, makes more of it.
"""

from collections.abc import Callable

import numpy as np

from hodyn_ros.array import Array

ROUNDING = 2.0**-52
SLACK = 8.0
"""Roundings of its input that a computation may be away from what is exact (docs/accuracy.md)."""

_STEP = 2.0**-34  # of what goes in: its effect is far above that of rounding, and the problem linear over it
_DRAWS = 3


def largest(rows: Array) -> Array:
    """Return the largest number of each row (rows, ...)."""
    result: Array = np.abs(rows).reshape(len(rows), -1).max(axis=1, initial=0.0)
    return result


def moved_by_rounding(call: Callable[..., Array], *given: Array, sizes: Array | None = None) -> Array:
    """Return by how much each row of what `call` returns moves when all that is given is rounded once.

    That is the largest of three draws, and at least one rounding of the result itself. `sizes`, of the first
    array that is given and broadcast to it, are those of the numbers that are rounded: where they are
    differences of larger ones, as joint positions are that begin at zero; by default the numbers themselves.
    """
    rng, right = np.random.default_rng(0), call(*given)
    scales = [np.abs(each) for each in given]
    if sizes is not None:
        scales[0] = np.broadcast_to(sizes, given[0].shape)
    moved = [ROUNDING * largest(right)]
    for _ in range(_DRAWS):
        near = [x + _STEP * size * rng.uniform(-1.0, 1.0, x.shape) for x, size in zip(given, scales)]
        moved.append(largest(call(*near) - right) * (ROUNDING / _STEP))
    result: Array = np.max(moved, axis=0)
    return result


def moved_back_by_rounding(call: Callable[[Array], Array], x: Array) -> Array:
    """Return by how much each row of x moves when what `call` makes of it is rounded, and x is found again.

    For what undoes `call`, which alone is asked: by its derivatives, and least squares where it returns more
    numbers than it is given. Each number is rounded as the largest of its row is. Where x does
    not move anything, it counts as found.
    """
    right = call(x)
    unit = np.repeat(ROUNDING * np.maximum(largest(right), 1e-300), right[0].size)
    steps = np.repeat(np.maximum(largest(x), 1e-3) * 2.0**-20, x[0].size)
    beside = steps * np.eye(x.size)
    columns = [
        (call(x + way.reshape(x.shape)) - call(x - way.reshape(x.shape))).ravel() / (2.0 * step)
        for way, step in zip(beside, steps)
    ]
    back = np.linalg.pinv(np.stack(columns, axis=1) / unit[:, None] * steps, rcond=1e-9) * steps[:, None]
    moved = np.linalg.norm(back, axis=1).reshape(x.shape)
    result: Array = np.maximum(moved.max(axis=1), ROUNDING * largest(x))
    return result
