"""The efforts of a motion with a load that a robot takes or puts down, as a guard counts with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hodyn_ros.errors import InputError
from hodyn_ros.guard.guarded_robot import StiffRobot
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array


class CarriedLoad:
    """As `StiffRobot`, but that it goes from one load to another over a time.

    Efforts are linear in mass, first and second moments, so in between they are those of a body that is taken
    in part. The weight is `3 u^2 - 2 u^3`: nothing that is held against these efforts sees a step of it.
    """

    def __init__(self, model: StiffRobot) -> None:
        self._before = self._after = model
        self._weight, self._duration, self._elapsed = 1.0, 0.0, 0.0  # the latter two in [s]
        self._at: int | None = None  # [ns] the last instant of a fade

    @property
    def fading(self) -> bool:
        """Whether it is between two loads."""
        return self._weight < 1.0

    def take(self, model: StiffRobot, duration: float) -> None:
        """Go to the efforts of another load over a time [s] from the next instant on.

        Raises InputError while the last one is still on its way.
        """
        if self.fading:
            raise InputError("a load is being faded; wait until it is carried")
        self._before, self._after = self._after, model
        self._weight, self._duration, self._elapsed, self._at = 0.0, duration, 0.0, None

    def at(self, now: int) -> None:
        """Take over what holds at an instant [ns]; where clocks go back, it goes on from where it was."""
        if not self.fading:
            return
        before, self._at = self._at, now
        if before is not None:  # as `LoadFade`, so that both end together
            self._elapsed += max(0.0, 1e-9 * (now - before))
        u = min(self._elapsed / self._duration, 1.0)
        self._weight = u * u * (3.0 - 2.0 * u)

    def __call__(self, motion: Motion, deflection: Motion | None = None) -> Array:
        """Return the efforts (n,) of a motion, as an `EffortModel`."""
        return self._faded(self._before, self._after, motion, deflection)

    def links(self, motion: Array) -> Array:
        """Return those of the links alone, from their motion (3, n). InputError where loops do not close."""
        return self._faded(self._before.links, self._after.links, motion)

    def _faded(self, before: Callable[..., Array], after: Callable[..., Array], *moved: Any) -> Array:
        new = after(*moved)
        if not self.fading:
            return new
        old = before(*moved)
        return old + self._weight * (new - old)
