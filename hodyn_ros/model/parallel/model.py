"""What a parallel robot is to the mathematics: limbs, a platform, and the platform's degrees of freedom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.arrays import frozen_array
from hodyn_ros.model.parallel.limb import Limb, LimbModel, limb_model, unfolded
from hodyn_ros.model.parallel.platform import Platform, as_dof


@dataclass(frozen=True, eq=False)
class ParallelModel:
    """A validated parallel robot at its home pose, where all joint coordinates are zero.

    `dof` (6, delta) distributes the task velocity to the platform twist in platform axes, `V_p = P_p V_t`
    (Mueller et al., eq. 4). The joints of all limbs stand one limb after the other in arrays over joints.
    """

    limbs: tuple[LimbModel, ...]
    platform: Platform
    dof: Array
    gravity: Array  # (3,) world frame, pointing down [m/s^2]
    name: str

    @classmethod
    def build(
        cls,
        limbs: Sequence[Limb | Mapping[str, Any]],
        platform: Platform | Mapping[str, Any],
        platform_dof: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = "robot",
    ) -> ParallelModel:
        """Build a robot from limbs and platform, described at the home pose in the world frame.

        `limbs`: `hodyn_ros.Limb`, or mappings with its fields: `screws` (k, 6), and `placements`, `masses`,
        `coms`, `inertias` of the bodies as in `Robot.from_screws`, the last body being the platform, and
        `driven`. `platform`: `hodyn_ros.Platform` or a mapping with `mass`, `com`, `inertia`, `placement`.
        `platform_dof` (6, delta): the columns are the independent twists of the platform, in its frame.
        `gravity` (3,) points down [m/s^2]. Joint coordinates are zero at the home pose. Raises ModelError
        naming the limb or joint at fault; how they fit together is `mobility.check_mobility`'s.
        """
        the_platform = Platform.of(platform)
        down = frozen_array("gravity", gravity, (3,))
        if isinstance(limbs, (Limb, Mapping, str)) or not isinstance(limbs, Iterable):
            raise ModelError(f"limbs must be a list of limbs, found {type(limbs).__name__}")
        described = [unfolded(Limb.of(limb, i), i, the_platform) for i, limb in enumerate(limbs)]
        if not described:
            raise ModelError("a parallel robot needs at least one limb")
        size = _size(described, the_platform)
        models = tuple(limb_model(limb, the_platform, down, i, size) for i, limb in enumerate(described))
        for what, names in (
            ("limbs", [limb.name for limb in models]),
            ("joints", [joint for limb in models for joint in limb.chain.joint_names]),
        ):
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise ModelError(f"several {what} are called {repeated[0]!r}; every name must be unique")
        if not any(limb.driven for limb in models):
            raise ModelError("no joint is driven; name the driven joints of the limbs in `driven`")
        return cls(models, the_platform, as_dof(platform_dof), down, str(name))

    @property
    def delta(self) -> int:
        """Degrees of freedom of the platform."""
        return self.dof.shape[1]

    @property
    def n_joints(self) -> int:
        """Number of joints of all limbs."""
        return sum(limb.n_joints for limb in self.limbs)

    @property
    def n_driven(self) -> int:
        """Number of driven joints."""
        return len(self.driven)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all joints, limb after limb."""
        return tuple(name for limb in self.limbs for name in limb.chain.joint_names)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the joints of each limb stand among all joints."""
        ends = np.cumsum([limb.n_joints for limb in self.limbs]).tolist()
        return tuple(slice(end - limb.n_joints, end) for end, limb in zip(ends, self.limbs))

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """The driven joints among all joints, limb after limb."""
        return tuple(part.start + i for part, limb in zip(self.slices, self.limbs) for i in limb.driven)

    @cached_property
    def length(self) -> float:
        """A length [m] of the size of the platform, with which rotations and translations are compared."""
        distances = []
        for limb in self.limbs:
            screws = _in_platform(self.platform, limb.chain.screws)
            # distance of the last revolute axis from the platform origin
            for screw in screws[::-1]:
                if screw[:3].any():
                    distances.append(float(np.linalg.norm(np.cross(screw[:3], screw[3:]))))
                    break
        reach = max(distances, default=0.0)
        return reach if reach > 1e-6 * self.size else self.size

    @cached_property
    def size(self) -> float:
        """A length [m] of the size of the whole robot."""
        return max(
            1e-12,
            *(
                float(np.linalg.norm(placement[:3, 3] - self.platform.placement[:3, 3]))
                for limb in self.limbs
                for placement in limb.chain.placements
            ),
            *(
                float(np.linalg.norm(np.cross(screw[:3], screw[3:])))
                for limb in self.limbs
                for screw in _in_platform(self.platform, limb.chain.screws)
                if screw[:3].any()
            ),
        )


def _in_platform(platform: Platform, screws: Array) -> Array:
    moved: Array = screws @ Ad(inverse(platform.placement)).T
    return moved


def _size(limbs: Sequence[Limb], platform: Platform) -> float:
    """Return a length of the size of a robot whose arrays are not validated yet; at least a millimetre."""
    points = [1e-3, float(np.abs(platform.placement[:3, 3]).max())]
    for limb in limbs:
        screws = frozen_array(f"limb {limb.name!r}: screws", limb.screws, None)
        if screws.ndim == 2 and screws.shape[1] == 6:
            points.append(float(np.abs(screws[:, 3:]).max(initial=0.0)))
    return max(points)
