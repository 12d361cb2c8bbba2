"""Hybrid twists: world axes, at the body origin. Many estimators and simulators publish these."""

from __future__ import annotations

from hodyn_ros.motion import Stack
from hodyn_ros.representations import convert_screws
from hodyn_ros.se3 import Array


def twists_from_hybrid(pose: Array, hybrid_twists: Stack) -> Array:
    """Convert hybrid twists by order (orders, 6) to spatial ones, in world axes at the world origin.

    A hybrid twist is `(omega; p')` with the velocity of the body origin p in world axes; the spatial one is
    `(omega; p' + p × omega)`, differentiated with the product rule. `pose` (4, 4) holds p [m].

    Turning about the world's z axis, away from it:

    >>> import numpy as np
    >>> pose = np.eye(4); pose[:3, 3] = [1.0, 0.0, 0.0]
    >>> twists_from_hybrid(pose, np.array([[0.0, 0.0, 2.0, 0.0, 2.0, 0.0]]))
    array([[0., 0., 2., 0., 0., 0.]])
    """
    return convert_screws(hybrid_twists, pose, hybrid_twists, "hybrid", "spatial")
