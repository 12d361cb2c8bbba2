"""Kinematics of robots with loops both ways, along their own motions, beside their inverse dynamics."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.agreement import check
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.trajectory import read_motion

_ORDER = 2
_SAMPLES = 64  # poses along the motion at 1 kHz, so that Newton's method has something to do
_START = 0.3  # [s]
_ROBOTS = {
    "gough_stewart_6ups": ("Gough-Stewart platform", "gough_stewart"),
    "planar_3rrr": ("planar 3-RRR", "planar_3rrr"),
    "delta": ("Delta with parallelograms", "delta"),
    "palletiser": ("palletiser", "palletiser"),
}
_WAYS = {
    "joint_motion": "all joints from the coordinates",
    "motion_from_drives": "coordinates from the drives",
}


def measure(stage: Stage) -> Section:
    """Time both ways with the derivatives that inverse dynamics takes, one compiled call from Python."""
    title = "kinematics of robots with loops, one call from Python"
    contenders = []
    for i, file in enumerate(_ROBOTS):
        stage.say(f"{title}: compiling {_ROBOTS[file][0]}", i / len(_ROBOTS))
        contenders += _contenders(file)
    times = stage.race(title, contenders)
    rows = []
    for name, _ in _ROBOTS.values():
        dynamics = _dynamics(name)
        for way in _WAYS:
            ours = _way(name, way)
            rows.append(
                Row(
                    work=ours,
                    against="its inverse dynamics of order 2",
                    result=times.ratio(ours, dynamics),
                    ours=times.seconds(ours).median,
                    theirs=times.seconds(dynamics).median,
                    must=Bound(5.0),
                    aim=Bound(2.5),
                )
            )
    return Section(title, rows, {})


def _dynamics(name: str) -> str:
    return f"inverse dynamics, {name}"


def _way(name: str, way: str) -> str:
    return f"order 4, {name}: {_WAYS[way]}"


def _contenders(file: str) -> list[Contender]:
    name, motion = _ROBOTS[file]
    robot = Robot.load(share.find("config", f"{file}.yaml"))
    assert robot.closure is not None
    calls = {"inverse_dynamics": robot.compile(_ORDER)}
    calls |= {way: robot.compile(_ORDER + 2, way) for way in _WAYS}  # type: ignore[arg-type]
    told = _motions(robot, motion)
    joints = [calls["joint_motion"](*one) for one in told]
    driven = [np.ascontiguousarray(one[:, list(robot.closure.driven)]) for one in joints]
    for given, drives in zip(told[:_SAMPLES:16], driven[:_SAMPLES:16]):
        row = calls["motion_from_drives"](drives)[0]
        check(name, row[-given[-1].size :].reshape(given[-1].shape), given[-1])  # joints, or twists
    result = []
    for what, arguments in (("inverse_dynamics", told), ("joint_motion", told)):
        names = {"f": calls[what], "motion": itertools.cycle(arguments)}
        result.append(
            python_call(_dynamics(name) if what not in _WAYS else _way(name, what), "f(*next(motion))", names)
        )
    names = {"f": calls["motion_from_drives"], "motion": itertools.cycle(driven)}
    result.append(python_call(_way(name, "motion_from_drives"), "f(next(motion))", names))
    return result


def _motions(robot: Robot, name: str) -> list[tuple[Array, ...]]:
    """Return the motion that the robot comes with, to and fro: that of its joints, or pose and twists."""
    path = read_motion(share.find("config", f"{name}_motion.yaml")).for_joints(robot.joint_names)
    motions: list[tuple[Array, ...]] = []
    for t in _START + 1e-3 * np.arange(_SAMPLES):
        sample = path.sample(float(t), _ORDER + 2)
        if sample.pose is None or sample.twists is None:
            motions.append((np.ascontiguousarray(sample.joints),))
        else:
            base = BaseMotion(
                sample.pose, sample.twists[: _ORDER + 2], representation="body_fixed"
            ).in_representation("spatial")
            motions.append((base.pose, np.ascontiguousarray(base.twists)))
    return motions + motions[::-1]
