"""Propellers of a flying base: thrusts and their time derivatives from the wrench that the base needs.

A propeller pushes along the z axis of its frame with a thrust f, and turns the base by its drag, `kappa f`,
about it: `W_b = Ad_C^{-T} (0, 0, kappa, 0, 0, 1) f`, where C is the pose of its frame in that of the base
(Ali, Gabellieri & Franchi, 2026, eq. 28). The wrench is linear in the thrusts, so are its derivatives. A
propeller that a servo tilts about its x axis by an angle alpha pushes along `(0, -sin alpha, cos alpha)`:
linear in the two components of its thrust, from whose derivatives those of thrust and angle follow. The
angular momentum of propellers is left out, as in the paper.

A propeller is no rotor here: that is the word for what turns in the motor of a joint (`DriveSpec.rotor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.compiled_propellers import propeller_program
from hodyn_ros.checks import check_finite, finite_array, finite_result, real_array
from hodyn_ros.codegen.kernel import Kernel, Traceable
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.errors import InputError, ModelError, OverflowingError, ShapeError, SingularError
from hodyn_ros.lie.jets import power, to_derivatives, to_taylor
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.propeller import Propeller

_ROUNDED = 1e-12  # [m] of what products of poses leave of a lever that is none
_RANK = 1e-9  # of the columns of the allocation, relative
UNREACHED = 1e-6  # [N·m, N] of what is left of a wrench up to which nothing is
_IDLE = 1e-9  # [N] of a thrust whose direction is not known


class PropellerMotion(NamedTuple):
    """What propellers do, by derivative order; a batch adds a leading axis."""

    thrusts: Array  # (orders, propellers) [N/s^k]
    tilts: Array  # (orders, propellers) angles of the servos [rad/s^k], zero of propellers that are fixed
    left: Array  # (orders, 6) of the body-fixed wrench on the base, what propellers cannot give


class Propellers:
    """The propellers of one base."""

    def __init__(self, propellers: Sequence[Propeller]) -> None:
        """Put propellers together; ModelError where there are none, or names repeat.

        `tilts`: whether there are any that tilt; `reaches_all`: whether they can give the base any wrench.
        """
        self.propellers = tuple(propellers)
        self.names = tuple(propeller.name for propeller in self.propellers)
        if not self.propellers or len(set(self.names)) < len(self.names):
            raise ModelError(f"propellers need names of their own, one at least; found {list(self.names)}")
        # by numbers of orders and representations of bases
        self._kernels: Kept[tuple[int, BaseRepresentation | None], Kernel] = Kept()
        self.tilts = any(propeller.tilts for propeller in self.propellers)
        least = _RANK * np.linalg.norm(self._scaled, 2)
        self.reaches_all = bool(np.linalg.matrix_rank(self._scaled, least) == 6)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what propellers are made from; what is compiled is compiled again."""
        return type(self), (self.propellers,)

    @classmethod
    def of(cls, propellers: Sequence[Propeller] | Propellers) -> Propellers:
        """Return propellers as they are, or put together."""
        return propellers if isinstance(propellers, Propellers) else cls(propellers)

    @cached_property
    def allocation(self) -> Array:
        """The matrix G (6, columns) from thrusts to the body-fixed wrench on the base.

        A propeller has a column; one that tilts two, of the thrust along z and of that along -y of its frame.
        """
        columns = []
        for propeller in self.propellers:
            carry = Ad(inverse(propeller.pose)).T
            columns.append(carry @ [0.0, 0.0, propeller.drag, 0.0, 0.0, 1.0])
            if propeller.tilts:
                columns.append(carry @ [0.0, -propeller.drag, 0.0, 0.0, -1.0, 0.0])
        return np.column_stack(columns)

    @cached_property
    def _scale(self) -> Array:
        """What lengths in units of the longest lever make of a wrench (6,)."""
        longest = max(float(np.linalg.norm(propeller.pose[:3, 3])) for propeller in self.propellers)
        return np.repeat([1.0 / (longest if longest > _ROUNDED else 1.0), 1.0], 3)

    @cached_property
    def _scaled(self) -> Array:
        return np.asarray(self._scale[:, None] * self.allocation)

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(np.linalg.pinv(self._scaled, rcond=_RANK) * self._scale)

    def motion(self, base_wrench: ArrayLike, base: BaseMotion | None = None) -> PropellerMotion:
        """Return thrusts and tilts that give the base a wrench, with their time derivatives.

        `base_wrench` (orders, 6), or a batch (N, orders, 6), body-fixed, about the base's origin; or, where
        `base` says how the base moves, in the world frame, as `inverse_dynamics` returns it. Of more
        propellers than needed the thrusts are the least, `sum f^2`. Raises SingularError naming a
        propeller that tilts and has no thrust, so that its direction is open, and InputError for wrong
        shapes.
        """
        shapes = "(orders, 6) or (N, orders, 6)"
        wrench = real_array("the base wrench", base_wrench, shapes)
        if wrench.ndim not in (2, 3) or wrench.shape[-1] != 6 or not wrench.shape[-2]:
            raise ShapeError("the base wrench", shapes, wrench.shape)
        batch, orders = wrench.shape[:-2], wrench.shape[-2]
        arrays = [np.ascontiguousarray(wrench)]
        if base is not None:
            if base.orders < orders - 1 or base.batch not in ((), batch):
                raise InputError(
                    f"a base wrench {wrench.shape} needs {orders - 1} twists of each sample, found "
                    f"{base.twists.shape}"
                )
            arrays += base.arrays(max(orders - 1, 1), batch)
        kernel = self._kernel(orders, None if base is None else base.representation)
        try:
            table = kernel.batch(*arrays) if batch else kernel.function(*arrays)
        except OverflowingError:
            self._require_thrust(wrench if base is None else base.wrenches_in_body(wrench))
            raise
        n = len(self.propellers)
        thrusts, tilts, left = table[..., :-1, :n], table[..., :-1, n : 2 * n], table[..., :-1, 2 * n :]
        if self.tilts:
            along, across = table[..., -1, :n], table[..., -1, n : 2 * n]
            self._refuse_idle(thrusts[..., 0, :])
            tilts[..., 0, :] = np.where([p.tilts for p in self.propellers], np.arctan2(across, along), 0.0)
        return PropellerMotion(thrusts, tilts, left)

    def _kernel(self, orders: int, frame: BaseRepresentation | None) -> Kernel:
        kernel = self._kernels.get((orders, frame))
        if kernel is None:
            kernel = self._kernels[orders, frame] = Kernel(*self.program(orders, frame))
        return kernel

    def program(self, orders: int, frame: BaseRepresentation | None) -> Traceable:
        """Return what `motion` compiles: `hodyn_ros.actuation.compiled_propellers.propeller_program`."""
        tilts = [propeller.tilts for propeller in self.propellers]
        return propeller_program(self.allocation, self._inverse, tilts, orders, frame)

    def _require_thrust(self, body_wrench: Array) -> None:
        """Refuse wrenches (..., orders, 6) that leave it open where a propeller points."""
        self._refuse_idle(self.motion(body_wrench[..., :1, :]).thrusts[..., 0, :])

    def _refuse_idle(self, thrusts: Array) -> None:
        for i, propeller in enumerate(self.propellers):
            idle = np.atleast_1d(thrusts[..., i]) <= _IDLE
            if propeller.tilts and idle.any():
                raise SingularError(
                    f"propeller {propeller.name!r} tilts and has no thrust, so where it points is open",
                    inf,
                    int(np.argmax(idle)),
                )

    def wrench(self, thrusts: ArrayLike, tilts: ArrayLike | None = None) -> Array:
        """Return the body-fixed wrench (6,) on the base from thrusts (propellers,) [N] and tilts [rad]."""
        count = len(self.propellers)
        f = finite_array("the thrusts", thrusts, (count,))
        angles = np.zeros(count) if tilts is None else finite_array("the tilts", tilts, (count,))
        parts: list[float] = []
        for propeller, force, angle in zip(self.propellers, f, angles):
            parts += [force * np.cos(angle), force * np.sin(angle)] if propeller.tilts else [force]
        result: Array = self.allocation @ np.array(parts)
        return result

    @finite_result
    def speeds(self, thrusts: ArrayLike) -> Array:
        """Return the speeds (orders, propellers) [rad/s^(k+1)] from thrusts, `f = c_f omega^2`.

        Raises InputError naming a propeller without a coefficient, or whose thrust is not above zero.
        """
        values = real_array("the thrusts", thrusts, f"(orders, {len(self.propellers)})")
        if values.ndim != 2 or values.shape[1] != len(self.propellers) or not len(values):
            raise ShapeError("the thrusts", f"(orders, {len(self.propellers)})", values.shape)
        check_finite("the thrusts", values)
        squares = np.empty_like(values)
        for i, propeller in enumerate(self.propellers):
            if propeller.coefficient is None:
                raise InputError(
                    f"propeller {propeller.name!r} has no coefficient c_f, which its speed needs"
                )
            if not values[0, i] > 0.0:
                raise InputError(
                    f"the thrust of propeller {propeller.name!r} is {values[0, i]} N, which no speed gives"
                )
            squares[:, i] = values[:, i] / propeller.coefficient
        return to_derivatives(power(to_taylor(squares), 0.5))

    def exceeded(self, motion: PropellerMotion) -> tuple[bool, bool, bool]:
        """Whether a sample is beyond limits of thrusts or tilts, beyond those of their rates, unreached."""
        (least, most, rate, tilt, tilt_rate), (thrusts, tilts, left) = self._limits, motion
        beyond = (thrusts[0] < least) | (thrusts[0] > most) | (np.abs(tilts[0]) > tilt)
        fast = (np.abs(thrusts[1:2]) > rate) | (np.abs(tilts[1:2]) > tilt_rate)
        return bool(beyond.any()), bool(fast.any()), bool((np.abs(left[0]) > UNREACHED).any())

    @cached_property
    def _limits(self) -> Array:
        """Limits by kind (5, propellers)."""
        return np.array([astuple(propeller.limits) for propeller in self.propellers]).T

    def check(self, motion: PropellerMotion) -> list[str]:
        """Return a line for every limit of a propeller that a motion, of one sample or a batch, exceeds."""
        lines = []
        for propeller, thrusts, tilts in zip(self.propellers, *(_by_propeller(x) for x in motion[:2])):
            limits, who = propeller.limits, f"propeller {propeller.name!r}"
            low, high = float(thrusts[:, 0].min()), float(thrusts[:, 0].max())
            if low < limits.least:
                lines.append(f"{who}: {low:.4g} N, and {limits.least:g} N is the least")
            values = [(high, limits.most, "N"), (_largest(thrusts, 1), limits.rate, "N/s")]
            values += [
                (_largest(tilts, 0), limits.tilt, "rad"),
                (_largest(tilts, 1), limits.tilt_rate, "rad/s"),
            ]
            lines += [
                f"{who}: {value:.4g} {unit}, and {most:g} {unit} is the most"
                for value, most, unit in values
                if value > most
            ]
        return lines


def _by_propeller(stacks: Array) -> Array:
    """Return (propellers, samples, orders) of one sample or a batch."""
    return np.moveaxis(stacks if stacks.ndim == 3 else stacks[None], -1, 0)


def _largest(stacks: Array, order: int) -> float:
    return float(np.abs(stacks[:, order]).max()) if stacks.shape[1] > order else 0.0
