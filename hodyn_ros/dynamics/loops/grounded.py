"""A robot on a floating base, written as one on the ground: its base hangs on six joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hodyn_ros.formulations.embedding import Place
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.closure import Closure, LoopFrame, PlatformRows
from hodyn_ros.model.tree import TreeModel

SHIFT = 5  # by which indices of bodies grow; those of joints grow by one more
_NAMES = tuple(f"slide or turn {i} of the base" for i in range(6))


def grounded(closure: Closure, place: Place) -> tuple[Closure, Place]:
    """Return the same robot on three slides and three turns, which are at zero at a place.

    So they are never singular there; between them are bodies without mass.
    """
    assert place.base is not None
    joints = SHIFT + 1
    tree = _grounded(closure.tree, place.base)
    platform = closure.platform
    if platform is not None:
        platform = PlatformRows(platform.body + SHIFT, platform.rows, platform.twists)
    loops = tuple(loop._replace(a=_shifted(loop.a), b=_shifted(loop.b)) for loop in closure.loops)
    followers = tuple(
        follower._replace(joint=follower.joint + joints, of=follower.of + joints)
        for follower in closure.followers
    )
    moved = replace(
        closure,
        tree=tree,
        loops=loops,
        offsets=np.concatenate([np.zeros(joints), closure.offsets]),
        leading=(*range(joints), *(joint + joints for joint in closure.leading)),
        joints=tuple(joint + joints for joint in closure.joints),
        platform=platform,
        driven=tuple(joint + joints for joint in closure.driven),
        followers=followers,
        start=None,
    )
    return moved, Place(np.concatenate([np.zeros(joints), place.joints]), None)


def _shifted(frame: LoopFrame) -> LoopFrame:
    return frame if frame.body < 0 else frame._replace(body=frame.body + SHIFT)


def _grounded(tree: TreeModel, base: Array) -> TreeModel:
    """Return a tree as it stands where its base has come to a pose (4, 4)."""
    moved = base @ inverse(tree.placements[0])
    units, screws = np.eye(3), np.zeros((6, 6))
    screws[:3, 3:] = screws[3:, :3] = units
    screws[3:, 3:] = np.cross(base[:3, 3], units)
    return replace(
        tree,
        parents=(*range(-1, SHIFT), *(parent + SHIFT for parent in tree.parents[1:])),
        screws=np.concatenate([screws, tree.screws[1:] @ Ad(moved).T]),
        placements=np.concatenate([np.tile(base, (SHIFT, 1, 1)), moved @ tree.placements]),
        masses=_padded(tree.masses),
        coms=_padded(tree.coms),
        inertias=_padded(tree.inertias),
        floating_base=False,
        joint_names=(*_NAMES, *tree.joint_names),
        body_names=(*_NAMES[:SHIFT], *tree.body_names),
        any_rank=True,
    )


def _padded(values: Array) -> Array:
    return np.concatenate([np.zeros((SHIFT, *values.shape[1:])), values])
