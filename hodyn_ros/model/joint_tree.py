"""Trees whose joints have one to six degrees of freedom, on the Lie groups that they move in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.errors import ModelError, UnknownNameError
from hodyn_ros.lie.se3 import Ad, Array, ad, exp, inverse
from hodyn_ros.model.arrays import (
    check_parents,
    frozen_array,
    index_in,
    is_turn,
    parent_indices,
    unique_names,
)
from hodyn_ros.model.tree import TreeModel

_CLOSED = 1e-9  # by which brackets of joint screws may leave the space of the joint


@dataclass(frozen=True, eq=False)
class JointTree:
    """A kinematic tree of rigid bodies; every joint moves its body in a subgroup of SE(3).

    The velocity of a joint is that of its group: coefficients of the columns of its subspace, a body-fixed
    twist of the body relative to its parent. A floating base is a body on a `free` joint. Built by
    `JointTree.build`, which validates, or from a `TreeModel` by `JointTree.of`; arrays are read-only.
    """

    parents: tuple[int, ...]  # per body, -1 is the world; a parent comes before its children
    subspaces: tuple[Array, ...]  # per body (6, dof): screws of its joint in the body frame, constant
    references: Array  # (bodies, 4, 4) body frames in their parents' (or the world) at rest
    masses: Array  # (bodies,) [kg]
    coms: Array  # (bodies, 3) centres of mass in the body frame [m]
    inertias: Array  # (bodies, 3, 3) about the centre of mass, body axes [kg m^2]
    gravity: Array  # (3,) world frame, pointing down [m/s^2]
    body_names: tuple[str, ...]

    @classmethod
    def build(
        cls,
        parents: Sequence[int],
        subspaces: Sequence[ArrayLike],
        references: ArrayLike,
        masses: ArrayLike,
        coms: ArrayLike,
        inertias: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        *,
        body_names: Sequence[str] | None = None,
    ) -> JointTree:
        """Validate the arrays of a tree and freeze them.

        Shapes and units as on the attributes; `hodyn_ros.model.joint_groups` makes subspaces. Raises
        ModelError naming the body or array at fault.
        """
        indices = parent_indices(parents)
        spaces = list(subspaces) if isinstance(subspaces, (Sequence, np.ndarray)) else []
        n = len(indices)
        if n == 0:
            raise ModelError("a tree needs at least one body; parents is empty")
        names = unique_names("body_names", body_names, n, "body")
        if len(spaces) != n:
            raise ModelError(f"subspaces must hold one matrix per body, {n} in all, found {len(spaces)}")
        check_parents(indices, names)
        tree = cls(
            parents=indices,
            subspaces=tuple(_subspace(name, screws) for name, screws in zip(names, spaces)),
            references=frozen_array("references", references, (n, 4, 4)),
            masses=frozen_array("masses", masses, (n,)),
            coms=frozen_array("coms", coms, (n, 3)),
            inertias=frozen_array("inertias", inertias, (n, 3, 3)),
            gravity=frozen_array("gravity", gravity, (3,)),
            body_names=names,
        )
        for name, reference in zip(names, tree.references):
            if not is_turn(reference[:3, :3]) or not np.array_equal(reference[3], (0, 0, 0, 1)):
                raise ModelError(
                    f"the reference of body {name!r} is not a pose: a rotation and a translation"
                )
        for name, mass, inertia in zip(names, tree.masses, tree.inertias):
            symmetric = np.allclose(inertia, inertia.T, rtol=0.0, atol=_CLOSED * np.abs(inertia).max())
            if (
                mass < 0.0
                or not symmetric
                or np.linalg.eigvalsh(inertia)[0] < -_CLOSED * np.abs(inertia).max()
            ):
                raise ModelError(
                    f"body {name!r} has a mass or an inertia that no body has: mass {mass:g} kg, inertia "
                    f"{inertia.tolist()}; the inertia must be symmetric and positive"
                )
        return tree

    @classmethod
    def of(cls, model: TreeModel) -> JointTree:
        """Return a model of joints with one degree of freedom, a floating base becoming a free joint."""
        subspaces, references = [], []
        for body, parent in enumerate(model.parents):
            floats = body < model.first_jointed_body
            placement = model.placements[body]
            subspaces.append(np.eye(6) if floats else (Ad(inverse(placement)) @ model.screws[body])[:, None])
            above = np.eye(4) if parent < 0 else model.placements[parent]
            references.append(np.eye(4) if floats else inverse(above) @ placement)
        return cls(
            parents=model.parents,
            subspaces=tuple(subspaces),
            references=np.array(references),
            masses=model.masses,
            coms=model.coms,
            inertias=model.inertias,
            gravity=model.gravity,
            body_names=model.body_names,
        )

    @property
    def n_bodies(self) -> int:
        """Number of bodies, each on a joint of its own."""
        return len(self.parents)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """For each body, where the velocities of its joint stand among all."""
        ends = np.cumsum([screws.shape[1] for screws in self.subspaces]).tolist()
        return tuple(slice(start, end) for start, end in zip([0, *ends], ends))

    @property
    def n_velocities(self) -> int:
        """Number of velocities m: the degrees of freedom of all joints."""
        return self.columns[-1].stop

    @finite_result
    def joint_poses(self, coordinates: ArrayLike) -> Array:
        """Return the poses (bodies, 4, 4) that joints reach from rest by constant velocities in unit time.

        `coordinates` (m,) are those velocities, the exponential coordinates of the groups; for joints with
        one degree of freedom the usual coordinates. Raises InputError for another shape.
        """
        values = finite_array("the joint coordinates", coordinates, (self.n_velocities,))
        return np.stack(
            [exp(subspace @ values[columns]) for subspace, columns in zip(self.subspaces, self.columns)]
        )

    def body_index(self, body: str | int) -> int:
        """Return the index of a body given by name or index; InputError names what is there instead."""
        place = index_in(self.body_names, body)
        if place is None:
            raise UnknownNameError("body", body, self.body_names)
        return place


def _subspace(name: str, screws: ArrayLike) -> Array:
    try:
        matrix = np.array(screws, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the subspace of body {name!r} must be a matrix of numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[0] != 6 or not 1 <= matrix.shape[1] <= 6:
        raise ModelError(f"the subspace of body {name!r} must have shape (6, 1 to 6), found {matrix.shape}")
    if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ModelError(f"the screws of the joint of body {name!r} are not linearly independent")
    for screw in matrix.T:
        bracket = ad(screw) @ matrix
        rest = bracket - matrix @ np.linalg.lstsq(matrix, bracket, rcond=None)[0]
        if np.abs(rest).max() > _CLOSED * np.abs(matrix).max() ** 2:
            raise ModelError(
                f"the joint of body {name!r} does not move in a group: brackets of its screws leave their "
                "space (a universal joint, for one, is two joints with a body without mass between them)"
            )
    matrix.setflags(write=False)
    return matrix
