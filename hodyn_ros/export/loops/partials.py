"""Partial derivatives of dynamics with loops, as plans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.looped_partials import by_order
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_hessian import HessianCode
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.engine.loops.loop_partials import PARTIALS, PartialCode
from hodyn_ros.export.loops.bodies import Body, Columns, along_directions
from hodyn_ros.export.loops.operations import forward_inputs
from hodyn_ros.export.loops.plan import Plan, about_motion, compiled, inputs_of
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


@dataclass(frozen=True, eq=False)
class _PartialsPlan(Plan):
    """Partial derivatives `(order + 1, order + 3, rows, columns)`; `of`: whose changes they are."""

    of: str = ""
    shape: tuple[int, ...] = ()

    @property
    def results(self) -> dict[str, Shape]:
        """Shapes of the arrays of results."""
        return {"derivatives": (self.shape[0], int(np.prod(self.shape[1:])))}

    def body(self, what: str, tables: Tables) -> Body:
        """Write what is computed."""
        law, (orders, blocks, rows, columns) = self.law, self.shape
        assert isinstance(law, PartialCode)
        per_order = law.extent[0] // orders
        of_row = [(r * blocks * rows + i) * columns for r in range(orders) for i in range(rows)]
        first = [self.closure.n_coordinates] * (blocks if self.of == "inverse" else 2)
        sizes = [*first, *[columns] * (blocks - len(first))]
        of_direction = [k * rows * columns + h for k, size in enumerate(sizes) for h in range(size)]
        kept = [r * per_order + i for r in range(orders) for i in range(rows)]
        places = Columns(of_direction, of_row, kept, law.extent[0], int(np.prod(self.shape)))
        near, name = self.singularity is not None, f"{self.of}_changes"
        return along_directions(law.end, self.arguments, places, near, name, what, tables)

    def results_in(self, table: Array) -> dict[str, Array]:
        """Return results from what the kernel returns."""
        assert isinstance(self.law, PartialCode)
        changes = self.law.changes(table)[:, : self.shape[2]]
        if self.of == "inverse":
            changes = changes.reshape(*changes.shape[:2], self.shape[1], -1).swapaxes(1, 2)
        else:
            changes = by_order(changes, self.closure.n_coordinates)
        return {"derivatives": changes.reshape(len(changes), -1)}


def inverse_derivatives(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan partial derivatives of efforts."""
    closure, order = robot.structure, request.order
    c, e = closure.n_coordinates, closure.n_efforts
    looped, kernel = _partials(robot, "efforts", order)
    about = [
        *about_motion(closure, order + 2),
        f"derivatives: matrix ({e}, {c}) by rows of effort derivative r (0 to {order}) by derivative k of "
        f"{_changed(closure)} (0 to {order + 2}), from [(r * {order + 3} + k) * {e * c}] on.",
        *_body_fixed(closure, "Six rows of the body-fixed wrench on the base stand first"),
    ]
    return _PartialsPlan(
        looped,
        kernel,
        inputs_of(closure, order + 2),
        {},
        about,
        (kernel.defect_at + 1, looped.near_singular_from(order)),
        of="inverse",
        shape=(order + 1, order + 3, e, c),
    )


def inverse_hessian(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan second derivatives of a sum of efforts."""
    closure, order = robot.structure, request.order
    c = closure.n_coordinates
    said = f"second derivatives of inverse dynamics of order {order}"
    looped, kernel = compiled(robot, order, said, partial(HessianCode, order=order))
    about = [
        *about_motion(closure, order + 2),
        f"multiplier: of the efforts and their derivatives up to order {order}.",
        f"hessian: matrix ({c}, {c}) by rows of second derivatives of the sum of multiplier times efforts by "
        f"derivatives k and l of {_changed(closure)} (0 to {order + 2}), from [(k * {order + 3} + l) * "
        f"{c * c}] on.",
        *_body_fixed(closure, "The body-fixed wrench on the base comes before the efforts"),
    ]
    places = np.arange((order + 3) ** 2 * c * c).reshape(order + 3, -1)
    inputs = {**inputs_of(closure, order + 2), "multiplier": (order + 1, closure.n_efforts)}
    return Plan(looped, kernel, inputs, {"hessian": places}, about)


def forward_derivatives(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan partial derivatives of accelerations."""
    closure, order = robot.structure, request.order
    c, e = closure.n_coordinates, closure.n_efforts
    inputs, about = forward_inputs(robot, request)
    looped, kernel = _partials(robot, "accelerations", order)
    about += [
        f"derivatives: matrix ({c}, {e}) by rows of acceleration derivative r (0 to {order}) by "
        f"{_changed(closure)} (k = 0), velocities (k = 1) and derivative k - 2 of the efforts, from "
        f"[(r * {order + 3} + k) * {c * e}] on.",
        *_body_fixed(closure, "Columns k > 1 are first of the body-fixed wrench on the base"),
    ]
    if e > c:
        about.append(f"Columns beyond the first {c} are zero for k < 2.")
    return _PartialsPlan(looped, kernel, inputs, {}, about, of="forward", shape=(order + 1, order + 3, c, e))


def _partials(
    robot: Robot, of: Literal["efforts", "accelerations"], order: int
) -> tuple[LoopedDynamics, LoopFunction]:
    """Compile partial derivatives; InputError where there is no such code."""
    said = f"partial derivatives of {'inverse' if of == 'efforts' else 'forward'} dynamics of order {order}"
    return compiled(robot, order, said, partial(PARTIALS[of], order=order))


def _changed(closure: Closure) -> str:
    """Say by what partial derivatives are."""
    return "the coordinates" if closure.leader is None else "coordinates and displacement"


def _body_fixed(closure: Closure, of_base: str) -> list[str]:
    """Say which derivatives are by displacements of base or platform."""
    if closure.leader is None:
        return []
    moved = "first by those of the base" if closure.base_prescribed else "last by those of the platform"
    if closure.platform is not None and not closure.base_prescribed:
        moved += f" in {' '.join(closure.platform.rows)}"
    said = f"Columns are {moved}: small body-fixed displacements (k = 0) and the body-fixed twist (k > 0)."
    return [said, f"{of_base}."] if closure.base_prescribed else [said]
