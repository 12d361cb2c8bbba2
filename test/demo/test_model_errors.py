"""What the links are off as more becomes known of an arm: each step has to do its part."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import measured_arm, swings
from rich.console import Console

from hodyn_ros.cli.model_errors import became_known, draw, step_table, summary
from hodyn_ros.demo.model_errors import (
    BOX,
    CARRYING,
    DAMPING_TIME,
    EXACT,
    IDENTIFIED,
    LEARNT,
    STEPS,
    TRANSITION,
    WRONG,
    Course,
    ModelErrors,
    model_errors,
)
from hodyn_ros.demo.mujoco_arm import MujocoArm
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.trajectory import WaypointSpline

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ModelErrors:
    """An arm of three joints in MuJoCo, whose friction sticks, recorded and repeated for a short while."""
    file = measured_arm(tmp_path_factory.mktemp("arm"))
    rubs = FrictionSpec(transition=TRANSITION)
    file = file.with_drives([replace(spec, motor_friction=rubs) for spec in file.require_drives().specs])
    waypoints = [[0.0, 0.4, 0.3], [0.8, 0.9, -0.4], [0.0, 0.4, 0.3]]
    repeated = WaypointSpline([0.0, 0.6, 1.2], waypoints, order=6, joint_names=file.joint_names)
    course = Course(file, swings(), repeated, recorded=2.4, repetitions=1, rate=250.0)
    return model_errors(lambda at_rest: MujocoArm(at_rest, DAMPING_TIME), course=course)


def test_each_step_leaves_less_of_the_error(found: ModelErrors) -> None:
    left = [found.left(step) for step in (WRONG, IDENTIFIED, CARRYING, LEARNT)]
    assert left == sorted(left, reverse=True)
    assert found.left(CARRYING) < 0.1
    assert found.runs[CARRYING].rms < 1.2 * found.runs[EXACT].rms  # as if all had been known
    assert found.repetitions[0] == found.runs[CARRYING].rms
    assert found.repetitions[-1] == found.runs[LEARNT].rms


def test_what_became_known_is_what_is(found: ModelErrors) -> None:
    figures = summary(found)
    assert np.abs(figures["identified"]["stiffness_off"]).max() < 0.01
    assert np.abs(figures["identified"]["coulomb_friction_off"]).max() < 0.03
    low, high = figures["payload"]["mass"]["interval"]
    assert low < BOX.mass < high and high - low < 0.1 * BOX.mass
    json.dumps(figures, allow_nan=False)


def test_it_is_said_and_drawn(found: ModelErrors, tmp_path: Path) -> None:
    said = io.StringIO()
    Console(file=said, width=80).print(step_table(found))
    assert all(step.split()[0] in said.getvalue() for step in STEPS)
    assert max(map(len, said.getvalue().splitlines())) <= 80
    assert became_known(found)[1].startswith("payload: ")
    assert draw(found, "an arm", tmp_path / "drawn.png").stat().st_size > 10_000
