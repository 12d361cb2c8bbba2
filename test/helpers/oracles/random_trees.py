"""Random robots: trees with every joint kind, arbitrary axes and placements, dense inertias, both bases."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KINDS = ("revolute", "prismatic", "helical")


@dataclass(frozen=True, eq=False)
class Tree:
    """The arguments of `Robot.from_screws`, as plain arrays.

    Screws are (n, 6) in the world frame at the zero configuration, angular part first; the row of a floating
    base is zero. Placements are (n, 4, 4), inertias (n, 3, 3) about the centre of mass in body axes.
    """

    parents: tuple[int, ...]
    screws: Array
    placements: Array
    masses: Array
    coms: Array
    inertias: Array
    gravity: Array
    floating_base: bool

    @classmethod
    def of(cls, model: Any) -> Tree:
        """Return the arrays of a model of hodyn_ros."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)})

    @property
    def n_bodies(self) -> int:
        return len(self.parents)

    @property
    def n_joints(self) -> int:
        return len(self.parents) - int(self.floating_base)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `Robot.from_screws`."""
        return dict(vars(self))

    def rounded(self, rng: np.random.Generator, rounding: float) -> Tree:
        """Return the robot with every number of it rounded once; of a body mass and inertia together."""

        def near(values: Array) -> Array:
            return values * (1.0 + rounding * rng.uniform(-1.0, 1.0, size=values.shape))

        growth = near(np.ones(self.n_bodies))
        return replace(
            self,
            screws=near(self.screws),
            placements=near(self.placements),
            masses=growth * self.masses,
            coms=near(self.coms),
            inertias=growth[:, None, None] * self.inertias,
        )

    def with_gravity(self, gravity: Array) -> Tree:
        """Return the same bodies and joints under another gravity."""
        return replace(self, gravity=np.asarray(gravity, dtype=float))

    def moved(self, pose: Array) -> Tree:
        """Return the same robot described in a world frame that is moved: `pose` (4, 4) maps old to new."""
        rotation, shift = pose[:3, :3], pose[:3, 3]
        angular = self.screws[:, :3] @ rotation.T
        linear = self.screws[:, 3:] @ rotation.T + np.cross(np.broadcast_to(shift, angular.shape), angular)
        return replace(
            self,
            screws=np.hstack([angular, linear]),
            placements=pose @ self.placements,
            gravity=rotation @ self.gravity,
        )


def unit_vector(rng: np.random.Generator) -> Array:
    """Return a direction (3,), uniform on the sphere."""
    vector: Array = rng.normal(size=3)
    vector /= np.linalg.norm(vector)
    return vector


def random_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation matrix (3, 3), from a random unit quaternion."""
    quaternion = rng.normal(size=4)
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_pose(rng: np.random.Generator, reach: float = 1.0) -> Array:
    """Return a pose (4, 4) with its origin within about `reach` metres."""
    pose = np.eye(4)
    pose[:3, :3] = random_rotation(rng)
    pose[:3, 3] = reach * rng.uniform(-1.0, 1.0, size=3)
    return pose


def random_screw(rng: np.random.Generator, kind: str, near: Array) -> Array:
    """Return a unit joint screw (6,) in the world frame, with its axis within decimetres of `near` (3,)."""
    axis = unit_vector(rng)
    if kind == "prismatic":
        return np.concatenate([np.zeros(3), axis])
    point = near + rng.uniform(-0.1, 0.1, size=3)
    pitch = rng.choice([-1.0, 1.0]) * rng.uniform(0.02, 0.2) if kind == "helical" else 0.0
    return np.concatenate([axis, np.cross(point, axis) + pitch * axis])


def random_inertia(rng: np.random.Generator, mass: float) -> Array:
    """Return an inertia (3, 3) about the centre of mass that some real distribution of the mass has.

    It is the inertia of a cloud of points, so its principal moments satisfy the triangle inequality.
    """
    points = rng.uniform(0.03, 0.2, size=3) * rng.normal(size=(8, 3))
    points -= points.mean(axis=0)
    points = points @ random_rotation(rng).T
    second_moment = points.T @ (mass / len(points) * points)
    second_moment = 0.5 * (second_moment + second_moment.T)
    inertia: Array = np.trace(second_moment) * np.eye(3) - second_moment
    return inertia


def random_tree(
    rng: np.random.Generator | int,
    n_bodies: int,
    *,
    floating_base: bool = False,
    kinds: tuple[str, ...] = KINDS,
    branching: float = 0.3,
) -> Tree:
    """Build a random robot.

    `branching` is the probability that a body hangs on a random earlier body rather than on the last one; 0
    gives a serial chain. Joint kinds are drawn from `kinds`. The gravity has a random direction and 9.81
    m/s^2.
    """
    rng = np.random.default_rng(rng)
    parents: list[int] = []
    screws = np.zeros((n_bodies, 6))
    placements = np.zeros((n_bodies, 4, 4))
    for i in range(n_bodies):
        lowest = 0 if floating_base else -1
        parent = int(rng.integers(lowest, i)) if i > 0 and rng.random() < branching else i - 1
        parents.append(parent)
        origin = placements[parent][:3, 3] if parent >= 0 else np.zeros(3)
        placements[i] = random_pose(rng)
        placements[i][:3, 3] = origin + rng.uniform(0.1, 0.5) * unit_vector(rng)
        if i > 0 or not floating_base:
            screws[i] = random_screw(rng, str(rng.choice(kinds)), placements[i][:3, 3])
    masses = rng.uniform(0.2, 5.0, size=n_bodies)
    return Tree(
        parents=tuple(parents),
        screws=screws,
        placements=placements,
        masses=masses,
        coms=rng.uniform(-0.15, 0.15, size=(n_bodies, 3)),
        inertias=np.array([random_inertia(rng, mass) for mass in masses]),
        gravity=9.81 * unit_vector(rng),
        floating_base=floating_base,
    )
