"""Parallel robots as plain arrays: Gough-Stewart platforms and planar 3-RRR mechanisms."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.random_trees import Array, Tree


@dataclass(frozen=True, eq=False)
class Parallel:
    """Limbs with the platform as their massless last body, and the platform by itself.

    `free` are the components of a twist in the world frame that the limbs leave to the platform; the others
    cannot move, and nothing is known about their reactions. `balanced` are those of them in which the
    platform is held by its joints at all.
    """

    limbs: tuple[Tree, ...]
    driven: tuple[tuple[int, ...], ...]
    mass: float
    com: Array
    inertia: Array
    placement: Array
    dof: Array
    gravity: Array
    free: tuple[int, ...]
    balanced: tuple[int, ...]

    def body(self) -> Tree:
        """Return the platform by itself, floating."""
        return Tree(
            (-1,),
            np.zeros((1, 6)),
            self.placement[None],
            np.array([self.mass]),
            self.com[None],
            self.inertia[None],
            self.gravity,
            True,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `ParallelRobot.from_screws`."""
        limbs = [
            {
                "screws": tree.screws,
                "placements": tree.placements[:-1],
                "masses": tree.masses[:-1],
                "coms": tree.coms[:-1],
                "inertias": tree.inertias[:-1],
                "driven": driven,
            }
            for tree, driven in zip(self.limbs, self.driven)
        ]
        platform = {
            "mass": self.mass,
            "com": self.com,
            "inertia": self.inertia,
            "placement": self.placement,
        }
        return {"limbs": limbs, "platform": platform, "platform_dof": self.dof, "gravity": self.gravity}

    @property
    def n_driven(self) -> int:
        return sum(len(driven) for driven in self.driven)

    def of_limbs(self, joints: Array) -> list[Array]:
        """Return by limb, from the ground on, what a robot has from the platform on, (..., joints)."""
        ends = np.cumsum([tree.n_joints for tree in self.limbs])
        return [part[..., ::-1] for part in np.split(joints, ends[:-1], axis=-1)]


def gough_stewart(seed: int | None = None) -> Parallel:
    """Return a 6-UPS platform; a seed disturbs its points, so that no two limbs are alike."""
    rng = np.random.default_rng(seed)
    noise = 0.0 if seed is None else 0.02
    gravity = np.array([0.0, 0.0, -9.81])
    placement = np.eye(4)
    placement[:3, 3] = (0.0, 0.0, 0.39)
    bottom = _ring(0.12, [20, 100, 140, 220, 260, 340]) + noise * rng.uniform(-1, 1, (6, 3))
    top = _ring(0.095, [40, 80, 160, 200, 280, 320]) + noise * rng.uniform(-1, 1, (6, 3))
    limbs = tuple(_ups(a, b + placement[:3, 3], gravity) for a, b in zip(bottom, top))
    return Parallel(
        limbs,
        ((2,),) * 6,
        mass=8.08,
        com=np.zeros(3) if seed is None else rng.uniform(-0.01, 0.01, 3),
        inertia=np.array([[0.0772, 3e-7, 1e-6], [3e-7, 0.0771, 5.6e-5], [1e-6, 5.6e-5, 0.1194]]),
        placement=placement,
        dof=np.eye(6),
        gravity=gravity,
        free=tuple(range(6)),
        balanced=tuple(range(6)),
    )


def planar_3rrr(side: float, gravity: tuple[float, float, float] = (0.0, -9.81, 0.0)) -> Parallel:
    """Return a planar 3-RRR with a triangular platform, or with a common hinge where its `side` is zero.

    With a hinge the platform has two degrees of freedom and three drives. By default the plane is upright.
    """
    down = np.array(gravity)
    bottom = _ring(0.9 / np.sqrt(3.0), [210, 330, 90])
    placement = np.eye(4)
    placement[:3, 3] = (0.03, -0.02, 0.0)
    top = _ring(side / np.sqrt(3.0), [210, 330, 90]) + placement[:3, 3]
    limbs = tuple(_rrr(a, b, down) for a, b in zip(bottom, top))
    in_plane = np.zeros((6, 3))
    in_plane[[2, 3, 4], [0, 1, 2]] = 1.0
    return Parallel(
        limbs,
        ((0,),) * 3,
        mass=0.1898,
        com=np.zeros(3),
        inertia=np.diag([5e-5, 5e-5, 1.0124e-4]),
        placement=placement,
        dof=in_plane if side else in_plane[:, 1:],
        gravity=down,
        free=(2, 3, 4),
        balanced=(2, 3, 4) if side else (3, 4),
    )


def _ring(radius: float, degrees: list[float]) -> Array:
    angles = np.radians(degrees)
    return radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)


def _ups(a: Array, b: Array, gravity: Array) -> Tree:
    """A universal joint at a, a slide along the leg, a spherical joint at b."""
    z = (b - a) / np.linalg.norm(b - a)
    x = np.cross([0.0, 0.0, 1.0], z)
    x = x / np.linalg.norm(x)
    y = np.cross(z, x)
    frame = np.stack([x, y, z], axis=1)
    screws = np.zeros((6, 6))
    for i, (axis, point) in enumerate([(x, a), (y, a), (z, None), (x, b), (y, b), (z, b)]):
        screws[i] = [0, 0, 0, *axis] if point is None else [*axis, *np.cross(point, axis)]
    placements = np.tile(np.eye(4), (6, 1, 1))
    placements[:5, :3, :3] = frame
    placements[:2, :3, 3] = a
    placements[2:5, :3, 3] = b
    placements[5, :3, 3] = (0.0, 0.0, 0.39)
    inertias = np.zeros((6, 3, 3))
    inertias[1] = np.diag([0.0249, 0.0251, 0.0032])
    inertias[2] = np.diag([0.00275, 0.00273, 0.000176])
    coms = np.zeros((6, 3))
    coms[1] = (0.001, 0.002, 0.1658)
    coms[2] = (0.0, -0.001, -0.1601)
    masses = np.array([0.0, 2.991, 0.553, 0.0, 0.0, 0.0])
    return Tree((-1, 0, 1, 2, 3, 4), screws, placements, masses, coms, inertias, gravity, False)


def _rrr(a: Array, b: Array, gravity: Array) -> Tree:
    """Two links of 0.4 m from a to b, the elbow to the right of the line."""
    line = b - a
    distance = float(np.linalg.norm(line))
    side = np.array([line[1], -line[0], 0.0]) / distance
    elbow = a + 0.5 * line + np.sqrt(0.4**2 - 0.25 * distance**2) * side
    screws = np.array([[0, 0, 1, *np.cross(point, (0, 0, 1))] for point in (a, elbow, b)])
    placements = np.tile(np.eye(4), (3, 1, 1))
    for i, (start, end) in enumerate(((a, elbow), (elbow, b))):
        x = (end - start) / 0.4
        placements[i, :3, 0], placements[i, :3, 1], placements[i, :3, 3] = x, (-x[1], x[0], 0.0), start
    placements[2, :3, 3] = (0.03, -0.02, 0.0)
    inertias = np.zeros((3, 3, 3))
    inertias[0], inertias[1] = np.diag([1e-5, 0.00202, 0.00203]), np.diag([1e-5, 0.00191, 0.00192])
    coms = np.array([[0.2, 0.0, 0.0], [0.2, 0.001, 0.0], [0.0, 0.0, 0.0]])
    masses = np.array([0.151248, 0.1435384, 0.0])
    return Tree((-1, 0, 1), screws, placements, masses, coms, inertias, gravity, False)
