"""What the joints of a robot may do at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.model.keys import Entry, key


class JointLimit(Entry, kw_only=False):
    """Limits of the joint; what is left out is unlimited. Read m and N for rad and N·m of a prismatic one."""

    lower: float = key("[rad]", default=-np.inf)
    upper: float = key("[rad]", default=np.inf)
    velocity: float = key("[rad/s]", default=np.inf, above=0)
    effort: float = key("[N·m]", default=np.inf, above=0)
    effort_rate: float = key("[N·m/s]", default=np.inf, above=0)
    acceleration: float = key("[rad/s^2]", default=np.inf, above=0)
    jerk: float = key("[rad/s^3]", default=np.inf, above=0)


def _none() -> Array:
    return np.array(np.inf)


@dataclass(frozen=True, eq=False)
class JointLimits:
    """The limits of all joints, (n,) each, in the order of the model's joints; infinite where there is none.

    A single number counts for every joint. Units for revolute joints; read m and N for rad and N·m where a
    joint is prismatic. Raises ModelError that names the joint (by index where `joint_names` is not given).
    """

    position_lower: Array  # [rad]
    position_upper: Array  # [rad]
    velocity: Array  # [rad/s]
    effort: Array  # [N·m]
    effort_rate: Array  # [N·m/s]
    acceleration: Array = field(default_factory=_none)  # [rad/s^2]
    jerk: Array = field(default_factory=_none)  # [rad/s^3]
    joint_names: InitVar[Sequence[str] | None] = None

    def __post_init__(self, joint_names: Sequence[str] | None) -> None:
        labels = range(np.size(self.position_lower)) if joint_names is None else joint_names
        names = [f"joint {label!r}" for label in labels]
        for limit in (entry.name for entry in fields(self)):
            array = np.array(getattr(self, limit), dtype=np.float64)
            if array.ndim == 0:
                array = np.full(len(names), array)
            if array.shape != (len(names),):
                raise ModelError(
                    f"joint limits: {limit} must have shape ({len(names)},), found {array.shape}"
                )
            array.setflags(write=False)
            object.__setattr__(self, limit, array)
            for name, value in zip(names, array, strict=True):
                if np.isnan(value):
                    raise ModelError(f"{name}: the limit {limit} is not a number")
                if not limit.startswith("position") and value <= 0.0:
                    raise ModelError(
                        f"{name}: the limit {limit} is {value:g}; make it positive, or leave it out"
                    )
        for name, lower, upper in zip(names, self.position_lower, self.position_upper, strict=True):
            if lower > upper:
                raise ModelError(f"{name}: its lower limit {lower:g} is above its upper limit {upper:g}")

    @classmethod
    def of(cls, joint_names: Sequence[str], limits: Sequence[JointLimit]) -> JointLimits:
        """Gather the limits of single joints, in order."""
        names = [entry.name for entry in fields(JointLimit)]
        rows = [[getattr(limit, name) for name in names] for limit in limits]
        table = np.array(rows, dtype=np.float64).reshape(len(joint_names), len(names))
        columns = {entry.name: column for entry, column in zip(fields(cls), table.T, strict=True)}
        return cls(**columns, joint_names=joint_names)

    @classmethod
    def unlimited(cls, n_joints: int) -> JointLimits:
        """Return limits that allow everything."""
        return cls(np.full(n_joints, -np.inf), *np.full((6, n_joints), np.inf))

    def of_joints(self, joints: Sequence[int]) -> JointLimits:
        """Return the limits of some joints, in their order."""
        columns = {field.name: getattr(self, field.name)[list(joints)] for field in fields(self)}
        return JointLimits(**columns)

    def row(self, joint: int) -> JointLimit:
        """Return the limits of one joint."""
        return JointLimit(*(float(getattr(self, limit.name)[joint]) for limit in fields(self)))
