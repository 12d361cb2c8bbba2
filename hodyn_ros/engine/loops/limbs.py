"""A platform on limbs, as its limbs stand on the ground.

In the tree of such a robot the limbs hang from the platform, and are welded to the ground. What its drives
exert and how its joints move does not depend on where the loops are cut: from the ground on, a limb moves by
its own joints alone, and takes fewer operations. Each is seen from a frame on the axis of its first joint, in
which limbs of one build have the same constants; in what they differ, the tracer packs them into lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.codegen.tracer import Own, Part
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_series import TARGET, Cluster, Observer, PlacedRow
from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.formulations.closure_rows import Row
from hodyn_ros.lie.se3 import Ad, Array, exp_screw, inverse
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeArrays, TreeModel

_ROUNDING = 1e-13  # by which constants of limbs of one build may differ, relative to the largest of a kind
_SNAP = 1e-14
_SMALL = 1e-6  # of the robot's size, from which on a platform is one with a size
_WIDEST = 8  # limbs side by side
_NUMBERS = ("rotation", "translation", "offset", "first_moment", "second_moment", "mass")


class Limbs(NamedTuple):
    """Platform and limbs.

    `bodies`: the platform and what limbs consist of, for their dynamics in world axes; `chains`: the same
    with the first of each limb seen from its own frame; a cluster for each limb; by joint which limb it is
    of, and what to it.
    """

    bodies: list[CanonicalBody]
    chains: list[CanonicalBody]
    clusters: list[Cluster]
    parts: dict[int, tuple[Part, int]]


class _Limb(NamedTuple):
    joints: list[int]  # from the ground on
    screws: Array  # (N, 6) in the frame of the limb
    bodies: list[CanonicalBody]
    frame: Array  # (4, 4) seen from the point of reference
    attachment: Array  # (4, 4) of the frame of the last body in that of the platform
    driven: list[bool]
    mass: float  # of the heaviest body; that of bodies may have moved to others
    reach: float  # [m] from the platform's origin to the last axis about which it turns


def is_on_limbs(closure: Closure, loads: Loads = ()) -> bool:
    """Whether a robot is a platform that moves, at every pose, as serial limbs let it.

    And `loads`, if there are any, act on the platform alone.
    """
    platform = closure.platform
    on_limbs = platform is not None and platform.twists is not None and closure.tree.floating_base
    return on_limbs and all(body == 0 for body, _ in loads)


def limbs_of(closure: Closure, middle: Array, *, regroup: bool = True) -> Limbs:
    """Return the limbs of a platform; `middle` (3,): the point of reference, `regroup` as of their bodies."""
    size, tree = max(1.0, closure.size), closure.tree
    limbs = [_limb(closure, loop.b.body, middle, regroup) for loop in closure.loops if loop.kind == "weld"]
    builds: list[list[int]] = []
    for number, limb in enumerate(limbs):
        for build in builds:
            if _alike(limb, limbs[build[0]], size):
                build.append(number)
                break
        else:
            builds.append([number])
    bodies = canonical_bodies(tree, regroup=False)[:1]
    result = Limbs(bodies, list(bodies), [], {})
    clusters: dict[int, Cluster] = {}
    packs = [pack for build in builds for pack in _packs(build)]
    reach = max(limb.reach for limb in limbs)
    farthest = float(np.linalg.norm(tree.placements[:, :3, 3] - tree.placements[0, :3, 3], axis=1).max())
    # with which turns and shifts are compared
    length = next((x for x in (reach, farthest) if x > _SMALL * closure.size), closure.size)
    rows = {number: _rows(limbs[build[0]], length) for build in builds for number in build}
    for alike, pack in enumerate(packs):
        lift = partial(_lifted, alike=alike, size=size)
        some = [limbs[number] for number in pack]
        frames = lift([limb.frame for limb in some], name="frame")
        attachments = lift([limb.attachment for limb in some], name="attachment")
        axes = lift([limb.frame[:3, :3] @ limb.bodies[0].rotation for limb in some], name="axes")
        chains = [list(limb.bodies) for limb in some]
        for place, of_limbs in enumerate(zip(*(limb.bodies for limb in some))):
            for name in _NUMBERS:
                values = lift([getattr(body, name) for body in of_limbs], name=f"{name} {place}")
                for chain, value in zip(chains, values):
                    chain[place] = replace(chain[place], **{name: value})
        for lane, number in enumerate(pack):
            first = len(result.bodies)
            for place, joint in enumerate(some[lane].joints):
                parent = first + place - 1 if place else -1
                body = replace(chains[lane][place], parent=parent, joint=joint, body_in_frame=np.eye(4))
                result.chains.append(body)
                result.bodies.append(body if place else replace(body, rotation=axes[lane]))
                if len(pack) > 1:
                    result.parts[joint] = (alike, lane), place
            last = Frame(len(result.bodies) - 1, np.eye(4))
            units = [
                PlacedRow(Row("twist", i), _GOAL, last, 0.0, 1.0 if i < 3 else length, number)
                for i in range(6)
            ]
            kept = tuple(units[i] for i in rows[number])
            rest = tuple(unit for unit in units if unit not in kept)
            observer = Observer(frames[lane], attachments[lane])
            clusters[number] = Cluster(-1, tuple(range(first, len(result.bodies))), kept, rest, observer)
    result.clusters.extend(clusters[number] for number in range(len(limbs)))
    return result


_GOAL = Frame(TARGET, np.eye(4))  # where the last body of a limb belongs


def _limb(closure: Closure, foot: int, middle: Array, regroup: bool) -> _Limb:
    """Return the limb that ends with a foot on the ground."""
    tree, chain = closure.tree, [foot]
    while tree.parents[chain[-1]] > 0:
        chain.append(tree.parents[chain[-1]])
    joints = [tree.joint_of(body) for body in chain]
    model = _on_ground(tree, chain, np.eye(4))
    frame = model.placements[0] @ inverse(canonical_bodies(model, regroup=False)[0].body_in_frame)
    model = _on_ground(tree, chain, frame)
    bodies = canonical_bodies(model, regroup=regroup)
    end = model.placements[-1] @ inverse(bodies[-1].body_in_frame)
    seen = frame.copy()
    seen[:3, 3] -= middle
    driven = [joint in closure.driven for joint in joints]
    attachment = inverse(tree.placements[0]) @ frame @ end
    turning = [tree.screws[body] for body in chain if tree.screws[body, :3].any()]
    reach = 0.0
    if turning:
        w, v = turning[-1][:3], turning[-1][3:]
        reach = float(np.linalg.norm(np.cross(w, v + np.cross(w, tree.placements[0, :3, 3]))))
    return _Limb(joints, model.screws, bodies, seen, attachment, driven, float(model.masses.max()), reach)


def _on_ground(tree: TreeModel, chain: Sequence[int], frame: Array) -> TreeModel:
    """Return a limb from its first joint on the ground to the platform, without that, in a frame (4, 4)."""
    own = chain[1:]
    screws = -tree.screws[chain] @ Ad(inverse(frame)).T
    nearest = np.round(screws)
    screws = np.where(np.abs(screws - nearest) < _SNAP, nearest, screws)
    # the frame of the last joint must depend on the limb alone, not on where the platform has its frame
    end = np.eye(4)
    end[:3, 3] = _end_point(screws)
    placements = np.concatenate([inverse(frame) @ tree.placements[own], end[None]])
    masses, coms = np.append(tree.masses[own], 0.0), np.append(tree.coms[own], np.zeros((1, 3)), axis=0)
    inertias = np.append(tree.inertias[own], np.zeros((1, 3, 3)), axis=0)
    arrays = TreeArrays(range(-1, len(own)), screws, placements, masses, coms, inertias)
    return TreeModel.build(arrays, tree.gravity, name=tree.name, any_rank=True)


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


def _alike(a: _Limb, b: _Limb, size: float) -> bool:
    """Whether limbs are of one build, wherever they stand and whatever their joints are at home."""
    if a.driven != b.driven:
        return False
    bodies = [*a.bodies, *b.bodies]
    mass = max(a.mass, b.mass)
    second = max(float(np.abs(body.second_moment).max()) for body in bodies)
    for one, other in zip(a.bodies, b.bodies):
        for x, y, scale in (
            (one.rotation, other.rotation, 1.0),
            (one.rotation_gain, other.rotation_gain, 1.0),
            (one.translation_gain, other.translation_gain, size),
            (_from_home(one), _from_home(other), size),
            (one.mass, other.mass, mass),
            (one.first_moment, other.first_moment, mass * size),
            (one.second_moment, other.second_moment, second),
        ):
            if np.abs(np.asarray(x) - np.asarray(y)).max() > _ROUNDING * scale:
                return False
    return True


def _from_home(body: CanonicalBody) -> Array:
    """Return the translation (3,) of a body without that along its joint, which is a matter of its home."""
    axis = body.rotation[:, 2]
    if body.rotation_gain:
        return np.asarray(body.translation - body.translation_gain * body.offset * axis)
    return np.asarray(body.translation - float(axis @ body.translation) * axis)


def _packs(build: Sequence[int]) -> list[Sequence[int]]:
    """Return limbs of one build in as few packs as there have to be, of about one size."""
    count = -(-len(build) // _WIDEST)
    return [build[len(build) * i // count : len(build) * (i + 1) // count] for i in range(count)]


def _lifted(values: Sequence[Any], *, name: str, alike: int, size: float) -> list[Any]:
    """Return numbers of some limbs: those in which they differ as the own of each, others as of the first."""
    if len(values) == 1:
        return list(values)
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    differ = np.ptp(np.stack(arrays), axis=0) > _ROUNDING * size
    result: list[Any] = []
    for lane, array in enumerate(arrays):
        entries = np.empty(array.shape, dtype=object)
        for at in np.ndindex(array.shape):
            number = float(array[at])
            entries[at] = Own.of(number, (alike, lane), (name, *at)) if differ[at] else float(arrays[0][at])
        result.append(entries if array.ndim else entries.item())
    return result


def _rows(limb: _Limb, length: float) -> list[int]:
    """Return which components of the twist of its end determine how the joints of a limb move."""
    from scipy.linalg import qr

    motion, columns = np.eye(4), []
    for screw, position in zip(limb.screws, np.random.default_rng(1).uniform(-0.3, 0.3, len(limb.joints))):
        columns.append(Ad(motion) @ screw / np.repeat([1.0, length], 3))
        motion = motion @ exp_screw(screw, position)
    pivots: Array = qr(np.array(columns), mode="r", pivoting=True)[1]
    return sorted(pivots[: len(limb.joints)].tolist())
