"""The robots that are timed, and motions for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros import Robot, share
from hodyn_ros.lie.se3 import exp

Array = NDArray[np.float64]

_AXES = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
_LENGTH = 0.12  # of a link [m]


def panda() -> Robot:
    """Return the 7-joint arm."""
    return Robot.load(share.find("config", "panda.yaml"))


def aerial_manipulator() -> Robot:
    """Return the floating robot of Ali et al., Table 3: 7 bodies."""
    return Robot.load(share.find("config", "aerial_manipulator.yaml"))


def tree(arms: int, links: int, *, floating_base: bool) -> Robot:
    """Return a base with arms of that many links, the aerial manipulator of Ali et al. made larger.

    On the ground the base turns about the vertical axis.
    """
    parents, screws, placements = [-1], [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]], [np.eye(4)]
    for arm in range(arms):
        angle = 2.0 * np.pi * arm / arms
        at = np.array([0.09 * np.cos(angle), 0.09 * np.sin(angle), -0.1])
        for link in range(links):
            axis = _AXES[link % 3]
            parents.append(len(parents) - 1 if link else 0)
            screws.append([*axis, *np.cross(at, axis)])
            placements.append(np.eye(4))
            placements[-1][:3, 3] = at
            at = at - [0.0, 0.0, _LENGTH]
    if floating_base:
        screws[0] = [0.0] * 6
    n = len(parents)
    return Robot.from_screws(
        parents=parents,
        screws=screws,
        placements=placements,
        masses=[2.5] + [0.25] * (n - 1),
        coms=[[0.0, 0.0, 0.0]] + [[0.0, 0.0, -0.5 * _LENGTH]] * (n - 1),
        inertias=[np.diag([0.03, 0.03, 0.05])] + [np.diag([0.002, 0.002, 0.001])] * (n - 1),
        floating_base=floating_base,
        name=f"tree of {n} bodies",
    )


def chain(bodies: int) -> Robot:
    """Return a serial arm on the ground of that many bodies."""
    return tree(1, bodies - 1, floating_base=False)


def samples(argument: str, shape: tuple[int, ...], count: int, rng: np.random.Generator) -> Array:
    """Return `count` random values (count, *shape) of an argument of a kernel."""
    if argument == "pose":
        poses: Array = np.array([exp(rng.uniform(-1.0, 1.0, size=6)) for _ in range(count)])
        return poses
    return rng.uniform(-1.0, 1.0, size=(count, *shape))
