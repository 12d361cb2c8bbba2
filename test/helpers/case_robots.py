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
