"""The robots of the oracles' cases, and how close two stacks of derivatives are."""

from __future__ import annotations

import numpy as np
from oracles.cases import Case

from hodyn_ros import BaseMotion, Robot


def robot_of(case: Case) -> tuple[Robot, BaseMotion | None]:
    """Return the robot of a case, and the motion of its base where that floats."""
    robot = Robot.from_screws(**case.tree.arguments())
    base = case.base
    return robot, None if base is None else BaseMotion(
        base.pose, base.twists, representation=base.representation
    )


def closeness(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest error of any order, relative to the largest number of that order."""
    assert found.shape == expected.shape
    axes = tuple(range(1, expected.ndim))
    return float((np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)).max())
