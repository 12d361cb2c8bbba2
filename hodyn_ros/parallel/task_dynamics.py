"""Forward dynamics in task space, of any order."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.parallel.compiled import Setting
from hodyn_ros.parallel.drive_forces import check_holding
from hodyn_ros.parallel.inputs import Loads
from hodyn_ros.parallel.platform_code import allowed_twists, center
from hodyn_ros.parallel.solver import Solver
from hodyn_ros.se3 import Array


def forward_dynamics(
    solver: Solver, pose: Array, twist: Array, forces: Array, loads: Loads | None, seed: ArrayLike | None
) -> Array:
    """Return twist and derivatives (order + 2, 6) in the world frame from forces (order + 1, driven).

    `J_IK^T u = M_t V_t' + ...` (Mueller et al., eq. 1): the derivative of order k of the left side minus that
    of the inverse dynamics with `V_t^(k+1) = 0` is `M_t V_t^(k+1)`. The mass matrix, the same at every order,
    comes column by column from unit accelerations.
    """
    order, n = len(forces) - 1, forces.shape[1]
    basis = _world_basis(solver)
    twists = np.zeros((order + 2, 6))
    twists[0] = twist
    inverse_mass: Array | None = None
    for k in range(order + 1):
        kernel = solver.kernel(k, Setting("world", loads is not None, what="task"))
        applied = [load[: k + 1] for load in loads or ()]
        result = solver.run(kernel, pose, twists[: k + 2], applied, "world", seed if k == 0 else None)
        bias, jacobians = result[kernel.task_force], result[kernel.jacobians].reshape(k + 1, n, -1)
        if inverse_mass is None:
            check_holding(jacobians[0])
            columns = []
            for direction in basis.T:
                unit = solver.run(kernel, pose, np.stack([twist, direction]), applied, "world", None)
                columns.append(unit[kernel.task_force][0] - bias[0])
            inverse_mass = np.linalg.inv(np.stack(columns, axis=1))
        driving = sum(comb(k, i) * (forces[k - i] @ jacobians[i]) for i in range(k + 1))
        twists[k + 1] = basis @ (inverse_mass @ (driving - bias[k]))
    return twists


def _world_basis(solver: Solver) -> Array:
    """Return the basis (6, delta) of task velocities in the kernels as twists in the world frame."""
    basis = allowed_twists(solver.model).copy()
    basis[3:] += np.cross(center(solver.model), basis[:3], axisb=0).T
    return basis
