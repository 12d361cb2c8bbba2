"""Parallel robots: a Gough-Stewart platform beside `pinocchio.rnea` of a six-joint arm, and its growth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.peers import pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, ParallelRobot, Robot, share
from hodyn_ros.lie.motion import twists_to_world
from hodyn_ros.lie.se3 import Ad, exp
from hodyn_ros.model.closure import PlatformRows
from hodyn_ros.model.parallel.closure import model_of
from hodyn_ros.model.tree import TreeModel

PINOCCHIO = "pinocchio.rnea of a 6-joint arm"
_MUST = {2: Bound(3.0)}
_AIM = {2: Bound(2.0)}
_GENERAL, _LANES = "the general code of loops", 2
_SAMPLES = 64  # poses along a motion at 1 kHz, so that Newton's method has something to do


def measure(stage: Stage) -> Section:
    """Time kinematics and forces with their derivatives, one call from Python, on poses that move."""
    title = "Gough-Stewart platform, one call from Python"
    contenders = [pinocchio_tree.rnea_call(PINOCCHIO, six_joint_arm())]
    platform = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
    for order in stage.orders:
        stage.say(f"{title}: compiling order {order}", 0.0)
        contenders.append(_contender(_moving(order), platform, order))
    legs = (6, 12, 24) if stage.quick else (6, 8, 12, 16, 24)
    for count in legs:
        stage.say(f"{title}: {count} legs", 0.0)
        contenders.append(_contender(_legs(count), _with_legs(count), 2))
    stage.say(f"{title}: compiling the general code of loops", 0.0)
    contenders.append(_contender(_GENERAL, _as_loops(platform), _LANES))
    times = stage.race(title, contenders)
    rows = [
        Row(
            work=f"r = {order}, motion of the drives, u … u^({order})",
            against=PINOCCHIO,
            result=times.ratio(_moving(order), PINOCCHIO),
            ours=times.seconds(_moving(order)).median,
            theirs=times.seconds(PINOCCHIO).median,
            must=_MUST.get(order),
            aim=_AIM.get(order),
        )
        for order in stage.orders
    ]
    rows += [
        Row(
            work=f"r = 2, a platform on {count} legs",
            against=_legs(legs[0]),
            result=times.ratio(_legs(count), _legs(legs[0])),
            ours=times.seconds(_legs(count)).median,
            theirs=times.seconds(_legs(legs[0])).median,
        )
        for count in legs
    ]
    rows.append(
        Row(
            work=f"r = {_LANES}, limbs of one build in lanes",
            against=_GENERAL,
            result=times.ratio(_moving(_LANES), _GENERAL),
            ours=times.seconds(_moving(_LANES)).median,
            theirs=times.seconds(_GENERAL).median,
            must=Bound(0.77),  # 1 / 1.3, or one code for all robots with loops would do
        )
    )
    return Section(title, rows, {})


def _moving(order: int) -> str:
    return f"6-UPS, order {order}"


def _as_loops(platform: Robot) -> Robot:
    """Return a platform as any robot with loops: its limbs are not looked for."""
    closure = platform.closure
    assert closure is not None and closure.platform is not None
    rows = PlatformRows(closure.platform.body, closure.platform.rows)
    return Robot(closure.tree, closure=replace(closure, platform=rows))


def _legs(count: int) -> str:
    return f"platform on {count} legs"


def six_joint_arm() -> Robot:
    """Return the first six joints of the arm that the other benchmarks time."""
    model = robots.panda().model
    return Robot.from_screws(
        model.parents[:6],
        model.screws[:6],
        model.placements[:6],
        model.masses[:6],
        model.coms[:6],
        model.inertias[:6],
    )


def _with_legs(count: int) -> Robot:
    """Return a platform on that many legs, on a ring, at least six; more than six are redundant drives."""
    closure = Robot.load(share.find("config", "gough_stewart_6ups.yaml")).closure
    assert closure is not None
    model = model_of(closure)
    limbs = []
    for i in range(count):
        # alternate legs lean the other way, as those of the platform do
        turn = exp(np.array([0.0, 0.0, 2.0 * np.pi * i / count, 0.0, 0.0, 0.0]))
        source = model.limbs[i % 2].chain
        back = exp(np.array([0.0, 0.0, -2.0 * np.pi * (i % 2) / 6.0, 0.0, 0.0, 0.0]))
        limbs.append(_turned(source, turn @ back, i))
    return ParallelRobot.from_screws(limbs, model.platform, np.eye(6), name=f"platform on {count} legs")


def _turned(chain: TreeModel, turn: Array, i: int) -> dict[str, object]:
    return {
        "screws": chain.screws @ Ad(turn).T,
        "placements": (turn @ chain.placements)[:-1],
        "masses": chain.masses[:-1],
        "coms": chain.coms[:-1],
        "inertias": chain.inertias[:-1],
        "driven": [2],
        "name": f"leg{i + 1}",
    }


def _contender(name: str, robot: Robot, order: int) -> Contender:
    poses, twists = _motion(robot, order)
    dynamics = robot.compile(order)
    for pose, rates in zip(poses[::16], twists[::16]):
        check(name, dynamics(pose, rates), robot.solve_loops(None, BaseMotion(pose, rates)).efforts)
    following = _endless(poses, twists)
    return python_call(name, "f(*next(motion))", {"f": dynamics, "motion": following})


def _motion(robot: Robot, order: int) -> tuple[list[Array], list[Array]]:
    """Return a swing of 0.1 rad and 1 cm at 2 Hz, to and fro, sampled at 1 kHz."""
    direction, w = np.array([0.1, -0.07, 0.05, 0.01, 0.005, -0.01]), 4.0 * np.pi
    poses, twists, home = [], [], robot.tree.placements[0]
    for t in 1e-3 * np.arange(_SAMPLES):
        orders = np.arange(order + 3)
        part = w**orders * np.sin(w * t + 0.5 * np.pi * orders)
        poses.append(home @ exp(part[0] * direction))
        twists.append(twists_to_world(poses[-1], np.outer(part[1:], direction)))
    return poses + poses[::-1], twists + twists[::-1]


def _endless(poses: list[Array], twists: list[Array]) -> Iterator[tuple[Array, Array]]:
    while True:
        yield from zip(poses, twists)
