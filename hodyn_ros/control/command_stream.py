"""Commands at any instant from feedforwards that come now and then: carried on, ended, taken up again."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.feedforward import taylor
from hodyn_ros.errors import InputError
from hodyn_ros.se3 import Array


class Ending(Enum):
    """What becomes of a quantity when no feedforward has come for too long."""

    FADE = "it goes to zero"
    HOLD = "it stays where it is"
    BRAKE = "it is a motion, and comes to a standstill"


class Command(NamedTuple):
    """One quantity at one instant, (n,) each."""

    value: Array
    rate: Array  # its time derivative


class CommandStream:
    """The quantities of a command, each a series (orders, n) about the instant of the last feedforward.

    Up to `timeout` [s] beyond that instant, and before it, the series are evaluated. Then every quantity ends
    as its `endings` say, and it is taken up again at the next feedforward. Both take `fade` [s] and go
    without a step: what a command is off its new course fades by a cubic polynomial that ends at rest. For
    `Ending.BRAKE` it begins with the present rate, too, so that positions have no step in velocity; a motion
    at the rate v comes to a standstill after `v fade / 3`.

    Instants are in nanoseconds.
    """

    def __init__(self, timeout: float, fade: float, endings: Sequence[Ending]) -> None:
        if not timeout > 0.0 or not fade > 0.0:
            raise InputError(f"timeout and fade must be longer than 0 s, found {timeout} and {fade}")
        self.following = False  # whether the last command came from a feedforward
        self.timeouts = 0
        self._timeout = timeout
        self._fade = fade
        self._endings = tuple(endings)
        self._series: Sequence[Array] = ()
        self._instant = 0
        self._switched_at = 0
        self._given_at: int | None = None
        self._last: list[Command] = []  # the commands of last time, or where the quantities stood before
        self._goals: list[Array] = []  # where they are going after a timeout
        self._offsets: list[Command] = []  # by how much they were off their course when it last changed

    def stand_at(self, values: Sequence[Array]) -> None:
        """Say where the quantities (n,) are at rest before the first command; without, they are zero."""
        self._last = [Command(value, np.zeros_like(value)) for value in values]

    def follow(self, instant: int, series: Sequence[Array]) -> Array:
        """Follow series (orders, n) about an instant, one for each quantity, from the next command on.

        Returns the steps (quantities,) by which they differ from those before, at that instant and in the
        joint where it is largest; zero where nothing was followed. Raises InputError, and follows what it has
        followed so far, for numbers that are not finite or whose squares are not.
        """
        if not all(np.isfinite(np.vdot(rows, rows)) for rows in series):
            raise InputError("a series holds numbers that are not finite, or far too large")
        steps = np.zeros(len(series))
        if self.following and self.in_time(instant):
            steps = np.array(
                [np.abs(new[0] - old.value).max() for new, old in zip(series, self._courses(instant))]
            )
        if not self._last:
            self.stand_at([np.zeros(rows.shape[1]) for rows in series])
        self._instant, self._series = instant, tuple(series)
        return steps

    def command(self, at: int) -> list[Command]:
        """Return the commands for an instant, one for each quantity; none before the first feedforward."""
        fresh = bool(self._series) and self.in_time(at)
        if not fresh and not self._offsets:  # nothing has been followed so far
            return []
        if fresh != self.following:
            # A new course begins at the last command, or that would be given twice. After a longer pause it
            # begins now, or what has faded meanwhile would be a step.
            before = at if self._given_at is None else self._given_at
            recent = 0 <= 1e-9 * (at - before) <= 0.1 * self._fade
            self._switch(before if recent else at, fresh)
        offsets = (self._left(offset, at) for offset in self._offsets)
        self._last = [
            Command(course.value + offset.value, course.rate + offset.rate)
            for course, offset in zip(self._courses(at), offsets)
        ]
        self._given_at = at
        return self._last

    def in_time(self, at: int) -> bool:
        """Whether an instant is near enough to the last feedforward for that to serve."""
        return 1e-9 * abs(at - self._instant) <= self._timeout

    def _courses(self, at: int) -> list[Command]:
        if not self.following:
            return [Command(goal, np.zeros_like(goal)) for goal in self._goals]
        h = 1e-9 * (at - self._instant)
        return [Command(taylor(rows, h), _rate(rows, h)) for rows in self._series]

    def _switch(self, at: int, follow: bool) -> None:
        """Begin to follow, or to end, from an instant on."""
        self.following = follow
        if not follow:
            self.timeouts += 1
            self._goals = [self._goal(last, how) for last, how in zip(self._last, self._endings)]
        self._switched_at = at
        self._offsets = [
            Command(last.value - course.value, (last.rate - course.rate) * (how is Ending.BRAKE))
            for last, course, how in zip(self._last, self._courses(at), self._endings)
        ]

    def _goal(self, last: Command, how: Ending) -> Array:
        if how is Ending.FADE:
            return np.zeros_like(last.value)
        if how is Ending.HOLD:
            return last.value
        return last.value + last.rate * (self._fade / 3.0)

    def _left(self, offset: Command, at: int) -> Command:
        """Return what is left of an offset, on the cubic that takes it and its rate to zero."""
        s = min(max(1e-9 * (at - self._switched_at) / self._fade, 0.0), 1.0)
        (value, rate), left = offset, 1.0 - s
        return Command(
            left**2 * ((1.0 + 2.0 * s) * value + s * self._fade * rate),
            left * ((1.0 - 3.0 * s) * rate - 6.0 * s / self._fade * value),
        )


def _rate(series: Array, h: float) -> Array:
    return taylor(series[1:], h) if len(series) > 1 else np.zeros(series.shape[1])
