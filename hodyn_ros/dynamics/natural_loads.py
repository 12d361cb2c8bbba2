"""Sizes of forces that are natural for a robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.digits import natural_rates
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import robot_size
from hodyn_ros.model.tree import TreeModel


def natural_loads(tree: TreeModel, rates: Sequence[float] | Array, orders: int) -> Array:
    """Return the sizes (orders,) of forces and moments, by order, natural for a robot that moves so fast.

    Of its whole mass at a lever of its size, or of a metre; `rates` as of `natural_rates`.
    """
    size = robot_size(tree)
    fast = natural_rates(rates, orders + 2)
    rise = fast[2:] * size + fast[:-2] * float(np.linalg.norm(tree.gravity))
    result: Array = rise * float(tree.masses.sum()) * size
    return result
