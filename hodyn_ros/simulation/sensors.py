"""What sensors make of an exact state: quantisation, noise, and velocities by differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.errors import InputError


@dataclass(frozen=True)
class Encoder:
    """Positions rounded to `resolution` [rad] after noise of the standard deviation `noise` [rad].

    Velocities by differences of what was measured, through a filter of first order with the angular
    frequency `bandwidth` [rad/s]; infinite for bare differences. A resolution of 0 rounds nothing; without
    noise, resolution and bandwidth the state is passed on as it is.
    """

    resolution: float = 0.0
    noise: float = 0.0
    bandwidth: float = np.inf

    def __post_init__(self) -> None:
        for name in ("resolution", "noise"):
            value = getattr(self, name)
            if not 0.0 <= value < np.inf:
                raise InputError(f"the {name} of an encoder is {value:g} rad; it must not be negative")
        if not self.bandwidth > 0.0:
            raise InputError(f"the bandwidth of an encoder is {self.bandwidth:g} rad/s; make it positive")

    @property
    def exact(self) -> bool:
        """Whether positions and velocities come as they are."""
        return self.resolution == 0.0 and self.noise == 0.0 and np.isinf(self.bandwidth)

    def read(self, position: Array, random: np.random.Generator) -> Array:
        """Return measured positions, of the shape of `position`."""
        noisy = position + self.noise * random.standard_normal(position.shape) if self.noise else position
        return self.resolution * np.round(noisy / self.resolution) if self.resolution else noisy


class Sensors:
    """Encoders on links and motors, read once per `period` [s]; the same `seed` gives the same noise."""

    def __init__(self, link: Encoder, motor: Encoder, period: float, seed: int = 0) -> None:
        if not 0.0 < period < np.inf:
            raise InputError(f"the period must be positive and finite, found {period} s")
        self._links = _Channel(link, period)
        self._motors = _Channel(motor, period)
        self._random = np.random.default_rng(seed)

    def measure(self, exact: Measurement) -> Measurement:
        """Return what is measured of an exact state."""
        link = self._links.measure(exact.position, exact.velocity, self._random)
        motor = self._motors.measure(exact.motor_position, exact.motor_velocity, self._random)
        return Measurement(*link, *motor)


class _Channel:
    def __init__(self, encoder: Encoder, period: float) -> None:
        self._encoder = encoder
        self._period = period
        # share of the newest difference, for a filter that is exact for a velocity held over a period
        self._share = -np.expm1(-encoder.bandwidth * period)
        self._last: Array | None = None
        self._velocity: Array | None = None

    def measure(self, position: Array, velocity: Array, random: np.random.Generator) -> tuple[Array, Array]:
        if self._encoder.exact:
            return position, velocity
        read = self._encoder.read(position, random)
        if self._last is None or self._velocity is None:
            self._velocity = velocity.copy()  # the filter starts settled
        else:
            difference = (read - self._last) / self._period
            self._velocity = self._velocity + self._share * (difference - self._velocity)
        self._last = read
        return read, self._velocity
