"""How many digits compiled calls of robots with loops have left, and from where on that has to be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.digits import (
    BEGIN,
    CLOSING,
    DRAWS,
    Accuracy,
    accuracy,
    is_asked_for,
    natural_rates,
    refuse_without_digits,
    rounded,
    rounded_pose,
)
from hodyn_ros.dynamics.loops.closing import Known
from hodyn_ros.engine.loops.loop_motion import Judged, LoopCode
from hodyn_ros.engine.series.validity import SINGULAR_LENGTH, singularity_of
from hodyn_ros.errors import HodynError
from hodyn_ros.formulations.embedding import LoopMotion, Place, follow
from hodyn_ros.lie.motion import BaseMotion, twists_to_world
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, robot_size
from hodyn_ros.model.tree import TreeModel

ENOUGH = 7.5  # digits expected, with more of which nothing has to be asked
_EPSILON = float(np.finfo(np.float64).eps)
_SWAY = 1.25  # factor by which what says how near a singular pose is may grow far from one

_OF_DRIVES = "the motion of the drives"
_NAMES: dict[Judged | None, str] = {
    "efforts": "the inverse dynamics",
    "accelerations": "the forward dynamics",
    "joints": "the motion of the joints",
    "drives": "the motion found from the drives",
}
_GROWTH: dict[Judged | None, int] = {
    "efforts": 3,
    "accelerations": 3,
    "joints": 1,
    "drives": 1,
}  # of the power at order 0


@dataclass(eq=False)
class DigitCheck:
    """Judges results of one call of a robot with loops, by the `parts` that its law says."""

    closure: Closure
    function: Callable[..., Array]  # of the arguments and a memory
    arguments: Sequence[tuple[str, tuple[int, int]]]  # names and shapes
    law: LoopCode

    def refuse(self, table: Array, arguments: Sequence[Array], memory: Array) -> None:
        """Refuse a result where too few digits are left; SingularError. `memory`: that after the call."""
        if is_asked_for():
            return
        refuse_without_digits(
            self.estimate(table, arguments, memory),
            f"{_NAMES[self.law.judged]} of robot {self.closure.tree.name!r}",
            "keep away from this pose",
        )

    def estimate(self, table: Array, arguments: Sequence[Array], memory: Array) -> Accuracy:
        """Estimate the accuracy of a result, as `hodyn_ros.digits` says."""
        rng, arrays = np.random.default_rng(0), []
        law, result = self.law, self.law.parts(table)
        for _ in range(DRAWS):
            start = begun_beside(self.closure, memory, rng)
            beside = [self._rounded(name, array, rng) for (name, _), array in zip(self.arguments, arguments)]
            other = self.function(*beside, start)
            arrays.append(law.parts(other) if other.item(law.defect_at) < 1.0 else None)
        return accuracy(result, arrays, self._natural(result, arguments), CLOSING)

    def sure(self, place: Place, basis: Array, rows: Array) -> float:
        """Return below which number at `defect_at` enough digits are left that nothing has to be asked.

        By what is left at a generic place of a motion as fast as the robot is large: an error grows with a
        power of the distance from a singular pose, the higher the higher the order. `basis` (6, delta): the
        body-fixed twists that a platform can have; `rows`: the independent loop rows.
        """
        closure = self.closure
        pose = None
        if closure.leader is not None:
            pose = LoopMotion(closure, place).body_pose(closure.leader)
        memory = memory_of(closure, Known(place, place.joints[list(closure.joints)], pose))
        arguments = [self._generic(name, shape, place, pose, basis) for name, shape in self.arguments]
        names = [name for name, _ in self.arguments]
        if _OF_DRIVES in names and closure.n_efforts > closure.n_coordinates:  # which others have to fit
            motion = arguments[names.index(_OF_DRIVES)]
            motion[:] = self._fitting_drives(len(motion), place, pose, basis, rows)
        try:
            table = self.function(*arguments, memory)
        except HodynError:
            return 0.0
        if not table.item(self.law.defect_at) < 1.0:
            return 0.0
        digits = self.estimate(table, arguments, memory).digits
        if digits.min() < ENOUGH:
            return 0.0
        powers = np.arange(len(digits)) + _GROWTH[self.law.judged]
        grows = float((10.0 ** (2.0 * (digits - ENOUGH) / powers)).min())
        return min((_SWAY * singularity_of(table.item(self.law.defect_at)) + grows) * SINGULAR_LENGTH**2, 1.0)

    def _generic(
        self, name: str, shape: tuple[int, int], place: Place, pose: Array | None, basis: Array
    ) -> Array:
        closure, rng = self.closure, np.random.default_rng(1)
        moving = rng.uniform(-1.0, 1.0, shape)
        if name in ("the motion", "the state", _OF_DRIVES):
            joints = list(closure.driven if "drives" in name else closure.joints)
            moving *= self._position_sizes(name)
            moving[0] = place.joints[joints]
        elif name == "the pose" and pose is not None:
            moving = pose
        elif name == "the twists" and pose is not None:
            twists = rng.uniform(-1.0, 1.0, (max(shape[0], 1), basis.shape[1])) @ basis.T
            # lists are converted in NumPy: to compile that for this one call would take longer
            moving = twists_to_world(pose, list(twists))[: shape[0]]
        elif name in ("the efforts", "the preload"):
            moving *= natural_loads(closure.tree, [1.0], 1)
        else:
            moving *= 0.0
        return np.ascontiguousarray(moving)

    def _fitting_drives(
        self, orders: int, place: Place, pose: Array | None, basis: Array, rows: Array
    ) -> Array:
        """Return positions and rates (orders, drives) of drives that a generic motion of the robot has."""
        closure = self.closure
        y = self._generic("the motion", (orders, len(closure.joints)), place, pose, basis)
        leader = None
        if pose is not None:
            twists = self._generic("the twists", (max(orders - 1, 1), 6), place, pose, basis)
            leader = BaseMotion(pose, twists)
        moved = LoopMotion(closure, place, pose)
        follow(rows, moved, y, leader)
        return moved.joint_motion()[:, list(closure.driven)]

    def _rounded(self, name: str, array: Array, rng: np.random.Generator) -> Array:
        array = np.asarray(array, dtype=np.float64)
        if name in ("the motion", "the state", _OF_DRIVES):
            return rounded(array, rng, self._position_sizes(name), self.closure.own_rounding)
        if name == "the pose":
            return rounded_pose(array, rng)
        own = self.closure.own_rounding if name == "the efforts" else 1.0
        return rounded(array, rng, own=own)

    def _natural(self, parts: Sequence[Array], arguments: Sequence[Array]) -> list[Array]:
        """Return what is natural for each part."""
        speeds, result = self._speeds(dict(zip([name for name, _ in self.arguments], arguments))), []
        for number, part in enumerate(parts):
            if self.law.judged == "accelerations" and number not in self.law.effort_parts:
                own = np.abs(part).max(axis=1, initial=0.0)
                result.append(natural_rates([speeds[0], *own], len(part) + 2)[2:])
            elif self.law.judged in ("efforts", "accelerations"):
                result.append(natural_loads(self.closure.tree, speeds, len(part)))
            else:
                result.append(natural_rates(speeds, len(part)))
        return result

    def _speeds(self, arguments: dict[str, Array]) -> list[float]:
        """Return the sizes of all derivatives of the motion given, from the first on."""
        rows: list[Array] = []
        for name, array in arguments.items():
            if name in ("the motion", "the state", _OF_DRIVES):
                rows.append(np.abs(array[1:]) / self._position_sizes(name))
            elif name == "the twists":
                shifted = np.array(array, dtype=np.float64)
                shifted[:, 3:] += np.cross(shifted[:, :3], arguments["the pose"][:3, 3])
                rows.append(np.abs(shifted) / np.repeat([1.0, self.closure.size], 3))
        count = max((len(row) for row in rows), default=0)
        return [
            max((float(row[k].max(initial=0.0)) for row in rows if k < len(row)), default=0.0)
            for k in range(count)
        ]

    def _position_sizes(self, name: str) -> Array:
        joints = self.closure.driven if "drives" in name else self.closure.joints
        return self.closure.joint_sizes[list(joints)]


def begun_beside(closure: Closure, memory: Array, rng: np.random.Generator) -> Array:
    """Return a memory from which iterations begin a little beside another.

    Where rods spin, by its rounding alone: by how far they have spun follows from the way.
    """
    n, result = len(closure.leading), memory.copy()
    far = _EPSILON if any(loop.kind == "spin" for loop in closure.loops) else BEGIN
    result[0, :n] += far * closure.scale[closure.first :] * rng.uniform(-1.0, 1.0, n)
    return result


def memory_of(closure: Closure, known: Known) -> Array:
    """Return the memory (1, N) of a robot that stands at a known place."""
    leading = known.place.joints[list(closure.leading)]
    return np.concatenate([leading, [] if known.pose is None else known.pose.ravel()])[None]


def natural_loads(tree: TreeModel, rates: Sequence[float] | Array, orders: int) -> Array:
    """Return the sizes (orders,) of forces and moments, by order, natural for a robot that moves so fast.

    Of its whole mass at a lever of its size, or of a metre; `rates` as of `natural_rates`.
    """
    size = robot_size(tree)
    fast = natural_rates(rates, orders + 2)
    rise = fast[2:] * size + fast[:-2] * float(np.linalg.norm(tree.gravity))
    result: Array = rise * float(tree.masses.sum()) * size
    return result
