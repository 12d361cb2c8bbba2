"""Forward dynamics in task space, of any order."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.motion import twists_to_body, twists_to_world, wrenches_to_body
from hodyn_ros.parallel import reference
from hodyn_ros.parallel.compiled import Setting
from hodyn_ros.parallel.drive_forces import check_holding
from hodyn_ros.parallel.inputs import Loads
from hodyn_ros.parallel.platform_code import allowed_twists, center
from hodyn_ros.parallel.solver import HIGHEST_ORDER, Solver
from hodyn_ros.se3 import Array

# From twists (k + 2, 6) and loads: the force in task space (k + 1, delta), and J_IK (k + 1, driven, delta).
_TaskSpace = Callable[[Array, Loads | None], tuple[Array, Array]]


def forward_dynamics(
    solver: Solver, pose: Array, twist: Array, forces: Array, loads: Loads | None, seed: ArrayLike | None
) -> Array:
    """Return body-fixed twist and derivatives (order + 2, 6) from forces (order + 1, driven).

    By kernels, or by the published formulation for orders that are not compiled.
    """
    if len(forces) - 1 > HIGHEST_ORDER:
        task = _published(solver, pose, seed)
        return _accelerate(task, solver.model.dof, twist, forces, loads)
    task, start = _compiled(solver, pose, seed), twists_to_world(pose, twist[None])[0]
    return twists_to_body(pose, _accelerate(task, _world_basis(solver), start, forces, loads))


def _accelerate(task: _TaskSpace, basis: Array, twist: Array, forces: Array, loads: Loads | None) -> Array:
    """Return twist and derivatives (order + 2, 6) in the representation of `basis` (6, delta).

    `J_IK^T u = M_t V_t' + ...` (Mueller et al., eq. 1): the derivative of order k of the left side minus that
    of the inverse dynamics with `V_t^(k+1) = 0` is `M_t V_t^(k+1)`. The mass matrix, the same at every order,
    comes column by column from unit accelerations at rest.
    """
    orders = range(len(forces))
    twists = np.zeros((len(forces) + 1, 6))
    inverse_mass = None
    twists[0] = twist
    for k in orders:
        bias, jacobians = task(twists[: k + 2], loads)
        if inverse_mass is None:
            check_holding(jacobians[0])
            rest = np.zeros((2, 6))
            weight = task(rest, None)[0][0]
            columns = [task(np.stack([rest[0], direction]), None)[0][0] - weight for direction in basis.T]
            inverse_mass = np.linalg.inv(np.stack(columns, axis=1))
        driving = sum(comb(k, i) * (forces[k - i] @ jacobians[i]) for i in range(k + 1))
        twists[k + 1] = basis @ (inverse_mass @ (driving - bias[k]))
    return twists


def _compiled(solver: Solver, pose: Array, seed: ArrayLike | None) -> _TaskSpace:
    """Return task space by kernels, in the world frame."""
    starts = [seed]  # of the first run; the others go on from it

    def task(twists: Array, loads: Loads | None) -> tuple[Array, Array]:
        order = len(twists) - 2
        kernel = solver.kernel(order, Setting("world", loads is not None, what="task"))
        applied = [load[: order + 1] for load in loads or ()]
        start = starts.pop() if starts else None
        result = solver.run(kernel, pose, twists, applied, "world", start)
        jacobians = result[kernel.jacobians]
        return result[kernel.task_force], jacobians.reshape(order + 1, -1, solver.model.delta)

    return task


def _published(solver: Solver, pose: Array, seed: ArrayLike | None) -> _TaskSpace:
    """Return task space by the published formulation, in the platform frame."""
    positions = solver.locate(pose, seed)
    solver.remember(positions)

    def task(twists: Array, loads: Loads | None) -> tuple[Array, Array]:
        applied = np.zeros((len(twists) - 1, 6))
        if loads is not None:
            in_body, in_world = (load[: len(applied)] for load in loads)
            applied = in_body + wrenches_to_body(pose, twists, in_world)
        motions = reference.limb_motions(solver.model, positions, twists)
        found = reference.task_space(solver.model, motions, pose, twists, applied)
        return found.force, found.jacobians

    return task


def _world_basis(solver: Solver) -> Array:
    """Return the basis (6, delta) of task velocities in the kernels as twists in the world frame."""
    basis = allowed_twists(solver.model).copy()
    basis[3:] += np.cross(center(solver.model), basis[:3], axisb=0).T
    return basis
