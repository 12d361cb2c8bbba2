"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices


class LoopedDynamics(LoopedEfforts, LoopedAccelerations, LoopedMatrices):
    """Motions, efforts, accelerations and matrices of a robot with couplings and loops."""
