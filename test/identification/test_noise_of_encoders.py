"""What noise of the encoders makes of figures in the mean, and efforts that act by the mean of their hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import measured, measured_arm, misjudged

from hodyn_ros.identification import Channel, Identified, JointRecording, Options, identify
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.holds import Hold

NOISE = 40e-6  # [rad]


def with_noise(recording: JointRecording, size: float, seed: int) -> JointRecording:
    """Return it with noise of this size [rad] on positions of both sides; minus it gives the mirror image."""
    random = np.random.default_rng(seed)
    motors, links = recording.motors, recording.links
    assert motors is not None and links is not None
    shape = motors.values.shape
    return replace(
        recording,
        motors=Channel(motors.times, motors.values + size * random.standard_normal(shape)),
        links=Channel(links.times, links.values + size * random.standard_normal(shape)),
    )


def told(found: Identified) -> tuple[np.ndarray, np.ndarray]:
    """Return motor inertias and the delay of the efforts, and their deviations."""
    figures = [each for each in found.figures if "motor inertia" in each.name] + [found.effort_delay]
    return np.array([each.value for each in figures]), np.array([each.deviation for each in figures])


def test_what_noise_of_encoders_makes_of_figures_in_the_mean_is_taken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of noise and its mirror image what is linear cancels; its squares are left."""
    arm = measured_arm(tmp_path)
    prior, options = misjudged(arm), Options(bandwidth=8.0)
    recording = measured(arm, 3, 6.0)
    noisy = [with_noise(recording, size, seed) for seed in (1, 2, 3) for size in (NOISE, -NOISE)]
    exact, _ = told(identify(prior, recording, options))
    corrected = [told(identify(prior, each, options)) for each in noisy]
    monkeypatch.setattr(Data, "with_noise_again", lambda self: (self, self))
    usual = [told(identify(prior, each, options)) for each in noisy]
    off = [np.mean([(value - exact) / said for value, said in found], axis=0) for found in (corrected, usual)]
    print(off)


@pytest.mark.parametrize("frequency", [20.0, 40.0])
def test_a_held_effort_acts_by_the_mean_of_its_hold(tmp_path: Path, frequency: float) -> None:
    """Of a sine, the mean over a hold is sin(x) / x as large with x = pi f T: 1 - x^2 / 6 by curvature."""
    recording = measured(measured_arm(tmp_path), 0, 3.0)
    data = Data(recording, 8.0)
    period = 1.0 / 250.0
    angles = 2.0 * np.pi * frequency * period * np.arange(len(data.effort_times))
    data.effort_times = data.effort_times[0] + period * np.arange(len(angles))
    data.efforts = np.sin(angles)[:, None]
    data.hold(Hold(period, 0.0, 0.0))
    size = data.efforts[1:-1, 0] @ data.acting[1:-1, 0] / np.sum(data.efforts[1:-1] ** 2)
    half = np.pi * frequency * period
    assert size == pytest.approx(np.sin(half) / half, abs=half**4 / 20.0)
