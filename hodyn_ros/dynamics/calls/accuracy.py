"""The call of `Robot` that says how accurate the answer of another call is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from hodyn_ros.checks import real_array
from hodyn_ros.digits import (
    BEGIN,
    DRAWS,
    Accuracy,
    accuracy,
    asked_for,
    moving_rows,
    natural_rates,
    rounded,
    rounded_pose,
    sizes_by_order,
)
from hodyn_ros.dynamics.calls.description import RobotProperties, call_of
from hodyn_ros.dynamics.kinematics.forward_kinematics import Kinematics
from hodyn_ros.dynamics.loops.digit_check import begun_beside, natural_loads
from hodyn_ros.dynamics.operations import OPERATIONS, WITH_ACCURACY
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array

_POSITIONS = ("q", "state", "drives", "seed")  # arguments that begin with positions
_MOVING = ("q", "state", "drives", "torques", "inputs")  # that tell apart what a robot with loops is made of
_NUMBERS = (*_POSITIONS, "torques", "inputs", "base_wrench", "preload", "pose", "twists", "weights")


class AccuracyCalls(RobotProperties):
    """What is known of the accuracy of answers."""

    def accuracy(self, call: str, *arguments: Any, **named: Any) -> Accuracy:
        """Estimate how accurate the answer of a call is, by derivative order.

        `call`: its name; then its arguments, of one sample: `robot.accuracy("inverse_dynamics", q).digits`
        are the digits (order + 1,) that the torques and their derivatives have left, of the largest number of
        their order, or of a hundredth of what is natural for a motion as fast where that is larger. `errors`
        and `sizes` (parts, order + 1) are what they follow from, by part of the answer: those of a base come
        apart from those of joints, efforts of joints that are prescribed from accelerations; poses and
        positions stand in the row of order 0. `holds` is the highest order with six digits, with fewer of
        which a call near a singular pose refuses.

        The call is made four times, of arguments that differ by their rounding, and of a robot with loops
        from positions nearby: takes four times as long, and goes on from where the first ends. Constants of
        the robot count as exact, but for what is lost where they lie far from the world's origin.
        Raises what the call raises, but for refusals by this rule.
        """
        if call not in WITH_ACCURACY:
            raise InputError(f"there is no accuracy of {call!r}; ask for one of {sorted(WITH_ACCURACY)}")
        method, rng = call_of(self, OPERATIONS[call]), np.random.default_rng(0)
        bound = inspect.signature(method).bind(*arguments, **named)
        values = {name: _of_one_sample(name, value) for name, value in bound.arguments.items()}
        with asked_for(), self._from_here() as memory:
            parts = partial(self._parts_of_call, values)
            result, efforts = parts(method(**values))
            left = None if memory is None else memory.copy()
            rounded_answers: list[list[Array] | None] = []
            for _ in range(DRAWS):
                beside = {name: self._rounded(name, value, rng) for name, value in values.items()}
                if memory is not None and left is not None:
                    memory[:] = begun_beside(self._structure, left, rng)
                try:
                    rounded_answers.append(parts(method(**beside))[0])
                except HodynError:
                    rounded_answers.append(None)
            if memory is not None and left is not None:
                memory[:] = left
        natural = [
            self._natural("inverse_dynamics" if effort else call, part, values)
            for part, effort in zip(result, efforts)
        ]
        return accuracy(result, rounded_answers, natural, self._dynamics.rounding_gain(call))

    def _parts_of_call(self, arguments: dict[str, Any], answer: Any) -> tuple[list[Array], list[bool]]:
        """Return the parts of an answer, those of joints that are prescribed apart, and which are efforts."""
        parts, driven = parts_of(answer), self._structure.driven
        prescribed, moved = arguments.get("prescribed"), bool(arguments.get("prescribe_base"))
        if prescribed is None or not driven:
            return parts, [moved] * len(parts)
        *base, joints = parts
        held = [driven.index(self._tree.joint_index(joint)) for joint in prescribed]
        columns = np.isin(np.arange(len(driven)), held)
        return [*base, joints[:, columns], joints[:, ~columns]], [*[moved] * len(base), True, False]

    @contextmanager
    def _from_here(self) -> Iterator[Array | None]:
        """Give the memory of a robot with loops, which is what it was where this fails."""
        memory = self._dynamics.memory
        before = None if memory is None else memory.copy()
        try:
            yield memory
        except HodynError:
            if memory is not None and before is not None:
                memory[:] = before
            raise

    def _rounded(self, name: str, value: Any, rng: np.random.Generator) -> Any:
        if isinstance(value, BaseMotion):
            return BaseMotion.computed(
                rounded_pose(value.pose, rng), rounded(value.twists, rng), value.representation
            )
        if name == "wrenches" and value is not None:
            return [
                AppliedWrench(one.body, rounded(one.values, rng), representation=one.representation)
                for one in value
            ]
        if name == "independent" and value is not None:
            return {joint: self._rounded("q", np.atleast_1d(one), rng) for joint, one in value.items()}
        if name not in _NUMBERS or value is None:
            return value
        if name == "seed":
            far = BEGIN * self._position_sizes(name, len(value))
            return value + far * rng.uniform(-1.0, 1.0, len(value))
        array = np.atleast_2d(value)
        floor: Array | float = self._position_sizes(name, array.shape[-1]) if name in _POSITIONS else 0.0
        own = self.closure.own_rounding if self.closure is not None and name in _MOVING else 1.0
        array = rounded_pose(array, rng) if name == "pose" else rounded(array, rng, floor, own)
        return array.reshape(np.shape(value))

    def _position_sizes(self, name: str, count: int) -> Array | float:
        joints = self._structure.driven if name == "drives" else self._structure.joints
        return self._structure.joint_sizes[list(joints)] if len(joints) == count else 1.0

    def _natural(self, call: str, part: Array, arguments: dict[str, Any]) -> Array:
        """Return what is natural for a part of an answer."""
        own = sizes_by_order(part)
        if call == "inverse_dynamics":
            motion, base = arguments.get("q", arguments.get("state")), arguments.get("base")
            speeds = [] if motion is None else sizes_by_order(np.asarray(motion)[1:]).tolist()
            twists = (
                [] if base is None else sizes_by_order(base.in_representation("body_fixed").twists).tolist()
            )
            count = max(len(speeds), len(twists))
            both = [max([*speeds[k : k + 1], *twists[k : k + 1]]) for k in range(count)]
            return natural_loads(self._tree, both, len(part))
        if call in ("forward_dynamics", "hybrid_dynamics"):
            state = arguments.get("state")
            speeds = [0.0] if state is None else sizes_by_order(np.asarray(state)[1:2])
            return natural_rates([*speeds, *own], len(part) + 2)[2:]
        return natural_rates(own[1:], len(part))


def _of_one_sample(name: str, value: Any) -> Any:
    """Return an argument, whose numbers are an array; InputError for a batch."""
    if name in _NUMBERS and value is not None:
        value = real_array(name, value, "one sample")
    most = 3 if name in ("pose", "twists") else 2  # of several frames
    if (isinstance(value, np.ndarray) and value.ndim > most) or (
        isinstance(value, BaseMotion) and value.batch
    ):
        raise InputError("the accuracy is that of one sample, not of a batch")
    return value


def parts_of(answer: Any) -> list[Array]:
    """Return the parts of an answer that `Accuracy` speaks of, each with the order on its first axis."""
    if isinstance(answer, tuple):
        return [part for one in answer for part in parts_of(one)]
    if isinstance(answer, np.ndarray):
        return [answer] if answer.size else []
    if isinstance(answer, Kinematics):
        return [moving_rows(answer.poses, answer.twists)]
    if isinstance(answer, BaseMotion):
        return [moving_rows(answer.pose, answer.twists)]
    return []
