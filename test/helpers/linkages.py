"""Robots with couplings and loops: those of the oracles, and those of the package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from oracles.mechanisms import Mechanism

from hodyn_ros import BaseMotion, Coupling, Loop, Robot, share
from hodyn_ros.model.drive_spec import series_elastic

Array = NDArray[np.float64]


def robot_of(m: Mechanism, **others: object) -> Robot:
    """Build the robot of a mechanism of the oracles."""
    names = [("world" if loop.a < 0 else loop.a, "world" if loop.b < 0 else loop.b) for loop in m.loops]
    loops = [
        Loop(a, b, name=f"loop{i}", **loop.arguments())
        for i, ((a, b), loop) in enumerate(zip(names, m.loops), 1)
    ]
    coordinates: list[object] = list(m.joints)
    if m.platform is not None:
        coordinates.append(m.platform)
    arguments = {"loops": loops, "coordinates": coordinates, "driven": list(m.driven), **others}
    couplings = [Coupling(*coupling) for coupling in m.couplings]
    couplings += [Coupling(**curve.arguments()) for curve in m.curves]
    return Robot.from_screws(**m.tree.arguments(), couplings=couplings, **arguments)


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


def shipped(name: str) -> Robot:
    return Robot.from_config(share.find("config", name))


def with_drives(robot: Robot, stiffness: object, inertia: object) -> Robot:
    n = len(robot.driven_joints)
    return robot.with_drives(series_elastic(np.broadcast_to(stiffness, (n,)), np.broadcast_to(inertia, (n,))))


def elastic_delta() -> Robot:
    """The Delta of the package, with a spring behind each of its arms."""
    return with_drives(shipped("delta.yaml"), 500.0, 0.01)
