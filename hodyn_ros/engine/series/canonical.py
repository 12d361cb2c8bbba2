"""The robot as the engine sees it: every joint moves along or about the z axis of its body's frame.

Frames are free to choose: a body's frame may slide along and turn about its joint axis. They are chosen here
as in the modified Denavit-Hartenberg convention, so that most constants of the recursion become 0 or 1 and
vanish when the recursion is traced. Mass on a joint's axis looks the same from the parent, whatever the joint
does; it is moved to the parent (the regrouping behind base parameters), which empties further constants
without changing any result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.lie.se3 import Array, inverse, pose
from hodyn_ros.model.tree import JointKind, TreeModel

# [rad] Axes that differ by less, as rounded right angles leave them, count as parallel: the feet of their
# common normal are far away, and inertias moved there and back lose twice as many digits.
_CROSSED = 1e-2
_ROUNDING = 4e-15  # constants closer than this to 0, 1 or -1 differ from them by rounding alone
_NEGLIGIBLE = 1e-15  # of the mass and inertia that a body carries: less than these are rounded by


@dataclass(frozen=True, eq=False)
class CanonicalBody:
    """One body with its joint: `C_parent,body = (rotation, translation) · rot_z(angle) · trans_z(slide)`.

    angle = rotation_gain · q + offset and slide = translation_gain · q. The inertia is about the frame's
    origin: mass, first moment (3,) and second moment (3, 3) `integral of x x^T dm`.
    """

    parent: int
    joint: int  # -1 for a floating base
    rotation: Array
    translation: Array
    offset: float
    rotation_gain: float
    translation_gain: float
    mass: float
    first_moment: Array
    second_moment: Array
    body_in_frame: Array  # (4, 4) the user's body frame, seen from this one
    light: bool = False  # whether it has no mass of its own, as `without_mass` says; others hold its joint


def inward(parents: Sequence[int], body: int, root: int = -1) -> list[int]:
    """Return a body and all inward of it, up to below a root, by default the ground."""
    path = []
    while body >= 0 and body != root:
        path.append(body)
        body = parents[body]
    return path


def canonical_bodies(model: TreeModel, *, regroup: bool = True) -> list[CanonicalBody]:
    """Describe a tree in canonical frames; `regroup` moves mass on joint axes to the parents."""
    frames = _frames(model)
    pseudo = [
        _pseudo_inertia(model, j, inverse(frames[j]) @ model.placements[j]) for j in range(model.n_bodies)
    ]
    if regroup:
        for j in reversed(range(model.first_jointed_body, model.n_bodies)):
            _regroup(model, j, frames, pseudo)
    light = without_mass(model)
    bodies = []
    for j, parent in enumerate(model.parents):
        kind = model.kinds[j]
        reference = np.eye(4) if parent < 0 else frames[parent]
        relative = inverse(reference) @ frames[j]
        rotation, offset = relative[:3, :3], 0.0
        if kind is not JointKind.BASE:
            rotation, offset = _split_rotation(rotation)
        bodies.append(
            CanonicalBody(
                parent=parent,
                joint=model.joint_of(j),
                rotation=_snap(rotation),
                translation=_snap(relative[:3, 3], _size(model)),
                offset=offset,
                rotation_gain=0.0 if kind in (JointKind.PRISMATIC, JointKind.BASE) else 1.0,
                translation_gain=1.0 if kind is JointKind.PRISMATIC else float(model.pitches[j]),
                mass=float(pseudo[j][3, 3]),
                first_moment=pseudo[j][:3, 3],
                second_moment=pseudo[j][:3, :3],
                body_in_frame=inverse(frames[j]) @ model.placements[j],
                light=light[j],
            )
        )
    return bodies


def without_mass(model: TreeModel) -> list[bool]:
    """Say of each body but a base whether it has no mass, or one lost in rounding by what it carries."""
    n = model.n_bodies
    masses, inertias = model.masses.tolist(), np.abs(model.inertias).max(axis=(1, 2)).tolist()
    carried_mass, carried_inertia = [0.0] * n, [0.0] * n
    for body in reversed(range(n)):
        parent = model.parents[body]
        if parent >= 0:
            carried_mass[parent] += masses[body] + carried_mass[body]
            carried_inertia[parent] += inertias[body] + carried_inertia[body]
    return [
        (body > 0 or not model.floating_base)
        and carried_mass[body] > 0.0
        and masses[body] <= _NEGLIGIBLE * carried_mass[body]
        and inertias[body] <= _NEGLIGIBLE * carried_inertia[body]
        for body in range(n)
    ]


def _size(model: TreeModel) -> float:
    return float(max(np.abs(model.placements[:, :3, 3]).max(), np.abs(model.screws[:, 3:]).max(), 1e-300))


def _snap(values: Array, scale: float = 1.0) -> Array:
    nearest = scale * np.round(values / scale) if scale == 1.0 else np.zeros_like(values)
    return np.where(np.abs(values - nearest) < _ROUNDING * scale, nearest, values)


def _split_rotation(rotation: Array) -> tuple[Array, float]:
    """Split R into a sparse constant rotation, x axis in the parent's xy plane, and a turn about z."""
    if np.hypot(rotation[2, 0], rotation[2, 1]) > _ROUNDING:
        offset = np.arctan2(rotation[2, 0], rotation[2, 1])
    else:
        offset = np.arctan2(rotation[1, 0], rotation[0, 0])
    offset = float(_snap(np.array(offset)))
    return rotation @ _rotation_z(-offset), offset


def _rotation_z(angle: float) -> Array:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])


def _frames(model: TreeModel) -> list[Array]:
    """Choose the frames (4, 4) in the world at the zero configuration, from the leaves to the root."""
    frames: list[Array] = [np.eye(4)] * model.n_bodies
    for j in reversed(range(model.n_bodies)):
        if model.kinds[j] is JointKind.BASE:
            frames[j] = model.placements[j]
            continue
        omega, v = model.screws[j, :3], model.screws[j, 3:]
        axis = v if model.kinds[j] is JointKind.PRISMATIC else omega
        # a prismatic axis has a direction only; any point will do
        point = np.cross(omega, v) if omega.any() else model.placements[j, :3, 3]
        children = model.children[j]
        if children:
            target = frames[children[0]]
        else:
            com = model.placements[j, :3, :3] @ model.coms[j] + model.placements[j, :3, 3]
            target = pose(np.column_stack([np.zeros(3), np.zeros(3), axis]), com)
        frames[j] = _frame_on_axis(axis, point, target, free_origin=model.kinds[j] is JointKind.PRISMATIC)
    return frames


def _frame_on_axis(axis: Array, point: Array, target: Array, free_origin: bool) -> Array:
    """Place a frame on an axis with x along the common normal towards the z axis of `target`."""
    other, goal = target[:3, 2], target[:3, 3]
    normal = np.cross(axis, other)
    crossing = float(normal @ normal)
    if crossing > _CROSSED**2:  # the foot of the common normal
        along = np.dot(np.cross(goal - point, other), normal) / crossing
    else:
        along = axis @ (goal - point)
        normal = goal - point - along * axis
        if np.linalg.norm(normal) < 1e-9:  # the same line
            normal = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    origin = goal if free_origin else point + along * axis
    x = normal / np.linalg.norm(normal)
    x -= (x @ axis) * axis
    x /= np.linalg.norm(x)
    return pose(np.column_stack([x, np.cross(axis, x), axis]), origin)


def _pseudo_inertia(model: TreeModel, j: int, body_in_frame: Array) -> Array:
    """Return `integral of (x; 1)(x; 1)^T dm` (4, 4) of a body in its canonical frame."""
    inertia, mass, com = model.inertias[j], model.masses[j], model.coms[j]
    symmetric = 0.5 * (inertia + inertia.T)
    second = 0.5 * np.trace(symmetric) * np.eye(3) - symmetric + mass * np.outer(com, com)
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = second
    pseudo[:3, 3] = pseudo[3, :3] = mass * com
    pseudo[3, 3] = mass
    return body_in_frame @ pseudo @ body_in_frame.T


def _regroup(model: TreeModel, j: int, frames: list[Array], pseudo: list[Array]) -> None:
    """Move the part of a body's inertia that its joint does not move to the parent, or to the ground."""
    invisible = np.zeros((4, 4), dtype=bool)
    if model.kinds[j] is JointKind.REVOLUTE:
        invisible[2:, 2:] = True  # mass on the axis
    elif model.kinds[j] is JointKind.HELICAL:
        invisible[2, 2] = True
    else:
        invisible[:3, :3] = True  # a prismatic joint does not turn
    moved = np.where(invisible, pseudo[j], 0.0)
    pseudo[j] = np.where(invisible, 0.0, pseudo[j])
    parent = model.parents[j]
    if parent >= 0:
        relative = inverse(frames[parent]) @ frames[j]
        pseudo[parent] = pseudo[parent] + relative @ moved @ relative.T
