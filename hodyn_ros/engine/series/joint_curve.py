"""Joints that follow others along curves, over abstract scalars: `hodyn_ros.model.joint_function` in code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from hodyn_ros.engine.series.vectors import Scalar
from hodyn_ros.lie import jets
from hodyn_ros.model.joint_function import SLACK, JointFunction


def curve(function: JointFunction, x: Scalar, count: int) -> list[Scalar]:
    """Return the Taylor coefficients (count,) of f at x; beyond its ends its last piece goes on."""
    breaks, pieces = function.breaks, [*function.coefficients.T.tolist()]
    if function.periodic:
        low, period = float(breaks[0]), float(breaks[-1] - breaks[0])
        x = x - period * np.floor((x - low) * (1.0 / period))
    center, *about = (
        _looked_up(x, breaks[:-1].tolist(), [function.centers.tolist(), *pieces])
        if len(breaks) > 2
        else [float(function.centers[0]), *(piece[0] for piece in pieces)]
    )
    distance = x - center
    for k in range(min(count, len(about) - 1)):  # Horner's scheme, repeated, moves the center to x
        for m in range(len(about) - 2, k - 1, -1):
            about[m] = about[m] + distance * about[m + 1]
    return [*about, *[0.0] * count][:count]


def _looked_up(x: Scalar, starts: list[float], rows: Sequence[Sequence[float]]) -> list[Scalar]:
    """Return from each of `rows` the number of the interval that x lies in, as of `Traced.looked_up`."""
    if not isinstance(x, float):
        return list(x.looked_up(starts, rows))
    place = max(bisect_right(starts, x) - 1, 0)
    return [row[place] for row in rows]


def slopes(function: JointFunction, motion: Sequence[Scalar]) -> list[Scalar]:
    """Return the Taylor coefficients of f'(x(t)) from those of a motion x, as many of them."""
    rate = jets.derivative(np.array(curve(function, motion[0], len(motion) + 1), dtype=object))
    return list(jets.compose(rate, np.array(motion, dtype=object)))


def beyond(function: JointFunction, x: Scalar) -> Scalar:
    """Return zero where f is defined, and one or more where it is not."""
    low, high = float(function.breaks[0]), float(function.breaks[-1])
    if function.periodic or not np.isfinite(high - low):
        return 0.0
    outside = (abs(x - low) - (x - low)) + (abs(x - high) + (x - high))
    return outside * (0.5 / (SLACK * (high - low)))
