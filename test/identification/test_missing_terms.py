"""What efforts hang on beside the model is found, said, and counted by intervals."""

import numpy as np
import pytest
from measured_arm import EFFORT_DELAY, measured, measured_arm, misjudged, swings, truth
from sweeps import THOROUGH, some

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.identification import Channel, Identified, JointRecording, Options, identify

pytestmark = pytest.mark.thorough
OPTIONS = Options(bandwidth=8.0)
LASTS = 5.0  # [s]
TILT = np.radians(2.0)


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def with_more(recording: JointRecording, of: dict[int, Array]) -> JointRecording:
    """Return a recording with further efforts (N,) of some joints."""
    efforts = recording.efforts.values.copy()
    for joint, more in of.items():
        efforts[:, joint] += more
    return JointRecording(
        recording.source,
        recording.joint_names,
        Channel(recording.efforts.times, efforts),
        recording.motors,
        recording.links,
    )


def ratios(arm: Robot, found: Identified) -> dict[str, float]:
    """Return by how many of their deviations figures are off."""
    return {
        name: (found.figure(name).value - true) / found.figure(name).deviation
        for name, true in truth(arm, found).items()
    }


@pytest.mark.parametrize("seed", some(range(3), 0))
def test_nothing_is_missing_of_a_recording_that_the_model_explains(arm: Robot, seed: int) -> None:
    found = identify(misjudged(arm), measured(arm, seed, LASTS), OPTIONS)
    assert not [line for line in found.notes if line.startswith("to be looked at")]


def test_a_base_that_is_not_level_is_said_and_counted(arm: Robot) -> None:
    size = 9.81
    down = size * np.array([np.sin(TILT) * 0.6, np.sin(TILT) * 0.8, -np.cos(TILT)])
    tilted = arm.with_tree(arm.tree.with_gravity(down))
    found = identify(misjudged(arm), measured(tilted, 1, LASTS), OPTIONS)
    (line,) = (each for each in found.notes if "gravity seems" in each)
    told = np.array([float(part) for part in line.split("gravity: [")[1].split("]")[0].split(",")])
    assert np.abs(told - down).max() < 0.05, line
    errors = ratios(tilted, found)
    assert max(map(abs, errors.values())) < 3.5, errors
    if THOROUGH:
        known = identify(misjudged(tilted), measured(tilted, 1, LASTS), OPTIONS)
        assert not any("gravity seems" in each for each in known.notes)


def test_a_wrong_torque_constant_is_said_and_counted(arm: Robot) -> None:
    recording = measured(arm, 1, LASTS)
    found = identify(
        misjudged(arm), with_more(recording, {2: -0.05 * recording.efforts.values[:, 2]}), OPTIONS
    )
    (line,) = (line for line in found.notes if line.startswith("to be looked at"))
    assert "efforts of joint 'bend' seem to be off by" in line
    assert abs(float(line.split("off by ")[1].split("%")[0]) + 5.0) < 1.0, line
    errors = ratios(arm, found)
    assert max(map(abs, errors.values())) < 3.5, errors


def test_friction_and_ripples_of_no_figure_are_named_by_joint_and_counted(arm: Robot) -> None:
    recording = measured(arm, 2, 10.0)
    q, speed = np.moveaxis(swings().sample(recording.efforts.times - EFFORT_DELAY, 1), 1, 0)
    falls = 1.0 * np.tanh(speed[:, 1] / 0.01) * np.exp(-((speed[:, 1] / 0.15) ** 2))
    more = {1: falls, 2: 0.4 * np.sin(20.0 * q[:, 2])}
    found = identify(misjudged(arm), with_more(recording, more), OPTIONS)
    lines = [line for line in found.notes if line.startswith("to be looked at")]
    (friction,) = (line for line in lines if "friction by the speed" in line)
    (ripple,) = (line for line in lines if "by the way" in line)
    assert "'lift'" in friction and "'bend'" in ripple and "20 times in a turn" in ripple
    assert len(lines) == 2, lines
    errors = ratios(arm, found)
    assert max(map(abs, errors.values())) < 3.5, errors
