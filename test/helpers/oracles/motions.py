"""Random motions, loads and torques as stacks of plain time derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oracles.random_trees import Array, Tree, random_pose

Frame = Literal["spatial", "body_fixed"]


@dataclass(frozen=True, eq=False)
class Base:
    """Motion of a floating base: pose (4, 4) of its body frame, twists (orders, 6) by order, angular part
    first.

    "spatial": spatial twists (world axes, point at the world origin); "body_fixed": body axes and origin.
    """

    pose: NDArray[Any]
    twists: NDArray[Any]
    representation: Frame

    def moved(self, pose: Array) -> Base:
        """Return the same motion described in a moved world frame: `pose` (4, 4) maps old to new."""
        twists = self.twists
        if self.representation == "spatial":
            angular = twists[:, :3] @ pose[:3, :3].T
            linear = twists[:, 3:] @ pose[:3, :3].T
            linear = linear + np.cross(np.broadcast_to(pose[:3, 3], angular.shape), angular)
            twists = np.hstack([angular, linear])
        return replace(self, pose=pose @ self.pose, twists=twists)


@dataclass(frozen=True, eq=False)
class Load:
    """Wrench that the environment applies to a body, with its derivatives (orders, 6): moment first, then
    force.

    "spatial": world axes, moment about the world origin; "body_fixed": body axes, about the body origin.
    """

    body: int
    values: NDArray[Any]
    representation: Frame


def random_stack(rng: np.random.Generator | int, orders: int, n: int, rate: float = 1.5) -> Array:
    """Return random derivatives (orders, n), of about rate^k at order k, as a motion of that bandwidth."""
    rng = np.random.default_rng(rng)
    return rng.uniform(-1.0, 1.0, size=(orders, n)) * rate ** np.arange(orders)[:, None]


def random_motion(rng: np.random.Generator | int, tree: Tree, order: int, rate: float = 1.5) -> Array:
    """Return joint positions and derivatives (order + 3, n), enough for torques of that order."""
    return random_stack(rng, order + 3, tree.n_joints, rate)


def random_base(rng: np.random.Generator | int, order: int, frame: Frame, rate: float = 1.5) -> Base:
    """Return a pose and twists (order + 2, 6), enough for torques of that order."""
    rng = np.random.default_rng(rng)
    return Base(pose=random_pose(rng), twists=random_stack(rng, order + 2, 6, rate), representation=frame)


def random_loads(
    rng: np.random.Generator | int, tree: Tree, order: int, count: int, magnitude: float = 10.0
) -> list[Load]:
    """Return wrenches (order + 1, 6) on random bodies, of either frame; a body may carry several."""
    rng = np.random.default_rng(rng)
    frames: tuple[Frame, Frame] = ("spatial", "body_fixed")
    return [
        Load(
            body=int(rng.integers(tree.n_bodies)),
            values=magnitude * random_stack(rng, order + 1, 6),
            representation=frames[int(rng.integers(2))],
        )
        for _ in range(count)
    ]
