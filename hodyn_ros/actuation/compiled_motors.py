"""What the motors do, in one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Noted, Stack
from hodyn_ros.codegen.llvm import MachineCode
from hodyn_ros.codegen.object_cache import Kept

_LARGEST = 4000  # joints times squared orders: beyond, the code would take more than a second to compile


class MotorMotion(NamedTuple):
    """Motion and effort of the motors, reflected to the link side, by derivative order."""

    position: Array  # (..., order + 1, n) theta and its derivatives [rad/s^k or m/s^k]
    effort: Array  # (..., order - 1, n) motor effort and its derivatives [N.m/s^k or N/s^k]


class CompiledMotors:
    """A function from motion (..., orders, n) and torques (..., orders', n) to the motors, compiled.

    `compute` is traced, on arrays of the tracer's scalars, at the first call with each pair of orders; it
    checks the shapes. Its conditions (`hodyn_ros.actuation.transmission`) are computed along. Without
    `batches`, single samples alone are computed here.
    """

    def __init__(self, compute: Callable[[Array, Array], MotorMotion], *, batches: bool = True) -> None:
        self._compute = compute
        self._batches = batches
        self._compiled: Kept[Any, _Compiled | None] = Kept()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), batches=self._batches), (self._compute,)

    def __call__(self, q: ArrayLike, torques: ArrayLike) -> MotorMotion | None:
        """Return the motors; None where `compute` has to say it with numbers.

        That is for what are no arrays, for shapes that do not fit or are large, and where a condition fails.
        Raises InputError for NaN and infinite numbers.
        """
        if not isinstance(q, np.ndarray) or not isinstance(torques, np.ndarray):
            return None
        compiled = self._compiled.get((q.shape, torques.shape))
        if compiled is None:
            if q.ndim != 2 or torques.ndim != 2:
                return self._batch(q, torques) if self._batches else None
            compiled = self._of(q.shape, torques.shape)
            if compiled is None:
                return None
        table = compiled.function(q, torques)
        if table.item(-1) != 0.0:
            return None
        positions = compiled.positions
        return MotorMotion(table[:positions], table[positions:-1])

    def _batch(self, q: Array, torques: Array) -> MotorMotion | None:
        samples = q.shape[:-2]
        fits = q.ndim == torques.ndim > 2 and torques.shape[:-2] == samples
        if not fits or not q.size or not q.dtype == torques.dtype == np.float64:
            return None
        compiled = self._of(q.shape[-2:], torques.shape[-2:])
        if compiled is None:
            return None
        arrays = [np.ascontiguousarray(x).reshape(-1, *x.shape[-2:]) for x in (q, torques)]
        tables = compiled.kernel.batch(*arrays)
        if (tables[:, -1, -1] != 0.0).any():
            return None
        tables = tables.reshape(*samples, *tables.shape[1:])
        positions = compiled.positions
        return MotorMotion(tables[..., :positions, :], tables[..., positions:-1, :])

    def _of(self, q: tuple[int, ...], torques: tuple[int, ...]) -> _Compiled | None:
        if (q, torques) not in self._compiled:
            self._compiled[q, torques] = self._compile(q, torques)
        return self._compiled[q, torques]

    def _compile(self, q: tuple[int, ...], torques: tuple[int, ...]) -> _Compiled | None:
        if not 0 < q[0] * q[1] * torques[0] <= _LARGEST:
            return None

        def trace(motion: Stack, loads: Stack) -> Stack:
            motors = self._compute(np.array(motion, dtype=object), np.array(loads, dtype=object))
            failed = motion[0][0].graph.violation()
            padding = [0.0] * (motors.position.shape[1] - 1)
            rows = [*motors.position.tolist(), *motors.effort.tolist(), [*padding, failed]]
            return Noted(rows, len(motors.position))

        (rows, n), (orders, m) = q, torques
        kernel = _MotorKernel(trace, [("link motion", (rows, n)), ("torques", (orders, m))])
        return _Compiled(kernel.function, kernel.noted[0], kernel)


class _Compiled(NamedTuple):
    function: Callable[..., Array]
    positions: int  # rows of the result; efforts follow, and a row that ends with zero if all conditions hold
    kernel: Kernel


class _MotorKernel(Kernel):
    """Its batches call the code for one sample: lanes would take longer to compile than most batches do."""

    @cached_property
    def batch_code(self) -> MachineCode:
        """See `Function`."""
        return self._one_by_one()
