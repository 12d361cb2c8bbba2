"""The momentum observer in C, beside the one of Python, sample by sample."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported_code import call, compiled, needs_c
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.control.links import Links
from hodyn_ros.export import c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed


def arm(stiffness: float) -> Robot:
    robot = Robot.load(share.find("config", "panda.yaml"))
    rub = FrictionSpec(2.0, 1.5, 0.1)
    return robot.with_drives([DriveSpec(stiffness, 0.5, motor_friction=rub)] * 7)


@needs_c
@pytest.mark.parametrize("stiffness", [5000.0, np.inf])
def test_c_says_the_same_as_python(stiffness: float, tmp_path: Path) -> None:
    robot = arm(stiffness)
    library = compiled(c_source(robot, ExportRequest(0, "arm", what="momentum_observer")), tmp_path)
    assert library.arm_self_test() < 1e-10
    elastic = np.isfinite(stiffness)
    config = ObserverConfig(smoothing=1000.0, effort_noise=(0.1,))
    observer = MomentumObserver(robot, config, Sensed(True, bool(elastic), True))
    figures = np.array([[value for values in observer.figures.values() for value in values]])
    random, size = np.random.default_rng(0), observer._state.size
    before, after = np.zeros((1, size)), np.zeros((1, size))
    for i in range(60):
        q, v = np.sin(2e-3 * i + np.arange(7)), np.cos(2e-3 * i + np.arange(7))
        rows = [q, v, q + 0.01 * random.standard_normal(7), v, 20.0 * random.standard_normal(7)]
        sample = np.array(rows if elastic else [q, v, rows[-1]])
        found = observer.update(2e-3 * i, sample)
        if i == 0:
            call(library.arm_momentum_observer_start, sample, figures, before)
            continue
        call(library.arm_momentum_observer, sample, np.array([observer.period]), before, figures, after)
        before, after = after, before
        assert found is not None
        np.testing.assert_allclose(before[0, :7], found.efforts, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(before[0, 7:14], found.deviations, rtol=1e-9)
        assert abs(before[0, 14] / found.largest - 1.0) < 1e-9


@needs_c
@pytest.mark.parametrize(
    "file",
    some(
        ["palletiser.yaml", "delta.yaml", "planar_3rrr.yaml"],
        "delta.yaml",
        "planar_3rrr.yaml",
    ),
)
def test_c_of_loops_says_the_same_as_python(file: str, tmp_path: Path) -> None:
    robot = Robot.load(share.find("config", file))
    library = compiled(c_source(robot, ExportRequest(0, "robot", what="momentum_observer")), tmp_path)
    assert library.robot_self_test() < 1e-10
    train, links = robot.require_drives(), Links(robot)
    home = links.drives(np.stack([links.home, *np.zeros((2, links.size))])).motion[0]
    observer = MomentumObserver(
        robot, ObserverConfig(smoothing=1000.0), Sensed(True, bool(train.elastic.any()), True)
    )
    figures, size = (
        np.array([[x for values in observer.figures.values() for x in values]]),
        observer._state.size,
    )
    memory, before, after = np.zeros(1000), np.zeros((1, size)), np.zeros((1, size))
    call(library.robot_home, memory)
    for i in range(40):
        phases = 10.0 * 2e-3 * i + np.arange(train.n_joints)
        q, v = home + 0.02 * np.sin(phases), 0.2 * np.cos(phases)
        rows = {
            "position": q,
            "velocity": v,
            "motor_position": q,
            "motor_velocity": v,
            "motor_effort": 50.0 * v,
        }
        sample = observer.sample(**{name: rows[name] for name in observer.rows})
        found = observer.update(2e-3 * i, sample)
        if i == 0:
            call(library.robot_momentum_observer_start, sample, figures, before)
            continue
        said = call(
            library.robot_momentum_observer,
            memory,
            sample,
            np.array([observer.period]),
            before,
            figures,
            after,
        )
        assert said == 0 and found is not None
        before, after = after, before
        np.testing.assert_allclose(before[0, : found.efforts.size], found.efforts, rtol=1e-9, atol=1e-9)
        assert abs(before[0, 2 * found.efforts.size] / found.largest - 1.0) < 1e-9
        assert before[0, 2 * found.efforts.size + 1] == found.contact
    sample[0, 0] = np.nan
    assert (
        call(library.robot_momentum_observer, memory, sample, np.array([2e-3]), before, figures, after) == 2
    )


@needs_c
def test_c_of_a_floating_base_says_the_same_as_python(tmp_path: Path) -> None:
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    library = compiled(c_source(robot, ExportRequest(0, "robot", what="momentum_observer")), tmp_path)
    observer = MomentumObserver(robot, ObserverConfig(smoothing=1000.0), Sensed(True, motor_efforts=True))
    figures, size = (
        np.array([[x for values in observer.figures.values() for x in values]]),
        observer._state.size,
    )
    before, after, n = np.zeros((1, size)), np.zeros((1, size)), robot.n_coordinates
    for i in range(40):
        q, v = 0.1 * np.sin(0.02 * i + np.arange(n)), np.cos(0.02 * i + np.arange(n))
        twist = np.array([0.5 * np.sin(0.1 * i), -0.3, 0.2, 0.1, 1.0, np.cos(0.1 * i)])
        base = BaseMotion(exp(2e-3 * i * twist), twist[None], representation="body_fixed")
        sample = np.array([q, v, 3.0 * v])
        found = observer.update(2e-3 * i, sample, base)
        row = np.concatenate([base.pose[:3].ravel(), twist])
        if i == 0:
            call(library.robot_momentum_observer_start, sample, figures, row, before)
            continue
        call(
            library.robot_momentum_observer, sample, np.array([observer.period]), before, figures, row, after
        )
        before, after = after, before
        assert found is not None
        np.testing.assert_allclose(before[0, : n + 6], found.efforts, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(before[0, n + 6 : 2 * n + 12], found.deviations, rtol=1e-9)


def test_the_header_says_what_the_figures_are() -> None:
    robot = arm(np.inf)
    driven = robot.with_drives([replace(spec) for spec in robot.require_drives().specs])
    text = c_source(driven, ExportRequest(0, "arm", what="momentum_observer")).header
    words = " ".join(text.replace("*", " ").split())
    assert "[0] bandwidth (80)" in words and "position, velocity, motor_effort of all joints" in words
