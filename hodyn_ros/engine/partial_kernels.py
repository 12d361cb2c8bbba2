"""Partial derivatives of forward and hybrid dynamics, of any order: how they answer small changes.

Named as future work by Ali et al.: along the motion that is found, changes of torques follow from those of
the motion by the partial derivatives of inverse dynamics. With one factorisation of the mass matrix for all
orders, what is not given (accelerations, torques of joints whose motion is given) follows from what is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads, hybrid_arguments
from hodyn_ros.engine.kernels import solved_motion
from hodyn_ros.engine.matrix_kernels import partials_along
from hodyn_ros.engine.recursions.articulated import factorise, solve
from hodyn_ros.engine.series.vectors import Scalar, to_derivatives
from hodyn_ros.formulations.state_derivatives import respond
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True, eq=False)
class Responses:
    """The motion that hybrid dynamics finds, and how what is found changes with what is given.

    `q` (order + 3, n), `inputs` and `loads`: what inverse dynamics along that motion takes. `results` (order
    + 1, order + 3, m, m): the derivatives; `prescribed`: the velocities whose motion is given.
    """

    q: Stack
    inputs: Sequence[Stack]
    loads: Loads
    results: NDArray[Any]
    prescribed: Sequence[int]


def traced_responses(
    model: TreeModel, order: int, setting: KernelSpec | None, state: Stack, inputs: Stack, *stacks: Stack
) -> Responses:
    """Solve hybrid dynamics and differentiate it; arguments as of `hybrid_dynamics_derivatives`."""
    setting = setting or KernelSpec.of(model)
    first = 6 if setting.base else 0
    prescribed = [
        *(range(first) if setting.base_prescribed else ()),
        *(first + j for j in setting.prescribed),
    ]
    recursion, result = solved_motion(model, order, setting, state, inputs, stacks)
    rates = [
        [known if j in setting.prescribed else x for j, (x, known) in enumerate(zip(*rows))]
        for rows in zip(to_derivatives(result), inputs)
    ]
    q, along, loads = [*state, *rates], list(stacks), setting.loads
    if recursion.base is not None:
        pose, _, of_base, *wrenches = stacks
        series = zip(recursion.base.angular, recursion.base.velocity)
        along = [pose, to_derivatives([[*w, *v] for w, v in series][: order + 2]), *wrenches]
        if not setting.base_prescribed:  # the wrench on it stays as it is where the base moves
            along, loads = [*along, of_base], (*loads, (0, "spatial"))
    solved = partial(_solved, lost=recursion.lost)
    results = respond(partials_along(model, order, loads, q, along), prescribed, solved)
    return Responses(q, along, loads, results, prescribed)


def _solved(matrix: NDArray[Any], right: NDArray[Any], lost: Scalar) -> NDArray[Any]:
    """Return the x (..., f, c) with `A x = right` of a symmetric positive definite matrix (1, f, f)."""
    factor, columns = factorise(matrix[0].tolist(), lost), np.swapaxes(right, -1, -2)
    result = [solve(factor, columns[at].tolist()) for at in np.ndindex(columns.shape[:-1])]
    return np.swapaxes(np.array(result, dtype=object).reshape(columns.shape), -1, -2)


def hybrid_dynamics_derivatives(model: TreeModel, order: int, setting: KernelSpec | None = None) -> Traceable:
    """Trace `state (2, n), given (order + 1, n), ... -> rows of dx^(r)/dy^(k)`: k within r, from zero.

    x is what hybrid dynamics finds, y^(0) displacements, y^(1) velocities, y^(k + 2) derivative k of what is
    given. Arguments as of `hodyn_ros.engine.kernels.hybrid_dynamics`. With a floating base six entries of x
    and y stand before those of the joints: its body-fixed displacement, twist and the derivatives of that,
    and the body-fixed wrench on it. By default, of forward dynamics without applied wrenches.
    """

    def trace(state: Stack, inputs: Stack, *stacks: Stack) -> Stack:
        results = traced_responses(model, order, setting, state, inputs, *stacks).results
        rows: Stack = results.reshape(-1, results.shape[-1]).tolist()
        return rows

    return trace, hybrid_arguments(model, order, setting or KernelSpec.of(model))
