"""How accurate the derivatives of a joint motion are that inverse kinematics has found near a singular pose.

Every order solves with the Jacobian once more, and with a Jacobian whose derivatives come from the orders
before. An error of the position, itself the rounding of the pose times the condition number c, so grows by c
with every order: of derivative r no more than a share of `c^(r + 1)` times the rounding may be wrong. That is
seldom reached. Where it would be too much, the motion is found again from a pose and twists that differ by
their rounding, at the position in the direction that the Jacobian feels least.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.digits import FEWEST, is_asked_for
from hodyn_ros.dynamics.kinematics.carriers import FrameMotion
from hodyn_ros.dynamics.kinematics.rate_solver import condition_number, scale_of, solve_rates
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.lie.se3 import Array

ACCURACY = 10.0**-FEWEST  # share of a derivative that may be wrong
_ROUNDING = 4.0 * float(np.finfo(float).eps)
_SAFETY = 10.0


def check_accuracy(
    motion: FrameMotion,
    found: Array,
    wanted: Array,
    rows: Array,
    movable: list[int],
    weights: Array,
) -> None:
    """Reject joint motions (order + 1, joints) that are too inaccurate; arguments as in `solve_rates`.

    `motion`: at the position found.

    Raises SingularError that names the condition number and the order.
    """
    if is_asked_for():
        return
    condition = condition_number(motion, rows, movable)
    orders = np.arange(1, len(found))
    if condition ** (orders[-1] + 1.0) * _ROUNDING <= ACCURACY:
        return
    nearby, change = found.copy(), np.zeros(found.shape[1])
    change[movable] = _hardly_felt(motion, rows, movable)
    signs = np.where(np.arange(wanted.size).reshape(wanted.shape) % 2, 1.0, -1.0)
    rounded = wanted * (1.0 + _ROUNDING * signs)
    prescribed = found[1:].copy()
    prescribed[:, movable] = 0.0
    try:
        nearby[1:] = solve_rates(motion.beside(change), rounded, rows, movable, weights, prescribed)
    except (InputError, ConvergenceError):  # not even this can be followed any more
        nearby[1:] = np.inf
    sizes = np.abs(found[1:]).max(axis=1)
    natural = np.max(sizes ** (1.0 / orders)) ** orders  # of a motion as fast as this one
    errors = _SAFETY * np.abs(nearby - found)[1:].max(axis=1)
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
    change: Array = right[-1] * (_ROUNDING * size * motion.gain / values[-1])
    return change
