"""Mechanisms with closed loops as plain arrays: linkages in the plane and in space, platforms, legs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from oracles.random_trees import Array, Tree

Vector = Sequence[float]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Closed:
    """One closure: frames fixed to bodies a and b (-1 the ground), given at the zero configuration."""

    kind: str
    a: int
    b: int
    point: Array
    axis: Array | None = None
    point_b: Array | None = None
    axis_b: Array | None = None
    rows: tuple[str, ...] = ()
    axes: Array | None = None  # (3, 3) columns, of rows

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Loop`, but for the bodies."""
        names = ("kind", "point", "axis", "point_b", "axis_b", "rows", "axes")
        return {k: getattr(self, k) for k in names}


@dataclass(frozen=True, eq=False)
class Curve:
    """A joint that follows another one along a polynomial, the constant first, or a spline by its points."""

    joint: int
    of: int
    polynomial: tuple[float, ...] | None = None
    table: tuple[Array, Array] | None = None
    degree: int = 9
    periodic: bool = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Coupling`."""
        if self.table is None:
            return {"joint": self.joint, "of": self.of, "polynomial": self.polynomial}
        return vars(self)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree with loops, couplings (joint, of, ratio, offset), coordinates and drives, joints by index."""

    tree: Tree
    loops: tuple[Closed, ...]
    joints: tuple[int, ...]
    driven: tuple[int, ...]
    couplings: tuple[tuple[int, int, float, float], ...] = ()
    platform: tuple[int, tuple[str, ...]] | None = None
    curves: tuple[Curve, ...] = ()


@dataclass
class Builder:
    """Bodies and joints, added one by one; every body frame is at its joint, parallel to the world or not."""

    gravity: Vector = (0.0, 0.0, -9.81)
    floating: bool = False
    seed: int = 0
    parents: list[int] = field(default_factory=list)
    screws: list[Array] = field(default_factory=list)
    placements: list[Array] = field(default_factory=list)
    inertias: list[tuple[float, Array, Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def body(self, parent: int, axis: Vector, point: Vector, mass: float = 1.0, slide: bool = False) -> int:
        """Add a body on a hinge through a point, or on a slide, with a mass spread around the point."""
        e = np.array(axis) / np.linalg.norm(axis)
        p = np.array(point, dtype=float)
        self.screws.append(np.concatenate([np.zeros(3), e]) if slide else np.concatenate([e, np.cross(p, e)]))
        return self._add(parent, p, mass)

    def base(self, point: Vector, mass: float = 5.0) -> int:
        """Add a floating base."""
        self.screws.append(np.zeros(6))
        return self._add(-1, np.array(point, dtype=float), mass)

    def ball(self, parent: int, point: Vector, mass: float, last: Vector = Z) -> int:
        """Add a body on three hinges through a point, the last about an axis of its own."""
        e = np.array(last) / np.linalg.norm(last)
        first = np.cross(e, np.eye(3)[int(np.abs(e).argmin())])
        first /= np.linalg.norm(first)
        cross = self.body(parent, first, point, 0.0)
        cross = self.body(cross, np.cross(e, first), point, 0.0)
        return self.body(cross, last, point, mass)

    def rod(self, body: int, start: Vector, end: Vector, mass: float, axial: float) -> None:
        """Make a body a rod between two points, symmetric about the line, with an axial inertia."""
        line = np.array(end, dtype=float) - np.array(start, dtype=float)
        length = float(np.linalg.norm(line))
        e = line / length
        around = mass * length**2 / 12.0
        inertia = around * (np.eye(3) - np.outer(e, e)) + axial * np.outer(e, e)
        place = self.placements[body]
        self.inertias[body] = (
            mass,
            place[:3, :3].T @ (np.array(start) + 0.4 * line - place[:3, 3]),
            place[:3, :3].T @ inertia @ place[:3, :3],
        )

    def tree(self) -> Tree:
        """Return what was added."""
        return Tree(
            tuple(self.parents),
            np.array(self.screws),
            np.array(self.placements),
            np.array([mass for mass, _, _ in self.inertias]),
            np.array([com for _, com, _ in self.inertias]),
            np.array([inertia for _, _, inertia in self.inertias]),
            np.array(self.gravity),
            self.floating,
        )

    def _add(self, parent: int, point: Array, mass: float) -> int:
        rng = self.rng
        placement = np.eye(4)
        placement[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        placement[:3, :3] *= np.sign(np.linalg.det(placement[:3, :3]))
        placement[:3, 3] = point
        half = rng.uniform(-0.05, 0.05, (3, 3))
        inertia = mass * (half @ half.T + 0.002 * np.eye(3))
        self.parents.append(parent)
        self.placements.append(placement)
        com = rng.uniform(-0.1, 0.1, 3) if mass else np.zeros(3)
        self.inertias.append((mass, com, inertia))
        return len(self.parents) - 1


@cache
def four_bar() -> Mechanism:
    """Crank, coupler and rocker in a plane; three rows of the hinge are redundant."""
    b = Builder(gravity=(0.0, -9.81, 0.0), seed=1)
    crank = b.body(-1, Z, (0, 0, 0))
    coupler = b.body(crank, Z, (0.1, 0.2, 0))
    rocker = b.body(-1, Z, (0.5, 0, 0))
    point = np.array([0.55, 0.35, 0.0])
    return Mechanism(b.tree(), (Closed("hinge", coupler, rocker, point, np.array(Z)),), (0,), (0,))


@cache
def parallelogram() -> Mechanism:
    """Two cranks of equal length; at -0.6 rad all lie in line, where it may change into crossed cranks."""
    b = Builder(gravity=(0.0, -9.81, 0.0), seed=11)
    end = 0.2 * np.array([np.cos(0.6), np.sin(0.6), 0.0])
    crank = b.body(-1, Z, (0, 0, 0))
    coupler = b.body(crank, Z, end)
    rocker = b.body(-1, Z, (0.5, 0, 0))
    loop = Closed("hinge", coupler, rocker, end + np.array([0.5, 0.0, 0.0]), np.array(Z))
    return Mechanism(b.tree(), (loop,), (0,), (0,))


@cache
def slider_crank() -> Mechanism:
    """Crank and connecting rod in a tilted plane; the slide is closed by a hinge, the crank is driven."""
    b = Builder(seed=2)
    n = np.array([0.2, -0.5, 1.0])
    n /= np.linalg.norm(n)
    u = np.cross([0.0, 1.0, 0.0], n)
    u /= np.linalg.norm(u)
    v = np.cross(n, u)
    crank = b.body(-1, n, (0, 0, 0))
    rod = b.body(crank, n, 0.1 * u + 0.15 * v)
    piston = b.body(-1, u, 0.6 * u, slide=True)
    return Mechanism(b.tree(), (Closed("hinge", rod, piston, 0.6 * u, n),), (0,), (2,))


@cache
def rssr(rod_mass: float = 0.7) -> Mechanism:
    """Two skew cranks and a rod between two balls, with mass and axial inertia; its spin is free."""
    b = Builder(seed=3)
    crank = b.body(-1, (0.1, 0.2, 1.0), (0, 0, 0))
    rocker = b.body(-1, (1.0, 0.1, -0.2), (0.5, 0.1, 0.1))
    start, end = (0.05, 0.15, 0.02), (0.52, 0.2, 0.35)
    line = np.array(end) - start
    rod = b.ball(crank, start, rod_mass, line)
    b.rod(rod, start, end, rod_mass, 0.004)
    loops = (
        Closed("ball", rod, rocker, np.array(end)),
        Closed("spin", -1, rod, np.array(start), axis=line),
    )
    return Mechanism(b.tree(), loops, (0,), (0,))


@cache
def palletiser() -> Mechanism:
    """An arm with two parallelograms that keep its hand level, on a turning column."""
    b = Builder(seed=4)
    column = b.body(-1, Z, (0, 0, 0), 4.0)
    n = (0.0, 1.0, 0.0)
    upper = b.body(column, n, (0.0, 0, 0.5), 3.0)
    fore = b.body(upper, n, (0.1, 0, 1.1), 2.0)
    hand = b.body(fore, n, (0.8, 0, 1.0), 1.0)
    # a triangle at the elbow, kept level by a rod from the column, keeps the hand level by another
    triangle = b.body(upper, n, (0.1, 0, 1.1), 0.5)
    lower_rod = b.body(column, n, (-0.2, 0, 0.55), 0.4)
    upper_rod = b.body(triangle, n, (0.15, 0, 1.3), 0.3)
    # the forearm is driven from the column, by a crank and a rod
    crank = b.body(column, n, (0.0, 0, 0.5), 0.6)
    drive_rod = b.body(crank, n, (-0.25, 0, 0.45), 0.5)
    y = np.array(n)
    loops = (
        Closed("hinge", lower_rod, triangle, np.array([-0.1, 0, 1.15]), y),
        Closed("hinge", upper_rod, hand, np.array([0.85, 0, 1.2]), y),
        Closed("hinge", drive_rod, fore, np.array([-0.15, 0, 1.05]), y),
    )
    return Mechanism(b.tree(), loops, (0, 1, 2), (0, 1, 7))


@cache
def ankle() -> Mechanism:
    """A shank that floats, a foot on a universal joint, and two slides that move it by rods."""
    b = Builder(floating=True, seed=5)
    shank = b.base((0, 0, 0.4))
    cross = b.body(shank, Y, (0, 0, 0.05), 0.05)
    foot = b.body(cross, X, (0, 0, 0.03), 1.0)
    loops = []
    for side in (-1.0, 1.0):
        slide = b.body(shank, (0.1, 0.05 * side, 1.0), (-0.05, 0.04 * side, 0.3), 0.3, slide=True)
        top, low = np.array([-0.05, 0.04 * side, 0.25]), np.array([-0.06, 0.05 * side, 0.02])
        loops.append(Closed("rod", slide, foot, top, point_b=low))
    return Mechanism(b.tree(), tuple(loops), (0, 1), (2, 3))


@cache
def ankle_with_rods() -> Mechanism:
    """The same with rods that have mass and axial inertia, between a ball each."""
    b = Builder(floating=True, seed=6)
    shank = b.base((0, 0, 0.4))
    cross = b.body(shank, Y, (0, 0, 0.05), 0.05)
    foot = b.body(cross, X, (0, 0, 0.03), 1.0)
    loops, driven = [], []
    for side in (-1.0, 1.0):
        driven.append(len(b.parents) - 1)
        crank = b.body(shank, Y, (-0.02, 0.05 * side, 0.25), 0.3)
        top, low = np.array([-0.07, 0.045 * side, 0.26]), np.array([-0.06, 0.05 * side, 0.02])
        rod = b.ball(crank, top, 0.2, low - top)
        b.rod(rod, top, low, 0.2, 1e-3)
        loops.append(Closed("ball", rod, foot, low))
        loops.append(Closed("spin", -1, rod, low, axis=low - top))
    return Mechanism(b.tree(), tuple(loops), (0, 1), tuple(driven))


@cache
def mimic_chain() -> Mechanism:
    """Six joints, two of which lead the others, by chains of couplings with offsets; a slide among them."""
    b = Builder(seed=7)
    body = b.body(-1, Z, (0, 0, 0))
    body = b.body(body, (0.2, 1.0, 0.1), (0.1, 0, 0.3))
    finger = b.body(body, (1.0, 0.3, 0.0), (0.2, 0.1, 0.5), slide=True)
    b.body(finger, (0.0, 1.0, 0.4), (0.3, 0.1, 0.6))
    b.body(body, (-1.0, 0.2, 0.0), (0.2, -0.1, 0.5), slide=True)
    b.body(body, (0.3, 0.2, 1.0), (0.2, -0.3, 0.5))
    couplings = ((2, 1, 0.3, 0.02), (3, 2, -4.0, 0.5), (4, 3, -0.2, 0.1), (5, 0, 2.0, -0.3))
    return Mechanism(b.tree(), (), (0, 1), (0, 1), couplings)


@cache
def coupled_linkage() -> Mechanism:
    """A four-bar whose rocker is driven, through a gear, by a coupled joint: drives on the other side."""
    b = Builder(gravity=(1.0, -9.0, 2.0), seed=8)
    crank = b.body(-1, Z, (0, 0, 0))
    coupler = b.body(crank, Z, (0.1, 0.2, 0))
    rocker = b.body(-1, Z, (0.5, 0, 0))
    b.body(-1, X, (0.5, 0, 0.1), 0.2)  # the rotor
    loops = (Closed("ball", coupler, rocker, np.array([0.55, 0.35, 0.0])),)
    return Mechanism(b.tree(), loops, (0,), (3,), ((3, 2, 20.0, 0.0),))


@cache
def planar_3rrr(hinged: bool = False) -> Mechanism:
    """Three cranks and rods that carry a triangle in a plane; or, hinged, three drives for two freedoms."""
    b = Builder(gravity=(0.0, -9.81, 0.0), seed=9)
    angles = np.radians([210.0, 330.0, 90.0])
    low = 0.5 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    top = (0.0 if hinged else 0.12) * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    ends = []
    cranks = []
    for a, c in zip(low, top):
        line = c - a
        elbow = a + 0.5 * line + 0.15 * np.array([line[1], -line[0], 0.0]) / np.linalg.norm(line)
        cranks.append(b.body(-1, Z, a))
        ends.append(b.body(cranks[-1], Z, elbow))
    if hinged:
        loops = tuple(Closed("hinge", end, ends[0], top[0], np.array(Z)) for end in ends[1:])
        return Mechanism(b.tree(), loops, (0, 2), (0, 2, 4))
    platform = b.body(ends[0], Z, top[0], 2.0)
    loops = tuple(Closed("hinge", end, platform, p, np.array(Z)) for end, p in zip(ends[1:], top[1:]))
    return Mechanism(b.tree(), loops, (), tuple(cranks), platform=(platform, ("rz", "x", "y")))


@cache
def six_ups() -> Mechanism:
    """A platform that is the floating base; six limbs branch from it to a universal joint on the ground."""
    b = Builder(floating=True, seed=10)
    platform = b.base((0.0, 0.0, 0.5), 8.0)
    low = np.radians([20.0, 100.0, 140.0, 220.0, 260.0, 340.0])
    high = np.radians([40.0, 80.0, 160.0, 200.0, 280.0, 320.0])
    loops, driven = [], []
    for i in range(6):
        a = np.array([0.3 * np.cos(low[i]), 0.3 * np.sin(low[i]), 0.01 * i])
        c = np.array([0.15 * np.cos(high[i]), 0.15 * np.sin(high[i]), 0.5])
        line = a - c
        first = np.cross(line, (0.1, 0.2, 1.0))
        first /= np.linalg.norm(first)
        # the rod on a ball under the platform, about its own axis first, then the tube that slides on it
        rod = b.ball(platform, c, 0.5, line)
        driven.append(len(b.parents) - 1)
        tube = b.body(rod, line, a, 1.0, slide=True)
        loops.append(Closed("universal", -1, tube, a, axis=np.cross(line, first), axis_b=first))
    return Mechanism(
        b.tree(), tuple(loops), (), tuple(driven), platform=(platform, ("rx", "ry", "rz", "x", "y", "z"))
    )


@cache
def every_kind() -> Mechanism:
    """An arm that pushes a rod through a bush, and a sleeve on the same axis: a cylinder and a slider."""
    b = Builder(seed=11)
    arm = b.body(-1, Z, (0, 0, 0))
    arm = b.body(arm, Y, (0, 0, 0.3))
    fore = b.body(arm, Y, (0.3, 0, 0.5))
    bush = b.body(-1, Y, (0.7, 0, 0.0))
    bush = b.body(bush, Z, (0.7, 0, 0.0))
    bush = b.body(bush, X, (0.7, 0, 0.0))
    axis = np.array([0.7, 0, 0]) - np.array([0.5, 0.0, 0.3])
    turning = b.body(bush, axis, (0.7, 0, 0.0), 0.4)
    hand = b.body(fore, axis, (0.5, 0.0, 0.3), 0.3)
    welded = b.body(hand, axis, (0.5, 0.0, 0.3), 0.2)
    loops = (
        Closed("cylinder", fore, bush, np.array([0.6, 0.0, 0.15]), axis),
        Closed("slider", turning, welded, np.array([0.5, 0.0, 0.3]), axis),
    )
    return Mechanism(b.tree(), loops, (1, 5, 6, 7), (1, 5, 6, 7))


@cache
def cams() -> Mechanism:
    """A cam turns and lifts a slide that moves others, by polynomial, by ratio and by table, on a column."""
    b = Builder(seed=12)
    column = b.body(-1, Z, (0, 0, 0))
    cam = b.body(column, (0.2, 1.0, 0.1), (0.1, 0, 0.3))
    b.body(column, (0.1, 0.3, 1.0), (0.2, 0.1, 0.5), slide=True)
    arm = b.body(column, (1.0, 0.3, 0.0), (0.3, -0.2, 0.5))
    b.body(arm, (0.0, 1.0, 0.4), (0.3, 0.1, 0.6))
    lever = b.body(cam, (-1.0, 0.2, 0.0), (0.2, -0.1, 0.5))
    b.body(lever, (0.3, 0.2, 1.0), (0.2, -0.3, 0.5), slide=True)
    at = np.linspace(-2.5, 2.5, 14)
    turn = np.linspace(0.0, 2.0 * np.pi, 17)
    lift = 0.1 * np.cos(turn) + 0.02 * np.sin(2.0 * turn)
    curves = (
        Curve(2, 1, polynomial=(0.03, 0.1, -0.05, 0.02)),
        Curve(4, 3, table=(at, 0.3 * np.sin(1.3 * at) + 0.1)),
        Curve(6, 5, table=(turn, np.append(lift[:-1], lift[0])), periodic=True),
    )
    return Mechanism(b.tree(), (), (0, 1, 5), (0, 2, 6), ((3, 2, 4.0, 0.2),), curves=curves)


@cache
def flying_cam() -> Mechanism:
    """A base that floats, with a cam on an arm, and a slide that leads it."""
    b = Builder(floating=True, seed=15)
    base = b.base((0.1, -0.2, 0.4))
    arm = b.body(base, (0.1, 1.0, 0.2), (0.2, 0, 0.5))
    b.body(arm, (1.0, 0.3, 0.0), (0.3, -0.2, 0.5))
    b.body(arm, (0.0, 0.2, 1.0), (0.3, 0.1, 0.6), slide=True)
    curve = Curve(2, 1, polynomial=(0.02, 1.0, 0.1, -0.05))
    return Mechanism(b.tree(), (), (0, 2), (0, 1), curves=(curve,))


@cache
def geared_linkage() -> Mechanism:
    """A four-bar that is driven, through a transmission of changing ratio, by a motor on its rocker."""
    b = Builder(gravity=(1.0, -9.0, 2.0), seed=13)
    crank = b.body(-1, Z, (0, 0, 0))
    coupler = b.body(crank, Z, (0.1, 0.2, 0))
    rocker = b.body(-1, Z, (0.5, 0, 0))
    b.body(-1, X, (0.5, 0, 0.1), 0.2)
    loops = (Closed("rows", coupler, rocker, np.array([0.55, 0.35, 0.0]), rows=("x", "y")),)
    curve = Curve(3, 2, polynomial=(0.0, 20.0, 3.0, -1.0))
    return Mechanism(b.tree(), loops, (0,), (3,), curves=(curve,))


@cache
def held_rows() -> Mechanism:
    """An arm on six joints; rows in tilted axes hold one turn and two shifts of its hand, later two turns."""
    b = Builder(seed=14)
    axes = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    axes *= np.sign(np.linalg.det(axes))
    points = ((0, 0, 0), (0, 0, 0.3), (0.3, 0, 0.5), (0.5, 0, 0.5), (0.6, 0.1, 0.5), (0.6, 0.1, 0.6))
    body = -1
    for i, point in enumerate(points):
        body = b.body(body, (Z, Y, Y, X, Z, Y)[i], point)
    other = b.body(-1, Y, (1.0, 0.2, 0.0))
    other = b.body(other, X, (1.0, 0.2, 0.1))
    one = Closed("rows", -1, 2, np.array(points[2]), rows=("rx",), axes=axes)
    place = np.array([0.8, 0.1, 0.3])
    two = Closed(
        "rows", body, other, place, point_b=place + 0.1 * axes[:, 2], rows=("rz", "rx", "y"), axes=axes
    )
    return Mechanism(b.tree(), (one, two), (1, 3, 4, 5), (1, 3, 4, 5))


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "four-bar": four_bar,
    "slider-crank": slider_crank,
    "RSSR": rssr,
    "palletiser": palletiser,
    "ankle": ankle,
    "ankle with rods": ankle_with_rods,
    "mimic chain": mimic_chain,
    "coupled linkage": coupled_linkage,
    "planar 3-RRR": planar_3rrr,
    "hinged 3-RRR": lambda: planar_3rrr(True),
    "6-UPS": six_ups,
    "cylinder and slider": every_kind,
    "cams": cams,
    "flying cam": flying_cam,
    "geared linkage": geared_linkage,
    "held rows": held_rows,
}

# Of all kinds of coordinates, drives and followers the smallest that has them, for what is computed on top of
# motion and efforts: there the kinds of loops no longer matter.
FEW = ("four-bar", "RSSR", "mimic chain", "coupled linkage", "planar 3-RRR", "hinged 3-RRR")
FEW += ("flying cam", "geared linkage")
