"""Robots of the oracles' trees and cases, the Panda, and how close two stacks of derivatives are."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from oracles.cases import Case
from oracles.motions import Load
from oracles.random_trees import Tree

from hodyn_ros import AppliedWrench, BaseMotion, Robot, share


@cache
def panda() -> Robot:
    """Return the Panda of the package, which all tests of a worker share with what is compiled for it."""
    return Robot.load(share.find("config", "panda.yaml"))


def six_joint_arm() -> Robot:
    """Return an arm with a spherical wrist, singular where joint 5 is at zero and the elbow is stretched."""
    z, y, x = np.eye(3)[::-1]
    points = np.array([[0, 0, 0], [0, 0, 0.4], [0, 0, 0.8], [0.4, 0, 0.8], [0.4, 0, 0.8], [0.4, 0, 0.8]])
    screws = [np.concatenate([e, np.cross(p, e)]) for e, p in zip((z, y, y, x, y, x), points, strict=True)]
    return serial_robot(screws, [*points[:5], (0.5, 0.0, 0.8)])


def serial_robot(screws: Sequence[np.ndarray], origins: Sequence[Sequence[float]]) -> Robot:
    """Return a serial robot with some masses, its bodies in world axes at their origins."""
    n = len(screws)
    placements = np.tile(np.eye(4), (n, 1, 1))
    placements[:, :3, 3] = origins
    inertias = np.tile(np.eye(3), (n, 1, 1))
    return Robot.from_screws(range(-1, n - 1), screws, placements, np.ones(n), np.zeros((n, 3)), inertias)


def of_tree(tree: Tree) -> Robot:
    """Return the robot of a tree."""
    return Robot.from_screws(**tree.arguments())


def robot_of(case: Case) -> tuple[Robot, BaseMotion | None]:
    """Return the robot of a case, and the motion of its base where that floats."""
    base = case.base
    return of_tree(case.tree), None if base is None else BaseMotion(
        base.pose, base.twists, representation=base.representation
    )


def wrenches_of(loads: Sequence[Load]) -> list[AppliedWrench]:
    """Return loads of the oracles as the robot takes them."""
    return [AppliedWrench(load.body, load.values, representation=load.representation) for load in loads]


def closeness(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest error of any order, relative to the largest number of that order."""
    assert found.shape == expected.shape
    axes = tuple(range(1, expected.ndim))
    return float((np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)).max())
