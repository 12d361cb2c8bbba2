"""Intervals of 95 % have to hold what is true as often as they say."""

from pathlib import Path

import numpy as np
import pytest
from measured_arm import measured, measured_arm, misjudged, truth
from sweeps import THOROUGH

from hodyn_ros import Robot
from hodyn_ros.identification import Options, identify


def held(arm: Robot, seeds: range, duration: float) -> np.ndarray:
    """Return whether intervals hold the truth (seeds, figures), of what was identified."""
    rows = []
    prior = misjudged(arm)
    for seed in seeds:
        found = identify(prior, measured(arm, seed, duration=duration), Options(bandwidth=8.0))
        true = truth(arm, found)
        figures = [
            each for each in (*found.figures, found.effort_delay) if each.name in true and each.identified
        ]
        rows.append([abs(each.value - true[each.name]) < 1.96 * each.deviation for each in figures])
    return np.concatenate(rows)


@pytest.mark.skipif(not THOROUGH, reason="200 recordings; test_identify looks at the intervals of one")
@pytest.mark.timeout(1800)  # all of its recordings take longer than the usual limit
def test_intervals_hold_what_is_true_as_often_as_they_say(tmp_path: Path) -> None:
    covered = held(measured_arm(tmp_path), range(200), 6.0)
    assert 0.90 <= covered.mean() <= 0.99
