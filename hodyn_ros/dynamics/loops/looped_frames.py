"""Inverse kinematics of robots with couplings and loops: coordinates that move frames as given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import numpy as np

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.kinematics.carriers import FrameMotion
from hodyn_ros.dynamics.kinematics.inverse_problem import (
    GoalCall,
    Targets,
    check_method,
    read_motion,
    read_weights,
)
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, TooLong, compiles
from hodyn_ros.engine.loops.loop_tasks import TaskCode
from hodyn_ros.engine.recursions.frame_goals import Goals
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Array, exp, inverse, matvec
from hodyn_ros.model.arrays import index_in
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

Frames = TypeVar("Frames", bound=FrameMotion)

_SAME = 1e-6  # [rad or m] by which joints found twice may differ
_ZERO = 1e-12  # of a column of a Jacobian, relative to the largest: what a coordinate does not move
_STILL = np.zeros((0, 6))
_FEW_STEPS = 4  # beyond them a search for frames takes a shorter step where loops do not close
_BESIDE = 0.05  # [rad], and of the robot's size: where else that is looked at


def solve_frames(
    looped: LoopedMatrices, call: GoalCall, targets: Targets, base: BaseMotion | None
) -> tuple[Array, BaseMotion | None]:
    """Return the motion (order + 1, k) of the joints that are coordinates, and that of a platform.

    `targets`: those of the call; `base`: the motion of a prescribed base, with spatial twists. Newton's
    method starts at the seed (k,), by default at the last success, and follows the loops; derivatives come
    order by order. The rest as of `hodyn_ros.dynamics.kinematics.inverse_problem.read_problem`, weights
    (coordinates,) those of the rows of a platform last.
    """
    closure, order = looped.closure, targets.order
    k = len(closure.joints)
    count = closure.n_coordinates - closure.n_base
    motions = {coordinate_named(looped, name): values for name, values in (call.independent or {}).items()}
    names = closure.tree.joint_names
    rates = np.zeros((order, count))
    known = looped.known
    y = known.y.copy() if call.seed is None else finite_array("the seed", call.seed, (k,)).copy()
    for place, values in motions.items():
        motion = read_motion(names[closure.joints[place]], values, order)
        y[place], rates[:, place] = motion[0], motion[1:]
    pose = known.pose if base is None else base.pose
    frames = [find_frame(closure.tree, looped.frames, name) for name in targets.names]
    w = np.ones(count) if call.weights is None else read_weights(call.weights, count)

    start = LoopedFrames(looped, known, y, pose, frames, base, ", ".join(map(str, targets.names)))
    moving = moving_coordinates(start)
    movable = [i for i in moving if i not in motions]
    idle = next((name for name in motions if name not in moving), None)
    if idle is not None:
        label = names[closure.joints[idle]]
        raise InputError(f"joint {label!r} does not move {start.name!r}, so it cannot be independent")
    check_method(call.method, targets, len(moving), len(motions))
    result = targets.followed(start, rates, movable, w)
    moved = result.moved
    closure.check_curves(moved.place.joints, order)
    looped.check_margin(moved, conditions(closure, moved, looped.independence.rows)[0])
    platform = moved.leader_motion if closure.platform is not None else None
    q = np.array([result.y, *(rate[:k] for rate in result.rates)])
    looped.remember(moved, result.y, base if platform is None else platform)
    return q, platform


def coordinate_named(looped: LoopedMotion, name: str | int) -> int:
    """Return the place of a joint, by name or index among the coordinates."""
    tree = looped.closure.tree
    names = [tree.joint_names[joint] for joint in looped.closure.joints]
    place = index_in(names, name)
    if place is None:
        raise InputError(
            f"independent names {name!r}; the joints of {tree.name!r} that are coordinates are {names}"
        )
    return place


def moving_coordinates(start: LoopedFrames) -> list[int]:
    """Return the coordinates that move some of the frames; InputError where none does."""
    sizes = np.abs(start.jacobians[0]).max(axis=0, initial=0.0)
    step = _BESIDE * np.random.default_rng(0).uniform(0.5, 1.0, len(sizes))
    with suppress(HodynError):  # some may do so elsewhere alone, as at a dead point
        near = start.beside(step * start.sizes)
        sizes = np.maximum(sizes, np.abs(near.jacobians[0]).max(axis=0))
    moving = np.flatnonzero(sizes > _ZERO * max(float(sizes.max(initial=0.0)), _ZERO))
    if not len(moving):
        raise InputError(f"no coordinate moves {start.name!r}; choose a body or frame that one does")
    return [int(i) for i in moving]


def _sizes(closure: Closure) -> Array:
    """Return what coordinates but a prescribed base are measured in: one radian, or the robot's size."""
    rows = () if closure.platform is None else closure.platform.rows
    of_rows = [1.0 if row.startswith("r") else closure.size for row in rows]
    return np.array([*closure.joint_sizes[list(closure.joints)], *of_rows])


class LoopedFrames:
    """A `FrameMotion` of a robot with couplings and loops.

    Its coordinates are joints, then rows of a platform, components of its body-fixed twist. The joints (k,)
    at `y`; `pose` is that given of platform or base, and `base` the motion of a prescribed one.
    """

    natural = 1.0  # where a body stops although its coordinate moves, as at a dead point

    def __init__(
        self,
        looped: LoopedMotion,
        known: Known,
        y: Array,
        pose: Array | None,
        frames: Sequence[Frame],
        base: BaseMotion | None,
        name: str,
        most_steps: int = MOST_STEPS,
    ) -> None:
        self._looped, self._frames, self._base, self.name = looped, frames, base, name
        closure = looped.closure
        self.y, self.moved = y, looped.reach(known, y, pose, most_steps)
        if closure.platform is not None:  # some of whose pose may follow
            pose = self.moved.body_pose(closure.platform.body)
            self.moved = LoopMotion(closure, self.moved.place, pose)
        self._known = Known(self.moved.place, y, pose)
        self.position = y if pose is None else np.concatenate([y, pose.ravel()])
        self.poses = [self._pose(frame) for frame in frames]
        self.rates: list[Array] = []
        self.jacobians: list[Array] = []
        self.unit = closure.size
        self.sizes = _sizes(closure)
        of_tree = embedding.distribution(looped.independence.rows, self.moved, 0)[0]
        of_tree = of_tree[:, -len(self.sizes) :] * self.sizes / closure.scale[:, None]
        self.gain = max(1.0, float(np.linalg.norm(of_tree, axis=0).max(initial=0.0)))
        self._extend_jacobians()

    def beside(self, change: Array) -> LoopedFrames:
        """Return the frames where coordinates differ by a change, the loops followed on their way there."""
        closure, k = self._looped.closure, len(self.y)
        pose = self._known.pose
        if pose is not None and closure.platform is not None:
            pose = pose @ exp(closure.directions @ change[k:])
        y = self.y + change[:k]
        frames = self._looped, self._known, y, pose, self._frames, self._base, self.name
        return LoopedFrames(*frames, most_steps=_FEW_STEPS)

    def extend(self, rates: Array) -> None:
        """Go one order higher with the next derivative (coordinates,) of the motion."""
        self.moved.extend(self._rate(rates))
        self.rates.append(rates)
        self._extend_jacobians()

    def bias(self) -> Array:
        """Return the next derivative (6 F,) of the twists if that of the rates were zero."""
        r = len(self.rates)
        velocities = [*self.moved.rates, self._rate(np.zeros(self.jacobians[0].shape[1]))]
        parts = []
        for f, frame in enumerate(self._frames):
            twist = product_derivative(self._of_body(frame, r), velocities, r, matvec)
            twists = self._twists(frame)
            parts.append(self._in_hybrid([*twists[:r], twist], f, twists)[r])
        return np.concatenate(parts)

    def _rate(self, rates: Array) -> Array:
        """Return the next derivative of the velocities of the tree from that of the coordinates."""
        known = rates
        if self._base is not None:
            known = np.concatenate([self._base.twists[len(self.rates)], rates])
        return embedding.rate_of(self._looped.independence.rows, self.moved, known)

    def _extend_jacobians(self) -> None:
        r, first = len(self.rates), 0 if self._base is None else 6
        F = embedding.distribution(self._looped.independence.rows, self.moved, r)
        parts = []
        for f, frame in enumerate(self._frames):
            of_body = self._of_body(frame, r)
            columns = [product_derivative(of_body, F, k, np.matmul)[:, first:].T for k in range(r + 1)]
            parts.append(self._in_hybrid(columns, f, self._twists(frame))[r].T)
        self.jacobians.append(np.concatenate(parts))

    def _of_body(self, frame: Frame, order: int) -> list[Array]:
        """Return the spatial Jacobians (6, m) of a body by order."""
        return [self.moved.body_jacobian(frame.body, k) for k in range(order + 1)]

    def _pose(self, frame: Frame) -> Array:
        result: Array = frame.pose if frame.body < 0 else self.moved.body_pose(frame.body) @ frame.pose
        return result

    def _twists(self, frame: Frame) -> list[Array]:
        return [] if frame.body < 0 else self.moved.twists_of(frame.body)

    def _in_hybrid(self, spatial: Sequence[Array], f: int, twists: Sequence[Array]) -> Array:
        return convert_screws(list(spatial), self.poses[f], list(twists), "spatial", "hybrid")


class Asked(NamedTuple):
    """What a kernel is made for."""

    names: tuple[str | int, ...]
    tasks: tuple[Task, ...]
    order: int
    representation: Representation
    independent: frozenset[int] = frozenset()  # places among the coordinates


def _held(order: int, y: Array, weights: Array | None) -> Array:
    """Return what stays (order + 1, k) of coordinates that are not solved for, and the weights of all."""
    held = np.zeros((order + 2, len(y)))
    held[0], held[-1] = y, 1.0 if weights is None else weights
    return held


def _stacked(pose: Array, twists: Array, base_pose: Array, base_twists: Array) -> tuple[Array, Array]:
    """Return poses and twists as kernels take them of a robot on a prescribed base."""
    return np.concatenate([base_pose, pose]), np.concatenate([base_twists, twists])


class CompiledFrames:
    """Inverse kinematics of one robot with loops."""

    def __init__(self, looped: LoopedMatrices) -> None:
        self._looped = looped
        self._kernels: Kept[Asked, tuple[LoopFunction | None, int]] = Kept()
        self._moving: Kept[tuple[str | int, ...], list[int]] = Kept()
        self._noted: Kept[Hashable, LoopFunction] = Kept()  # by names and shapes of a plain call

    def solve(
        self, call: GoalCall, targets: Targets, base: BaseMotion | None
    ) -> tuple[Array, BaseMotion | None] | None:
        """Return what `solve_frames` does; None where that has to find it. `targets`: those of the call.

        `base`: the motion of a prescribed base, with spatial twists.
        """
        looped, order = self._looped, targets.order
        closure, k = looped.closure, len(looped.closure.joints)
        if closure.platform is not None:
            alone = len(targets.names) == 1 and call.usual and call.seed is None
            return self._of_platform(targets) if alone else None
        seed = None if call.seed is None else finite_array("the seed", call.seed, (k,))
        independent, weights = call.independent or {}, call.weights
        motions = {coordinate_named(looped, name): values for name, values in independent.items()}
        asked = Asked(targets.names, targets.tasks, order, targets.representation, frozenset(motions))
        kernel, moving = self.kernel(asked)
        if kernel is None:
            return None
        check_method(call.method, targets, moving, len(motions))
        y = looped.known.y if seed is None else seed
        held = _held(order, y, None if weights is None else read_weights(weights, k))
        for place, values in motions.items():
            held[:-1, place] = read_motion(closure.tree.joint_names[closure.joints[place]], values, order)
        start = None if seed is None and not motions else held[:1]
        poses, twists = targets.poses.reshape(-1, 4), targets.twists.reshape(-1, 6)
        if base is not None:
            poses, twists = _stacked(poses, twists, base.pose, base.twists[:order])
        motion = self.find(kernel, held, poses, twists, start)
        if motion is None:
            return None
        plain = call.plain(k)
        if plain is not None:
            self._noted[plain[0]] = kernel
        return motion, None

    def kernel(self, asked: Asked) -> tuple[LoopFunction | None, int]:
        """Return the kernel, compiled when first asked for, and how many coordinates move the frames."""
        return self._kernels.made(asked, lambda: self._made(asked))

    def _made(self, asked: Asked) -> tuple[LoopFunction | None, int]:
        looped, nothing = self._looped, (None, 0)
        closure = looped.closure
        frames = tuple(find_frame(closure.tree, looped.frames, name) for name in asked.names)
        if any(frame.body < 0 for frame in frames):
            return nothing
        if not compiles(closure, max(asked.order - 2, 0)):
            return nothing
        moving = self._moving.made(
            asked.names, lambda: moving_coordinates(self._at_present(frames, asked.names))
        )
        movable = [place for place in moving if place not in asked.independent]
        if not movable or not asked.independent <= set(moving):
            return nothing
        rows = tuple(ROWS[task] for task in asked.tasks)
        goals = Goals(frames, rows, asked.representation)
        try:
            law = TaskCode(closure, looped.independence.of_joints, asked.order, goals, movable)
            return LoopFunction(law), len(moving)
        except (TooLong, ZeroDivisionError):
            return nothing

    def _at_present(self, frames: Sequence[Frame], names: Sequence[str | int]) -> LoopedFrames:
        """Return frames where the robot is remembered to be."""
        looped, known, base = self._looped, self._looped.known, None
        if looped.closure.base_prescribed and known.pose is not None:
            base = BaseMotion(known.pose, np.zeros((1, 6)))
        label = ", ".join(map(str, names))
        return LoopedFrames(looped, known, known.y, known.pose, frames, base, label)

    def again(self, call: GoalCall) -> Array | None:
        """Return what a kernel finds that has served such a call of `solve`; None where none has."""
        plain = call.plain(len(self._looped.closure.joints))
        kernel = None if plain is None else self._noted.get(plain[0])
        if plain is None or kernel is None:
            return None
        _, poses, twists, seed = plain
        order, base = len(twists) * 4 // len(poses), call.base
        weights = None if call.weights is None else np.asarray(call.weights)
        held = _held(order, self._looped.known.y if seed is None else seed[0], weights)
        if base is not None:
            if base.representation != "spatial":
                return None
            poses, twists = _stacked(poses, twists, base.pose, base.twists[:order])
        return self.find(kernel, held, poses, twists, seed)

    def compiled(
        self, order: int, names: Sequence[str | int], representation: Representation
    ) -> Callable[..., Array]:
        """Return `f(seed (1, k), poses (4 F, 4), twists (F order, 6), [base pose, base twists (order, 6)])`.

        It returns the motion (order + 1, k) of the coordinates that moves frames; what the kernel cannot do
        is left to `solve_frames`.
        """
        looped, F = self._looped, len(names)
        whole: Task = "pose"
        kernel, _ = self.kernel(Asked(tuple(names), (whole,) * F, order, representation))
        tree, k = looped.closure.tree, len(looped.closure.joints)
        of_frames = ["the pose", "the twists"] if F == 1 else ["the poses", "the twists"]
        arguments = ["the seed", *of_frames]
        arguments += ["the base pose", "the base twists"] if looped.closure.base_prescribed else []
        shapes = [(1, k), (4 * F, 4), (F * order, 6)] + [(4, 4), (order, 6)] * looped.closure.base_prescribed

        @finite_result
        def readable(seed: Array, poses: Array, twists: Array, *of_base: Array) -> Array:
            moved = poses.reshape(F, 4, 4), twists.reshape(F, order, 6)
            base = BaseMotion(of_base[0], of_base[1] if order else np.zeros((1, 6))) if of_base else None
            goal = GoalCall(*moved, base, list(names), representation, seed[0])
            return solve_frames(looped, goal, goal.targets(tree), base)[0]

        def call(*arrays: Array) -> Array:
            if kernel is not None and [getattr(x, "shape", None) for x in arrays] == shapes:
                seed, poses, twists, *of_base = arrays
                if of_base:
                    poses, twists = _stacked(poses, twists, *of_base)
                motion = self.find(kernel, _held(order, seed[0], None), poses, twists, seed)
                if motion is not None:
                    return motion
            if len(arrays) != len(arguments):
                raise InputError(f"expected {len(arguments)} arrays {arguments}, found {len(arrays)}")
            return readable(*(finite_array(*each) for each in zip(arguments, arrays, shapes)))

        return call

    def _of_platform(self, targets: Targets) -> tuple[Array, BaseMotion | None] | None:
        """Return what is asked for of a platform whose pose is a coordinate: as it is, where loops follow."""
        looped, platform, order = self._looped, self._looped.closure.platform, targets.order
        frame = find_frame(looped.closure.tree, looped.frames, targets.names[0])
        assert platform is not None
        whole = len(platform.rows) == 6 or platform.twists is not None
        if frame.body != platform.body or targets.tasks[0] != "pose" or not whole:
            return None
        pose, rates = targets.poses[0], targets.twists[0]
        twists = convert_screws(rates, pose, rates, targets.representation, "spatial") if order else rates
        at = pose @ inverse(frame.pose)
        y = np.zeros((order + 1, len(looped.closure.joints)))
        y[0] = looped.known.y
        if looped.quick_joint_motion(y, at, np.ascontiguousarray(twists)) is None:
            return None
        return y, BaseMotion(at, twists if order else np.zeros((1, 6)))

    def find(
        self, kernel: LoopFunction, held: Array, poses: Array, twists: Array, seed: Array | None
    ) -> Array | None:
        """Return what a kernel finds from a seed (1, k), by default from the last success, or None.

        `held`: its first argument.
        """
        looped, before = self._looped, self._looped.memory.copy()
        at = [poses[:4], _STILL] if looped.closure.base_prescribed else []
        with suppress(HodynError):
            if seed is not None and looped.quick_joint_motion(seed, *at) is None:
                looped.joint_motion(seed, BaseMotion(poses[:4], np.zeros((1, 6))) if at else None)
            start = looped.memory.copy()
            table: Array = kernel.function(held, poses, twists, looped.memory)
            if table.item(kernel.defect_at) < 1.0 and self._keeps_branch(start, table[:1], at):
                return table[:-1]
        looped.memory[:] = before
        return None

    def _keeps_branch(self, start: Array, y: Array, at: Sequence[Array]) -> bool:
        """Whether coordinates y (1, k) lead from a memory to where the robot is remembered to be.

        A frame may be led past a pose at which they do not determine the motion, onto another branch.
        """
        looped = self._looped
        after = looped.memory.copy()
        looped.memory[:] = start
        again = looped.quick_joint_motion(y, *at)
        apart = float(np.abs(looped.memory - after).max())
        looped.memory[:] = after
        return again is not None and apart < _SAME
