"""Peaks of functions of time, against closed forms and dense search."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from refusals import refused

from hodyn_ros.array import Array
from hodyn_ros.planning.peaks import Peaks, RoughError, Samples, find_peaks, places_between, sampled_places


def peaks_of(*functions: Callable[[Array], Array], edges: object = (0.0, 10.0), **options: object) -> Peaks:
    def function(times: Array) -> Samples:
        return Samples(np.stack([one(times) for one in functions], axis=1))

    return find_peaks(function, np.array(edges, dtype=np.float64), **options)  # type: ignore[arg-type]


def test_closed_forms() -> None:
    found = peaks_of(
        lambda t: 3.0 - (t - np.pi) ** 2, np.sin, lambda t: np.exp(-t), lambda t: 0.0 * t, lambda t: 0.1 * t
    )
    assert found.sizes == pytest.approx([(10.0 - np.pi) ** 2 - 3.0, 1.0, 1.0, 0.0, 1.0], abs=1e-10)
    assert found.times[[0, 2, 4]] == pytest.approx([10.0, 0.0, 10.0], abs=1e-9)
    assert found.values[0] < 0.0
    assert (found.errors <= 1e-9).all()


def test_the_largest_value_counts_where_that_is_asked_for() -> None:
    found = peaks_of(lambda t: -1.0 - t, lambda t: -1.0 - t, signed=np.array([True, False]))
    assert found.sizes == pytest.approx([-1.0, 11.0])


@pytest.mark.parametrize("seed", range(20))
def test_random_functions_against_dense_search(seed: int) -> None:
    """Polynomials between random instants, with jumps there; waves and steep steps."""
    rng = np.random.default_rng(seed)
    end = 10.0 ** rng.uniform(0.0, 4.0)
    edges = np.concatenate([[0.0], np.sort(rng.uniform(0.0, end, rng.integers(0, 30))), [end]])
    series = rng.normal(size=(len(edges) - 1, 9))
    frequency = 2.0 * len(edges) / end
    middle, width = rng.uniform(0.0, end), 10.0 ** rng.uniform(-3.0, 0.0) * end

    def pieces(t: Array) -> Array:
        place = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(series) - 1)
        x = 2.0 * (t - edges[place]) / (edges[place + 1] - edges[place]) - 1.0
        return np.einsum("ij,ij->i", np.polynomial.legendre.legvander(x, 8), series[place])

    def waves(t: Array) -> Array:
        return np.sin(frequency * t) * np.cos(0.7 * frequency * t + 1.0) + 0.3 * np.sin(3.1 * frequency * t)

    def step(t: Array) -> Array:
        return np.arctan((t - middle) / width) + 0.1 * np.cos(frequency * t)

    functions = (pieces, waves, step)
    found = peaks_of(*functions, edges=edges)
    nearby = 10.0 ** np.linspace(-12.0, -2.0, 11)
    inside = np.concatenate([nearby, np.linspace(0.0, 1.0, 2003)[1:-1], 1.0 - nearby])
    times = (edges[:-1, None] + np.diff(edges)[:, None] * inside).ravel()
    for i, function in enumerate(functions):
        assert np.abs(function(times)).max() <= found.sizes[i] * (1.0 + 1e-9)
        assert np.abs(function(found.times))[i] == pytest.approx(found.sizes[i], rel=1e-14)
    assert (found.errors <= 1e-9 * np.maximum(found.sizes, 1.0)).all()


@pytest.mark.parametrize("width", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("middle", [0.123, 3.3333, 9.99])
def test_a_spike_between_all_samples_shows_in_its_integral(width: float, middle: float) -> None:
    """As the rate of Coulomb friction at a reversal, `c v_s^2 a / (v^2 + v_s^2)^(3/2)`."""

    def function(times: Array) -> Samples:
        x = (times - middle) / width
        rate, step = (1.0 + x**2) ** -1.5, width * x / np.sqrt(1.0 + x**2)
        return Samples(0.5 * rate[:, None] / width, 0.5 * step[:, None] / width)

    found = find_peaks(function, np.array([0.0, 10.0]))
    assert found.sizes[0] == pytest.approx(0.5 / width, rel=1e-9)
    assert found.times[0] == pytest.approx(middle, abs=1e-3 * width)


def test_both_sides_of_an_edge_are_looked_at() -> None:
    found = peaks_of(lambda t: np.where(t < 4.0, t, -t / 8.0), edges=(0.0, 4.0, 10.0))
    assert found.sizes[0] == pytest.approx(4.0, abs=1e-12)
    assert found.evaluations < 40


def test_a_jump_that_nobody_told_of_is_found() -> None:
    found = peaks_of(lambda t: np.where(t < np.e, t, -0.1))
    assert found.sizes[0] == pytest.approx(np.e, abs=1e-9)
    assert found.errors[0] <= 1e-9


def test_noise_and_what_is_not_finite_are_said() -> None:
    rng = np.random.default_rng(0)
    call = partial(peaks_of, np.sin, lambda t: 0.1 * rng.normal(size=len(t)))
    refused(call, "function 1 is too rough", RoughError)
    refused(lambda: peaks_of(lambda t: np.where(t > 9.0, np.inf, t)), "at ... s ... a quantity is not finite")
    refused(lambda: peaks_of(np.sin, tolerance=0.0), "tolerance")


def test_rounding_does_not_keep_it_busy() -> None:
    rng = np.random.default_rng(0)
    found = peaks_of(lambda t: np.sin(t) + 1e-7 * rng.normal(size=len(t)))
    assert found.sizes[0] == pytest.approx(1.0, abs=1e-6)
    assert 0.0 < found.errors[0] <= 1e-5
    assert found.evaluations < 20_000


def test_what_was_sampled_comes_in_order() -> None:
    seen: list[Array] = []
    told: list[float] = []
    edges = np.linspace(0.0, 1000.0, 301)
    found = peaks_of(
        np.sin, edges=edges, visit=lambda times, values: seen.append(times), progress=told.append
    )
    times = np.concatenate(seen)
    assert (np.diff(times) > 0.0).all()
    assert len(times) <= found.evaluations
    assert told[-1] == 1.0 and told == sorted(told)


def test_a_jump_whose_place_is_known_as_well_as_the_end_is_one_jump() -> None:
    """What rests until its end may follow from `end - t`, which rounds as the end does."""
    end, start = 32.5, 0.3
    edge = end - (end - start)  # as rounded
    assert edge != start

    def late(t: Array) -> Array:
        return np.where(end - t > end - start, 1.0 + t, -t / end)

    for place in (start, edge):
        found = peaks_of(late, edges=(0.0, place, end))
        assert found.sizes[0] == pytest.approx(1.0 + start, abs=1e-12)
        assert found.evaluations < 100


@pytest.mark.parametrize("width", [1e-3, 1e-6])
def test_a_spike_shows_in_integrals_over_another_variable(width: float) -> None:
    """Sampled along u, which time passes by as t = u^2 + u: `lasting` is dt/du."""
    middle = 3.3333

    def function(u: Array) -> Samples:
        times, lasting = u**2 + u, 2.0 * u + 1.0
        x = (times - middle) / width
        rate, step = (1.0 + x**2) ** -1.5 / width, x / np.sqrt(1.0 + x**2)
        return Samples(
            np.cos(times)[:, None] + rate[:, None], np.sin(times)[:, None] + step[:, None], lasting
        )

    found = find_peaks(function, np.array([0.0, 2.7]))
    assert found.sizes[0] == pytest.approx(1.0 / width + np.cos(middle), rel=1e-9)
    u = found.times[0]
    assert u**2 + u == pytest.approx(middle, abs=1e-2 * width)


def test_places_between_samples_are_where_polynomials_are_higher() -> None:
    edges = np.array([0.0, 0.5, 2.0])
    tops = np.array([0.217, 1.645])

    def parabolas(t: Array) -> Array:
        return np.stack(
            [1.01 - 2.0 * (t - tops[0]) ** 2, -1.01 + 0.5 * (t - tops[1]) ** 2, 0.9 + 0.0 * t], axis=-1
        )

    found = places_between(edges, parabolas(sampled_places(edges)), 1.0)
    nearest = np.abs(found[:, None] - tops).min(axis=1)
    assert len(found) == 2 and (nearest < 0.03).all()
    assert not len(places_between(edges, parabolas(sampled_places(edges)), 1.02))
