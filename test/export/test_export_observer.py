"""The momentum observer in C, beside the one of Python, sample by sample."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_code import call, compiled, needs_c
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.export import c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed

Sample = tuple[Any, ...]
"""What is measured, and the motion of a base that floats."""


def arm(stiffness: float) -> Robot:
    robot = Robot.load(share.find("config", "panda.yaml"))
    rub = FrictionSpec(2.0, 1.5, 0.1)
    return robot.with_drives([DriveSpec(stiffness, 0.5, motor_friction=rub)] * 7)


def assert_the_same(
    robot: Robot, observer: MomentumObserver, samples: Iterable[Sample], folder: Path, loops: bool = False
) -> None:
    """Hold the C code of an observer against this one; with loops it has a memory, and says what failed."""
    library = compiled(c_source(robot, ExportRequest(0, "robot", what="momentum_observer")), folder)
    assert library.robot_self_test() < 1e-10
    figures = np.array([[x for values in observer.figures.values() for x in values]])
    size = observer._state.size
    before, after, memory = np.zeros((1, size)), np.zeros((1, size)), [np.zeros(1000)] if loops else []
    if loops:
        call(library.robot_home, *memory)
    for i, (sample, *base) in enumerate(samples):
        found = observer.update(2e-3 * i, sample, *base)
        row = [np.concatenate([one.pose[:3].ravel(), one.twists[0]]) for one in base]
        if i == 0:
            call(library.robot_momentum_observer_start, sample, figures, *row, before)
            continue
        period = np.array([observer.period])
        said = call(library.robot_momentum_observer, *memory, sample, period, before, figures, *row, after)
        assert found is not None and (said == 0 or not loops)
        before, after = after, before
        n = found.efforts.size
        np.testing.assert_allclose(before[0, :n], found.efforts, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(before[0, n : 2 * n], found.deviations, rtol=1e-9)
        assert abs(before[0, 2 * n] / found.largest - 1.0) < 1e-9
        assert before[0, 2 * n + 1] == found.contact
    if loops:
        sample[0, 0] = np.nan
        assert call(library.robot_momentum_observer, *memory, sample, period, before, figures, after) == 2


@needs_c
@pytest.mark.parametrize("stiffness", [5000.0, np.inf])
def test_c_says_the_same_as_python(stiffness: float, tmp_path: Path) -> None:
    robot, random, elastic = arm(stiffness), np.random.default_rng(0), bool(np.isfinite(stiffness))
    config = ObserverConfig(smoothing=1000.0, effort_noise=(0.1,))

    def sample(i: int) -> Array:
        q, v = np.sin(2e-3 * i + np.arange(7)), np.cos(2e-3 * i + np.arange(7))
        rows = [q, v, q + 0.01 * random.standard_normal(7), v, 20.0 * random.standard_normal(7)]
        return np.array(rows if elastic else [q, v, rows[-1]])

    observer = MomentumObserver(robot, config, Sensed(True, elastic, True))
    assert_the_same(robot, observer, [(sample(i),) for i in range(60)], tmp_path)


@needs_c
@pytest.mark.parametrize("name", some(["palletiser", "delta", "planar_3rrr"], "delta", "planar_3rrr"))
def test_c_of_loops_says_the_same_as_python(name: str, tmp_path: Path) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    train, links = robot.require_drives(), Links(robot)
    home = links.drives(np.stack([links.home, *np.zeros((2, links.size))])).motion[0]
    sensed = Sensed(True, bool(train.elastic.any()), True)
    observer = MomentumObserver(robot, ObserverConfig(smoothing=1000.0), sensed)

    def sample(i: int) -> Array:
        phases = 0.02 * i + np.arange(train.n_joints)
        q, v = home + 0.02 * np.sin(phases), 0.2 * np.cos(phases)
        rows = {"position": q, "velocity": v, "motor_position": q, "motor_velocity": v}
        return observer.sample(**{one: (rows | {"motor_effort": 50.0 * v})[one] for one in observer.rows})

    assert_the_same(robot, observer, [(sample(i),) for i in range(40)], tmp_path, loops=True)


@needs_c
def test_c_of_a_floating_base_says_the_same_as_python(tmp_path: Path) -> None:
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    observer = MomentumObserver(robot, ObserverConfig(smoothing=1000.0), Sensed(True, motor_efforts=True))

    def sample(i: int) -> Sample:
        phases = 0.02 * i + np.arange(robot.n_coordinates)
        q, v = 0.1 * np.sin(phases), np.cos(phases)
        twist = np.array([0.5 * np.sin(0.1 * i), -0.3, 0.2, 0.1, 1.0, np.cos(0.1 * i)])
        base = BaseMotion(exp(2e-3 * i * twist), twist[None], representation="body_fixed")
        return np.array([q, v, 3.0 * v]), base

    assert_the_same(robot, observer, map(sample, range(40)), tmp_path)


def test_the_header_says_what_the_figures_are() -> None:
    robot = arm(np.inf)
    driven = robot.with_drives([replace(spec) for spec in robot.require_drives().specs])
    text = c_source(driven, ExportRequest(0, "arm", what="momentum_observer")).header
    words = " ".join(text.replace("*", " ").split())
    assert "[0] bandwidth (80)" in words and "position, velocity, motor_effort of all joints" in words
