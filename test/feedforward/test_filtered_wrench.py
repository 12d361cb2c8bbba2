"""The filter of measured wrenches, against responses in closed form."""

from math import comb, factorial

import numpy as np
import pytest
from refusals import refused
from sweeps import some

from hodyn_ros.feedforward.filtered_wrench import FilteredWrench

pytestmark = pytest.mark.thorough

CUTOFF = 20.0
WRENCH = np.array([0.3, -1.0, 2.0, 10.0, -20.0, 5.0])
NEVER = 1e6


def omega(order: int, cutoff: float = CUTOFF) -> float:
    return 2.0 * np.pi * cutoff / np.sqrt(2.0 ** (1.0 / (order + 1)) - 1.0)


def step_response(order: int, t: float) -> np.ndarray:
    """Return 1 - exp(-wt) sum (wt)^j / j! and its derivatives by t, up to `order`.

    The first derivative is that of the gamma distribution, w (wt)^(N-1) / (N-1)! exp(-wt).
    """
    w = omega(order)
    s = w * t
    values = [1.0 - np.exp(-s) * sum(s**j / factorial(j) for j in range(order + 1))]
    for k in range(order):  # derivative k of s^(N-1) exp(-s)
        terms = [
            comb(k, i) * (-1.0) ** (k - i) * s ** (order - i) / factorial(order - i) for i in range(k + 1)
        ]
        values.append(w ** (k + 1) * sum(terms) * np.exp(-s))
    return np.array(values)


@pytest.mark.parametrize("order", range(7))
def test_a_step_comes_out_as_the_gamma_function_has_it(order: int) -> None:
    measured = FilteredWrench(order, CUTOFF, NEVER)
    start = 1_700_000_000_000_000_000
    measured.measure(start, WRENCH)
    scale = omega(order) ** np.arange(order + 1)
    rng = np.random.default_rng(order)
    instant = start
    for _ in range(200):  # uneven steps: the way there does not count
        instant += int(rng.integers(1, 2_000_000))
        expected = step_response(order, 1e-9 * (instant - start))
        found = measured.at(instant) / scale[:, None]
        np.testing.assert_allclose(found, (expected / scale)[:, None] * WRENCH, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("order", [0, 2, 4])
def test_derivatives_belong_to_what_comes_out(order: int) -> None:
    filtered = FilteredWrench(order, CUTOFF, NEVER)
    rng = np.random.default_rng(1)
    for i in range(50):
        filtered.measure(i * 1_000_000, rng.normal(size=6))
    values = filtered.at(50_000_000)
    h = 1e-4  # the measurement stands still: Taylor's series to the order there is
    later = filtered.at(50_100_000)
    series = sum(values[k] * h**k / factorial(k) for k in range(order + 1))
    rest = (omega(order) * h) ** (order + 1)
    assert np.abs(later[0] - series).max() <= 10.0 * rest


def test_the_exact_step_agrees_with_a_state_space_simulation() -> None:
    from scipy.signal import StateSpace, lsim  # here, not in every worker that only reads the tests

    order, step = 3, 1e-3
    w = omega(order)
    chain = np.diag([-w] * 4) + np.diag([w] * 3, -1)
    system = StateSpace(chain, np.array([[w], [0.0], [0.0], [0.0]]), np.array([[0.0, 0, 0, 1]]), [[0.0]])
    inputs = np.random.default_rng(5).normal(size=200)
    _, outputs, _ = lsim(system, inputs, step * np.arange(200), interp=False)
    filtered = FilteredWrench(order, CUTOFF, NEVER)
    found = []
    for i, value in enumerate(inputs):
        found.append(filtered.at(i * 1_000_000)[0, 4])
        filtered.measure(i * 1_000_000, [0.0, 0.0, 0.0, 0.0, value, 0.0])
    np.testing.assert_allclose(found, outputs, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("order", some([0, 2, 5], 2))
def test_a_sine_at_the_cut_off_loses_three_decibels(order: int) -> None:
    from scipy.signal import lti

    w = omega(order)
    chain = lti([w ** (order + 1)], np.poly([-w] * (order + 1)))
    _, response = chain.freqresp([2.0 * np.pi * CUTOFF])
    assert abs(abs(response[0]) - np.sqrt(0.5)) < 1e-12
    filtered = FilteredWrench(order, CUTOFF, NEVER)
    step, found = 5_000, []
    times = 1e-9 * step * np.arange(40_000)
    for i, value in enumerate(np.sin(2.0 * np.pi * CUTOFF * times)):
        filtered.measure(i * step, np.full(6, value))
        found.append(filtered.at(i * step)[0, 0])
    # held samples are half a step late; the amplitude comes from projections over the last two periods
    last = slice(-20_000, None)
    wave = np.exp(-2j * np.pi * CUTOFF * times[last])
    assert abs(abs(2.0 * np.mean(np.array(found)[last] * wave)) - np.sqrt(0.5)) < 1e-6


def test_a_wrench_that_is_no_longer_measured_fades_smoothly_and_is_counted() -> None:
    filtered = FilteredWrench(2, CUTOFF, 0.1)
    filtered.measure(0, WRENCH)
    held = filtered.at(100_000_000)
    assert filtered.timeouts == 0
    np.testing.assert_allclose(held[0], step_response(2, 0.1)[0] * WRENCH, rtol=1e-12, atol=0.0)
    after = filtered.at(130_000_000)
    assert filtered.timeouts == 1
    expected = np.outer(step_response(2, 0.13) - step_response(2, 0.03), WRENCH)
    scale = omega(2) ** np.arange(3)[:, None]
    np.testing.assert_allclose(after / scale, expected / scale, rtol=0.0, atol=1e-12)
    assert np.abs(filtered.at(2_000_000_000)).max() < 1e-9
    assert filtered.timeouts == 1
    filtered.measure(2_100_000_000, WRENCH)
    filtered.at(2_300_000_000)
    assert filtered.timeouts == 2


def test_other_properties_take_over_the_derivatives_there_are() -> None:
    filtered = FilteredWrench(2, CUTOFF, 0.1)
    filtered.measure(0, WRENCH)
    before = filtered.at(10_000_000)
    slower = filtered.changed(4, 5.0, 0.2)
    np.testing.assert_allclose(slower.at(10_000_000)[:3], before, rtol=1e-12, atol=0.0)
    assert not slower.at(10_000_000)[3:].any()
    fewer = filtered.changed(1, 50.0, 0.1)
    np.testing.assert_allclose(fewer.at(10_000_000), before[:2], rtol=1e-12, atol=0.0)
    fewer.at(110_000_001)
    assert fewer.timeouts == 1


def test_a_clock_that_jumps_back_goes_on_from_there() -> None:
    filtered = FilteredWrench(1, CUTOFF, 0.1)
    filtered.measure(5_000_000_000, WRENCH)
    before = filtered.at(5_010_000_000)
    np.testing.assert_array_equal(filtered.at(1_000_000_000), before)
    filtered.at(1_020_000_000)
    np.testing.assert_allclose(
        filtered.at(1_020_000_000)[0], step_response(1, 0.03)[0] * WRENCH, rtol=1e-12, atol=0.0
    )
    filtered.at(1_100_000_001)
    assert filtered.timeouts == 1


def test_the_delay_is_that_of_a_ramp() -> None:
    filtered = FilteredWrench(2, CUTOFF, NEVER)
    step = 50_000
    for i in range(20_000):
        filtered.measure(i * step, np.full(6, 1e-9 * i * step))
    found = filtered.at(20_000 * step)[0, 0]
    # held samples lie half a step behind the ramp
    assert abs(1.0 - 0.5e-9 * step - filtered.delay - found) < 1e-9


@pytest.mark.parametrize("given", [(-1, 10.0, 0.1), (2, 0.0, 0.1), (2, float("inf"), 0.1), (2, 10.0, 0.0)])
def test_impossible_properties_are_refused(given: tuple[int, float, float]) -> None:
    refused(lambda: FilteredWrench(*given), "a filter needs")
