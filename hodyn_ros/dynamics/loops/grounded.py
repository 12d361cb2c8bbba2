"""A robot on a floating base, written as one on the ground: its base hangs on six joints.

So robots are computed whose base drifts, as components of its pose follow from others. What makes the code of
a call of any robot with loops stands here too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, TooLong, compiles
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.formulations.embedding import Place
from hodyn_ros.lie.se3 import Ad, Array, exp, inverse
from hodyn_ros.model.closure import Closure, PlatformRows
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

_TURNED = 0.5  # [rad] from where on the joints of a base are written anew; they are singular at a right angle
SHIFT = 5  # by which indices of bodies grow; those of joints grow by one more
_NAMES = tuple(f"slide or turn {i} of the base" for i in range(6))


def grounded(closure: Closure, place: Place) -> Closure:
    """Return the same robot on three slides and three turns, which are at zero at a place, its home.

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
    return replace(
        closure,
        tree=tree,
        loops=loops,
        offsets=np.concatenate([np.zeros(joints), closure.offsets]),
        leading=(*range(joints), *(joint + joints for joint in closure.leading)),
        joints=tuple(joint + joints for joint in closure.joints),
        platform=platform,
        driven=tuple(joint + joints for joint in closure.driven),
        followers=followers,
        start=np.concatenate([np.zeros(joints), place.joints]),
    )


def _shifted(frame: Frame) -> Frame:
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


def base_turns(base: Array, start: Array) -> Array:
    """Return the turns about x, y and z that follow each other outward from `start` to the pose of a base."""
    R = base[:3, :3] @ start[:3, :3].T
    turns: Array = np.array(
        [np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(np.clip(R[0, 2], -1.0, 1.0)), np.arctan2(-R[0, 1], R[0, 0])]
    )
    return turns


def base_pose(joints: Array, start: Array) -> Array:
    """Return the pose (4, 4) of a base from the positions (6,) of its joints, zero at `start`."""
    (a, b, c), result = joints[3:], start.copy()
    about_x, about_y, about_z = exp(np.eye(3, 6) * np.array([[a], [b], [c]]))[:, :3, :3]
    result[:3, :3] = about_x @ about_y @ about_z @ start[:3, :3]
    result[:3, 3] += joints[:3]
    return result


Make = Callable[[Closure, int], LoopCode]  # the law of one call for a closure whose bodies come so many later


def loop_code(
    closure: Closure, order: int, make: Make, *, on_limbs: bool = False
) -> LoopFunction | DriftingFunction:
    """Return the code of a call of an order, compiled if that takes some seconds at most.

    Where a coupling is not smooth enough for the motion that it takes, no result counts. Raises TooLong where
    numbers are no way either. `on_limbs`: whether it computes the limbs of a platform from the ground on.
    """
    code: LoopFunction | DriftingFunction
    if closure.drifts and closure.tree.floating_base:
        code = DriftingFunction(closure, order, make)
    else:
        code = _made(closure, order, make, 0, on_limbs)
    limits = [one.function.smoothness for one in closure.followers]
    if any(limit is not None and limit < code.law.smoothness for limit in limits):
        code.function = lambda *arguments: np.full(code.result, np.nan)
    return code


def is_compiled(closure: Closure, order: int) -> bool:
    """Whether inverse dynamics of an order is compiled."""
    if closure.drifts and closure.tree.floating_base:
        closure = grounded(closure, home(closure).place)
    return compiles(closure, order, on_limbs=True)


def shifted(loads: Loads, shift: int) -> Loads:
    """Return where wrenches act if bodies come `shift` later."""
    return tuple((body + shift, frame) for body, frame in loads)


def _made(closure: Closure, order: int, make: Make, shift: int, on_limbs: bool = False) -> LoopFunction:
    if compiles(closure, order, on_limbs=on_limbs):
        with suppress(TooLong):
            return LoopFunction(make(closure, shift))
    return LoopFunction(make(closure, shift), on_numbers=True)


class DriftingFunction:
    """A call of a robot whose floating base has components of its pose that follow from others.

    The code is that of the same robot on the ground, whose base hangs on six joints. These are at zero at
    home; where the base has turned far from there, the code is made anew.
    """

    on_numbers = True  # one call at a time

    def __init__(self, closure: Closure, order: int, make: Make) -> None:
        start = home(closure).place
        assert start.base is not None
        self._closure, self._make, self._start = closure, make, start.base
        self.near = _made(grounded(closure, start), order, make, SHIFT)
        self.law = self.near.law
        memory = 1, len(closure.leading) + 16
        self.arguments: tuple[tuple[str, Shape], ...] = (*self.near.arguments[:-1], ("memory", memory))
        self.function: Callable[..., Array] = self._compute
        self.result, self.defect_at, self.batch_rows = (
            self.near.result,
            self.near.defect_at,
            self.near.batch_rows,
        )

    def _compute(self, *arguments: Array) -> Array:
        """Compute one call; the last argument is the memory."""
        (*arrays, memory), n = arguments, len(self._closure.leading)
        base, start, kernel = memory[0, n:].reshape(4, 4), self._start, self.near
        if abs(base_turns(base, start)[1]) > _TURNED:
            start = base.copy()
            try:
                turned = grounded(self._closure, Place(self._closure.positions(memory[0, :n]), start))
                kernel = LoopFunction(self._make(turned, SHIFT), on_numbers=True)
            except TooLong:
                return np.full(self.result, np.nan)
        slides = base[:3, 3] - start[:3, 3]
        own = np.concatenate([slides, base_turns(base, start), memory[0]])[None]
        table: Array = kernel.function(*arrays, own)
        if table.item(self.defect_at) < 1.0:
            memory[0, :n] = own[0, 6 : 6 + n]
            memory[0, n:] = base_pose(own[0, :6], start).ravel()
        return table
