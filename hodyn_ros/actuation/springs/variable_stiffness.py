"""Two motors that set the stiffness of a joint: pulling against each other, or one of them turning a cam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hodyn_ros.actuation.springs.hardening_spring import cubic_root
from hodyn_ros.actuation.springs.series_spring import reverted
from hodyn_ros.actuation.transmission import (
    Loads,
    Transmission,
    commanded_stiffness,
    is_positive,
    require,
    require_positive,
)
from hodyn_ros.lie.jets import Array, multiply, power


@dataclass(frozen=True)
class AgonistAntagonist(Transmission):
    """Two springs with `F = k e^2`: `Q = k (e1^2 - e2^2)`, `e1 = theta1 - q`, `e2 = q - theta2`.

    With `e1 = s + delta`, `e2 = s - delta` this is `Q = sigma delta`, and the stiffness `sigma = 4 k s`
    follows the stretch s that both springs share, whatever the deflection. So the motors go to
    `theta = q + Q / sigma +- sigma / (4 k)`. Springs only pull: `sigma^2 >= 4 k |Q|` has to hold. The first
    motor holds `k e1^2`, the second `-k e2^2`. Palli, Melchiorri, De Luca: On the feedback linearization of
    robots with variable joint stiffness (ICRA 2008).
    """

    spring: float  # k [N.m/rad^2]

    n_motors: ClassVar[int] = 2
    commanded: ClassVar[bool] = True
    facing: ClassVar[tuple[float, ...]] = (0.5, 0.5)

    def __post_init__(self) -> None:
        require_positive("quadratic spring", self.spring, "N·m/rad^2")

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `q + Q / sigma +- sigma / (4 k)`."""
        sigma = commanded_stiffness(stiffness, len(torque))

        def slack() -> str:
            load = np.abs(torque[0]).max()
            return (
                f"a spring goes slack: a torque of {load:g} N·m needs a stiffness above "
                f"{2.0 * np.sqrt(self.spring * load):g} N·m/rad, commanded are {np.min(sigma[0]):g} N·m/rad"
            )

        require(sigma[0] ** 2 - 4.0 * self.spring * abs(torque[0]), slack)
        middle = q[: len(torque)] + multiply(torque, power(sigma, -1.0))
        stretch = sigma / (4.0 * self.spring)
        return np.stack([middle + stretch, middle - stretch])

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return `k e1^2`, `-k e2^2` and their sum; a spring that goes slack holds nothing."""
        pulls = []
        for stretch, sign in ((theta[0] - q, 1.0), (q - theta[1], -1.0)):
            pull = sign * self.spring * multiply(stretch, stretch)
            pulls.append(pull * is_positive(stretch[0]))
        return Loads(np.asarray(pulls[0] + pulls[1]), np.stack(pulls))


@dataclass(frozen=True)
class Cam(Transmission):
    """A roller on a cam lifts a spring of stiffness k by `c delta^2 / 2`; a second motor moves its foot by s.

    The energy `k (s + c delta^2 / 2)^2 / 2` gives `Q = k c s delta + k c^2 delta^3 / 2` with
    `delta = theta - q`, and the second motor holds `k (s + c delta^2 / 2)`. The commanded stiffness is that
    without deflection, `sigma = k c s`. The principle of the DLR VS-joint: Wolf & Hirzinger, A new variable
    stiffness design (ICRA 2008). The position of the second motor is s [m or rad], its torque the conjugate.
    """

    spring: float  # k [N.m/rad^2 of s; N/m where s is a length]
    curvature: float  # c, of the lift over the deflection [rad of s/rad^2]

    n_motors: ClassVar[int] = 2
    commanded: ClassVar[bool] = True
    facing: ClassVar[tuple[float, ...]] = (1.0, 0.0)

    def __post_init__(self) -> None:
        require_positive("spring of the cam", self.spring, "N·m/rad")
        require_positive("curvature of the cam", self.curvature, "1/rad")

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `q + delta` and `s = sigma / (k c)`."""
        sigma = commanded_stiffness(stiffness, len(torque))
        start = cubic_root(torque[0], sigma[0], self._third)
        slope = sigma[0] + 3.0 * self._third * (start * start)

        def spring_torque(x: Array) -> Array:
            hardening = self._third * multiply(x, multiply(x, x))
            return np.asarray(multiply(sigma[: len(x)], x) + hardening)

        delta = reverted(spring_torque, torque, start, slope)
        return np.stack([q[: len(torque)] + delta, sigma / (self.spring * self.curvature)])

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torque of the cam, and what the two motors hold."""
        delta = self.deflection(q, theta)
        pressed = self.spring * (theta[1] + 0.5 * self.curvature * multiply(delta, delta))
        torque = self.curvature * multiply(pressed, delta)
        return Loads(torque, np.stack([torque, pressed]))

    @property
    def _third(self) -> float:
        return 0.5 * self.spring * self.curvature**2
