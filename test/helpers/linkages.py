"""Robots with couplings and loops: those of the oracles, and those of the package."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from oracles.mechanisms import Mechanism
from oracles.random_trees import random_inertia
from sweeps import THOROUGH

from hodyn_ros import AppliedWrench, BaseMotion, Constraints, Coupling, Loop, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.loops.coordinate_motion import looped_inputs
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution
from hodyn_ros.formulations import embedding
from hodyn_ros.model.composite_joints import ball
from hodyn_ros.model.drive_spec import series_elastic
from hodyn_ros.model.frames import from_rpy


def robot_of(m: Mechanism, **others: object) -> Robot:
    """Return a robot of its own of a mechanism of the oracles, at home."""
    if others:
        return _built(m, **others)
    known = _known(m)  # whose closure is found to be one for all
    return Robot(known.tree, closure=known.closure)


@lru_cache(maxsize=200)
def _known(m: Mechanism) -> Robot:
    return _built(m)


def _built(m: Mechanism, **others: object) -> Robot:
    names = [("world" if loop.a < 0 else loop.a, "world" if loop.b < 0 else loop.b) for loop in m.loops]
    loops = [
        Loop(a, b, name=f"loop{i}", **loop.arguments())
        for i, ((a, b), loop) in enumerate(zip(names, m.loops), 1)
    ]
    coordinates: list[object] = list(m.joints)
    if m.platform is not None:
        coordinates.append(m.platform)
    arguments = {"loops": loops, "coordinates": coordinates, "driven": list(m.driven), **others}
    named = {"name": arguments.pop("name")} if "name" in arguments else {}
    couplings = [Coupling(*coupling) for coupling in m.couplings]
    couplings += [Coupling(**curve.arguments()) for curve in m.curves]
    constraints = Constraints(couplings=couplings, **arguments)
    return Robot.from_screws(**m.tree.arguments(), **named, constraints=constraints)


def readable_solution(
    robot: Robot,
    q: Array | None,
    base: BaseMotion | None = None,
    wrenches: Sequence[AppliedWrench] = (),
    preload: Array | None = None,
) -> LoopSolution:
    """Return what `solve` does, by the readable formulation alone."""
    looped = robot._need_loops("this")
    y, given, _, preloaded = looped_inputs(looped.closure, q, base, 2, wrenches, preload, alone=True)
    moved, margins = looped.begin(y, given)
    looped.remember(moved, y[0], given)
    rows, first = looped.independence.rows, 6 if looped.closure.base_prescribed else 0
    forces = embedding.inverse_dynamics(rows, moved, y, given, wrenches, preloaded)
    joints = moved.joint_motion()
    return LoopSolution(
        joints,
        moved.base_motion,
        joints[:, list(looped.closure.driven)],
        forces.efforts[:, first:],
        forces.efforts[:, :6] if first else None,
        embedding.loop_loads(rows, moved, forces.multipliers),
        lambda: margins,
    )


def motion_of(m: Mechanism, order: int, seed: int = 0) -> tuple[Array, BaseMotion | None]:
    """Return a motion of the coordinates near home, and that of platform or base."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(-1.0, 1.0, (order + 3, len(m.joints)))
    y[0] *= 0.1
    if m.platform is None and not m.tree.floating_base:
        return y, None
    place = m.tree.placements[0 if m.platform is None else m.platform[0]].copy()
    place[:3, 3] += (0.01, 0.02, 0.0)
    twists = rng.uniform(-1.0, 1.0, (order + 2, 6))
    if m.platform is not None and len(m.platform[1]) == 3:
        twists[:, [0, 1, 5]] = 0.0
    return y, BaseMotion(place, twists)


def moved_away(m: Mechanism, away: Array) -> Mechanism:
    """Return a mechanism that stands elsewhere (3,) in the world at the zero configuration."""
    place = np.eye(4)
    place[:3, 3] = away
    loops = (
        replace(one, point=one.point + away, point_b=None if one.point_b is None else one.point_b + away)
        for one in m.loops
    )
    return replace(m, tree=m.tree.moved(place), loops=tuple(loops))


def shipped(name: str) -> Robot:
    """Return a robot of the package, the same for all tests, at its home."""
    robot = _shipped(name)
    if robot.closure is not None:
        robot.reset()
    return robot


@cache
def _shipped(name: str) -> Robot:
    return Robot.load(share.find("config", name))


def with_drives(robot: Robot, stiffness: object, inertia: object) -> Robot:
    n = len(robot.driven_joints)
    return robot.with_drives(series_elastic(np.broadcast_to(stiffness, (n,)), np.broadcast_to(inertia, (n,))))


def elastic_delta() -> Robot:
    """The Delta of the package, with a spring behind each of its arms."""
    return with_drives(shipped("delta.yaml"), 500.0, 0.01)


def three_rps(floating: bool = False, seed: int = 6) -> Robot:
    """A 3-RPS: hinge, slide and ball in each leg; the platform tilts and rises, and the rest follows.

    Built up from the ground with the platform on the first leg, or as a floating base from which legs hang.
    """
    angles = np.radians([10.0, 130.0, 250.0])
    around = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    low, top = 0.5 * around, 0.3 * around + [0.0, 0.0, 0.6]
    rng = np.random.default_rng(seed)
    axes = np.cross((0.0, 0.0, 1.0), around)
    slides = [np.array([0, 0, 0, *(b - a) / np.linalg.norm(b - a)]) for a, b in zip(low, top)]
    center = np.array([0.0, 0.0, 0.6])
    masses, coms = rng.uniform(0.5, 2.0, 7), rng.uniform(-0.1, 0.1, (7, 3))
    inertias = np.array([random_inertia(rng, mass) for mass in masses])
    lower, upper = [0, 2, 4], [1, 3, 5]  # the platform is body 6
    if floating:
        order = [6, 1, 0, 3, 2, 5, 4]
        parents, screws = [-1, 0, 1, 0, 3, 0, 5], [np.zeros(6)]
        for point, slide in zip(top, slides):
            screws += [ball(point), -slide]
        loops = [Loop("world", leg, "hinge", a, e) for leg, a, e in zip((2, 4, 6), low, axes)]
        platform, driven = 0, [f"slide{i}" for i in range(3)]
    else:
        order = list(range(7))
        parents = [-1, 0, -1, 2, -1, 4, 1]
        screws = []
        for a, e, slide in zip(low, axes, slides):
            screws += [np.array([*e, *np.cross(a, e)]), slide]
        screws.append(ball(top[0]))
        loops = [Loop(leg, 6, "ball", point) for leg, point in zip((3, 5), top[1:])]
        platform, driven = 6, [f"slide{i}" for i in range(3)]
    points = np.zeros((7, 3))
    points[lower], points[upper], points[6] = low, top, center
    names = {**{lower[i]: f"hinge{i}" for i in range(3)}, **{upper[i]: f"slide{i}" for i in range(3)}}
    if floating:
        names = {**{upper[i]: f"ball{i}" for i in range(3)}, **{lower[i]: f"slide{i}" for i in range(3)}}
    joints = [{**names, 6: "ball"}[i] for i in order if not (floating and i == 6)]
    return Robot.from_screws(
        parents=parents,
        screws=screws,
        placements=[from_rpy(points[i], np.zeros(3)) for i in order],
        masses=masses[order],
        coms=coms[order],
        inertias=inertias[order],
        floating_base=floating,
        joint_names=joints,
        body_names=[f"body{i}" for i in order],
        constraints=Constraints(loops, coordinates=[(platform, ("rx", "ry", "z"))], driven=driven),
    )


SHORT = ("four-bar", "RSSR", "coupled linkage", "slider-crank", "ankle")  # code of any order compiles soon


def orders_of(name: str) -> tuple[int, ...]:
    """Return orders for which a mechanism is compiled, the highest last."""
    if name in ("6-UPS", "ankle with rods"):
        return (0, 1) if THOROUGH else (0,)
    return (0, 1, 3) if THOROUGH or name in SHORT else (1,)


def joined(found: Array | tuple[Array, Array]) -> Array:
    """Return what a call returns of base and joints as one array."""
    return np.concatenate(found, axis=1) if isinstance(found, tuple) else found


def whole_efforts(one: LoopSolution) -> Array:
    """Return the efforts of the drives after the wrench on a base."""
    return one.efforts if one.base_wrench is None else joined((one.base_wrench, one.efforts))
