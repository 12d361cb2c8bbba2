"""The momentum observer in C, beside the one of Python, sample by sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported_code import call, compiled, needs_c

from hodyn_ros import InputError, Robot, share
from hodyn_ros.export import c_source
from hodyn_ros.export.request import ExportRequest
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


def test_what_has_no_straight_line_code_is_refused() -> None:
    delta = Robot.load(share.find("config", "delta.yaml"))
    with pytest.raises(InputError, match="whose observer is not exported"):
        c_source(delta, ExportRequest(0, what="momentum_observer"))


def test_the_header_says_what_the_figures_are() -> None:
    robot = arm(np.inf)
    driven = robot.with_drives([replace(spec) for spec in robot.require_drives().specs])
    text = c_source(driven, ExportRequest(0, "arm", what="momentum_observer")).header
    words = " ".join(text.replace("*", " ").split())
    assert "[0] bandwidth (80)" in words and "position, velocity, motor_effort of all joints" in words
