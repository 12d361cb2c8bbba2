"""The classical Runge-Kutta method of fourth order, with equal steps."""

from __future__ import annotations

from collections.abc import Callable

from hodyn_ros.jets import Array


def runge_kutta(rates: Callable[[Array], Array], state: Array, step: float, count: int) -> Array:
    """Return the state after `count` steps of `step` [s]; `rates` gives its time derivative."""
    for _ in range(count):
        first = rates(state)
        second = rates(state + 0.5 * step * first)
        third = rates(state + 0.5 * step * second)
        fourth = rates(state + step * third)
        state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return state
