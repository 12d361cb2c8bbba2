"""What the joints of a robot may do at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.model.tree import Array


class JointLimit(NamedTuple):
    """The limits of one joint; infinite where there is none. [rad or m, and N·m or N]."""

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    effort_rate: float = np.inf


@dataclass(frozen=True, eq=False)
class JointLimits:
    """The limits of all joints, (n,) each, in the order of the model's joints; infinite where there is none.

    Units for revolute joints; read m and N for rad and N·m where a joint is prismatic. Raises ModelError that
    names the joint (by index where `joint_names` is not given).
    """

    position_lower: Array  # [rad]
    position_upper: Array  # [rad]
    velocity: Array  # [rad/s]
    effort: Array  # [N·m]
    effort_rate: Array  # [N·m/s]
    joint_names: InitVar[Sequence[str] | None] = None

    def __post_init__(self, joint_names: Sequence[str] | None) -> None:
        labels = range(np.size(self.position_lower)) if joint_names is None else joint_names
        names = [f"joint {label!r}" for label in labels]
        for field in ("position_lower", "position_upper", "velocity", "effort", "effort_rate"):
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.shape != (len(names),):
                raise ModelError(
                    f"joint limits: {field} must have shape ({len(names)},), found {array.shape}"
                )
            array.setflags(write=False)
            object.__setattr__(self, field, array)
            for name, value in zip(names, array, strict=True):
                if np.isnan(value):
                    raise ModelError(f"{name}: the limit {field} is not a number")
                if not field.startswith("position") and value <= 0.0:
                    raise ModelError(
                        f"{name}: the limit {field} is {value:g}; make it positive, or leave it out"
                    )
        for name, lower, upper in zip(names, self.position_lower, self.position_upper, strict=True):
            if lower > upper:
                raise ModelError(f"{name}: its lower limit {lower:g} is above its upper limit {upper:g}")

    @classmethod
    def of(cls, joint_names: Sequence[str], limits: Sequence[JointLimit]) -> JointLimits:
        """Gather the limits of single joints, in order."""
        table = np.array(limits, dtype=np.float64).reshape(len(joint_names), len(JointLimit._fields))
        lower, upper, velocity, effort, effort_rate = table.T
        return cls(lower, upper, velocity, effort, effort_rate, joint_names)

    @classmethod
    def unlimited(cls, n_joints: int) -> JointLimits:
        """Return limits that allow everything."""
        row = np.full(n_joints, np.inf)
        return cls(-row, row, row, row, row)

    def row(self, joint: int) -> JointLimit:
        """Return the limits of one joint."""
        columns = (self.position_lower, self.position_upper, self.velocity, self.effort, self.effort_rate)
        return JointLimit(*(float(column[joint]) for column in columns))
