"""Robots with a platform on serial limbs, described limb by limb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.model.parallel.closure import closure_of
from hodyn_ros.model.parallel.limb import Limb
from hodyn_ros.model.parallel.mobility import check_mobility
from hodyn_ros.model.parallel.model import ParallelModel
from hodyn_ros.model.parallel.platform import Platform


class ParallelRobot:
    """Describes a platform on serial limbs; what it returns is a `Robot` like others.

    The platform is its floating base, and the pose of the platform its coordinate: motions come as
    `BaseMotion`, without `q`. Each limb hangs from the platform, its joints from there to the ground, where
    it closes a loop that has the name of the limb; bodies have its name in front, such as "leg1_body1".
    Efforts are those of the driven joints, limb after limb. Wrenches may act on any body.
    """

    @classmethod
    def from_screws(
        cls,
        limbs: Sequence[Limb | Mapping[str, Any]],
        platform: Platform | Mapping[str, Any],
        platform_dof: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = "robot",
    ) -> Robot:
        """Build a robot from limbs and platform, described at the home pose in the world frame.

        `limbs`: `hodyn_ros.Limb`, or mappings with its fields: `screws` (k, 6), and `placements`, `masses`,
        `coms`, `inertias` of the bodies as in `Robot.from_screws`, the last body being the platform, and
        `driven`. `platform`: `hodyn_ros.Platform` or a mapping with `mass`, `com`, `inertia`, `placement`.
        `platform_dof` (6, delta): the columns are the independent twists of the platform, in its frame.
        `gravity` (3,) points down [m/s^2]. Joint coordinates are zero at the home pose. Raises ModelError
        naming the limb or joint at fault.
        """
        model = ParallelModel.build(limbs, platform, platform_dof, gravity, name)
        closure = closure_of(model, check_mobility(model))
        return Robot(closure.tree, closure=closure)

    @classmethod
    def from_config(cls, path: str | Path, gravity: ArrayLike | None = None) -> Robot:
        """Read a robot from a YAML file as in `config/gough_stewart_6ups.yaml`; see `Robot.from_config`."""
        return Robot.from_config(path, gravity)
