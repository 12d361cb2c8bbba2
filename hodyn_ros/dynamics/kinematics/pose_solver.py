"""Geometric inverse kinematics: joint positions from the poses of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from hodyn_ros.checks import check_result
from hodyn_ros.dynamics.kinematics.carriers import FrameMotion
from hodyn_ros.dynamics.kinematics.rate_solver import scale_of
from hodyn_ros.engine.recursions.frame_goals import DAMPING, TOLERANCE
from hodyn_ros.errors import ConvergenceError, SingularError
from hodyn_ros.lie.representations import turning
from hodyn_ros.lie.se3 import Ad, Array, inverse, log, matvec

Task = Literal["pose", "position", "orientation"]
Frames = TypeVar("Frames", bound=FrameMotion)
ROWS: dict[Task, slice] = {"pose": slice(0, 6), "position": slice(3, 6), "orientation": slice(0, 3)}
"""The components of a hybrid twist that a task prescribes."""

_ROUNDING = 1e-3  # share of the tolerance
_ITERATIONS = 200
_PATIENCE = 20  # iterations after which the error must have fallen, or a pose is out of reach
_FALLEN = 0.99


def components(tasks: Sequence[Task]) -> Array:
    """Return the rows of stacked hybrid twists (6 F,) that tasks prescribe."""
    return np.concatenate([6 * f + np.arange(6)[ROWS[task]] for f, task in enumerate(tasks)])


def solve_poses(
    motion: Frames,
    poses: Array,
    *,
    movable: list[int],
    weights: Array,
    tasks: Sequence[Task],
) -> Frames:
    """Find frames beside those of `motion` that stand at poses (F, 4, 4) in the world.

    Levenberg and Marquardt's method, with a damping that goes with the square of the
    error, so that it ends as Newton's method, with quadratic convergence. Each step is the least in the norm
    that `weights` (joints,) give, of the joints `movable`. Raises ConvergenceError with what is missing.

    T. Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method" (2011).
    """
    rows = components(tasks)
    scale = scale_of(motion)[rows]
    tolerance = (
        motion.gain * TOLERANCE * max(1.0, float(np.linalg.norm(poses[:, :3, 3], axis=1).max()) / motion.unit)
    )
    roots = np.sqrt(weights[movable] / weights[movable].mean())
    error = scale * _errors(motion.poses, poses, tasks)
    damping = DAMPING
    sizes: list[float] = []
    for _ in range(_ITERATIONS):
        size = float(np.linalg.norm(error))
        arrived = size <= tolerance
        sizes.append(size)
        if not arrived and len(sizes) > _PATIENCE and size > _FALLEN * sizes[-1 - _PATIENCE]:
            break
        jacobian = scale[:, None] * motion.jacobians[0][rows][:, movable] / roots
        check_result(jacobian, error)
        step = _damped_solution(jacobian, error, damping * size**2) / roots
        change = np.zeros(motion.jacobians[0].shape[1])
        change[movable] = step
        moved, result = _beside(motion, change), None
        if moved is not None:
            result = scale * _errors(moved.poses, poses, tasks)
        # once arrived, go on only as long as it pays; what is rounding may halve by chance
        pays = 0.0 if size <= _ROUNDING * tolerance else 0.5 * size
        bound = pays if arrived else size
        if moved is not None and result is not None and float(np.linalg.norm(result)) < bound:
            motion, error = moved, result
            damping = max(damping / 4.0, DAMPING)
        elif arrived:
            return motion
        elif moved is not None and np.array_equal(moved.position, motion.position):
            break
        else:
            damping *= 8.0
    missing = np.array([_missing(*each) for each in zip(motion.poses, poses, tasks)])
    angle, distance = (float(most) for most in missing.max(axis=0))
    raise ConvergenceError(
        f"no joint positions were found near the seed that bring {motion.name!r} to the "
        f"{' and '.join(dict.fromkeys(tasks))} asked for; "
        f"the nearest found is off by {angle:.3g} rad and {distance:.3g} m. Give a seed nearer to it, or a "
        "pose within reach",
        angle,
        distance,
    )


def _beside(motion: Frames, change: Array) -> Frames | None:
    """Return the frames there; None where loops do not close."""
    try:
        return motion.beside(change)
    except (ConvergenceError, SingularError):
        return None


def _errors(poses: Sequence[Array], targets: Array, tasks: Sequence[Task]) -> Array:
    return np.concatenate([_error(*each) for each in zip(poses, targets, tasks)])


def _error(pose: Array, target: Array, task: Task) -> Array:
    """Return what a task is away from its target, as a hybrid screw [rad, m], only the rows of the task."""
    if task == "pose":
        return matvec(Ad(turning(pose)), log(inverse(pose) @ target))
    rotation = log(turning(target) @ inverse(turning(pose)))[:3]
    return np.concatenate([rotation, target[:3, 3] - pose[:3, 3]])[ROWS[task]]


def _damped_solution(matrix: Array, vector: Array, damping: float) -> Array:
    """Return the x that makes `|A x - b|^2 + damping |x|^2` least, without damping the one of least norm."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    squares = values**2 + damping
    gains = np.divide(values, squares, out=np.zeros_like(values), where=squares > 0.0)
    solution: Array = right.T @ (gains * (left.T @ vector))
    return solution


def _missing(pose: Array, target: Array, task: Task) -> tuple[float, float]:
    """Return the angle [rad] and the distance [m] to the target, zero for what the task leaves free."""
    angle = float(np.linalg.norm(_error(pose, target, "orientation")))
    distance = float(np.linalg.norm(_error(pose, target, "position")))
    return (0.0 if task == "position" else angle), (0.0 if task == "orientation" else distance)
