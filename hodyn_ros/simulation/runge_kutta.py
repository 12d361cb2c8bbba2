"""The classical Runge-Kutta method of fourth order, with equal steps."""

from __future__ import annotations

from collections.abc import Callable

from hodyn_ros.array import Array


def runge_kutta(rates: Callable[[Array, float], Array], state: Array, step: float, count: int) -> Array:
    """Return the state after `count` steps of `step` [s].

    `rates` gives its time derivative from the state and the time since the start [s].
    """
    for i in range(count):
        time = i * step
        first = rates(state, time)
        second = rates(state + 0.5 * step * first, time + 0.5 * step)
        third = rates(state + 0.5 * step * second, time + 0.5 * step)
        fourth = rates(state + step * third, time + step)
        state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return state
