"""A humanoid tree as in Garofalo et al., section VII: 25 revolute joints on a torso."""

from __future__ import annotations

import numpy as np

from hodyn_ros import Robot

_LEG = ("z", "x", "y", "y", "y", "x")
_ARM = ("y", "x", "z", "y", "z", "x")
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def humanoid() -> Robot:
    """Return a waist, two legs and two arms of six joints each; lengths and masses of a small person."""
    parents, axes, origins, masses = [-1], ["z"], [np.array([0.0, 0.0, 1.0])], [20.0]

    def limb(joints: tuple[str, ...], at: np.ndarray, length: float, mass: float) -> None:
        for i, axis in enumerate(joints):
            parents.append(len(parents) - 1 if i else 0)
            axes.append(axis)
            origins.append(at - [0.0, 0.0, length * i])
            masses.append(mass)

    for side in (-1.0, 1.0):
        limb(_LEG, np.array([0.0, 0.1 * side, 0.95]), 0.15, 3.0)
        limb(_ARM, np.array([0.0, 0.25 * side, 1.4]), 0.11, 1.5)
    n = len(parents)
    placements = np.tile(np.eye(4), (n, 1, 1))
    placements[:, :3, 3] = origins
    directions = np.array([_AXES[axis] for axis in axes])
    return Robot.from_screws(
        parents=parents,
        screws=np.hstack([directions, np.cross(origins, directions)]),
        placements=placements,
        masses=masses,
        coms=[[0.01, 0.0, 0.2]] + [[0.01, 0.005, -0.06]] * (n - 1),
        inertias=[np.diag([0.8, 0.6, 0.3])] + [np.diag([0.01, 0.012, 0.004])] * (n - 1),
        name="humanoid of 25 joints",
    )
