"""What a drive has to be given so that its equations have an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hodyn_ros.codegen.tracer import Traced
from hodyn_ros.errors import InputError

Scalar = Any  # a number, an array of them, or a scalar of the tracer


def require(margin: Scalar, rejection: Callable[[], str]) -> None:
    """Raise InputError with the words of `rejection` where a margin is below zero or NaN.

    While a drive is being compiled, the margin goes to the conditions of the graph instead.
    """
    if isinstance(margin, Traced):
        margin.graph.conditions.append(margin)
    elif not (np.asarray(margin) >= 0.0).all():
        raise InputError(rejection())


def worst(values: Scalar) -> str:
    """Write the number that is farthest from zero."""
    entries = np.ravel(values)
    return f"{entries[int(np.argmax(np.abs(entries)))]:g}"


def is_positive(x: Scalar) -> Scalar:
    """Return 1 where a number is above zero, else 0."""
    if isinstance(x, Traced):
        return x.looked_up([-1.0, 5e-324], [[0.0, 1.0]])[0]
    return np.where(x > 0.0, 1.0, 0.0)
