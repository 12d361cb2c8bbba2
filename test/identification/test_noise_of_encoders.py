"""What noise of the encoders makes of figures in the mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from measured_arm import measured, measured_arm

from hodyn_ros.identification.least_squares import estimate as estimation
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.residuals import Key, Noise
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.smoothing import LowPass, smooth
from hodyn_ros.identification.springs.deflection import KINDS
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.lie.jets import Array

SLOPE, PRIOR, ROWS = 3.0, 1.0, 20_000
KEY, MODEL = Key(0, 0), cast(TorqueModel, None)


def test_noise_that_is_added_is_as_large_as_that_of_the_encoders(tmp_path: Path) -> None:
    """By the motion of a recording with the same stamps, but without noise."""
    arm = measured_arm(tmp_path)
    noisy, exact = (measured(arm, 4, 6.0, noise=size).motors for size in (1.0, 0.0))
    assert noisy is not None and exact is not None
    data = Data(measured(arm, 4, 6.0), 8.0)
    instants, still = noisy.times[200:-200], np.zeros(3)
    shaken = next(data.with_noise_again(np.random.default_rng(0)))
    motion, more, less = (each.fast_motion(instants, still) for each in (data, *shaken))
    np.testing.assert_allclose(
        0.5 * (more.motor_velocity + less.motor_velocity), motion.motor_velocity, rtol=0.0, atol=1e-12
    )
    true = smooth(exact, data.fastest).sample(instants, 2)
    for order, name in ((1, "motor_velocity"), (2, "motor_acceleration")):
        noise = np.std(getattr(motion, name) - true[order])
        assert np.std(getattr(more, name) - getattr(motion, name)) == pytest.approx(noise, rel=0.15)


def test_noise_of_encoders_counts_degrees_of_freedom(tmp_path: Path) -> None:
    """A motion follows a share of the noise, 6.4 % of its square here, which is missing from the residual."""
    data = Data(measured(measured_arm(tmp_path), 4, 20.0), 8.0)
    draws = data.with_noise_again(np.random.default_rng(0))
    added = [next(draws)[0].deflections - data.deflections for _ in range(10)]
    followed = 2.0 * data.fastest / 250.0  # that of the motors is as slow as their motion
    assert np.std(added) == pytest.approx(5e-6 * np.sqrt(1.0 + followed), rel=0.01)


def test_noise_that_is_added_to_deflections_is_as_large_and_the_same(tmp_path: Path) -> None:
    """What the link's encoder has more, motor minus link has less."""
    data = Data(measured(measured_arm(tmp_path), 4, 6.0), 8.0)
    more, less = next(data.with_noise_again(np.random.default_rng(0)))
    np.testing.assert_allclose(0.5 * (more.deflections + less.deflections), data.deflections, atol=1e-15)
    further = more.deflections - data.deflections
    assert np.std(further[200:-200]) == pytest.approx(5e-6, rel=0.2)  # that of motors is smoothed
    seen = [each.fast_motion(data.link_times, np.zeros(3)).q for each in (data, more)]
    slow = LowPass(data.link_times, data.fastest)
    apart = slow(further + seen[1] - seen[0])  # that of motors is left
    assert np.std(apart) < 0.8 * np.std(slow(further))


@dataclass(frozen=True)
class Line:
    """Samples of y = a x, where x is told with noise: a recording for what the estimate asks of one."""

    told: Array
    measured: Array
    size: Array  # of the noise of x (N,)
    shared: float  # of the noise, that y has

    def with_noise_again(self, random: np.random.Generator) -> Iterator[tuple[Line, Line]]:
        while True:
            noise = self.size * random.standard_normal(len(self.told))
            yield self._shaken(noise), self._shaken(-noise)

    def _shaken(self, noise: Array) -> Line:
        return replace(self, told=self.told + noise, measured=self.measured + self.shared * noise)


@dataclass(frozen=True)
class Rows:
    """What a line predicts beyond what was measured, by no filter."""

    beyond: Array

    @property
    def low_pass(self) -> Rows:
        return self

    def spectrum(self, values: Array) -> Array:
        return values


def linearised(
    _: object, runs: Sequence[Line], now: Unknowns, noise: Mapping[Key, Noise], **__: object
) -> object:
    """Rows of a line, for what the estimate asks of a recording."""
    told, nothing = runs[0].told, np.zeros(len(runs[0].told))
    columns = [told, nothing, nothing, nothing, nothing, runs[0].measured]
    rows = Rows(told * now.parameters[0] - runs[0].measured)
    return {KEY: rows}, [(KEY, np.column_stack(columns) / noise[KEY].deviations[:, None])]


def slopes_of(
    line: Line, noise: Mapping[Key, Noise], spread: float = np.inf
) -> tuple[Array, Array, Unknowns, Array]:
    """Return what least squares tell, and what is left without the noise, with their covariances."""
    start = Unknowns(np.array([PRIOR]), np.zeros((KINDS, 0)), 0.0, np.array([[0.01], [0.0]]))
    spreads = np.array([spread, 0.0, 0.0, 0.0])
    _, systems = cast(Any, linearised(None, [line], start, noise))
    step = estimation._solved(MODEL, systems, start, start, spreads)
    found, covariance = estimation._without_noise(
        MODEL, [cast(Data, line)], step.unknowns, start, spreads, noise, step
    )
    return step.unknowns.parameters, step.covariance, found, covariance


@pytest.mark.parametrize(("size", "shared"), [(0.1, 0.0), (0.3, 0.0), (0.3, -1.0), (0.3, 2.0), (1.0, 0.0)])
def test_what_squares_of_noise_make_of_a_slope_is_taken_off(
    size: float, shared: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least squares tell (a + b s^2) / (1 + s^2), with b times the noise in y, as deflections have it."""
    monkeypatch.setattr(estimation, "linearised", linearised)
    x, noise = np.random.default_rng(2).standard_normal((2, ROWS)) * np.array([[1.0], [size]])
    line = Line(x + noise, SLOPE * x + shared * noise, np.full(ROWS, size), shared)
    noises = {KEY: Noise(np.ones(1))}
    usual, _, found, _ = slopes_of(line, noises)
    assert usual[0] == pytest.approx((SLOPE + shared * size**2) / (1.0 + size**2), rel=0.02)
    assert found.parameters[0] == pytest.approx(SLOPE, rel=0.02)


def test_where_noise_is_all_that_is_told_the_prior_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the difference of motor and link acceleration: y has the noise too, and least squares believe it.

    They tell the prior 1 ± 1 and the slope 7 of the noise, as often as rows tell of it.
    """
    monkeypatch.setattr(estimation, "linearised", linearised)
    size = 0.01  # as much as the noise of y lets tell: (10000 + 20000 0.01^2 7) / (1 + 2)
    noise = size * np.random.default_rng(4).standard_normal(ROWS)
    line = Line(noise, 7.0 * noise, np.full(ROWS, size), 7.0)
    usual, before, found, covariance = slopes_of(line, {KEY: Noise(np.ones(1))}, 1.0)
    assert usual[0] == pytest.approx((PRIOR + 2.0 * 7.0) / 3.0, rel=0.02) and before[0, 0] < 0.35
    assert found.parameters[0] == pytest.approx(PRIOR, abs=0.3)
    assert 0.8 < np.sqrt(covariance[0, 0]) < 1.05


@pytest.mark.parametrize("louder", [0.0, 1.0, 2.0])
def test_deviations_count_that_noise_of_encoders_is_louder_where_more_is_told(
    louder: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a slope from samples whose noise grows with x^2, as friction's does where efforts change fast.

    Its variance is sum x^2 s(x)^2 / (sum x^2)^2, whatever the mean of s^2; noise of y of its own adds to it.
    """
    monkeypatch.setattr(estimation, "linearised", linearised)
    monkeypatch.setattr(estimation, "_DRAWS", 200)  # which tell the deviation to 5 %
    random = np.random.default_rng(3)
    x, own = random.standard_normal((2, ROWS))
    size = 0.02 * np.abs(x) ** louder
    noise = size * random.standard_normal(ROWS)
    line = Line(x + noise, SLOPE * x + 0.05 * own, size, 0.0)
    left = np.std(line.measured - SLOPE * line.told)  # of which deviations take all to be alike
    noises = {KEY: Noise(np.array([left]))}
    _, before, _, covariance = slopes_of(line, noises)
    true = np.sqrt(np.sum(x**2 * ((SLOPE * size) ** 2 + 0.05**2))) / np.sum(x**2)
    assert np.sqrt(covariance[0, 0]) == pytest.approx(true, rel=0.15)
    if louder:
        assert np.sqrt(before[0, 0]) < 0.8 * true


def test_a_covariance_has_no_variance_below_zero() -> None:
    """As where outliers that hardly count were taken for noise; one that is right stays as it is."""
    right = np.array([[4.0, 1.0, 0.0], [1.0, 0.01, 0.0], [0.0, 0.0, 0.0]]) + np.diag([0.0, 0.25, 0.0])
    np.testing.assert_allclose(estimation._positive(right), right, rtol=1e-12, atol=1e-15)
    wrong = right - np.diag([0.0, 0.2, 0.0])
    found = estimation._positive(wrong)
    assert np.linalg.eigvalsh(wrong)[0] < -0.1
    assert np.linalg.eigvalsh(found)[0] > -1e-14 and (np.diag(found) >= np.diag(wrong)).all()
