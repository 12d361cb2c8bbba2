"""The robot that users hold: a model with its drives and limits, and the calls of dynamics on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.model.config import read_config
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.urdf import read_urdf
from hodyn_ros.motion import AppliedWrench, BaseMotion
from hodyn_ros.se3 import Array


class Robot:
    """A tree of rigid bodies, on the ground or floating, with its dynamics of any order.

    Build one with `from_urdf`, `from_config` or `from_screws`.
    """

    def __init__(self, model: TreeModel, limits: JointLimits | None = None, drives: Drives | None = None) -> None:
        self.model = model
        self.limits = limits
        self.drives = drives
        self.actuation = None if drives is None else SeriesElastic(drives.stiffness, drives.motor_inertia)

    @classmethod
    def from_urdf(cls, path_or_xml: str | Path, floating_base: bool = False) -> Robot:
        """Read a robot from a URDF file, or from the text of one; fixed joints are merged into their parents.

        Raises ModelError naming the link or joint at fault.
        """
        model, limits = read_urdf(path_or_xml, floating_base)
        return cls(model, limits)

    @classmethod
    def from_config(cls, path: str | Path, gravity: ArrayLike | None = None) -> Robot:
        """Read a robot with its drives and limits from a YAML file as in `config/`.

        `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
        """
        config = read_config(path, gravity)
        return cls(config.model, config.limits, config.drives)

    @classmethod
    def from_screws(
        cls,
        parents: Sequence[int],
        screws: ArrayLike,
        placements: ArrayLike,
        masses: ArrayLike,
        coms: ArrayLike,
        inertias: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        floating_base: bool = False,
        *,
        joint_names: Sequence[str] | None = None,
        body_names: Sequence[str] | None = None,
        name: str = "robot",
    ) -> Robot:
        """Build a robot of n bodies from screws and body frames at its zero configuration, in the world frame.

        `parents` (n,) index of each body's parent, -1 for the world, parents before children; `screws` (n, 6) unit
        joint screws `(e; y×e + h e)` or, prismatic, `(0; e)`; `placements` (n, 4, 4) body frames [m]; `masses` (n,)
        [kg]; `coms` (n, 3) in the body frame [m]; `inertias` (n, 3, 3) about the centre of mass in body axes [kg m^2];
        `gravity` (3,) points down [m/s^2]. With a floating base, body 0 is the base, its screw row is ignored, and
        joint i moves body i + 1. Raises ModelError naming the body or joint at fault.
        """
        model = TreeModel.build(
            parents,
            screws,
            placements,
            masses,
            coms,
            inertias,
            gravity,
            floating_base,
            joint_names=joint_names,
            body_names=body_names,
            name=name,
        )
        return cls(model)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of every array."""
        return self.model.joint_names

    @property
    def n_joints(self) -> int:
        """Number of joints n."""
        return self.model.n_joints

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the world frame, pointing down [m/s^2]."""
        return self.model.gravity

    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
    ) -> Array | tuple[Array, Array]:
        """Compute joint torques and their time derivatives from a motion and its derivatives.

        `q` (order + 3, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 3, n). `base`: the
        motion of a floating base with order + 2 twists. `wrenches` that the environment applies to bodies.
        `formulation`: one of the published recursions by name ("spatial", "body_fixed"), default the fastest.

        Returns torques (order + 1, n) [N.m/s^k or N/s^k], or (N, order + 1, n) for a batch; with a floating base the
        pair (base wrench (order + 1, 6) in the world frame, torques). Raises InputError saying what was expected.
        """
        motion = self._motion(q)
        order = motion.shape[-2] - 3
        base = self._base(base, order)
        room = self._formulation(formulation)
        stack = np.moveaxis(motion, -2, 0)
        torques, ground = room(self.model, stack, base, tuple(wrenches or ()))
        torques = np.ascontiguousarray(np.moveaxis(torques, 0, -2))
        if self.model.floating_base:
            return np.ascontiguousarray(np.moveaxis(ground, 0, -2)), torques
        return torques

    def _formulation(self, name: str | None):  # type: ignore[no-untyped-def]
        if name is None:
            return INVERSE_DYNAMICS["body_fixed"]
        if name not in INVERSE_DYNAMICS:
            raise InputError(f"there is no formulation {name!r}; choose one of {sorted(INVERSE_DYNAMICS)}")
        return INVERSE_DYNAMICS[name]

    def _motion(self, q: ArrayLike) -> Array:
        try:
            motion = np.ascontiguousarray(q, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the motion must be numbers of shape (order + 3, {self.n_joints}): {error}") from None
        n = self.n_joints
        if motion.ndim not in (2, 3) or motion.shape[-1] != n or motion.shape[-2] < 3:
            raise InputError(
                f"the motion must have shape (order + 3, {n}) or (N, order + 3, {n}): positions, velocities and "
                f"accelerations at least; found {motion.shape}"
            )
        if not np.isfinite(motion).all():
            raise InputError(f"the motion holds NaN or infinite numbers, first at index {_first_bad(motion)}")
        return motion

    def _base(self, base: BaseMotion | None, order: int) -> BaseMotion | None:
        if not self.model.floating_base:
            if base is not None:
                raise InputError(f"robot {self.model.name!r} stands on the ground; a base motion does not apply")
            return None
        if base is None:
            raise InputError(f"robot {self.model.name!r} has a floating base; give its motion as base=BaseMotion(...)")
        if len(base.twists) < order + 2:
            raise InputError(
                f"torques of order {order} need {order + 2} base twists (the twist and its derivatives), "
                f"found {len(base.twists)}"
            )
        return base


def _first_bad(array: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
