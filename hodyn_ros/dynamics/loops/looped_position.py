"""Where a robot with couplings and loops is, on which branch, and how it gets to other coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.sample_loop import naming_sample
from hodyn_ros.dynamics.fast_calls import FastCalls
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known, Way, close, home, reach
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.dynamics.loops.digit_check import DigitCheck, memory_of
from hodyn_ros.dynamics.loops.independence import conditions, find_independence, least_costly
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.series.validity import SINGULAR_LENGTH
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, SingularError
from hodyn_ros.formulations import embedding, limb_decomposition
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_body
from hodyn_ros.lie.se3 import Array, inverse, log
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.parallel.closure import idle_twists, model_of

# Singular values, without units, below which nothing is computed, as by compiled code: at a singular pose
# positions are known to half of their digits only.
SINGULAR = SINGULAR_LENGTH
_APART = 1e-9  # [rad], and of the robot's size: how far a pose may be from the one reached
_STEP = 0.05  # [rad], and of the robot's size, of a kernel on its way to a place farther off
_NEAR = _STEP / 10  # likewise, within which code comes to what it does not reach
_FEW = 5  # iterations that reach it from there, or nothing does
_ITERATIONS = 20  # of Newton's method, to see how near a limb comes
_MOST_STEPS = 500  # of such; on longer ways they are longer
_FARTHEST = 25.0  # [rad], and robot sizes, to a pose of a platform on limbs
_OUTSIDE = 1e-9  # share of a twist that may lie outside of those that the platform can have


class PlatformDynamics:
    """A robot whose platform moves, at every pose, with the same twists in its own frame."""

    def __init__(self, closure: Closure) -> None:
        self.model = model_of(closure)
        self._idle = idle_twists(closure)
        self._closure = closure

    @cached_property
    def joints(self) -> LoopFunction:
        """The code of the positions of all joints."""
        return LoopFunction(LoopCode(self._closure, np.zeros(0, dtype=int), -2))

    def decomposed(
        self, joints: Array, base: BaseMotion, wrenches: Sequence[AppliedWrench], preload: Array | None
    ) -> Array:
        """Return the efforts (order + 1, driven) by the published limb decomposition.

        `joints` (N,): positions of the joints of the tree; `base`: the motion of the platform.
        """
        model, order = self.model, len(base.twists) - 2
        if any(wrench.body not in (0, model.platform.name) for wrench in wrenches):
            raise InputError(
                f"by 'limb_decomposition' wrenches act on the platform, {model.platform.name!r}, alone"
            )
        positions = np.concatenate([joints[part][::-1] for part in model.slices])
        in_body, in_world = _sums_of(wrenches, order)
        twists = base.in_representation("body_fixed").twists
        applied = in_body + wrenches_to_body(base.pose, twists, in_world)
        leader = np.zeros((order + 1, model.n_driven)) if preload is None else preload
        return limb_decomposition.inverse_dynamics(model, positions, base.pose, twists, applied, leader)

    def check_limbs(self, pose: Array, memory: Array) -> None:
        """Take the limbs of a memory to a pose, on any branch.

        Raises ConvergenceError naming the limb that stays farthest from it, if one stays away.
        """
        scale = np.repeat([1.0, 1.0 / self.model.length], 3)
        worst, name = np.zeros(6), ""
        for limb, part in zip(self.model.limbs, self.model.slices):
            positions = memory[0, part][::-1].copy()
            for _ in range(_ITERATIONS):
                error = log(inverse(limb.pose(positions)) @ pose)
                jacobian = scale[:, None] * limb.jacobian(positions)
                step = np.linalg.lstsq(jacobian, scale * error, rcond=None)[0]
                longest = max(float(np.abs(step).max()), 1e-300)
                positions = positions + step * min(1.0, 0.5 / longest)
                if longest < 1e-3 * _APART:
                    break
            memory[0, part] = positions[::-1]
            if np.linalg.norm(scale * error) > np.linalg.norm(scale * worst):
                worst, name = error, limb.name
        memory[0, -16:] = pose.ravel()
        angle, distance = float(np.linalg.norm(worst[:3])), float(np.linalg.norm(worst[3:]))
        if max(angle, distance / self.model.size) > _APART:
            raise ConvergenceError(
                f"loop {name!r} of robot {self.model.name!r} does not close there: it stays open by "
                f"{angle:.3g} rad and {distance:.3g} m; give coordinates within the workspace, or nearer to "
                "the last ones",
                angle,
                distance,
            )

    def check_pose(self, reached: Array, leader: Array) -> None:
        """Refuse a pose (4, 4) the platform cannot have: the one reached differs; ConvergenceError."""
        apart = log(inverse(reached) @ leader)
        angle, distance = float(np.linalg.norm(apart[:3])), float(np.linalg.norm(apart[3:]))
        if angle > _APART or distance > _APART * self.model.size:
            raise ConvergenceError(
                f"the platform of {self.model.name!r} does not get to that pose: the nearest found is off by "
                f"{angle:.3g} rad and {distance:.3g} m; give a pose that its limbs let it reach",
                angle,
                distance,
            )

    def check_twists(self, pose: Array, twists: Array) -> None:
        """Refuse spatial twists (orders, 6) of a motion that the platform cannot have; InputError."""
        model = self.model
        if model.delta == 6 or not len(twists):
            return
        scale = np.repeat([1.0, 1.0 / model.length], 3)
        basis = np.linalg.qr(scale[:, None] * model.dof)[0]
        measured = scale * twists_to_body(pose, twists)
        off = measured - (measured @ basis) @ basis.T
        whole = np.linalg.norm(measured)
        for r, part in enumerate(off):
            if np.linalg.norm(part) > _OUTSIDE * whole:
                what = "twist" if r == 0 else f"derivative {r} of the twist"
                raise InputError(
                    f"the platform of {model.name!r} cannot move like that: its {what} has the part "
                    f"{np.array2string(part / scale, precision=3)} (body axes) outside of its degrees of "
                    "freedom"
                )

    def check_loads(self, base: BaseMotion, wrenches: Sequence[AppliedWrench], order: int) -> None:
        """Refuse wrenches that would turn the platform where neither limb nor drive holds it; InputError.

        At one motion, or at any of a batch.
        """
        on_platform = [w for w in wrenches if self.model.platform.name == w.body or w.body == 0]
        if not on_platform or not self._idle.shape[1]:
            return
        in_body, in_world = _sums_of(on_platform, order)
        total = in_body + base.wrenches_in_body(np.broadcast_to(in_world, (*base.batch, order + 1, 6)))
        power = np.abs(total @ self._idle).max(axis=(-2, -1))
        leader = max(np.abs(in_body).max(), np.abs(in_world).max())
        size = np.abs(self._idle).max() * np.maximum(np.abs(total).max(axis=(-2, -1)), leader)
        wrong = power > _OUTSIDE * size
        if not wrong.any():
            return
        if base.batch:
            first = int(wrong.argmax())
            with naming_sample(first):
                self.check_loads(base.one(first), wrenches, order)
        powers = total @ self._idle
        worst = int(np.abs(powers).max(axis=1).argmax())
        raise InputError(
            "the wrench on the platform would turn it on the joints that carry it, where no drive holds it "
            f"(power {powers[worst].tolist()} at order {worst}, per unit of that motion); leave that part out"
        )


def _sums_of(wrenches: Sequence[AppliedWrench], order: int) -> list[Array]:
    """Return the sums of wrenches in the frame of the platform, and of those in the world."""
    return [
        sum((w.up_to(order) for w in wrenches if w.representation == frame), np.zeros((order + 1, 6)))
        for frame in ("body_fixed", "spatial")
    ]


class LoopedPosition:
    """A robot with couplings and loops; remembers where it was, to stay on its branch.

    `memory` (1, N): the positions of the leading joints at the last success, and the pose given then.
    """

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        # whether components of the pose of a floating base follow from the others
        self.drifts = closure.drifts and closure.tree.floating_base
        self.independence = find_independence(closure)
        self.platform = PlatformDynamics(closure) if is_on_limbs(closure) else None
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self.fast = FastCalls()
        self.calls: Kept[tuple[Any, ...], Any] = Kept()  # by the method that makes them, and its arguments

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        return self._known_from(self.memory)

    @known.setter
    def known(self, known: Known) -> None:
        result = memory_of(self.closure, known)
        self.memory[:, : result.shape[1]] = result
        self._base = known.place.base

    def _known_from(self, memory: Array) -> Known:
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.positions(memory[0, :n])
        pose = memory[0, n:].reshape(4, 4).copy() if memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    def locate(
        self, y: Array, leader: BaseMotion | None, derivative: int, search: bool = True
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        Without `search` only where the robot is near, as far as code has got in short steps.
        """
        pose = leader.pose if leader else None
        if not search:
            rest = Way(self.closure, self.known, y, pose).longest
            if rest > _NEAR:
                raise ConvergenceError(
                    f"robot {self.closure.tree.name!r} does not get there from the last coordinates in short "
                    f"steps, which end {rest:.3g} rad, or times its size, before: where its workspace ends, "
                    "or beside a singular pose; give coordinates within the workspace, or nearer to the last "
                    "ones",
                    rest,
                    rest * self.closure.size,
                )
            moved = close(self.closure, self.independence.rows, self.known.place, y, pose, _FEW)
        elif self.platform is not None and pose is not None:
            moved = self._reach_on_limbs(self.platform, y, pose)
        else:
            moved = self.reach(self.known, y, pose)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self.check_margin(moved, margins[0])
        if self.platform is not None and leader is not None:
            self.platform.check_pose(moved.body_pose(0), leader.pose)
        return moved, margins

    def reach(self, known: Known, y: Array, pose: Array | None, most_steps: int = MOST_STEPS) -> LoopMotion:
        """Return the motion of order 0 at independent joints (k,) and a pose, on the branch of a known place.

        Whatever was found last; errors as of `hodyn_ros.dynamics.loops.closing.reach`.
        """
        return reach(self.closure, self.independence.rows, known, y, pose, most_steps)

    def approach(self, code: LoopFunction, y: Array, pose: Array | None, memory: Array) -> None:
        """Take a memory towards coordinates and a pose as far as code gets, in steps that keep the branch.

        Raises ConvergenceError for what is so far away that nobody means it.
        """
        farthest = 1e6 if self.platform is None else _FARTHEST
        way = Way(self.closure, self._known_from(memory), y, pose, farthest)
        still = [np.zeros(shape) for _, shape in code.arguments[:-1]]
        done, step = 0.0, 1.0 / min(max(1.0, np.ceil(way.longest / _STEP)), _MOST_STEPS)
        most, least = step, step / 100.0
        while done < 1.0 and step > least:
            share = min(done + step, 1.0)
            between, there = way.at(share)
            for (name, _), array in zip(code.arguments, still):
                if name in ("the motion", "the state"):
                    array[0] = between
                elif name == "the pose" and there is not None:
                    array[:] = there
            if code.function(*still, memory).item(code.defect_at) < 1.0:
                done, step = share, min(2.0 * step, most)
            else:
                step /= 4.0

    def _reach_on_limbs(self, platform: PlatformDynamics, y: Array, pose: Array) -> LoopMotion:
        """Reach a platform's pose, by kernels as far as these go, or say what is wrong there."""
        memory = self.memory.copy()
        self.approach(platform.joints, y, pose, memory)
        try:
            return self.reach(self._known_from(memory), y, pose, 0)
        except ConvergenceError as error:
            platform.check_limbs(pose, memory)
            there = self.reach(self._known_from(memory), y, pose, 0)
            margins = conditions(self.closure, there, self.independence.rows)
            self.check_margin(there, margins[0])
            self.check_held(margins[1])
            raise ConvergenceError(
                f"robot {self.closure.tree.name!r} does not get to that pose from the last one in short "
                "steps, as beside a singular pose on the way; give poses nearer to the last ones, and "
                "keep away from singular ones",
                error.angle,
                error.distance,
            ) from None

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Stay where the last success was where a computation fails."""
        before = self.known
        try:
            yield
        except HodynError:
            self.known = before
            raise

    def begin(
        self, y: Array, leader: BaseMotion | None, search: bool = True
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find where the motion of the coordinates y (orders + 1, k) begins: its order 0, as of `locate`.

        `leader`: the motion of platform or base, with spatial twists.
        """
        if self.platform is not None and leader is not None:
            self.platform.check_twists(leader.pose, leader.twists[: len(y) - 1])
        return self.locate(y[0], leader, len(y) - 1, search)

    def check_prescribed(self, moved: LoopMotion, prescribed: Sequence[int]) -> None:
        """Refuse drives that cannot be moved as one likes; SingularError."""
        if not prescribed:
            return
        F = embedding.distribution(self.independence.rows, moved, 0)[0]
        moving = self.closure.effort_map[:, list(prescribed)].T @ F
        sized = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        least = float(np.linalg.svd(sized, compute_uv=False)[-1]) if len(sized) <= sized.shape[1] else 0.0
        if least < SINGULAR:
            raise SingularError(
                f"the prescribed joints of robot {self.closure.tree.name!r} cannot all be moved freely there "
                f"(smallest singular value {least:.3g}); prescribe fewer",
                1.0 / max(least, 1e-300),
            )

    def remember(self, moved: LoopMotion, y: Array, leader: BaseMotion | None) -> None:
        """Start from there the next time."""
        pose = moved.place.base if leader is None or self.drifts else leader.pose
        self.known = Known(moved.place, y.copy(), pose)

    def check_loads(self, inputs: LoopedInputs, order: int) -> None:
        """Refuse wrenches that would turn a platform where nothing holds it; InputError."""
        if self.platform is not None and inputs.wrenches and inputs.leader is not None:
            self.platform.check_loads(inputs.leader, inputs.wrenches, order)

    def check_margin(self, moved: LoopMotion, margin: float) -> None:
        """Refuse a pose at which coordinates do not determine the motion, from its margin; SingularError."""
        if margin >= SINGULAR:
            return
        raise self.singular(moved, margin)

    def singular(self, moved: LoopMotion, margin: float) -> SingularError:
        """Say that coordinates do not determine the motion, or efforts no accelerations."""
        idle, cost = least_costly(self.closure, moved, self.independence.rows)
        if margin >= SINGULAR and cost < SINGULAR:
            return SingularError(
                f"the pose of robot {self.closure.tree.name!r} is singular: joints {idle} can move together "
                "there without moving any mass; efforts do not determine accelerations",
                1.0 / max(cost, 1e-300),
            )
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_held(self, margin: float) -> None:
        """Refuse a pose at which drives do not hold the robot, from their margin; SingularError."""
        if margin < SINGULAR:
            raise self.not_held(margin)

    def not_held(self, margin: float) -> SingularError:
        """Say that drives do not hold the robot."""
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its driven joints do not hold it "
            f"there (smallest singular value {margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def sure(self, check: DigitCheck) -> float:
        """Return below which number at `defect_at` results need no check of their digits."""
        place = self.independence.generic
        basis = np.eye(6) if self.platform is None else self.platform.model.dof
        return 0.0 if place is None else check.sure(place, basis, self.independence.rows)

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Names of the loops that are overconstrained: their loads depend on which rows were taken."""
        return self.independence.redundant
