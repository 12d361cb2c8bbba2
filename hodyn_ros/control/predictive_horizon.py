"""Where deviations from a motion may go in the next instants, as chains of integrators, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from hodyn_ros.array import Array

CHAIN = 4  # derivatives of a deviation that are its state; the next one, the snap, is chosen


def transition(time: float) -> Array:
    """Return what becomes of a state (4,) without snap in a time [s], (4, 4)."""
    places = range(CHAIN)
    return np.array([[time ** (j - i) / factorial(j - i) if j >= i else 0.0 for j in places] for i in places])


def response(time: float) -> Array:
    """Return what a snap of one that is held for a time [s] adds to the state, (4,)."""
    return np.array([time ** (CHAIN - i) / factorial(CHAIN - i) for i in range(CHAIN)])


@dataclass(frozen=True)
class Horizon:
    """Nodes ahead, `steps` periods [s] apart, between which the snap of a deviation e of a joint is held.

    A deviation costs `w^4 e^2 + a^2` over time, where a [rad/s^2] is what the torque that is spent on it
    would accelerate, and w [rad/s] `natural_frequency`; and behind the last node what the best law of a
    double integrator leaves, `sqrt(2) w^3 e^2 + 2 w^2 e e' + sqrt(2) w e'^2`. That law has poles of w with a
    damping ratio of 0.71.
    """

    steps: tuple[int, ...]
    period: float
    natural_frequency: float

    @property
    def count(self) -> int:
        """How many intervals there are."""
        return len(self.steps)

    @cached_property
    def places(self) -> Array:
        """At which period each interval begins, (count,)."""
        return np.cumsum([0, *self.steps[:-1]])

    @cached_property
    def lengths(self) -> Array:
        """How long the intervals are, (count,) [s]."""
        return self.period * np.array(self.steps, dtype=np.float64)

    @cached_property
    def by_start(self) -> Array:
        """The state at each node by that at the first one, (count + 1, 4, 4)."""
        states = [np.eye(CHAIN)]
        for length in self.lengths:
            states.append(transition(length) @ states[-1])
        return np.array(states)

    @cached_property
    def by_snap(self) -> Array:
        """The state at each node by the snap of each interval, (count + 1, 4, count)."""
        states = [np.zeros((CHAIN, self.count))]
        for k, length in enumerate(self.lengths):
            states.append(transition(length) @ states[-1])
            states[-1][:, k] += response(length)
        return np.array(states)

    @cached_property
    def cost(self) -> Array:
        """Half the second derivative of what deviations cost by the snaps, (count, count)."""
        return self._product(self.by_snap)

    @cached_property
    def slope(self) -> Array:
        """Half the derivative of that cost by the snaps, for each number of the start, (count, 4)."""
        return self._product(self.by_start)

    def _product(self, by: Array) -> Array:
        w = self.natural_frequency
        rest = np.array([[np.sqrt(2.0) * w**3, w**2], [w**2, np.sqrt(2.0) * w]])
        on_the_way = np.einsum("k,ki,kj->ij", self.lengths[1:], self.by_snap[1:-1, 0], by[1:-1, 0])
        product: Array = w**4 * on_the_way + self.by_snap[-1, :2].T @ rest @ by[-1, :2]
        return product
