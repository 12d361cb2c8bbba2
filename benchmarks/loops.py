"""Robots with couplings and loops beside `pinocchio.rnea` of a six-joint arm, along their own motions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.agreement import check
from benchmarks.parallel import PINOCCHIO, six_joint_arm
from benchmarks.peers import pinocchio_tree
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
_MUST = {"delta": Bound(4.0), "humanoid_leg": Bound(5.0)}


def measure(stage: Stage) -> Section:
    """Time efforts with two derivatives, one call from Python, on poses that move."""
    title = "robots with loops, one call from Python"
    contenders = [pinocchio_tree.rnea_call(PINOCCHIO, six_joint_arm())]
    for i, (file, name) in enumerate(_ROBOTS.items()):
        stage.say(f"{title}: compiling {name}", i / len(_ROBOTS))
        contenders.append(_contender(file, name))
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
    return Section(title, rows, {})


def _contender(file: str, name: str) -> Contender:
    robot = Robot.from_config(share.find("config", f"{file}.yaml"))
    motions = _motions(robot, file)
    for motion in motions[:_SAMPLES:16]:
        one, found = robot.solve(*motion), _efforts(robot, motion)
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
            base = BaseMotion(sample.pose, sample.twists[: _ORDER + 2], frame="body").in_frame("world")
            motions.append((joints, base))
    return motions + motions[::-1]
