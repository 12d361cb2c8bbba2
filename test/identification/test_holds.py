"""Efforts that a controller holds and a recorder reads by a clock of its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import EFFORT_DELAY, measured, measured_arm, misjudged

from hodyn_ros.identification import Channel, identify
from hodyn_ros.identification.least_squares.holds import HeldRows, seek_hold
from hodyn_ros.identification.smoothing import LowPass
from hodyn_ros.lie.jets import Array

RATE, DURATION, SHORT, NOISE = 250.0, 14.0, 6.5, 0.1
WAVES = 2.0 * np.pi * np.array([0.15, 0.31, 0.48])  # [rad/s]
SIZES = np.array([[40.0, 15.0, 25.0], [10.0, 30.0, 5.0]])  # [N·m] of two joints


def since_change(times: Array, controller: float) -> Array:
    """Return how long ago a controller with a rate [Hz] changed its effort (N,) [s], by counting periods."""
    return times - np.floor(times * controller + 0.3) / controller + 0.3 / controller


def read(controller: float | None, seed: int, size: float = NOISE) -> list[HeldRows]:
    """Return what samples of efforts of two joints leave beside the efforts themselves; held, or not.

    `size` [N·m] is that of their noise.
    """
    random = np.random.default_rng(seed)
    times = np.arange(round(DURATION * RATE)) / RATE + random.uniform(-2e-4, 2e-4, round(DURATION * RATE))
    late = 0.0 if controller is None else since_change(times, controller) - 0.5 / controller
    low_pass = LowPass(times, 8.0)
    rows = []
    for sizes in SIZES:

        def effort(instants: Array, sizes: Array = sizes) -> Array:
            return np.sin(np.multiply.outer(instants, WAVES)) @ sizes

        left = effort(times - late) - effort(times) + size * random.standard_normal(len(times))
        rate = np.cos(np.multiply.outer(low_pass.even, WAVES)) @ (sizes * WAVES)
        unknown = np.column_stack([effort(times), np.gradient(effort(times), times), np.ones_like(times)])
        noise = np.array([size * np.sqrt(16.0 * 2.0 / RATE)])  # four instants, of white noise, a period
        spectra = low_pass.spectrum(np.column_stack([left, unknown])) / noise
        rows.append(HeldRows(low_pass, rate, noise, spectra[:, 0], spectra[:, 1:]))
    return rows


@pytest.mark.parametrize("slower", [0.24, -0.24, 0.6])
def test_the_sawtooth_of_two_clocks_is_found(slower: float) -> None:
    hold = seek_hold(read(RATE - slower, 1), 1.0 / RATE, 1.0)
    assert hold is not None
    times = np.arange(0.0, DURATION, 1.0 / RATE)
    late = since_change(times, RATE - slower) - 0.5 / RATE
    missed = hold.since_middle(times) - late
    missed = (missed + 0.5 / RATE) % (1.0 / RATE) - 0.5 / RATE  # about changes, hold by hold
    assert hold.beat == pytest.approx(-slower, abs=0.1 / DURATION)
    assert np.sqrt(np.mean(missed**2)) < 0.15 * np.std(late)


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_no_hold(seed: int) -> None:
    assert seek_hold(read(None, seed), 1.0 / RATE, 1.0) is None


@pytest.mark.parametrize(("share", "found"), [(0.7, True), (0.5, False)])
def test_a_sawtooth_that_another_one_nearly_explains_is_no_hold(share: float, found: bool) -> None:
    """Of what two of them leave together, in noise that hides little of either."""
    one, other = (read(RATE - slower, 1, 5.0 * NOISE) for slower in (0.57, 0.24))
    both = [replace(a, residual=share * a.residual + (1.0 - share) * b.residual) for a, b in zip(one, other)]
    hold = seek_hold(both, 1.0 / RATE, 1.0)
    assert (hold is not None) == found


@pytest.mark.thorough
def test_held_efforts_are_identified_as_well_as_others(tmp_path: Path) -> None:
    """By the truth of the delay, a note that says so, and deviations as of efforts that are not held.

    Where noise by which rows are weighed had held efforts in it, deviations were up to 2.6 times as large.
    """
    arm = measured_arm(tmp_path)
    recording = measured(arm, 3, SHORT)
    times = recording.efforts.times
    late = since_change(times, RATE - 0.35) - 0.5 / RATE
    exact = measured(arm, 3, SHORT, noise=0.0).efforts
    moved = np.column_stack([np.interp(times - late, exact.times, each) for each in exact.values.T])
    held = replace(recording, efforts=Channel(times, recording.efforts.values + moved - exact.values))
    found, other = (identify(misjudged(arm), each) for each in (held, recording))
    assert abs(found.effort_delay.value - EFFORT_DELAY) < 2.5 * found.effort_delay.deviation
    assert found.effort_delay.deviation < 1e-4
    assert any("a controller held the efforts" in note for note in found.notes)
    usual = {each.name: each.deviation for each in (*other.figures, other.effort_delay) if each.identified}
    wider = {
        each.name: each.deviation / usual[each.name]
        for each in (*found.figures, found.effort_delay)
        if each.identified and each.name in usual
    }
    assert len(wider) > 30
    assert max(wider.values()) < 1.15, max(wider.items(), key=lambda pair: pair[1])
