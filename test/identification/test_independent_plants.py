"""Figures and intervals, held against plants that are simulated apart from the package."""

from pathlib import Path

import numpy as np
import pytest
from interval_study import study
from measured_plants import PLANTS, STEP, Plant, RigidPlant, StickingPlant
from sweeps import THOROUGH, some

pytestmark = pytest.mark.thorough

SEEDS = 40
GROUPED_BY = "plant"  # of long studies


def test_efforts_of_mujocos_arm_follow_from_its_figures(tmp_path: Path) -> None:
    """Where friction does not turn over; implicit steps, where damping counts as inertia, left 4e-3 N·m."""
    plant = StickingPlant()
    plant.duration = 2.0
    efforts, motors, links = np.moveaxis(plant.simulate([0])[0], 1, 0)
    robot, drives = plant.robot(tmp_path), plant.drives

    def derivatives(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return x[1:-1], (x[2:] - x[:-2]) / (2.0 * STEP), (x[2:] - 2.0 * x[1:-1] + x[:-2]) / STEP**2

    _, speed, acceleration = derivatives(motors)
    load = robot.regressor(np.stack(derivatives(links), axis=1))[:, 0] @ robot.dynamic_parameters()
    friction = drives.viscous * speed + drives.coulomb * np.sign(speed)
    left = efforts[1:-1] - drives.inertia * acceleration - friction - load
    for j in range(len(plant.names)):
        assert np.sqrt(np.mean(left[np.abs(speed[:, j]) > 0.1, j] ** 2)) < 6e-4


@pytest.mark.parametrize("duration", some([StickingPlant.duration, 7.0, 4.0], 4.0))
def test_friction_that_sticks_biases_no_figure(duration: float) -> None:
    """One recording of MuJoCo's: efforts at reversals are no function of the velocity, and are left out."""
    plant = StickingPlant()
    plant.duration = duration
    rows = study(plant, [0])
    errors = {row.name: (row.mean - row.true) / row.said for row in rows}
    assert len(errors) > 25
    assert np.sqrt(np.mean(np.square(list(errors.values())))) < 1.5
    assert max(map(abs, errors.values())) < 4.5, max(errors.items(), key=lambda pair: abs(pair[1]))


@pytest.mark.skipif(not THOROUGH, reason="takes a minute")
def test_a_delay_of_which_certain_rates_tell_a_third_does_not_run_off() -> None:
    """Figures of this recording were 100 deviations off."""
    errors = {row.name: (row.mean - row.true) / row.said for row in study(RigidPlant(), [66])}
    assert max(map(abs, errors.values())) < 4.5, max(errors.items(), key=lambda pair: abs(pair[1]))


@pytest.mark.skipif(not THOROUGH, reason="takes half an hour")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", PLANTS)
def test_intervals_hold_what_is_true_as_often_as_they_say(plant: type[Plant]) -> None:
    """Of 95 % intervals; bounds of single figures leave room for what 40 recordings scatter."""
    rows = study(plant(), range(SEEDS))
    often = [row for row in rows if row.recordings > SEEDS // 2]
    whole = sum(row.inside * row.recordings for row in often) / sum(row.recordings for row in often)
    assert 0.92 <= whole <= 0.98
    for row in often:
        scatter = 1.0 / np.sqrt(row.recordings)
        assert row.inside >= 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / row.recordings), row
        assert abs(row.bias) < 1.0 / 3.0 + 2.5 * scatter, row
