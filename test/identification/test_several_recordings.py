"""Recordings that are identified together."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from measured_arm import COULOMB, drives_of, measured, measured_arm, misjudged
from refusals import refused

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, JointRecording, Options, identify

pytestmark = pytest.mark.thorough

OPTIONS = Options(bandwidth=8.0)


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def switched_on_anew(recording: JointRecording) -> JointRecording:
    """Let motors count from elsewhere, and give it another name."""
    assert recording.motors is not None
    motors = Channel(recording.motors.times, recording.motors.values + np.array([1e-3, -2e-3, 5e-4]))
    return replace(recording, source="another run", motors=motors)


def test_two_recordings_tell_more_than_one_and_what_they_contradict_is_named(arm: Robot) -> None:
    """Friction of `lift` is 15 % more in the second recording, as when it is cold."""
    first, second = measured(arm, 0, 4.0), switched_on_anew(measured(arm, 1, 4.0))
    assert second.motors is not None
    speed = np.gradient(second.motors.values[:, 1], second.motors.times)
    more = 0.15 * COULOMB * speed / np.sqrt(speed**2 + 1e-4)
    efforts = second.efforts.values + more[:, None] * [0.0, 1.0, 0.0]
    colder = replace(second, efforts=Channel(second.efforts.times, efforts))
    alone, both = identify(misjudged(arm), first, OPTIONS), identify(misjudged(arm), [first, colder], OPTIONS)
    shares = []
    for name, spec in zip(arm.joint_names, drives_of(arm)):
        figure = both.figure(f"stiffness of {name}")
        assert figure.value == pytest.approx(spec.stiffness, rel=0.02)
        shares.append(figure.deviation / alone.figure(f"stiffness of {name}").deviation)
    assert np.mean(shares) < 0.9
    (contradicted,) = [note for note in both.notes if "was the robot the same" in note]
    assert contradicted.startswith("Coulomb friction of lift: ")
    assert "by a simulation" in contradicted and "by another run" in contradicted
    ((source, (efforts_left, deflections)),) = both.further
    assert source == "another run"
    assert all(fit.rms == pytest.approx(0.1, rel=0.1) for fit in (efforts_left[0], efforts_left[2]))
    assert all(fit.rms == pytest.approx(5e-6, rel=0.1) for fit in deflections)


def test_recordings_of_other_channels_are_refused(arm: Robot) -> None:
    whole = measured(arm, 0, 3.0)
    call = partial(identify, arm, [whole, replace(whole, source="other run", links=None)], OPTIONS)
    refused(call, "other channels than a simulation")
