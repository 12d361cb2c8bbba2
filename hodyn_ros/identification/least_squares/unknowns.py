"""What an identification seeks, as one vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.identification.torque_model import TorqueModel

_SHARP = 1.0  # the middle of all laws, that of tanh


@dataclass(eq=False)
class Unknowns:
    """What is sought.

    Parameters p (P,), springs (9, e) of joints with two encoders, the delay of efforts, and how friction
    turns over (2, n).
    """

    parameters: Array
    springs: Array  # rows as in `deflection`
    effort_delay: float  # [s]
    friction_shape: Array  # as in `TorqueModel`

    @property
    def vector(self) -> Array:
        """All in one row (P + 2 n + 9 e + 1,), logarithms of the transition speeds."""
        speed, sharpness = self.friction_shape
        springs = self.springs.ravel()
        return np.concatenate([self.parameters, np.log(speed), sharpness, springs, [self.effort_delay]])

    @property
    def of_shape(self) -> slice:
        """Where in the vector the friction's shape is."""
        return slice(len(self.parameters), len(self.parameters) + self.friction_shape.size)

    @property
    def of_springs(self) -> slice:
        """Where in the vector the springs are."""
        return slice(self.of_shape.stop, self.of_shape.stop + self.springs.size)

    def of_spring(self, kind: int, i: int) -> int:
        """Where in the vector a figure of the i-th spring is."""
        return self.of_springs.start + kind * self.springs.shape[1] + i

    def turning_sharply(self, model: TorqueModel, joints: NDArray[np.bool_]) -> Unknowns:
        """Return them with friction of some joints (n,) that turns over sharply at the speeds of the file."""
        sharp = np.vstack([model.friction_shape[0], np.full(model.n, _SHARP)])
        return replace(self, friction_shape=np.where(joints, sharp, self.friction_shape))

    def moved(self, step: Array) -> Unknowns:
        """Return the unknowns a step further."""
        x = self.vector + step
        springs = x[self.of_springs].reshape(self.springs.shape)
        speed, sharpness = x[self.of_shape].reshape(self.friction_shape.shape)
        shape = np.array([np.exp(speed), sharpness])
        return Unknowns(x[: len(self.parameters)], springs, float(x[-1]), shape)
