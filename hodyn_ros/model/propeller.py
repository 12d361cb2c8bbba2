"""What one propeller of a flying base is, in figures: where it sits, how it pulls, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.model.keys import Entry, key


class PropellerLimits(Entry, kw_only=False):
    """Limits of a propeller; what is left out is unlimited, but for the least thrust."""

    least: float = key("thrust, by default 0 [N]", default=0.0)
    most: float = key("thrust [N]", default=np.inf)
    rate: float = key("of the thrust [N/s]", above=0, default=np.inf)
    tilt: float = key("of a propeller that tilts, either way [rad]", above=0, default=np.inf)
    tilt_rate: float = key("of a propeller that tilts [rad/s]", above=0, default=np.inf)

    def __post_init__(self) -> None:
        if not -np.inf < self.least < self.most:
            raise ModelError(f"thrusts from {self.least:g} to {self.most:g} N leave none")
        for entry in fields(self)[2:]:
            value = getattr(self, entry.name)
            if not value > 0.0:
                raise ModelError(f"the propeller's limit {entry.name} is {value:g}; make it positive")


@dataclass(frozen=True, eq=False)
class Propeller:
    """One propeller of a base.

    `pose` (4, 4) of its frame in that of the base, thrust along z [m]; `drag`: torque about z per thrust,
    `kappa = c_d / c_f` [m], its sign that of the torque on the base; `tilts`: a servo turns it about its x
    axis; `coefficient` c_f of `f = c_f omega^2` [N s^2/rad^2].
    """

    name: str
    pose: Array
    drag: float = 0.0
    limits: PropellerLimits = PropellerLimits()
    tilts: bool = field(default=False, kw_only=True)
    coefficient: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", rigid_pose(f"the pose of propeller {self.name!r}", self.pose))
        if not np.isfinite(self.drag):
            raise ModelError(f"propeller {self.name!r}: the drag must be finite, found {self.drag}")
        if self.tilts and self.limits.least < 0.0:
            raise ModelError(
                f"propeller {self.name!r} tilts, so its thrust is not below zero; give least >= 0"
            )
        if not self.tilts and (self.limits.tilt < np.inf or self.limits.tilt_rate < np.inf):
            raise ModelError(f"propeller {self.name!r} does not tilt, so a limit of its tilt says nothing")
        if self.coefficient is not None and not 0.0 < self.coefficient < np.inf:
            raise ModelError(
                f"propeller {self.name!r}: the coefficient must be above zero, found {self.coefficient}"
            )
