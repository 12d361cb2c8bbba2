"""Rotors of a flying base: thrusts and their time derivatives from the wrench that the base needs.

A rotor pushes along the z axis of its frame with a thrust f, and turns the base by its drag, `kappa f`, about
it: `W_b = Ad_C^{-T} (0, 0, kappa, 0, 0, 1) f`, where C is the pose of its frame in that of the base (Ali,
Gabellieri & Franchi, 2026, eq. 28). The wrench is linear in the thrusts, so are its derivatives. A rotor that
a servo tilts about its x axis by an angle alpha pushes along `(0, -sin alpha, cos alpha)`: linear in the two
components of its thrust, from whose derivatives those of thrust and angle follow. The angular momentum of
rotors is left out, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, finite_result, real_array, rigid_pose
from hodyn_ros.errors import InputError, ModelError, SingularError
from hodyn_ros.lie.jets import multiply, power, to_derivatives, to_taylor
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, inverse

_RANK = 1e-9  # of the columns of the allocation, relative
_IDLE = 1e-9  # [N] of a thrust whose direction is not known


@dataclass(frozen=True, eq=False)
class Rotor:
    """One rotor of a base.

    `pose` (4, 4) of its frame in that of the base, thrust along z [m]; `drag`: torque about z per thrust,
    `kappa = c_d / c_f` [m], its sign that of the torque on the base; `tilts`: a servo turns it about its x
    axis. Thrusts lie within `least` and `most` [N], their rates below `rate` [N/s]. `coefficient` c_f of
    `f = c_f omega^2` [N s^2/rad^2].
    """

    name: str
    pose: Array
    drag: float = 0.0
    tilts: bool = field(default=False, kw_only=True)
    least: float = field(default=0.0, kw_only=True)
    most: float = field(default=inf, kw_only=True)
    rate: float = field(default=inf, kw_only=True)
    coefficient: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", rigid_pose(f"the pose of rotor {self.name!r}", self.pose))
        if not np.isfinite(self.drag):
            raise ModelError(f"rotor {self.name!r}: the drag must be finite, found {self.drag}")
        if not -inf < self.least < self.most or not self.rate > 0.0:
            raise ModelError(
                f"rotor {self.name!r}: thrusts from {self.least} to {self.most} N at {self.rate} N/s leave "
                "none"
            )
        if self.tilts and self.least < 0.0:
            raise ModelError(f"rotor {self.name!r} tilts, so its thrust is not below zero; give least >= 0")
        if self.coefficient is not None and not 0.0 < self.coefficient < inf:
            raise ModelError(
                f"rotor {self.name!r}: the coefficient must be above zero, found {self.coefficient}"
            )


class RotorMotion(NamedTuple):
    """What rotors do, by derivative order; a batch adds a leading axis."""

    thrusts: Array  # (orders, rotors) [N/s^k]
    tilts: Array  # (orders, rotors) angles of the servos [rad/s^k], zero of rotors that are fixed
    left: Array  # (orders, 6) of the body-fixed wrench on the base, what rotors cannot give


class Rotors:
    """The rotors of one base."""

    def __init__(self, rotors: Sequence[Rotor]) -> None:
        """Put rotors together; ModelError where there are none, or names repeat."""
        self.rotors = tuple(rotors)
        self.names = tuple(rotor.name for rotor in self.rotors)
        if not self.rotors or len(set(self.names)) < len(self.names):
            raise ModelError(f"rotors need names of their own, one at least; found {list(self.names)}")

    @cached_property
    def allocation(self) -> Array:
        """The matrix G (6, columns) from thrusts to the body-fixed wrench on the base.

        A rotor has a column; one that tilts two, of the thrust along z and of that along -y of its frame.
        """
        columns = []
        for rotor in self.rotors:
            carry = Ad(inverse(rotor.pose)).T
            columns.append(carry @ [0.0, 0.0, rotor.drag, 0.0, 0.0, 1.0])
            if rotor.tilts:
                columns.append(carry @ [0.0, -rotor.drag, 0.0, 0.0, -1.0, 0.0])
        return np.column_stack(columns)

    @cached_property
    def _inverse(self) -> Array:
        """The pseudo-inverse of the allocation, lengths in units of the longest lever."""
        levers = [float(np.linalg.norm(rotor.pose[:3, 3])) for rotor in self.rotors]
        scale = np.repeat([1.0 / (max(levers) or 1.0), 1.0], 3)
        return np.asarray(np.linalg.pinv(scale[:, None] * self.allocation, rcond=_RANK) * scale)

    @finite_result
    def motion(self, base_wrench: ArrayLike, base: BaseMotion | None = None) -> RotorMotion:
        """Return thrusts and tilts that give the base a wrench, with their time derivatives.

        `base_wrench` (orders, 6), or a batch (N, orders, 6), body-fixed, about the base's origin; or, where
        `base` says how the base moves, in the world frame, as `inverse_dynamics` returns it. Of more rotors
        than needed the thrusts are the least, `sum f^2`. Raises SingularError naming a rotor that tilts and
        has no thrust, so that its direction is open, and InputError for wrong shapes.
        """
        shapes = "(orders, 6) or (N, orders, 6)"
        wrench = real_array("the base wrench", base_wrench, shapes)
        if wrench.ndim not in (2, 3) or wrench.shape[-1] != 6 or not wrench.shape[-2]:
            raise InputError(f"the base wrench must have shape {shapes}, found {wrench.shape}")
        check_finite("the base wrench", wrench)
        if base is not None:
            wrench = base.wrenches_in_body(wrench)
        parts = wrench @ self._inverse.T
        left = wrench - parts @ self.allocation.T
        thrusts = np.zeros((*parts.shape[:-1], len(self.rotors)))
        tilts, column = np.zeros_like(thrusts), 0
        for i, rotor in enumerate(self.rotors):
            if not rotor.tilts:
                thrusts[..., i] = parts[..., column]
            else:
                along, across = (to_taylor(np.moveaxis(parts[..., column + k], -1, 0)) for k in range(2))
                for to, jet in zip((thrusts, tilts), _polar(along, across, rotor.name)):
                    to[..., i] = np.moveaxis(to_derivatives(jet), 0, -1)
            column += 1 + rotor.tilts
        return RotorMotion(thrusts, tilts, left)

    def wrench(self, thrusts: ArrayLike, tilts: ArrayLike | None = None) -> Array:
        """Return the body-fixed wrench (6,) on the base from thrusts (rotors,) [N] and tilts [rad]."""
        count = len(self.rotors)
        f = finite_array("the thrusts", thrusts, (count,))
        angles = np.zeros(count) if tilts is None else finite_array("the tilts", tilts, (count,))
        parts: list[float] = []
        for rotor, force, angle in zip(self.rotors, f, angles):
            parts += [force * np.cos(angle), force * np.sin(angle)] if rotor.tilts else [force]
        result: Array = self.allocation @ np.array(parts)
        return result

    @finite_result
    def speeds(self, thrusts: ArrayLike) -> Array:
        """Return the speeds (orders, rotors) [rad/s^(k+1)] of rotors from their thrusts, `f = c_f omega^2`.

        Raises InputError naming a rotor without a coefficient, or whose thrust is not above zero.
        """
        values = real_array("the thrusts", thrusts, f"(orders, {len(self.rotors)})")
        if values.ndim != 2 or values.shape[1] != len(self.rotors) or not len(values):
            raise InputError(
                f"the thrusts must have shape (orders, {len(self.rotors)}), found {values.shape}"
            )
        check_finite("the thrusts", values)
        squares = np.empty_like(values)
        for i, rotor in enumerate(self.rotors):
            if rotor.coefficient is None:
                raise InputError(f"rotor {rotor.name!r} has no coefficient c_f, which its speed needs")
            if not values[0, i] > 0.0:
                raise InputError(
                    f"the thrust of rotor {rotor.name!r} is {values[0, i]} N, which no speed gives"
                )
            squares[:, i] = values[:, i] / rotor.coefficient
        return to_derivatives(power(to_taylor(squares), 0.5))

    def check(self, motion: RotorMotion) -> list[str]:
        """Return a line for every limit of a rotor that a motion, of one sample or a batch, exceeds."""
        lines = []
        thrusts = motion.thrusts if motion.thrusts.ndim == 3 else motion.thrusts[None]
        for i, rotor in enumerate(self.rotors):
            values = thrusts[:, 0, i]
            if values.min() < rotor.least:
                lines.append(
                    f"rotor {rotor.name!r}: {values.min():.4g} N, and {rotor.least:g} N is the least"
                )
            if values.max() > rotor.most:
                lines.append(f"rotor {rotor.name!r}: {values.max():.4g} N, and {rotor.most:g} N is the most")
            rate = float(np.abs(thrusts[:, 1, i]).max()) if thrusts.shape[1] > 1 else 0.0
            if rate > rotor.rate:
                lines.append(f"rotor {rotor.name!r}: {rate:.4g} N/s, and {rotor.rate:g} N/s is the most")
        return lines


def _polar(along: Array, across: Array, name: str) -> tuple[Array, Array]:
    """Return jets of length and angle of a vector from those of its components."""
    squares = multiply(along, along) + multiply(across, across)
    if not (squares[0] > _IDLE**2).all():
        raise SingularError(f"rotor {name!r} tilts and has no thrust, so where it points is open", inf)
    length = power(squares, 0.5)
    angle = np.empty_like(length)
    angle[0] = np.arctan2(across[0], along[0])
    if len(angle) > 1:
        shape = (-1, *[1] * (along.ndim - 1))
        steps = np.arange(1, len(angle), dtype=np.float64).reshape(shape)
        # alpha' = (x y' - y x') / (x^2 + y^2)
        turn = multiply(along[:-1], across[1:] * steps) - multiply(across[:-1], along[1:] * steps)
        angle[1:] = multiply(turn, power(squares[:-1], -1.0)) / steps
    return length, angle
