"""What the motors do at one instant, in one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.engine.kernel import Kernel, Stack
from hodyn_ros.jets import Array

_LARGEST = 4000  # joints times squared orders: beyond, the code would take more than a second to compile


class MotorMotion(NamedTuple):
    """Motion and effort of the motors, reflected to the link side, by derivative order."""

    position: Array  # (..., order + 1, n) theta and its derivatives [rad/s^k or m/s^k]
    effort: Array  # (..., order - 1, n) motor effort and its derivatives [N.m/s^k or N/s^k]


class CompiledMotors:
    """A function from motion (orders, n) and torques (orders', n) of the links to the motors, compiled.

    `compute` is traced, on arrays of the tracer's scalars, at the first call with each pair of shapes; it
    checks the shapes. Its conditions (`hodyn_ros.actuation.conditions`) are computed along.
    """

    def __init__(self, compute: Callable[[Array, Array], MotorMotion]) -> None:
        self._compute = compute
        self._calls: dict[Any, tuple[Callable[..., Array], int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._compute,)

    def __call__(self, q: ArrayLike, torques: ArrayLike) -> MotorMotion | None:
        """Return the motors; None where `compute` has to say it with numbers.

        That is for what is not a pair of matrices, for shapes that do not fit or are large, and where a
        condition fails. Raises InputError for NaN and infinite numbers.
        """
        if not isinstance(q, np.ndarray) or not isinstance(torques, np.ndarray):
            return None
        known = self._calls.get((q.shape, torques.shape))
        if known is None:
            if q.ndim != 2 or torques.ndim != 2 or not 0 < q.size * len(torques) <= _LARGEST:
                return None
            known = self._calls[q.shape, torques.shape] = self._compiled(q.shape, torques.shape)
        function, positions = known
        found = function(q, torques)
        if found.item(-1) != 0.0:
            return None
        return MotorMotion(found[:positions], found[positions:-1])

    def _compiled(self, q: tuple[int, ...], torques: tuple[int, ...]) -> tuple[Callable[..., Array], int]:
        positions = 0

        def trace(motion: Stack, loads: Stack) -> Stack:
            nonlocal positions
            motors = self._compute(np.array(motion, dtype=object), np.array(loads, dtype=object))
            positions = len(motors.position)
            failed: Any = 0.0
            for margin in motion[0][0].graph.conditions:
                failed = failed + (abs(margin) - margin)
            padding = [0.0] * (motors.position.shape[1] - 1)
            return [*motors.position.tolist(), *motors.effort.tolist(), [*padding, failed]]

        (rows, n), (orders, m) = q, torques
        kernel = Kernel(trace, [("link motion", (rows, n)), ("torques", (orders, m))])
        return kernel.function, positions
