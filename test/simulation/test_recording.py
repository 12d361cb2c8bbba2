"""Recordings, and what is read from them."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from hodyn_ros.demo.run import summarise
from hodyn_ros.simulation.recording import Recording, latencies, nearest_places, tracking
from hodyn_ros.trajectory import Cosines

MOTION = Cosines([0.5, 0.3], [2.0, 3.0])
START = 1_700_000_000_000_000_000
MS = 1_000_000


def recording(error: float = 0.0, lost: int = 0) -> Recording:
    """Return a motion of two seconds at 1 kHz; the robot is measured in between, the second joint off."""
    times = np.arange(2001)
    desired_stamps = START + times * MS
    # measured on a grid of its own, 0.3 ms after that of the desired motion
    measured_stamps = desired_stamps + 300_000
    measured = MOTION.sample(1e-9 * (measured_stamps - START), 0)[:, 0]
    measured[:, 1] += error
    answered = desired_stamps[lost:]
    return Recording(
        joint_names=np.array(["shoulder", "elbow"]),
        start=START,
        end=int(desired_stamps[-1]),
        samples_sent=len(times),
        desired_stamps=desired_stamps,
        desired=MOTION.sample(1e-3 * times, 4),
        desired_sent=desired_stamps + 50_000,
        feedforward_stamps=answered,
        efforts=np.zeros((len(answered), 3, 2)),
        feedforward_received=answered + 50_000 + 1000 * (1 + np.arange(len(answered)) % 100),
        computation_times=np.full(len(answered), 2e-5),
        measured_stamps=measured_stamps,
        measured=measured,
    )


def test_desired_positions_are_those_of_the_instant_of_the_measurement() -> None:
    found = tracking(recording(), 0.5, 1.5)
    assert np.abs(found.errors).max() < 1e-14
    assert found.times[0] >= 0.5 and found.times[-1] <= 1.5
    assert len(found.times) == 1000


def test_errors_are_measured_minus_desired() -> None:
    found = tracking(recording(error=-2e-3), 0.0, 2.0)
    np.testing.assert_allclose(found.errors[:, 1], -2e-3, rtol=1e-9)
    assert found.maximum == pytest.approx(2e-3, rel=1e-9)
    assert found.rms == pytest.approx(2e-3 / np.sqrt(2.0), rel=1e-9)


def test_nothing_recorded_is_said() -> None:
    refused(lambda: tracking(recording(), 5.0, 6.0), "nothing was recorded between 5 s and 6 s")


def test_latencies_and_losses_count_from_message_to_message() -> None:
    one = recording(lost=7)
    found = latencies(one)
    assert len(found) == 1994
    np.testing.assert_allclose(found[:3], [1e-6, 2e-6, 3e-6], rtol=1e-9)
    figures = summarise(one, 0.0, 2.0, 1000.0)
    assert figures["messages_due"] == figures["messages_sent"] == 2001
    assert figures["messages_received"] == 1994
    assert figures["latency_us"]["p50"] == pytest.approx(50.0, abs=0.6)
    assert figures["latency_us"]["p99"] == pytest.approx(99.0, abs=0.6)
    assert figures["computation_us"]["p50"] == pytest.approx(20.0, rel=1e-9)
    assert figures["message_rate_hz"] == pytest.approx(1000.0, rel=1e-9)
    assert figures["state_rate_hz"] == pytest.approx(1000.0, rel=1e-9)


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    one = recording()
    one.save(tmp_path / "one.npz")
    again = Recording.load(tmp_path / "one.npz")
    for field in fields(Recording):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(one, field.name))
    assert isinstance(again.start, int)


@given(st.lists(st.integers(0, 1000), min_size=1, unique=True), st.lists(st.integers(-50, 1050), min_size=1))
def test_nearest_places(values: list[int], wanted: list[int]) -> None:
    ordered = np.array(sorted(values), dtype=np.int64)
    places = nearest_places(ordered, np.array(wanted, dtype=np.int64))
    for place, want in zip(places, wanted):
        assert abs(ordered[place] - want) == np.abs(ordered - want).min()
