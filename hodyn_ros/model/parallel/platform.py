"""The moving platform of a parallel robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.lie.se3 import Array, spatial_inertia
from hodyn_ros.model.arrays import frozen_array, known_fields
from hodyn_ros.model.readers.assembly import Link, merged_inertia


@dataclass(frozen=True, eq=False)
class Platform:
    """Inertia of the platform, and its frame at the home pose.

    `mass` [kg]; `com` (3,) in the platform frame [m]; `inertia` (3, 3) about the centre of mass in platform
    axes [kg m^2]; `placement` (4, 4) the platform frame in the world at the home pose [m].
    """

    mass: float
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    placement: Array = field(default_factory=lambda: np.eye(4))
    name: str = "platform"

    def __post_init__(self) -> None:
        mass = float(frozen_array("the mass of the platform", self.mass, ()))
        com = frozen_array("the centre of mass of the platform", self.com, (3,))
        inertia = frozen_array("the inertia of the platform", self.inertia, (3, 3))
        if mass < 0.0:
            raise ModelError(f"the platform has the negative mass {mass:g} kg")
        scale = float(np.abs(inertia).max())
        if not np.allclose(inertia, inertia.T, rtol=0.0, atol=1e-9 * scale):
            raise ModelError("the inertia of the platform is not symmetric")
        if scale > 0.0 and np.linalg.eigvalsh(inertia)[0] < -1e-12 * scale:
            raise ModelError("the inertia of the platform has a negative principal moment")
        try:
            placement = rigid_pose("the placement of the platform", self.placement)
        except InputError as error:
            raise ModelError(str(error)) from None
        placement.setflags(write=False)
        for key, value in (("mass", mass), ("com", com), ("inertia", inertia), ("placement", placement)):
            object.__setattr__(self, key, value)

    @classmethod
    def of(cls, described: Platform | Mapping[str, Any]) -> Platform:
        """Return a platform, built from a mapping with the names of its fields if need be."""
        if isinstance(described, Platform):
            return described
        return cls(**known_fields("the platform", cls, described))

    def carrying(self, load: Link) -> Platform:
        """Return the platform with a load in its frame."""
        own = Link(self.name, self.mass, self.com, self.inertia)
        mass, com, inertia = merged_inertia([(np.eye(4), own), (np.eye(4), load)])
        return replace(self, mass=mass, com=com, inertia=inertia)

    @property
    def spatial_inertia(self) -> Array:
        """Spatial inertia (6, 6) about the origin of the platform frame, in platform axes."""
        return spatial_inertia(np.array(self.mass), self.com, self.inertia)


def as_dof(platform_dof: ArrayLike) -> Array:
    """Return the distribution matrix `P_p` (6, delta) of a platform, checked by itself.

    Raises ModelError where its columns are dependent, or where no body can move with these twists only.
    """
    dof = frozen_array("platform_dof", platform_dof, None)
    if dof.ndim != 2 or dof.shape[0] != 6 or not 1 <= dof.shape[1] <= 6:
        raise ModelError(
            "platform_dof must be a (6, delta) matrix whose columns are the independent twists (omega; v) of "
            f"the platform, in its own frame; found shape {dof.shape}"
        )
    if np.linalg.matrix_rank(dof) < dof.shape[1]:
        raise ModelError(f"the {dof.shape[1]} columns of platform_dof are linearly dependent")
    return dof
