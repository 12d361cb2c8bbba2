"""What a robot is to the mathematics: rigid bodies joined in a tree, on the ground or floating."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError, UnknownNameError
from hodyn_ros.lie.se3 import exp_screw, nearest_rotation
from hodyn_ros.model.arrays import (
    check_parents,
    frozen_array,
    index_in,
    is_turn,
    parent_indices,
    unique_names,
)

_UNIT_TOLERANCE = 1e-9
_ROUNDING = 1e-15  # [m^2] of links merged into a body, per mass
_SINGULAR = 1e-12  # ratio of smallest to largest principal moment below which an inertia counts as singular


class JointKind(enum.Enum):
    """How a body moves on its parent."""

    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    HELICAL = "helical"
    BASE = "base"


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """The bodies of a tree, a row each; shapes and units as on `TreeModel`, whose `build` checks them."""

    parents: Sequence[int]
    screws: Any  # or composite joints among them, for `unfold_arrays`
    placements: ArrayLike
    masses: ArrayLike
    coms: ArrayLike
    inertias: ArrayLike
    joint_names: Sequence[str] | None = None  # numbered ones by default
    body_names: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A kinematic tree of rigid bodies, described at its zero configuration in the world frame.

    With a fixed base, joint i moves body i. With a floating base, body 0 is the base and joint i moves body i
    + 1. Built by `TreeModel.build`, which validates; arrays are read-only.
    """

    parents: tuple[int, ...]  # per body, -1 is the world; a parent comes before its children
    screws: Array  # (bodies, 6) unit joint screws (e; y×e + h e) in the world frame; zero for a floating base
    placements: Array  # (bodies, 4, 4) body frames in the world at the zero configuration
    masses: Array  # (bodies,) [kg]
    coms: Array  # (bodies, 3) centres of mass in the body frame [m]
    inertias: Array  # (bodies, 3, 3) about the centre of mass, body axes [kg m^2]
    gravity: Array  # (3,) world frame, pointing down [m/s^2]
    floating_base: bool
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    name: str
    any_rank: bool = False  # whether bodies may lack mass or inertia, because couplings or loops hold them

    @classmethod
    def build(
        cls,
        arrays: TreeArrays,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        floating_base: bool = False,
        *,
        name: str = "robot",
        any_rank: bool = False,
    ) -> TreeModel:
        """Validate the arrays of a tree and freeze them.

        `gravity` (3,) points down [m/s^2]. Bodies need mass and inertia of full rank, but for those
        without any that carry others; where couplings or loops hold them (`any_rank`) they may have less, and
        whoever builds the robot has to check that each of its motions costs effort. Raises ModelError
        naming the body, joint or array at fault.
        """
        parents = parent_indices(arrays.parents)
        n = len(parents)
        if n == 0:
            raise ModelError("a robot needs at least one body; parents is empty")
        n_joints = n - 1 if floating_base else n
        bodies = unique_names("body_names", arrays.body_names, n, "body")
        joints = unique_names("joint_names", arrays.joint_names, n_joints, "joint")
        model = cls(
            parents=parents,
            screws=frozen_array("screws", arrays.screws, (n, 6)),
            placements=frozen_array("placements", arrays.placements, (n, 4, 4)),
            masses=frozen_array("masses", arrays.masses, (n,)),
            coms=frozen_array("coms", arrays.coms, (n, 3)),
            inertias=frozen_array("inertias", arrays.inertias, (n, 3, 3)),
            gravity=frozen_array("gravity", gravity, (3,)),
            floating_base=bool(floating_base),
            joint_names=joints,
            body_names=bodies,
            name=str(name),
            any_rank=bool(any_rank),
        )
        model._check_topology()
        model._check_screws()
        model._check_placements()
        model._check_inertias()
        return replace(model, screws=model._exact_screws(), placements=model._exact_placements())

    @property
    def n_bodies(self) -> int:
        """Number of bodies, a floating base counted in."""
        return len(self.parents)

    @property
    def n_joints(self) -> int:
        """Number of joints with one degree of freedom each."""
        return len(self.joint_names)

    @property
    def first_jointed_body(self) -> int:
        """Index of the body that joint 0 moves: 1 with a floating base, else 0."""
        return 1 if self.floating_base else 0

    @cached_property
    def kinds(self) -> tuple[JointKind, ...]:
        """How each body moves on its parent."""
        return tuple(self._kind(i) for i in range(self.n_bodies))

    @cached_property
    def pitches(self) -> Array:
        """Pitch of each body's joint (bodies,) [m/rad]; zero unless helical."""
        pitch = np.einsum("ij,ij->i", self.screws[:, :3], self.screws[:, 3:])
        return np.where([kind is JointKind.HELICAL for kind in self.kinds], pitch, 0.0)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each body, the bodies that hang on it."""
        result: list[list[int]] = [[] for _ in self.parents]
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                result[parent].append(i)
        return tuple(tuple(children) for children in result)

    def poses(self, joints: Array) -> Array:
        """Return the poses (bodies, 4, 4) in the world with joints (n,) at positions, a base as at zero."""
        moved = [np.eye(4)] * self.n_bodies
        for body, parent in enumerate(self.parents):
            before = moved[parent] if parent >= 0 else np.eye(4)
            joint = self.joint_of(body)
            moved[body] = before @ exp_screw(self.screws[body], joints[joint]) if joint >= 0 else before
        result: Array = np.array(moved) @ self.placements
        return result

    def joint_of(self, body: int) -> int:
        """Return the index of the joint that moves a body; -1 for a floating base."""
        return body - self.first_jointed_body

    def body_index(self, body: str | int) -> int:
        """Return the index of a body given by name or index; InputError names what is there instead."""
        return _index("body", body, self.body_names)

    def joint_index(self, joint: str | int) -> int:
        """Return the index of a joint given by name or index; InputError names what is there instead."""
        return _index("joint", joint, self.joint_names)

    def slides(self, joint: str | int) -> bool:
        """Whether a joint is prismatic, so that its position is in m and its effort in N."""
        return self.kinds[self.first_jointed_body + self.joint_index(joint)] is JointKind.PRISMATIC

    def with_gravity(self, gravity: ArrayLike) -> TreeModel:
        """Return the same robot under another gravity (3,) [m/s^2], given as a vector that points down."""
        return replace(self, gravity=frozen_array("gravity", gravity, (3,)))

    def with_inertias(self, masses: ArrayLike, coms: ArrayLike, inertias: ArrayLike) -> TreeModel:
        """Return the same tree with other inertias of its bodies; shapes, units and errors as in `build`."""
        n = self.n_bodies
        model = replace(
            self,
            masses=frozen_array("masses", masses, (n,)),
            coms=frozen_array("coms", coms, (n, 3)),
            inertias=frozen_array("inertias", inertias, (n, 3, 3)),
        )
        model._check_inertias()
        return model

    def _kind(self, i: int) -> JointKind:
        if self.floating_base and i == 0:
            return JointKind.BASE
        omega, v = self.screws[i, :3], self.screws[i, 3:]
        if not omega.any():
            return JointKind.PRISMATIC
        return JointKind.HELICAL if abs(omega @ v) > _UNIT_TOLERANCE else JointKind.REVOLUTE

    def _check_topology(self) -> None:
        check_parents(self.parents, self.body_names)
        for i, parent in enumerate(self.parents):
            if self.floating_base and i > 0 and parent == -1:
                raise ModelError(
                    f"body {self.body_names[i]!r} (index {i}) hangs on the world, but the base floats; "
                    "with a floating base only body 0 has parent -1"
                )

    def _check_screws(self) -> None:
        for i in range(self.first_jointed_body, self.n_bodies):
            omega, v = self.screws[i, :3], self.screws[i, 3:]
            length, part = (
                (np.linalg.norm(omega), "angular") if omega.any() else (np.linalg.norm(v), "linear")
            )
            if abs(length - 1.0) > _UNIT_TOLERANCE:
                raise ModelError(
                    f"the screw of joint {self.joint_names[self.joint_of(i)]!r} is not a unit screw: its "
                    f"{part} part has length {length:.9g}; give (e; y×e + h e) with |e| = 1, or (0; e) if "
                    "prismatic"
                )

    def _check_placements(self) -> None:
        for name, placement in zip(self.body_names, self.placements):
            if not is_turn(placement[:3, :3]):
                raise ModelError(
                    f"the placement of body {name!r} has no proper rotation in its upper left 3×3 block"
                )
            if not np.array_equal(placement[3], (0.0, 0.0, 0.0, 1.0)):
                raise ModelError(f"the placement of body {name!r} must end with the row (0, 0, 0, 1)")

    def _exact_screws(self) -> Array:
        """Return the screws freed of rounding in their norms and in the pitch of revolute joints."""
        screws = np.zeros_like(self.screws)
        for i, kind in enumerate(self.kinds):
            omega, v = self.screws[i, :3], self.screws[i, 3:]
            if kind is JointKind.PRISMATIC:
                screws[i, 3:] = v / np.linalg.norm(v)
            elif kind is not JointKind.BASE:
                e = omega / np.linalg.norm(omega)
                pitch = e @ v if kind is JointKind.HELICAL else 0.0
                screws[i] = np.concatenate([e, v - (e @ v) * e + pitch * e])
        screws.setflags(write=False)
        return screws

    def _exact_placements(self) -> Array:
        """Return the placements with their rotations replaced by the nearest proper ones."""
        placements = self.placements.copy()
        placements[:, :3, :3] = nearest_rotation(placements[:, :3, :3])
        placements.setflags(write=False)
        return placements

    def _check_inertias(self) -> None:
        leaves = {i for i, children in enumerate(self.children) if not children}
        for i, name in enumerate(self.body_names):
            mass, inertia = self.masses[i], self.inertias[i]
            if mass < 0.0:
                raise ModelError(f"body {name!r} has the negative mass {mass:g} kg")
            scale = float(np.abs(inertia).max())
            if not np.allclose(inertia, inertia.T, rtol=0.0, atol=_UNIT_TOLERANCE * scale):
                raise ModelError(f"the inertia of body {name!r} is not symmetric")
            if mass == 0.0 and scale == 0.0:
                if self.any_rank:
                    continue
                if i in leaves or (self.floating_base and i == 0):
                    what = "is the base" if i not in leaves else "carries no other body"
                    raise massless(name, what)
                continue
            moments = np.linalg.eigvalsh(inertia)
            if self.any_rank and mass > 0.0 and moments[0] >= -_SINGULAR * scale - _ROUNDING * mass:
                continue
            if mass == 0.0 or moments[0] <= _SINGULAR * moments[-1]:
                kind = "singular" if moments[0] >= -_SINGULAR * scale else "not positive definite"
                raise ModelError(
                    f"the inertia of body {name!r} is {kind}: mass {mass:g} kg, principal moments about the "
                    f"centre of mass {np.array2string(moments, precision=6)} kg m^2; all must be positive"
                )


def massless(body: str, what: str) -> ModelError:
    """Return the error of a body without mass that is moved; `what` it is besides."""
    return ModelError(
        f"body {body!r} has no mass and {what}: its motion would cost no effort; give it mass and inertia "
        "(those of a URDF or MJCF also under bodies in a robot file), or lock its joint"
    )


def _index(what: str, key: str | int, names: tuple[str, ...]) -> int:
    place = index_in(names, key)
    if place is None:
        raise UnknownNameError(what, key, names)
    return place
