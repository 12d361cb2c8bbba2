"""What calls of `Robot` go straight to where shapes were seen before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.call_arguments import HybridArguments
from hodyn_ros.dynamics.results import BaseAndJoints
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Array

Noted = tuple[Callable[..., Array], tuple[int, ...], BaseRepresentation]


@dataclass(frozen=True, eq=False)
class FastCalls:
    """Functions that need no further check of their arguments, by shapes of these."""

    inverse: Kept[tuple[int, ...], Callable[..., Any]] = field(default_factory=Kept)  # by shape of q
    inverse_with_base: Kept[Any, Callable[..., Any]] = field(default_factory=Kept)  # of twists, and frame
    forward: Kept[Any, Callable[..., Array]] = field(default_factory=Kept)  # of state and torques
    forward_with_base: Kept[Any, Callable[..., BaseAndJoints]] = field(default_factory=Kept)  # and frame
    partials: Kept[Any, tuple[Callable[..., Array], tuple[int, ...]]] = field(default_factory=Kept)
    # what follows from a motion, by its shape, orders of a base, and the call: functions, shapes of their
    # results and frames of twists
    of_motion: Kept[tuple[Any, ...], Noted] = field(default_factory=Kept)

    def note(
        self,
        q: Array,
        base: BaseMotion | None,
        call: tuple[Any, ...],
        function: Callable[..., Array],
        result: Array,
        frame: BaseRepresentation = "spatial",
    ) -> None:
        """Let further calls with one sample, and with as many twists, go straight to a function."""
        self.of_motion[(q.shape, base and base.orders, *call)] = function, result.shape, frame

    def again(self, q: Any, base: BaseMotion | None, *call: Any, more: Sequence[Array] = ()) -> Any:
        """Return what the function noted for a call computes of one sample; None where there is none.

        `more`: arrays that it takes besides the motion.
        """
        if q is None and type(base) is BaseMotion:  # of a robot that a platform moves
            q = np.empty((base.orders + 1, 0))
        if type(q) is not np.ndarray or not (base is None or type(base) is BaseMotion):
            return None
        result = self.of_motion.get((q.shape, base and base.orders, *call))
        if result is None or (base is not None and base.batch):
            return None
        function, shape, frame = result
        motion = () if base is None else (base.pose, base.twists_in(frame, len(q) - 1))
        return function(q, *motion, *more).reshape(shape)

    def note_inverse(
        self,
        compiled: Callable[..., Array],
        shape: tuple[int, ...],
        orders: int,
        frame: BaseRepresentation,
        *,
        pair: bool,
    ) -> None:
        """Let inverse dynamics of joints of a shape, and a base motion of so many twists, find its code."""
        used = shape[0] - 1

        def with_base(q: ArrayLike | None, base: BaseMotion) -> Array | BaseAndJoints | None:
            if type(q) is not np.ndarray or q.shape != shape:
                return None
            table = compiled(q, base.pose, base.twists[:used])
            return BaseAndJoints(table[:, :6].copy(), table[:, 6:].copy()) if pair else table

        def of_a_platform(q: ArrayLike | None, base: BaseMotion) -> Array | None:
            return compiled(base.pose, base.twists) if q is None else None

        self.inverse_with_base[(orders, 6), frame] = with_base if shape[1] else of_a_platform

    def note_forward(
        self,
        states: tuple[int, int],
        efforts: tuple[int, int],
        frame: BaseRepresentation,
        checked: Callable[[HybridArguments], Any],
        function: Callable[..., Array],
        pushed: bool = True,
    ) -> None:
        """Let forward dynamics with arrays of these shapes, and a base motion, find its code.

        `function(state, torques, pose, twist, wrench)` has the columns of the base first. It takes no wrench
        where the base is not `pushed`. Others are left to `checked`.
        """
        nothing, alone = (np.zeros((efforts[0], 6)),) if pushed else (), np.zeros(states)

        def with_base(
            state: Any, torques: Array, base: BaseMotion, base_wrench: ArrayLike | None
        ) -> BaseAndJoints:
            push = nothing if base_wrench is None else (np.asarray(base_wrench),)
            if state is None and not states[1]:
                state = alone
            if np.shape(state) != states or [p.shape for p in push] != [p.shape for p in nothing]:
                result: BaseAndJoints = checked(HybridArguments(state, torques, base, base_wrench))
                return result
            table = function(state, torques, base.pose, base.twists[:1], *push)
            return BaseAndJoints(table[:, :6].copy(), table[:, 6:].copy())

        self.forward_with_base[efforts, frame] = with_base
