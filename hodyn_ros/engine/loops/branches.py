"""Branches of one build between a platform and the ground: their constants, as the tracer tells them apart."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hodyn_ros.codegen.tracer import Own
from hodyn_ros.engine.loops.loop_series import Cluster, PlacedRow
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

_ROUNDING = 1e-12


def with_parts(
    closure: Closure, bodies: list[CanonicalBody]
) -> tuple[list[CanonicalBody], Branches | None, list[tuple[int, int] | None]]:
    columns: list[Any] = [None] * len(closure.leading)
    import os
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
