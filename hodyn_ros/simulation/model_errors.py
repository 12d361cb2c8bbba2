"""Robots that differ from their model, to see what a controller makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError


def with_scaled_inertia(robot: Robot, factors: ArrayLike) -> Robot:
    """Return the robot with masses and inertias of its bodies times `factors` (bodies,), or one for all."""
    tree = robot.tree
    table = np.broadcast_to(np.asarray(factors, dtype=np.float64), (tree.n_bodies,))
    if not ((table > 0.0) & np.isfinite(table)).all():
        raise InputError(f"inertias can only be scaled by positive factors, found {table}")
    masses, inertias = tree.masses * table, tree.inertias * table[:, None, None]
    return robot.with_tree(replace(tree, masses=masses, inertias=inertias))


def with_stiffness(robot: Robot, stiffness: ArrayLike) -> Robot:
    """Return the robot with other stiffnesses (n,) of its springs, or one for all; rigid ones stay rigid."""
    train = robot.require_drives()
    wanted = np.broadcast_to(np.asarray(stiffness, dtype=np.float64), train.stiffness.shape)
    table = np.where(train.elastic, wanted, np.inf)
    return robot.with_drives([replace(spec, stiffness=float(k)) for spec, k in zip(train.specs, table)])
