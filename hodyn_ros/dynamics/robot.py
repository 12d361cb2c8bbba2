"""The robot that users hold: a model with its drives and limits, and the calls of dynamics on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.engine import kernels
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.model.config import read_config
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.urdf import read_urdf
from hodyn_ros.motion import AppliedWrench, BaseMotion
from hodyn_ros.se3 import Array

_STRAIGHT_LINE_LIMIT = 500


class Robot:
    """A tree of rigid bodies, on the ground or floating, with its dynamics of any order.

    Build one with `from_urdf`, `from_config` or `from_screws`.
    """

    def __init__(
        self, model: TreeModel, limits: JointLimits | None = None, drives: Drives | None = None
    ) -> None:
        self.model = model
        self.limits = limits if limits is not None else JointLimits.unlimited(model.n_joints)
        self.drives = drives
        self.actuation = None if drives is None else SeriesElastic(drives.stiffness, drives.motor_inertia)
        self._compiled: dict[
            tuple[int, ...], Callable[..., Any]
        ] = {}  # inverse dynamics by shape of the motion
        self._forward: dict[int, Callable[..., Any]] = {}  # forward dynamics by order

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
        """Build a robot of n bodies from screws and body frames in the world at its zero configuration.

        `parents` (n,) index of each body's parent, -1 for the world, parents before children; `screws` (n, 6)
        unit joint screws `(e; y×e + h e)` or, prismatic, `(0; e)`; `placements` (n, 4, 4) body frames [m];
        `masses` (n,) [kg]; `coms` (n, 3) in the body frame [m]; `inertias` (n, 3, 3) about the centre of mass
        in body axes [kg m^2]; `gravity` (3,) points down [m/s^2]. With a floating base, body 0 is the base,
        its screw row is ignored, and joint i moves body i + 1. Raises ModelError naming the body or joint at
        fault.
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

        `q` (order + 3, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 3, n).
        `base`: the motion of a floating base with order + 2 twists. `wrenches` that the environment applies
        to bodies. `formulation`: one of the published recursions by name ("spatial", "body_fixed"), default
        the fastest.

        Returns torques (order + 1, n) [N.m/s^k or N/s^k], or (N, order + 1, n) for a batch; with a floating
        base the pair (base wrench (order + 1, 6) in the world frame, torques). Raises InputError saying what
        was expected.
        """
        if type(q) is np.ndarray and base is None and wrenches is None and formulation is None:
            compiled = self._compiled.get(q.shape)
            if compiled is not None:
                return compiled(q)
        motion = self._motion(q)
        order = motion.shape[-2] - 3
        base = self._base(base, order)
        applied = tuple(wrenches or ())
        if formulation is None and base is None and not applied and _fits_straight_line(self.model, order):
            compiled = self.compile(order)
            if motion.ndim == 2:
                return compiled(motion)
            torques = np.empty((len(motion), order + 1, self.n_joints))
            for sample, result in zip(motion, torques):
                compiled(sample, out=result)
            return torques
        room = INVERSE_DYNAMICS.get(formulation or "body_fixed")
        if room is None:
            raise InputError(
                f"there is no formulation {formulation!r}; choose one of {sorted(INVERSE_DYNAMICS)}"
            )
        torques, ground = room(self.model, np.moveaxis(motion, -2, 0), base, applied)
        torques = np.ascontiguousarray(np.moveaxis(torques, 0, -2))
        if self.model.floating_base:
            return np.ascontiguousarray(np.moveaxis(ground, 0, -2)), torques
        return torques

    def compile(self, order: int) -> Callable[..., Array]:
        """Compile the inverse dynamics of one order for this robot, and return the fastest callable there is.

        `f(q)` takes an array (order + 3, n) and returns torques (order + 1, n); `f(q, out=array)` writes them
        there. For a C-contiguous float64 array everything is checked in compiled code. Takes a fraction of a
        second; the next process finds the machine code on disk. Raises InputError for a floating base.
        """
        if not isinstance(order, (int, np.integer)) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        if self.model.floating_base:
            raise InputError("a floating base has no compiled inverse dynamics yet; call inverse_dynamics")
        shape = (int(order) + 3, self.n_joints)
        if shape not in self._compiled:
            self._compiled[shape] = kernels.inverse_dynamics(self.model, int(order)).function
        return self._compiled[shape]

    def forward_dynamics(self, state: ArrayLike, torques: ArrayLike) -> Array:
        """Compute joint accelerations and their derivatives from a state, the torques and their derivatives.

        `state` (2, n) positions and velocities; `torques` (order + 1, n). Returns (order + 1, n):
        accelerations up to their derivative `order` [rad/s^(k+2) or m/s^(k+2)]. Ali et al., Algorithm 3.
        Raises InputError.
        """
        if self.model.floating_base:
            raise InputError("forward dynamics of a floating base is not there yet")
        n = self.n_joints
        efforts = real_array("the torques", torques, f"(order + 1, {n})")
        if efforts.ndim != 2 or efforts.shape[1] != n or not len(efforts):
            raise InputError(f"the torques must have shape (order + 1, {n}), found {efforts.shape}")
        order = len(efforts) - 1
        if order not in self._forward:
            self._forward[order] = kernels.forward_dynamics(self.model, order).function
        accelerations: Array = self._forward[order](state, efforts)
        return accelerations

    def _motion(self, q: ArrayLike) -> Array:
        n = self.n_joints
        shapes = f"(order + 3, {n}) or (N, order + 3, {n})"
        motion = real_array("the motion", q, shapes)
        if motion.ndim not in (2, 3) or motion.shape[-1] != n or motion.shape[-2] < 3:
            raise InputError(
                f"the motion must have shape {shapes}: positions, velocities and accelerations at least; "
                f"found {motion.shape}"
            )
        check_finite("the motion", motion)
        return motion

    def _base(self, base: BaseMotion | None, order: int) -> BaseMotion | None:
        if not self.model.floating_base:
            if base is not None:
                raise InputError(
                    f"robot {self.model.name!r} stands on the ground; a base motion does not apply"
                )
            return None
        if base is None:
            raise InputError(
                f"robot {self.model.name!r} has a floating base; give its motion as base=BaseMotion(...)"
            )
        if len(base.twists) < order + 2:
            raise InputError(
                f"torques of order {order} need {order + 2} base twists (the twist and its derivatives), "
                f"found {len(base.twists)}"
            )
        return base


def _fits_straight_line(model: TreeModel, order: int) -> bool:
    """Say whether straight-line code compiles in about a second; it grows with bodies and order squared."""
    return model.n_bodies * (order + 2) ** 2 <= _STRAIGHT_LINE_LIMIT
