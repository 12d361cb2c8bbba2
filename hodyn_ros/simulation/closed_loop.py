"""A controller and a simulated robot in a loop of sampling, delay, and limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.errors import InputError
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.effort_limiter import EffortLimiter
from hodyn_ros.guard.guard_config import StreamError
from hodyn_ros.simulation.sensors import Sensors


class Simulated(Protocol):
    """A robot that can be measured and moved on in time."""

    @property
    def measurement(self) -> Measurement:
        """The exact state, as sensors at driven joints and motors show it."""

    @property
    def coordinates(self) -> Array:
        """The coordinates (k,) of the links: the joints of a tree."""

    def advance(self, duration: float, effort: Array) -> None:
        """Let time [s] pass under efforts (motors,)."""


class LoopRecord(NamedTuple):
    """What happened at the samples of a closed loop."""

    times: Array  # (N,) [s]
    positions: Array  # (N, k) exact coordinates of the links, the joints of a tree [rad or m]
    motor_positions: Array  # (N, motors) [rad or m]
    efforts: Array  # (N, motors) as they acted [N.m]
    saturated: int  # samples in which an effort was cut to its limit
    rate_limited: int  # samples in which the step of an effort was cut


def run_loop(
    simulation: Simulated,
    controller: Callable[[float, Measurement], Array],
    duration: float,
    period: float,
    *,
    sensors: Sensors | None = None,
    limiter: EffortLimiter | None = None,
    delay: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> LoopRecord:
    """Run a controller every `period` [s] for `duration` [s].

    `controller` takes the time [s] and a measurement, and returns efforts (motors,), which act `delay` [s]
    later until the next ones do. Before the first ones arrive, they act as if they had been there before.
    `progress` is told the share that is done.
    """
    if not 0.0 < period < np.inf or not 0.0 <= delay < np.inf or not 0.0 <= duration < np.inf:
        raise InputError(
            f"the period must be positive, delay and duration not negative, found {period} s, {delay} s, "
            f"{duration} s"
        )
    whole, part = divmod(delay, period)
    late = int(whole)
    count = int(round(duration / period))
    queue: list[Array] = []
    rows: list[tuple[float, Array, Array, Array]] = []
    saturated = rate_limited = 0
    for i in range(count + 1):
        time = i * period
        exact = simulation.measurement
        measured = exact if sensors is None else sensors.measure(exact)
        effort = controller(time, measured)
        if limiter is not None:
            limited = limiter(effort, period)
            effort = limited.effort
            saturated += bool(limited.saturated.any())
            rate_limited += bool(limited.rate_limited.any())
        queue = queue + [effort] if queue else [effort] * (late + 2)
        old, new = queue[0], queue[1]
        queue = queue[1:]
        rows.append((time, simulation.coordinates.copy(), exact.motor_position.copy(), new))
        if i < count:
            if part > 0.0:
                simulation.advance(part, old)
            simulation.advance(period - part, new)
        if progress is not None:
            progress((i + 1) / (count + 1))
    times, positions, motors, efforts = zip(*rows, strict=True)
    return LoopRecord(
        np.array(times),
        np.stack(positions),
        np.stack(motors),
        np.stack(efforts),
        saturated,
        rate_limited,
    )


class GuardedController:
    """A `CommandGuard` as the controller of `run_loop`, on a feedforward that comes with each sample.

    `reference` returns what the motors follow from a time [s] on, None where nothing comes. Until the guard
    joins the motion, and where it has ended, the efforts are zero. What the guard cannot use it does without.
    """

    def __init__(self, guard: CommandGuard, reference: Callable[[float], Reference | None]) -> None:
        self.guard = guard
        self.saturated = 0  # samples in which an effort was cut to its limit
        self._reference = reference

    def __call__(self, time: float, measured: Measurement) -> Array:
        """Return the efforts (motors,) that answer a measurement."""
        now, reference = _EPOCH + round(1e9 * time), self._reference(time)
        with suppress(StreamError):  # the guard stops, and says why
            self.guard.measure(now, now, measured.motor_position, measured.motor_velocity)
        if reference is not None:
            with suppress(StreamError):
                self.guard.follow(now, now, reference)
        command = self.guard.command(now)
        if command is None:
            return np.zeros_like(measured.motor_position)
        self.saturated += command.saturated
        return command.effort


_EPOCH = 1_000_000_000  # [ns] of a clock whose zero means that there is no stamp
