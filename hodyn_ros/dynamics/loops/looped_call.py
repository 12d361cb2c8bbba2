"""One law of a robot with couplings and loops at one order, as a call: of a sample, or of many.

Calls go on from where the robot is remembered to be. Where compiled code does not arrive from there, the
robot is taken to its coordinates in short steps, or an error says what is wrong on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_result, finite_array
from hodyn_ros.codegen.sample_loop import SampleLoop, one_by_one
from hodyn_ros.dynamics.loops.digit_check import DigitCheck
from hodyn_ros.dynamics.loops.grounded import DriftingFunction
from hodyn_ros.dynamics.loops.looped_position import SINGULAR, LoopedPosition
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array

_Robot = TypeVar("_Robot", bound=LoopedPosition)
_Parameters = ParamSpec("_Parameters")
_Made = TypeVar("_Made")
Rows = slice | tuple[slice, slice]


def kept(
    make: Callable[Concatenate[_Robot, _Parameters], _Made],
) -> Callable[Concatenate[_Robot, _Parameters], _Made]:
    """Let a method return what it has made before of the same arguments, which are given in their order."""
    name, defaults = make.__name__, make.__defaults__ or ()
    count = make.__code__.co_argcount - 1

    @wraps(make)
    def remembered(self: _Robot, *arguments: Any) -> _Made:
        key = name, *arguments, *defaults[len(defaults) - count + len(arguments) :]
        if key not in self.calls:
            self.calls[key] = cast(Any, make)(self, *arguments)
        result: _Made = self.calls[key]
        return result

    return cast(Callable[Concatenate[_Robot, _Parameters], _Made], remembered)


class LoopedCall:
    """A law of a robot as a function of arrays: those that its code takes, but for the memory.

    Results with too few digits left are refused where the law has them judged. `law`: that of the code, of a
    robot whose base drifts of the robot on the ground.
    """

    def __init__(self, robot: LoopedPosition, code: LoopFunction | DriftingFunction) -> None:
        self.code, self._robot, self._memory = code, robot, robot.memory
        self.law: Any = code.law
        self.function, self.defect_at = code.function, int(code.defect_at)
        self._check, self.sure, self._searches = None, 1.0, True
        if code.law.judged is not None:
            self._check = DigitCheck(robot.closure, code.function, code.arguments[:-1], code.law)
            self.sure = robot.sure(self._check)
        self._loops: dict[tuple[int, int], SampleLoop] = {}

    def without_search(self) -> LoopedCall:
        """The same, but where compiled code does not arrive in short steps, milliseconds later an error."""
        result = copy(self)
        result._searches = bool(cast(Any, self.code).on_numbers)
        return result

    def __call__(self, *arrays: Array) -> Array:
        """Return all rows of one sample; errors as of `LoopedPosition.begin`, and SingularError."""
        table: Array = self.function(*arrays, self._memory)
        return table if table.item(self.defect_at) < self.sure else self._led(table, *arrays)

    def quick(self, *arrays: Array) -> Array | None:
        """Return the same where the code arrives at once, or None; SingularError where digits are too few."""
        try:
            table: Array = self.function(*arrays, self._memory)
        except InputError:
            self._check_number(arrays)
            raise
        arrived = table.item(self.defect_at) < self.sure or self._counts(table, arrays)
        return table if arrived else None

    def compiled(self, rows: Rows, *still: Array) -> Callable[..., Array]:
        """Return the fastest call of one sample, of some rows; `still`: arguments that it takes no more."""
        function = partial(self.function, *still) if still else self.function
        memory, defect_at, sure, led = self._memory, self.defect_at, self.sure, self._led

        def call(*arrays: Array) -> Array:
            try:
                table: Array = function(*arrays, memory)
            except InputError:
                self._check_number(arrays, len(still))
                raise
            return table[rows] if table.item(defect_at) < sure else led(table, *still, *arrays)[rows]

        return call

    def run(self, count: int, arrays: Sequence[Array], rows: slice | None = None) -> Array:
        """Compute some rows, by default those that the code says, of one sample (count 0) or of a batch.

        Arrays of a batch have an axis of samples in front, or are the same for all. Each sample stays on the
        branch of the one before, several at a time in lanes where there is code.
        """
        rows = self.code.batch_rows if rows is None else rows
        if not count:
            return self(*arrays)[rows]

        def alone(i: int) -> Array:
            return self(*(np.ascontiguousarray(one[i] if one.ndim == 3 else one) for one in arrays))

        loop = self.samples(rows)
        if loop is None:
            return one_by_one(count, lambda i: alone(i)[rows])
        return loop.run(count, arrays, self._memory, alone)

    def samples(self, rows: slice | None = None) -> SampleLoop | None:
        """Return what computes some rows of batches, by default those that the code says; None on numbers."""
        code: Any = self.code
        if code.on_numbers:
            return None
        rows = code.batch_rows if rows is None else rows
        key = rows.start, rows.stop
        if key not in self._loops:
            self._loops[key] = SampleLoop(code, rows, self.sure)
        return self._loops[key]

    def _check_number(self, arrays: Sequence[Array], left_out: int = 0) -> None:
        """Reject another number of arrays than a caller has, who knows of no memory."""
        names = [name for name, _ in self.code.arguments[left_out:-1]]
        if len(arrays) != len(names):
            raise InputError(f"expected {len(names)} arrays {names}, found {len(arrays)}") from None

    def _counts(self, table: Array, arrays: Sequence[Array]) -> bool:
        """Whether a result counts; SingularError where too few of its digits are left."""
        defect = table.item(self.defect_at)
        if not defect < 1.0:
            return False
        if not defect < self.sure and self._check is not None:
            self._check.refuse(table, arrays, self._memory)
        return True

    def _led(self, table: Array, *arrays: ArrayLike) -> Array:
        """Return the result of a call, or say what is wrong, from the first table that its code returned."""
        with np.errstate(over="ignore", invalid="ignore"):
            result = self._arrived(table, *arrays)
        check_result(result[self.code.batch_rows])  # what else there is need not be numbers
        return result

    def _arrived(self, table: Array, *arrays: ArrayLike) -> Array:
        """Return the result of a call where that counts, from where the robot is or has been taken to."""
        named, robot = self.code.arguments, self._robot
        own = [finite_array(name, values, shape) for (name, shape), values in zip(named, arrays)]
        by_name = dict(zip([name for name, _ in named], own))
        if self._counts(table, own):
            return table
        leader, still = None, np.zeros((1, 6))
        if "the pose" in by_name:
            twists = by_name["the twists"]
            leader = BaseMotion(by_name["the pose"], twists if len(twists) else still)
        motion = [by_name[name] for name in ("the motion", "the state") if name in by_name]
        y = motion[0] if motion else np.zeros((len(by_name["the twists"]) + 1, 0))
        with robot.kept_on_error():
            if not cast(Any, self.code).on_numbers:
                robot.approach(cast(LoopFunction, self.code), y[0], by_name.get("the pose"), self._memory)
                if self._counts(table := self.function(*own, self._memory), own):
                    return table
            moved, margins = robot.begin(y, leader, self._searches)
            robot.closure.check_curves(moved.place.joints, self.law.smoothness)
            if self.law.is_held:
                robot.check_held(margins[1])
            robot.check_prescribed(moved, self.law.moved)
            robot.remember(moved, y[0], leader)
            table = self.function(*own, self._memory)
            if not self._counts(table, own):
                held = self.law.is_held
                error = robot.not_held(min(margins)) if held else robot.singular(moved, margins[0])
                if error.condition < 1.0 / SINGULAR:  # the pose is not singular
                    check_result(table)
                raise error
        return table
