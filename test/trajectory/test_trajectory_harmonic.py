"""Fourier series and cosines against exact arithmetic, and the two shipped motions of the Panda."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_trajectories as mp
from refusals import assert_refused, misshapen, not_finite

from hodyn_ros import share
from hodyn_ros.trajectory import Cosines, FourierSeries, read_trajectory

ORDER = 8


@given(seed=st.integers(0, 2**32 - 1), frequency=st.floats(0.1, 10.0), harmonics=st.integers(1, 6))
@settings(deadline=None, max_examples=10)
def test_series_with_every_derivative(seed: int, frequency: float, harmonics: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, harmonics, 3))
    q0, times = rng.normal(size=3), rng.uniform(0.0, 30.0, 4)
    found = FourierSeries(frequency, a, b, q0).sample(times, ORDER)
    assert mp.error(found, mp.derivatives(mp.fourier(frequency, a, b, q0), times, ORDER)) < 1e-12


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=10)
def test_cosines_with_every_derivative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    amplitudes, frequencies, times = rng.normal(size=3), rng.uniform(0.1, 10.0, 3), rng.uniform(0.0, 30.0, 4)

    def joint(j: int) -> Any:
        return lambda t: amplitudes[j] * mpmath.cos(mpmath.mpf(frequencies[j]) * t)

    found = Cosines(amplitudes, frequencies).sample(times, ORDER)
    exact = mp.derivatives([joint(j) for j in range(3)], times, ORDER)
    for j in range(3):
        assert mp.error(found[:, :, [j]], exact[:, :, [j]]) < 1e-12


def test_shape_follows_the_times() -> None:
    motion = FourierSeries(1.0, np.ones((2, 3)), np.ones((2, 3)), np.ones(3))
    assert motion.sample(0.5, 4).shape == (5, 3)
    assert motion.sample([0.5, 0.7], 4).shape == (2, 5, 3)
    assert motion.sample([], 4).shape == (0, 5, 3)
    assert motion.sample(0.5, 0).shape == (1, 3)
    both = motion.sample([0.5, 0.7], 4)
    assert both.flags.c_contiguous
    assert np.allclose(both[1], motion.sample(0.7, 4), rtol=1e-15)


def test_smoothness_is_without_bound() -> None:
    motion = Cosines([1.0], [1.0])
    assert motion.smoothness == math.inf
    motion.require_smoothness(50)


def test_the_motion_goes_on_without_end_unless_it_has_a_duration() -> None:
    endless = Cosines([1.0], [2.0], joint_names=["a"])
    assert endless.duration == math.inf
    assert endless.joint_names == ("a",)
    assert np.isclose(endless.sample(1e5, 0)[0, 0], math.cos(2e5), rtol=1e-12)
    ending = Cosines([1.0], [2.0], duration=3.0)
    # a time stamp in nanoseconds may round up to just beyond the end
    assert np.array_equal(ending.sample(3.0 + 5e-10, 2), ending.sample(3.0, 2))
    assert_refused(
        (lambda: ending.sample([1.0, 3.1], 2),
         "t = 3.1 s lies beyond the end of this Cosines at 3 s ... EasedStop"),
        (lambda: ending.sample([-0.5, 1.0], 2),
         "t = -0.5 s lies before the start of this Cosines ... EasedStart"),
    )  # fmt: skip


def test_arrays_are_copied_and_read_only() -> None:
    amplitudes = np.ones(2)
    motion = Cosines(amplitudes, [1.0, 2.0])
    amplitudes[0] = 5.0
    assert motion.sample(0.0, 0)[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        motion.amplitudes[0] = 5.0


def test_bad_figures_are_refused_by_name() -> None:
    good = {
        "angular_frequency": 1.0,
        "sine": np.ones((1, 2)),
        "cosine": np.ones((1, 2)),
        "offsets": np.ones(2),
    }
    FourierSeries(**good)
    assert_refused(
        ({"angular_frequency": 0.0}, "angular_frequency must be above zero, found 0"),
        ({"angular_frequency": math.nan}, "angular_frequency must be a finite number, found nan"),
        ({"angular_frequency": "fast"}, "angular_frequency must be a number, found 'fast'"),
        ({"sine": [1.0, 2.0]}, misshapen("sine", (2,), "(L, n)")),
        ({"sine": np.zeros((0, 2))}, misshapen("sine", (0, 2), "(L, n)")),
        ({"cosine": np.ones((2, 3))}, misshapen("cosine", (2, 3), "(1, 2)")),
        ({"cosine": [[1.0, math.inf]]}, not_finite("cosine", (0, 1))),
        ({"offsets": [1.0]}, misshapen("offsets", (1,), "(2,)")),
        ({"offsets": ["a", "b"]}, "offsets must hold real numbers"),
        ({"duration": -1.0}, "duration must be above zero, found -1"),
        ({"duration": math.nan}, "duration must be a finite number, found nan"),
        ({"joint_names": ["a"]}, "joint_names must hold 2 names, one per joint, found ['a']"),
        ({"joint_names": ["a", "a"]}, "joint 'a' appears twice in joint_names"),
        ({"joint_names": ["a", ""]}, "joint_names[1] must be a name, found ''"),
        by=lambda fields: FourierSeries(**{**good, **fields}),
    )


def test_bad_samples_are_refused() -> None:
    assert_refused(
        ((math.nan, 2), "t holds NaN or infinite times"),
        (([0.0, math.inf], 2), "t holds NaN or infinite times"),
        (([[0.0]], 2), "t must be one time or an array of shape (N,), found (1, 1)"),
        (("now", 2), "t must be one time or an array of times"),
        ((0.0, -1), "order must be a whole number of at least 0, found -1"),
        ((0.0, 2.5), "order must be a whole number of at least 0, found 2.5"),
        by=lambda given: Cosines([1.0], [1.0]).sample(*given),
    )


def test_the_excitation_of_the_panda_stays_within_its_limits() -> None:
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    assert motion.joint_names == tuple(f"panda_joint{i}" for i in range(1, 8))
    # one period
    q = motion.sample(np.linspace(0.0, 2.0 * math.pi / (0.15 * math.pi), 5001), 2)
    lower = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])
    upper = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])
    assert np.all(q[:, 0] > lower)
    assert np.all(q[:, 0] < upper)
    assert np.all(np.abs(q[:, 1]) < [2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61])
    assert np.all(np.abs(q[:, 2]) < [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
    assert np.allclose(q[0], q[-1], rtol=1e-9)


def test_the_validation_motion_of_the_panda_has_the_published_velocities() -> None:
    motion = read_trajectory(share.find("config", "panda_validation.yaml"))
    assert isinstance(motion, Cosines)
    assert motion.duration == 5.0
    velocities = -motion.amplitudes * motion.angular_frequencies
    assert np.allclose(velocities, [2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5], rtol=1e-12)
