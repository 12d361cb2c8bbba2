"""A limb in a frame of its own, in which limbs of one build have the same constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.parallel.limb import LimbModel
from hodyn_ros.model.parallel.platform import Platform
from hodyn_ros.model.tree import TreeArrays, TreeModel

_ROUNDING = 1e-13  # by which constants of limbs of one build may differ, relative to the largest of a kind
_SNAP = 1e-14


@dataclass(frozen=True, eq=False)
class LimbConstants:
    """What the code of a limb is made for, in the limb's frame.

    `frame` (4, 4): the limb's frame in the world, on the axis of the first joint; `attachment` (4, 4): the
    frame of the last joint, moved along, in the platform's frame; `shifts` (N,): what the joint coordinates
    of `chain` are at the home pose [rad or m]. These are numbers that the code is given; all else is written
    into it. The coordinates of `cut` are those of `chain` plus `cut_shifts` (n,).
    """

    chain: list[CanonicalBody]
    cut: list[CanonicalBody]
    driven: tuple[int, ...]
    frame: Array
    attachment: Array
    shifts: Array
    cut_shifts: Array

    @property
    def numbers(self) -> list[float]:
        """The numbers (24 + N,) that the code is given."""
        poses = [*self.frame[:3].ravel().tolist(), *self.attachment[:3].ravel().tolist()]
        return [*poses, *self.shifts.tolist()]

    def is_like(self, other: LimbConstants, size: float) -> bool:
        """Say whether one code serves both limbs of a robot of a size [m]."""
        if (len(self.chain), len(self.cut), self.driven) != (len(other.chain), len(other.cut), other.driven):
            return False
        pairs = list(zip([*self.chain, *self.cut], [*other.chain, *other.cut]))
        bodies = [body for pair in pairs for body in pair]
        mass = max(body.mass for body in bodies)
        second = max(float(np.abs(body.second_moment).max()) for body in bodies)
        for a, b in pairs:
            for x, y, scale in (
                (a.rotation, b.rotation, 1.0),
                (a.offset, b.offset, 1.0),
                (a.rotation_gain, b.rotation_gain, 1.0),
                (a.translation_gain, b.translation_gain, max(1.0, size)),
                (a.translation, b.translation, size),
                (a.mass, b.mass, mass),
                (a.first_moment, b.first_moment, mass * size),
                (a.second_moment, b.second_moment, second),
            ):
                if np.abs(np.asarray(x) - np.asarray(y)).max() > _ROUNDING * scale:
                    return False
        return bool(np.abs(self.cut_shifts - other.cut_shifts).max(initial=0.0) <= _ROUNDING * max(1.0, size))


def limb_constants(limb: LimbModel, platform: Platform, center: Array) -> LimbConstants:
    """Choose the frame of a limb and describe the limb in it; poses are seen from `center` (3,)."""
    chain = limb.chain
    frame = chain.placements[0] @ inverse(canonical_bodies(chain, regroup=False)[0].body_in_frame)
    last = chain.n_bodies - 1
    local = _moved(chain, frame)
    # The frame of the last joint must depend on the limb alone, not on where the platform has its frame.
    end = np.eye(4)
    end[:3, 3] = _end_point(local.screws)
    placements = np.array(local.placements)
    placements[last] = end
    bodies = canonical_bodies(_like(local, placements), regroup=False)
    attachment = inverse(platform.placement) @ frame @ end @ inverse(bodies[last].body_in_frame)
    split = [_without_shift(body) for body in bodies]
    shifts = np.array([shift for _, shift in split])
    cut = [] if limb.cut is None else canonical_bodies(_moved(limb.cut, frame))
    split_cut = [_without_shift(body) for body in cut]
    cut_shifts = np.array([shift for _, shift in split_cut]) - shifts[: len(cut)]
    seen = frame.copy()
    seen[:3, 3] -= center
    return LimbConstants(
        [body for body, _ in split],
        [body for body, _ in split_cut],
        limb.driven,
        seen,
        attachment,
        shifts,
        np.where(np.abs(cut_shifts) < _SNAP, 0.0, cut_shifts),
    )


def _without_shift(body: CanonicalBody) -> tuple[CanonicalBody, float]:
    """Split off a joint's coordinate at the home pose, in which limbs of one build may differ."""
    axis = body.rotation[:, 2]
    if body.rotation_gain:
        back = body.translation_gain * body.offset * axis
        return replace(body, offset=0.0, translation=body.translation - back), body.offset
    along = float(axis @ body.translation)
    translation = body.translation - along * axis
    translation = np.where(np.abs(translation) < _SNAP, 0.0, translation)
    return replace(body, translation=translation), along


def _moved(model: TreeModel, frame: Array) -> TreeModel:
    """Describe a chain in another frame, numbers that are 0 or 1 but for rounding made so."""
    screws = model.screws @ Ad(inverse(frame)).T
    nearest = np.round(screws)
    screws = np.where(np.abs(screws - nearest) < _SNAP, nearest, screws)
    placements = inverse(frame) @ model.placements
    arrays = TreeArrays(model.parents, screws, placements, model.masses, model.coms, model.inertias)
    return TreeModel.build(arrays, model.gravity, name=model.name, any_rank=True)


def _like(model: TreeModel, placements: Array) -> TreeModel:
    return replace(model, placements=placements)


def _end_point(screws: Array) -> Array:
    """Return the point (3,) on the last axis that is nearest to the axis before it."""
    axis, point = screws[-1, :3], np.cross(screws[-1, :3], screws[-1, 3:])
    for other in screws[-2::-1]:
        if other[:3].any():
            apart = np.cross(other[:3], other[3:]) - point
            normal = np.cross(axis, other[:3])
            crossing = float(normal @ normal)
            if crossing > 1e-16:
                along = float(np.cross(apart, other[:3]) @ normal) / crossing
            else:
                along = float(apart @ axis)
            return np.asarray(point + along * axis)
    return np.asarray(point)
