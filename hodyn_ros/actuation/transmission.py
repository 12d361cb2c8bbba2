"""What every transmission between motors and a joint offers: motor positions from the link, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.codegen.tracer import Traced
from hodyn_ros.errors import InputError


class Loads(NamedTuple):
    """What a transmission does to both of its sides; jets, read N for N.m where the joint is prismatic."""

    link: Array  # (K+1, ...) torque on the link [N.m]
    motors: Array  # (motors, K+1, ...) torque that each motor has to hold [N.m]


class Transmission(ABC):
    """What lies between the motors and the link of one joint, reflected to the link side.

    All arguments are jets (Taylor coefficients on axis 0, see `hodyn_ros.lie.jets`) of scalars; further axes
    are a batch. `gained` says how many derivatives of the motor position there are beyond those of the
    torque.

    Attributes:
        n_motors: Number of motors.
        gained: Orders of the motor position minus orders of the torque it is computed from.
        commanded: Whether a stiffness trajectory has to be given.
        damped: Whether the deflection has a memory.
        facing: Share of each motor in what the link is held against.
    """

    n_motors: ClassVar[int] = 1
    gained: ClassVar[int] = 0
    commanded: ClassVar[bool] = False
    damped: ClassVar[bool] = False
    facing: ClassVar[tuple[float, ...]] = (1.0,)

    @abstractmethod
    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return jets of the motor positions (motors, K+1+gained, ...) that give the link a torque.

        `q` (K+1+gained or more, ...), `torque` (K+1, ...), and where `commanded` the `stiffness` (K+1, ...)
        [N.m/rad].
        """

    @abstractmethod
    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torques on link and motors from positions `q` (K+1, ...), `theta` (motors, K+1, ...).

        A spring with damping takes one order more than it returns. A rigid transmission has no such function
        and raises InputError.
        """

    def deflection(self, q: Array, theta: Array) -> Array:
        """Return the jet of the deflection between the motors that face the link, and the link [rad]."""
        faced = sum(share * motor for share, motor in zip(self.facing, theta) if share)
        return np.asarray(faced - q[: theta.shape[1]])


def commanded_stiffness(stiffness: Array | None, orders: int) -> Array:
    """Return a commanded stiffness up to derivative `orders` - 1; InputError where it is not positive."""
    if stiffness is None:
        raise InputError("a joint of variable stiffness needs a stiffness trajectory")
    sigma = stiffness[:orders]
    if not (sigma[0] > 0.0).all():
        raise InputError(f"the commanded stiffness is {np.min(sigma[0]):g} N·m/rad; it must be positive")
    return sigma


def require_positive(what: str, value: float, unit: str) -> None:
    """Reject a figure that is not finite and above zero."""
    if not 0.0 < value < np.inf:
        raise InputError(f"the {what} is {value:g} {unit}; it must be positive and finite")


def require_not_negative(what: str, value: float, unit: str) -> None:
    """Reject a figure that is negative, infinite, or not a number."""
    if not 0.0 <= value < np.inf:
        raise InputError(f"the {what} is {value:g} {unit}; it must be finite and not negative")


def set_frozen(instance: Any, **values: Any) -> None:
    """Set attributes of a frozen dataclass while it is being built."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


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
