"""Partial derivatives of dynamics with loops, as plans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.looped_partials import by_order
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_hessian import HessianCode
from hodyn_ros.engine.loops.loop_partials import PARTIALS, PartialCode
from hodyn_ros.export.loops.bodies import Body, Columns, along_directions
from hodyn_ros.export.loops.plan import Plan, compiled, said
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
        changes = by_order(self.law.changes(table)[:, : self.shape[2]], self.closure.n_coordinates)
        return {"derivatives": changes.reshape(len(changes), -1)}


def partial_derivatives(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan partial derivatives of efforts, or of accelerations."""
    closure, order, inverse = robot.structure, request.order, what.startswith("inverse")
    c, e = closure.n_coordinates, closure.n_efforts
    make = partial(PARTIALS["efforts" if inverse else "accelerations"], order=order)
    of = "inverse" if inverse else "forward"
    label = f"partial derivatives of {of} dynamics of order {order}"
    looped, kernel = compiled(robot, order, label, make, moves_mass=not inverse)
    of_base = (
        "Six rows of the body-fixed wrench on the base stand first"
        if inverse
        else "Columns k > 1 are first of the body-fixed wrench on the base"
    )
    says = [*said(robot, request, what), *_body_fixed(closure, of_base)]
    if e > c and not inverse:
        says.append(f"Columns beyond the first {c} are zero for k < 2.")
    near = (kernel.defect_at + 1, looped.near_singular_from(order)) if inverse else None
    shape = order + 1, order + 3, *((e, c) if inverse else (c, e))
    return _PartialsPlan(robot, request, looped, kernel, {}, says, near, of=of, shape=shape)


def inverse_hessian(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan second derivatives of a sum of efforts."""
    closure, order = robot.structure, request.order
    label = f"second derivatives of inverse dynamics of order {order}"
    looped, kernel = compiled(robot, order, label, partial(HessianCode, order=order))
    of_base = "The body-fixed wrench on the base comes before the efforts"
    says = [*said(robot, request, what), *_body_fixed(closure, of_base)]
    places = np.arange((order + 3) ** 2 * closure.n_coordinates**2).reshape(order + 3, -1)
    return Plan(robot, request, looped, kernel, {"hessian": places}, says)


def _body_fixed(closure: Closure, of_base: str) -> list[str]:
    """Say which derivatives are by displacements of base or platform."""
    if closure.leader is None:
        return []
    moved = "first by those of the base" if closure.base_prescribed else "last by those of the platform"
    if closure.platform is not None and not closure.base_prescribed:
        moved += f" in {' '.join(closure.platform.rows)}"
    said = f"Columns are {moved}: small body-fixed displacements (k = 0) and the body-fixed twist (k > 0)."
    return [said, f"{of_base}."] if closure.base_prescribed else [said]
