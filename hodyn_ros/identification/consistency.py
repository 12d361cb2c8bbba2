"""The parameters nearest to an estimate that bodies can have.

A body's parameters are those of a distribution of mass if and only if its pseudo-inertia
`[[tr(I)/2 - I, m c], [(m c)^T, m]]` is positive definite (Wensing, Kim & Slotine, IEEE RA-L 3(1), 2018): a
cone, so that the nearest ones are found for certain, by a conic programme.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.parameters import PER_BODY
from hodyn_ros.identification.torque_model import inertia_matrices

_SLIMMEST = 1e-4  # share of the size of the prior's pseudo-inertia that each eigenvalue has at least
_RIDGES = 0.0, 1e-9, 1e-7  # beside a metric with ones: rounding may leave hidden directions no size at all
_ROWS, _COLUMNS = np.triu_indices(4)
_ORDER = np.lexsort((_ROWS, _COLUMNS))  # column by column of the upper triangle, as the solver wants it


def pseudo_inertias(parameters: Array) -> Array:
    """Return pseudo-inertias (b, 4, 4) from parameters (10 b,)."""
    rows = parameters.reshape(-1, PER_BODY)
    inertias = inertia_matrices(rows)
    result = np.zeros((len(rows), 4, 4))
    result[:, :3, :3] = 0.5 * np.trace(inertias, axis1=1, axis2=2)[:, None, None] * np.eye(3) - inertias
    result[:, :3, 3] = result[:, 3, :3] = rows[:, 1:4]
    result[:, 3, 3] = rows[:, 0]
    return result


def are_bodies(parameters: Array) -> Array:
    """Return which of the bodies (b,) can be; one without mass can."""
    values = np.linalg.eigvalsh(pseudo_inertias(parameters))
    return np.asarray(values[:, 0] > 0.0) | (np.abs(parameters.reshape(-1, PER_BODY)).max(axis=1) == 0.0)


def nearest_bodies(estimate: Array, information: Array, prior: Array, lower: Array, bodies: int) -> Array:
    """Return parameters (P,) of bodies, then others above `lower` (P,), nearest to an estimate.

    `information` (P, P) is the metric; what has none is held at the estimate. What comes behind the first
    `bodies` parameters is bounded alone; -inf bounds nothing. Where the estimate is one already, it is
    returned as it is. Needs clarabel.
    """
    moving = np.flatnonzero(np.diag(information) > 0.0)
    free = [b for b in range(bodies // PER_BODY) if np.isin(PER_BODY * b + np.arange(PER_BODY), moving).any()]
    bounded = moving[(moving >= bodies) & np.isfinite(lower[moving])]
    if are_bodies(estimate[:bodies])[free].all() and (estimate[bounded] >= lower[bounded]).all():
        return estimate
    scale = 1.0 / np.sqrt(np.diag(information)[moving])
    metric = information[np.ix_(moving, moving)] * np.outer(scale, scale)
    unscaled = np.zeros((len(prior), len(moving)))
    unscaled[moving, np.arange(len(moving))] = scale
    rows, right = [-unscaled[bounded]], [estimate[bounded] - lower[bounded]]
    for body in free:
        shape, least = _cone(prior, body)
        places = slice(PER_BODY * body, PER_BODY * (body + 1))
        rows.append(-shape @ unscaled[places])
        right.append(shape @ estimate[places] - least)
    step = _solution(metric, np.concatenate(rows), np.concatenate(right), len(bounded), len(free))
    return np.asarray(estimate + unscaled @ step)


def _cone(prior: Array, body: int) -> tuple[Array, Array]:
    """Return L (10, 10) and l (10,): `L pi - l` is the triangle of a body's pseudo-inertia, scaled to one."""
    places = slice(PER_BODY * body, PER_BODY * (body + 1))
    before = pseudo_inertias(prior[places])[0]
    mass, second_moment = before[3, 3], np.trace(before[:3, :3])
    sizes = np.r_[np.full(3, 1.0 / np.sqrt(second_moment)), 1.0 / np.sqrt(mass)]
    each = pseudo_inertias(np.eye(PER_BODY)) * np.outer(sizes, sizes)
    weights = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))[_ORDER]
    triangles = each[:, _ROWS[_ORDER], _COLUMNS[_ORDER]] * weights
    unit = np.where(_ROWS == _COLUMNS, 1.0, 0.0)[_ORDER]
    return triangles.T, _SLIMMEST * unit


def _solution(metric: Array, rows: Array, right: Array, bounds: int, bodies: int) -> Array:
    """Minimise `x^T metric x` with `right - rows x` above zero, then in cones of 4 x 4 matrices."""
    import clarabel

    cones = [clarabel.NonnegativeConeT(bounds)] if bounds else []
    cones += [clarabel.PSDTriangleConeT(4)] * bodies
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = np.zeros(len(metric))
    for ridge in _RIDGES:
        upper = sparse.csc_matrix(np.triu(0.5 * (metric + metric.T) + ridge * np.eye(len(metric))))
        solver = clarabel.DefaultSolver(upper, nothing, sparse.csc_matrix(rows), right, cones, settings)
        result = solver.solve()
        if str(result.status) in ("Solved", "AlmostSolved"):
            return np.asarray(result.x)
    raise InputError(
        f"no robot with positive inertias is near to what was measured ({result.status}); move the "
        "joints more, or lower --trust"
    )
