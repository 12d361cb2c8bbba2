"""Joint velocities and their derivatives from the twists of frames, order by order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.checks import check_result
from hodyn_ros.digits import is_asked_for
from hodyn_ros.dynamics.kinematics.carriers import FrameMotion
from hodyn_ros.engine.recursions.frame_goals import ACCURACY, INCONSISTENT, ROUNDING, SAFETY, SINGULAR
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Array


def scale_of(motion: FrameMotion) -> Array:
    """Return what rows (6 F,) of its hybrid Jacobians are multiplied by to have no dimension."""
    return np.tile(np.repeat([1.0, 1.0 / motion.unit], 3), len(motion.poses))


def condition_number(motion: FrameMotion, rows: Array, columns: Sequence[int]) -> float:
    """Return the condition number of some rows and columns of a hybrid Jacobian, without dimension."""
    scaled = motion.jacobians[0] * scale_of(motion)[:, None] * motion.sizes
    check_result(scaled)
    values = np.linalg.svd(scaled[rows][:, columns], compute_uv=False)
    largest = max(float(values[0]) * motion.gain, motion.natural)
    return float(largest / values[-1]) if values[-1] > 0.0 else float("inf")


def solve_rates(
    motion: FrameMotion,
    wanted: Array,
    rows: Array,
    movable: list[int],
    weights: Array,
    independent: Array,
) -> Array:
    """Find joint velocities and derivatives (order, joints) that give frames the twists wanted.

    `motion` is at the position; `wanted` (order, 6 F) hybrid twists, of which `rows` count; `independent`
    (order, joints) the rates of joints that are not `movable`. Mueller (2020), Algorithm 2: `S q^(r) =
    V^(r-1) - bias`, with one decomposition of S for all orders.

    Where movable joints are more than rows, `q'` is least in the norm `q'^T W q'`, so `W q' = S^T l`; both
    equations are differentiated, and at every order the multipliers `l^(r)` follow from the same matrix.

    Raises SingularError, and InputError where fewer joints cannot follow the twists.
    """
    jacobian, name = motion.jacobians[0], motion.name
    condition = condition_number(motion, rows, movable)
    if condition > SINGULAR:
        raise SingularError(
            f"the Jacobian of {name!r} is singular at this pose (condition number {condition:.3g}): its "
            "motion does not determine that of the joints; go around the pose, or prescribe less",
            condition,
        )
    scale = scale_of(motion)[rows]
    redundant = len(movable) > len(scale)
    # where the solution is determined the weights do not matter, and columns of one size keep its digits
    sizes = np.linalg.norm(scale[:, None] * jacobian[rows][:, movable], axis=0)
    roots = np.sqrt(weights[movable]) if redundant else sizes

    def weighted(matrix: Array) -> Array:
        weighted_matrix: Array = scale[:, None] * matrix[rows][:, movable] / roots
        return weighted_matrix

    left, values, right = np.linalg.svd(weighted(jacobian), full_matrices=False)
    multipliers: list[Array] = []
    for r, twist in enumerate(wanted):
        rates = independent[r].copy()
        missing = scale * (twist - motion.bias() - jacobian @ rates)[rows]
        known = np.zeros(len(movable))
        if redundant:
            transposed = [weighted(matrix).T for matrix in motion.jacobians]
            known = product_derivative(transposed, [*multipliers, np.zeros(len(scale))], r)
        components = (left.T @ missing - values * (right @ known)) / values
        rates[movable] += (known + right.T @ components) / roots
        multipliers.append(left @ (components / values))
        lost = missing - weighted(jacobian) @ (rates[movable] * roots)
        _check_followed(lost, np.concatenate([missing, scale * twist[rows]]), r, name)
        motion.extend(rates)
    return np.array(motion.rates)


def _check_followed(lost: Array, asked: Array, order: int, name: str) -> None:
    share = float(np.linalg.norm(lost)) / max(float(np.linalg.norm(asked)), np.finfo(float).tiny)
    if share > INCONSISTENT:
        what = "twist" if order == 0 else f"derivative {order} of the twist"
        raise InputError(
            f"the joints that carry {name!r} cannot follow the {what} asked for, a share of {share:.3g} is "
            "out of their reach: they are fewer than its components; prescribe less, or what they can do"
        )


def check_accuracy(
    motion: FrameMotion,
    result: Array,
    wanted: Array,
    rows: Array,
    movable: list[int],
    weights: Array,
) -> None:
    """Reject joint motions (order + 1, joints) that are too inaccurate; arguments as in `solve_rates`.

    `motion`: at the position found. Every order solves with the Jacobian once more, and with a Jacobian whose
    derivatives come from the orders before. An error of the position, itself the rounding of the pose times
    the condition number c, so grows by c with every order: of derivative r no more than a share of `c^(r +
    1)` times the rounding may be wrong. That is seldom reached. Where it would be too much, the motion is
    found again from a pose and twists that differ by their rounding, at the position in the direction that
    the Jacobian feels least.

    Raises SingularError that names the condition number and the order.
    """
    if is_asked_for():
        return
    condition = condition_number(motion, rows, movable)
    orders = np.arange(1, len(result))
    if condition ** (orders[-1] + 1.0) * ROUNDING <= ACCURACY:
        return
    nearby, change = result.copy(), np.zeros(result.shape[1])
    change[movable] = _hardly_felt(motion, rows, movable)
    signs = np.where(np.arange(wanted.size).reshape(wanted.shape) % 2, 1.0, -1.0)
    rounded = wanted * (1.0 + ROUNDING * signs)
    prescribed = result[1:].copy()
    prescribed[:, movable] = 0.0
    try:
        nearby[1:] = solve_rates(motion.beside(change), rounded, rows, movable, weights, prescribed)
    except (InputError, ConvergenceError):  # not even this can be followed any more
        nearby[1:] = np.inf
    sizes = np.abs(result[1:]).max(axis=1)
    natural = np.max(sizes ** (1.0 / orders)) ** orders  # of a motion as fast as this one
    errors = SAFETY * np.abs(nearby - result)[1:].max(axis=1)
    failing = np.flatnonzero(~(errors <= ACCURACY * natural))
    if len(failing):
        r, share = int(orders[failing[0]]), float(errors[failing[0]] / natural[failing[0]])
        raise SingularError(
            f"the Jacobian of {motion.name!r} is close to singular at this pose (condition number "
            f"{condition:.3g}): in derivative {r} of the joint motion a share of {share:.1g} would be "
            f"rounding, and {ACCURACY:g} is the most there may be; go around the pose, prescribe less, or "
            f"{f'ask for derivatives up to {r - 1}' if r > 1 else 'give no twists'}",
            condition,
            order=r - 1,
        )


def _hardly_felt(motion: FrameMotion, rows: Array, movable: list[int]) -> Array:
    """Return the change (movable,) of the position that a pose rounded off leaves undetermined."""
    jacobian = motion.jacobians[0]
    scaled = scale_of(motion)[rows, None] * jacobian[rows][:, movable]
    _, values, right = np.linalg.svd(scaled, full_matrices=False)
    size = max(1.0, float(np.abs(np.array(motion.poses)[:, :3, 3]).max()) / motion.unit)
    change: Array = right[-1] * (ROUNDING * size * motion.gain / values[-1])
    return change
