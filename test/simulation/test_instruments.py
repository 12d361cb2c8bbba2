"""Recordings of simulated runs: what is put into them comes out again."""

from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused

from hodyn_ros.identification.files import read_recording
from hodyn_ros.simulation.closed_loop import LoopRecord
from hodyn_ros.simulation.instruments import Instruments

NAMES = ("shoulder", "elbow")
RATES = np.array([1.0, 1.7])


def run() -> LoopRecord:
    times = np.arange(3001) / 1000.0
    wave = np.sin(np.outer(times, RATES))
    return LoopRecord(times, wave, 1.1 * wave, 20.0 * np.sin(np.outer(times + 5e-4, RATES)), 0, 0)


@pytest.mark.parametrize("name", ["run.csv", "run"])
def test_records_hold_noise_and_delays_that_were_asked_for(tmp_path: Path, name: str) -> None:
    log = Instruments(link_delay=3e-3, effort_delay=2e-3, seed=1).measure(run(), begin=1.0)
    read = read_recording(log.save(tmp_path / name, NAMES), NAMES)
    times = read.links.times - read.links.times[0] + log.times[0]
    np.testing.assert_allclose(times, log.times, atol=1e-6)
    assert times[0] >= 1.0 - 2e-4 and 2e-4 < np.ptp(np.diff(times)) < 8e-4
    for channel, size, late, noise in (
        (read.links, 1.0, 3e-3, 5e-6),
        (read.motors, 1.1, 0.0, 5e-6),
        (read.efforts, 20.0, 2e-3, 0.1),
    ):
        left = channel.values - size * np.sin(np.outer(times - late, RATES))
        assert left.std() == pytest.approx(noise, rel=0.1) and abs(left.mean()) < 0.2 * noise


def test_the_same_seed_gives_the_same_record() -> None:
    first, same, other = (Instruments(seed=seed).measure(run()) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.efforts, same.efforts)
    assert not np.array_equal(first.efforts, other.efforts)


def test_instruments_that_cannot_be_are_refused() -> None:
    assert_refused(
        ({"link_delay": -1e-3}, "link_delay is -0.001"),
        ({"rate": 1000.0, "jitter": 5e-4}, "cannot jitter"),
        by=lambda figures: Instruments(**figures),
    )
