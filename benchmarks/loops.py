"""Robots with couplings and loops, along their own motions.

Efforts beside `pinocchio.rnea` of a six-joint arm, accelerations beside `pinocchio.constraintDynamics` of the
same robots.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.agreement import check
from benchmarks.parallel import PINOCCHIO, six_joint_arm
from benchmarks.peers import pinocchio_loops, pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.trajectory import read_motion

_ORDER = 2
_SAMPLES = 64  # poses along the motion at 1 kHz, so that Newton's method has something to do
_START = 0.3  # [s]
_ROBOTS = {
    "delta": "Delta with parallelograms",
    "humanoid_leg": "humanoid leg with two loops",
    "palletiser": "palletiser",
    "panda_hand": "7-joint arm with a hand that mimics",
}
# Points that close the loops in Pinocchio. The file of the Delta makes the rods of a pair turn alike; in
# Pinocchio each ends in a ball. Hinges of linkages in a plane are balls there.
_BALLS = {
    "delta": [(f"end{i}{side}", f"wrist{i}{side}") for i in (1, 2, 3) for side in ("", "b")],
    "palletiser": [
        ("crank_rod_end", "forearm_tail"),
        ("lower_level_end", "triangle_back"),
        ("upper_level_end", "hand_top"),
    ],
}
_MUST = {"delta": Bound(4.0), "humanoid_leg": Bound(5.0)}


def measure(stage: Stage) -> Section:
    """Time efforts with two derivatives, and accelerations, one call from Python, on poses that move."""
    title = "robots with loops, one call from Python"
    contenders = [pinocchio_tree.rnea_call(PINOCCHIO, six_joint_arm())]
    for i, (file, name) in enumerate(_ROBOTS.items()):
        stage.say(f"{title}: compiling {name}", i / len(_ROBOTS))
        contenders.append(_contender(file, name))
    for file in _BALLS:
        contenders += _accelerations(file)
    times = stage.race(title, contenders)
    rows = [
        Row(
            work=f"r = {_ORDER}, {name}",
            against=PINOCCHIO,
            result=times.ratio(name, PINOCCHIO),
            ours=times.seconds(name).median,
            theirs=times.seconds(PINOCCHIO).median,
            must=_MUST.get(file),
        )
        for file, name in _ROBOTS.items()
    ]
    for file in _BALLS:
        ours, theirs = _names(file)
        rows.append(
            Row(
                work=ours,
                against="pinocchio.constraintDynamics of the same robot",
                result=times.ratio(ours, theirs),
                ours=times.seconds(ours).median,
                theirs=times.seconds(theirs).median,
                must=Bound(1.0),
            )
        )
    return Section(title, rows, {})


def _names(file: str) -> tuple[str, str]:
    return f"accelerations, {_ROBOTS[file]}", f"constraintDynamics, {_ROBOTS[file]}"


def _accelerations(file: str) -> list[Contender]:
    robot = Robot.load(share.find("config", f"{file}.yaml"))
    motions = [motion[0] for motion in _motions(robot, file)]
    return pinocchio_loops.accelerations(_names(file), robot, _BALLS[file], motions)


def _contender(file: str, name: str) -> Contender:
    robot = Robot.load(share.find("config", f"{file}.yaml"))
    motions = _motions(robot, file)
    for motion in motions[:_SAMPLES:16]:
        one, found = robot.solve_loops(*motion), _efforts(robot, motion)
        parts = [one.efforts] if one.base_wrench is None else [one.base_wrench, one.efforts]
        check(name, found, np.hstack(parts))
    names = {"f": robot.inverse_dynamics, "motion": itertools.cycle(motions)}
    return python_call(name, "f(*next(motion))", names)


def _efforts(robot: Robot, motion: Any) -> Array:
    found = robot.inverse_dynamics(*motion)
    return np.hstack(found) if isinstance(found, tuple) else found


def _motions(robot: Robot, file: str) -> list[tuple[Array] | tuple[Array, BaseMotion]]:
    """Return the motion that the robot comes with, to and fro, with its derivatives."""
    path = read_motion(share.find("config", f"{file}_motion.yaml")).for_joints(robot.joint_names)
    motions: list[tuple[Array] | tuple[Array, BaseMotion]] = []
    for t in _START + 1e-3 * np.arange(_SAMPLES):
        sample = path.sample(float(t), _ORDER + 2)
        joints = np.ascontiguousarray(sample.joints)
        if sample.pose is None or sample.twists is None:
            motions.append((joints,))
        else:
            base = BaseMotion(
                sample.pose, sample.twists[: _ORDER + 2], representation="body_fixed"
            ).in_representation("spatial")
            motions.append((joints, base))
    return motions + motions[::-1]
