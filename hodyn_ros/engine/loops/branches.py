"""Branches of one build between a platform and the ground: their constants, as the tracer tells them apart."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.codegen.tracer import Own
from hodyn_ros.engine.limbs.limb_constants import _end_point
from hodyn_ros.engine.loops.loop_series import TARGET, Cluster, Observer, PlacedRow
from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.formulations.closure_rows import Row
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeArrays, TreeModel

_ROUNDING = 1e-12


class Limbs(NamedTuple):
    """A platform on limbs from the ground: bodies for wrenches and for motion, and a cluster for each limb."""

    bodies: list[CanonicalBody]
    chains: list[CanonicalBody]
    clusters: list[Cluster]
    parts: list[tuple[int, int] | None]  # by joint


def limbs_of(closure: Closure, middle: Array) -> Limbs:
    """Return the limbs of a platform on the ground, the platform being no part of their trees.

    Limb by limb in a frame on its first joint, in which limbs of one build have the same constants.
    """
    tree = closure.tree
    bodies = [replace(canonical_bodies(tree, regroup=False)[0])]
    chains, clusters = list(bodies), []
    parts: list[Any] = [None] * tree.n_joints
    found: list[tuple[list[int], list[CanonicalBody], Array, Array, Array]] = []
    for loop in closure.loops:
        if loop.kind != "weld":
            continue
        chain = [loop.b.body]
        while tree.parents[chain[-1]] > 0:
            chain.append(tree.parents[chain[-1]])
        found.append(_limb(tree, chain, middle))
    for part, (joints, *_) in enumerate(found):
        for slot, joint in enumerate(joints):
            parts[joint] = part, slot
    size = max(1.0, closure.size)
    one = found[0]
    same = all(len(limb[0]) == len(one[0]) for limb in found) and not os.environ.get("NOPACK")

    def lift(values: Sequence[Any], name: Hashable) -> list[Any]:
        return lifted(values, name, size) if same else list(values)

    frames = lift([limb[2] for limb in found], ("frame",))
    attachments = lift([limb[3] for limb in found], ("attachment",))
    limbs = [list(limb[1]) for limb in found]
    if same:
        for slot in range(len(one[1])):
            for name in ("rotation", "translation", "offset", "first_moment", "second_moment", "mass"):
                values = lift([getattr(limb[1][slot], name) for limb in found], (name, slot))
                for limb, value in zip(limbs, values):
                    limb[slot] = replace(limb[slot], **{name: value})
    gravity_turned = lift([limb[2][:3, :3] @ limb[1][0].rotation for limb in found], ("turned",))
    rows = _rows(found, closure.size)
    for number, (joints, limb, frame, attachment, turned) in enumerate(
        zip([f[0] for f in found], limbs, frames, attachments, gravity_turned)
    ):
        first = len(bodies)
        for slot, (joint, body) in enumerate(zip(joints, limb)):
            placed = replace(body, parent=first + slot - 1 if slot else -1, joint=joint, body_in_frame=np.eye(4))
            chains.append(placed)
            bodies.append(replace(placed, rotation=turned) if not slot else placed)
        kept = [
            PlacedRow(Row("twist", i), Frame(TARGET, np.eye(4)), Frame(len(bodies) - 1, np.eye(4)), 0.0, 1.0 if i < 3 else closure.size, number)
            for i in range(6)
        ]
        observer = Observer(frame, attachment)
        clusters.append(
            Cluster(-1, tuple(range(first, len(bodies))), tuple(kept[i] for i in rows[number]), tuple(row for i, row in enumerate(kept) if i not in rows[number]), observer)
        )
    return Limbs(bodies, chains, clusters, parts)


def _limb(tree: TreeModel, chain: Sequence[int], middle: Array) -> tuple[list[int], list[CanonicalBody], Array, Array, Array]:
    """Return joints, bodies, frame and attachment of a limb, from the ground on."""
    own, joints = chain[1:], [tree.joint_of(body) for body in chain]

    def built(frame: Array) -> TreeModel:
        screws = -tree.screws[chain] @ Ad(inverse(frame)).T
        nearest = np.round(screws)
        screws = np.where(np.abs(screws - nearest) < 1e-14, nearest, screws)
        end = np.eye(4)
        end[:3, 3] = _end_point(screws)
        return TreeModel.build(
            TreeArrays(
                range(-1, len(chain) - 1),
                screws,
                np.concatenate([inverse(frame) @ tree.placements[own], end[None]]),
                [*tree.masses[own], 0.0],
                [*tree.coms[own], np.zeros(3)],
                [*tree.inertias[own], np.zeros((3, 3))],
            ),
            tree.gravity,
            name="limb",
            any_rank=True,
        )

    first = canonical_bodies(built(np.eye(4)), regroup=False)[0]
    frame = tree.placements[own[0]] @ inverse(first.body_in_frame) if own else np.eye(4)
    model = built(frame)
    bodies = canonical_bodies(model)
    end = model.placements[-1] @ inverse(bodies[-1].body_in_frame)
    attachment = inverse(tree.placements[0]) @ frame @ end
    seen = frame.copy()
    seen[:3, 3] -= middle
    return joints, bodies, seen, attachment, -tree.screws[chain] @ Ad(inverse(frame)).T


def _rows(found: Sequence[Any], size: float) -> list[list[int]]:
    """Return which components of the twist of its end say how each limb moves."""
    from scipy.linalg import qr

    from hodyn_ros.lie.se3 import exp_screw

    rng = np.random.default_rng(1)
    result: list[list[int]] = []
    for joints, _, _, _, screws in found:
        n = len(joints)
        if n == 6:
            result.append(list(range(6)))
            continue
        at, motion = rng.uniform(-0.3, 0.3, n), np.eye(4)
        columns = []
        for screw, q in zip(screws, at):
            columns.append(Ad(motion) @ screw)
            motion = motion @ exp_screw(screw, q)
        jacobian = np.array(columns) / np.repeat([1.0, size], 3)
        result.append(sorted(qr(jacobian, mode="r", pivoting=True)[1][:n].tolist()))
    return [result[0] if len(rows) == len(result[0]) else rows for rows in result]


def with_parts(
    closure: Closure, bodies: list[CanonicalBody]
) -> tuple[list[CanonicalBody], Branches | None, list[tuple[int, int] | None]]:
    columns: list[Any] = [None] * len(closure.leading)
    if os.environ.get("NOPACK"):
        return bodies, None, columns
    if closure.platform is None or closure.platform.twists is None or not closure.tree.floating_base or closure.tree.n_joints != len(closure.leading):
        return bodies, None, columns
    starts = [j for j, body in enumerate(bodies) if body.parent == 0]
    ends = [*starts[1:], len(bodies)]
    parts = [list(range(a, b)) for a, b in zip(starts, ends)]
    if len(parts) < 2 or len({len(part) for part in parts}) != 1:
        return bodies, None, columns
    result = list(bodies)
    scale = max(1.0, closure.size)
    for slot, js in enumerate(zip(*parts)):
        for name in ("rotation", "translation", "offset", "first_moment", "second_moment", "mass"):
            values = [getattr(bodies[j], name) for j in js]
            for j, value in zip(js, lifted(values, (name, slot), scale)):
                result[j] = replace(result[j], **{name: value})
        for part, j in enumerate(js):
            columns[bodies[j].joint] = part, slot
    return result, Branches(closure, parts, bodies), columns


def lifted(values: Sequence[Any], name: Hashable, scale: float) -> list[Any]:
    arrays = [np.asarray(value, dtype=float) for value in values]
    spread = np.ptp(np.stack(arrays), axis=0) > _ROUNDING * scale
    results = []
    for part, array in enumerate(arrays):
        if array.ndim == 0:
            results.append(Own.of(float(array), part, name) if spread else float(arrays[0]))
            continue
        result = arrays[0].astype(object)
        for at in np.ndindex(array.shape):
            result[at] = Own.of(float(array[at]), part, (*name, at)) if spread[at] else float(arrays[0][at])
        results.append(result)
    return results


class Branches:
    def __init__(self, closure: Closure, parts: list[list[int]], bodies: list[CanonicalBody]) -> None:
        self._parts, self._bodies = parts, bodies
        self._closure = closure

    def frame(self, cluster: Cluster, on_body: Frame, local: Array) -> Array:
        """Return the pose of a frame of a loop of a branch."""
        part = next((i for i, part in enumerate(self._parts) if set(part) >= set(cluster.bodies) - {0} and cluster.bodies), None)
        if part is None:
            return local
        others = []
        for loop in self._closure.loops[: len(self._parts)]:
            frame = loop.a if on_body.body < 0 else loop.b
            pose = frame.pose.copy()
            if frame.body >= 0:
                pose = self._bodies[frame.body].body_in_frame @ pose
            elif frame.body == -1:
                pose[:3, 3] -= self._closure.tree.placements[0][:3, 3]
            nearest = np.round(pose[:3, :3])
            pose[:3, :3] = np.where(np.abs(pose[:3, :3] - nearest) < 4e-15, nearest, pose[:3, :3])
            others.append(pose)
        return lifted(others, ("frame", on_body.body < 0), max(1.0, self._closure.size))[part]
