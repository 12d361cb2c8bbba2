"""Joints that are rows of joints of one degree of freedom, with bodies without mass between them.

Everything that knows joints of one degree of freedom then knows these. Turns are about axes one after the
other, so a ball joint is `R = Rz Ry Rx` with the angles of roll, pitch and yaw, and singular at a pitch of 90
degrees: there the axes of its first and its last turn are one. `hodyn_ros.GroupRobot` has no such poses.
Joints of a row may follow others of it, so that the row moves along a curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.model.arrays import frozen_array, is_turn, parent_indices, unique_names
from hodyn_ros.model.joint_groups import prismatic, revolute
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.tree import TreeArrays

_PARALLEL = 1e-6  # [rad]
_ORIGIN = (0.0, 0.0, 0.0)

FREEDOMS = {
    "universal": ("r1", "r2"),
    "ball": ("rz", "ry", "rx"),
    "planar": ("x", "y", "rz"),
    "rolling": ("r1", "r2"),
    "floating": ("x", "y", "z", "rz", "ry", "rx"),
}
"""The kinds of joints that are rows of others, and what these are called, from the parent on."""


@dataclass(frozen=True, eq=False)
class CompositeJoint:
    """Unit joint screws (k, 6) at the zero configuration, from the parent on, and the names of each.

    Joint "hip" with the names "rz", "ry", "rx" becomes the joints "hip_rz", "hip_ry" and "hip_rx".
    `couplings` say which of them follow others, by these names.
    """

    screws: Array
    names: tuple[str, ...]
    couplings: tuple[Coupling, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.names)
        object.__setattr__(self, "names", unique_names("the names of a joint", self.names, count, ""))
        object.__setattr__(self, "screws", frozen_array("screws of a joint", self.screws, (count, 6)))


def universal(axis: ArrayLike, axis_b: ArrayLike, point: ArrayLike = _ORIGIN) -> CompositeJoint:
    """Return turns "r1" about an axis fixed in the parent and "r2" about `axis_b`, fixed in the child."""
    first, second = revolute(axis, point), revolute(axis_b, point)
    if np.linalg.norm(np.cross(first[:3, 0], second[:3, 0])) <= _PARALLEL:
        raise ModelError("the axes of a universal joint are parallel, so they are one; give two directions")
    return CompositeJoint(np.hstack([first, second]).T, FREEDOMS["universal"])


def ball(point: ArrayLike = _ORIGIN, axes: ArrayLike | None = None) -> CompositeJoint:
    """Return turns about a point: "rz", "ry", "rx" about the columns z, y, x of `axes` (3, 3)."""
    x, y, z = _frame(axes)
    turns = [revolute(axis, point)[:, 0] for axis in (z, y, x)]
    return CompositeJoint(np.array(turns), FREEDOMS["ball"])


def planar(normal: ArrayLike, first: ArrayLike | None = None, point: ArrayLike = _ORIGIN) -> CompositeJoint:
    """Return shifts "x" along `first` and "y" across it, then the turn "rz" about the normal at a point.

    Without `first`: the axis of the frame after the one nearest to the normal, in the order x, y, z, x,
    brought into the plane; of a normal along z the shifts are along x and y.
    """
    n = prismatic(normal)[3:, 0]
    e = prismatic(np.eye(3)[(int(np.abs(n).argmax()) + 1) % 3] if first is None else first)[3:, 0]
    if first is not None and abs(n @ e) > _PARALLEL:
        raise ModelError(f"the first direction of a planar joint must lie in its plane, found {e} over {n}")
    e = prismatic(e - (n @ e) * n)[3:, 0]
    parts = [prismatic(e), prismatic(np.cross(n, e)), revolute(n, point)]
    return CompositeJoint(np.hstack(parts).T, FREEDOMS["planar"])


def rolling(axis: ArrayLike, line: ArrayLike, radii: ArrayLike, point: ArrayLike = _ORIGIN) -> CompositeJoint:
    """Return a cylinder of the child that rolls on one of the parent without slipping, as knees do.

    `radii` (2,) [m] of the parent's and the child's cylinder, both along `axis`. `point`: on the axis of the
    child's; `line`: from the parent's axis to it, at right angles. "r1" is the turn of this line. "r2", that
    of the child against it, follows: the arcs are equal, so it is r1 times the parent's radius over the
    child's.
    """
    a, b = frozen_array("radii of a rolling joint", radii, (2,)).tolist()
    if a <= 0.0 or b <= 0.0:
        raise ModelError(f"the radii of a rolling joint must be above zero, found {[a, b]}")
    n, e = prismatic(axis)[3:, 0], prismatic(line)[3:, 0]
    if abs(n @ e) > _PARALLEL:
        raise ModelError(f"the line between the axes of a rolling joint must be normal to {n}, found {e}")
    screws = [revolute(n, np.asarray(point) - (a + b) * e), revolute(n, point)]
    return CompositeJoint(np.hstack(screws).T, FREEDOMS["rolling"], (Coupling("r2", "r1", a / b),))


def floating(point: ArrayLike = _ORIGIN, axes: ArrayLike | None = None) -> CompositeJoint:
    """Return shifts "x", "y", "z" along the columns of `axes` (3, 3), then the turns of a ball joint."""
    shifts = [prismatic(axis)[:, 0] for axis in _frame(axes)]
    return CompositeJoint(np.array([*shifts, *ball(point, axes).screws]), FREEDOMS["floating"])


def of_kind(
    kind: str,
    axis: ArrayLike | None = None,
    axis_b: ArrayLike | None = None,
    radii: ArrayLike | None = None,
) -> CompositeJoint:
    """Return a joint of a file at the origin of its child's frame, in its axes."""
    if kind == "rolling":
        if axis is None or axis_b is None or radii is None:
            raise ModelError("a rolling joint needs axis, axis_b and radii")
        return rolling(axis, axis_b, radii)
    if radii is not None:
        raise ModelError(f"a {kind} joint has no radii")
    if kind == "universal":
        if axis is None or axis_b is None:
            raise ModelError("a universal joint needs axis and axis_b")
        return universal(axis, axis_b)
    if kind == "planar":
        return planar((0.0, 0.0, 1.0) if axis is None else axis, axis_b)
    if axis is not None or axis_b is not None:
        raise ModelError(f"a {kind} joint has no axis; turn the origin of its child's frame")
    return {"ball": ball, "floating": floating}[kind]()


def between(joint: str, composite: CompositeJoint) -> list[tuple[str, str]]:
    """Return the names of the joints of a composite one, each with that of its body, "" of the last."""
    names = [f"{joint}_{name}" for name in composite.names]
    return [(name, f"{name}_link") for name in names[:-1]] + [(names[-1], "")]


def coupled(joint: str, composite: CompositeJoint) -> list[Coupling]:
    """Return which joints of a composite one follow others of it, by the names of `between`."""
    return [replace(x, joint=f"{joint}_{x.joint}", of=f"{joint}_{x.of}") for x in composite.couplings]


def has_composite(screws: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether there are composite joints among screws."""
    return isinstance(screws, (list, tuple)) and any(isinstance(x, CompositeJoint) for x in screws)


def unfold_arrays(
    arrays: TreeArrays, joint_names: Sequence[str], body_names: Sequence[str]
) -> tuple[TreeArrays, list[Coupling]]:
    """Return a tree with composite joints among its screws as one of joints of one degree of freedom.

    Joints that follow others of their row are returned besides.

    The bodies between are at the places of those that they carry. Names are those of the bodies and joints
    of `arrays`, without a name for the joint of a floating base.
    """
    indices, screws = parent_indices(arrays.parents), arrays.screws
    n = len(indices)
    if len(screws) != n:
        raise ModelError(f"screws must hold one joint per body, {n} in all, found {len(screws)}")
    shapes = {"placements": (4, 4), "masses": (), "coms": (3,), "inertias": (3, 3)}
    rows = {what: frozen_array(what, getattr(arrays, what), (n, *shape)) for what, shape in shapes.items()}
    first = n - len(joint_names)
    last: list[int] = []  # where the bodies of `arrays` are
    couplings: list[Coupling] = []
    tree: dict[str, Any] = {key: [] for key in ("parents", "screws", *shapes, "joint_names", "body_names")}
    for i, (parent, screw) in enumerate(zip(indices, screws)):
        name = joint_names[i - first] if i >= first else ""
        parts, names = [screw if name else np.zeros(6)], [(name, "")]
        if name and isinstance(screw, CompositeJoint):
            parts, names = list(screw.screws), between(name, screw)
            couplings += coupled(name, screw)
        above = last[parent] if 0 <= parent < i else -1 if parent == -1 else len(last)
        for part, (joint, link) in zip(parts, names):
            tree["parents"].append(above)
            above = len(tree["body_names"])
            tree["screws"].append(part)
            tree["joint_names"] += [joint] if joint else []
            tree["body_names"].append(link or body_names[i])
            for what, shape in shapes.items():
                kept = not link or what == "placements"
                tree[what].append(rows[what][i] if kept else np.zeros(shape))
        last.append(above)
    return TreeArrays(**tree), couplings


def _frame(axes: ArrayLike | None) -> Sequence[Array]:
    """Return the axes x, y, z of a frame given by its columns."""
    frame = np.eye(3) if axes is None else frozen_array("axes of a joint", axes, (3, 3))
    if not is_turn(frame):
        raise ModelError("the columns of the axes of a joint must be a right-handed frame")
    return list(frame.T)
