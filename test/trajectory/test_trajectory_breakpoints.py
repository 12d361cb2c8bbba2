"""Trajectories know where their derivatives may jump, and how fast they oscillate."""

import numpy as np
import pytest

from hodyn_ros.trajectory import (
    Cosines,
    EasedStart,
    EasedStop,
    FourierSeries,
    PiecewisePolynomial,
    ScaledTime,
    SideBySide,
    Trajectory,
    WaypointSpline,
)
from hodyn_ros.trajectory.combined import Rearranged

TIMES, POSITIONS = [0.5, 1.0, 1.2, 3.0], [[0.0], [1.0], [0.7], [0.2]]
SPLINE = WaypointSpline(TIMES, POSITIONS)
MOVING = WaypointSpline([0.0, 1.0, 1.2, 3.0], POSITIONS, [[0.4], [1.0], [0.3], [0.5]])


def test_waves_have_none() -> None:
    fourier = FourierSeries(2.0, [[1.0], [0.5], [0.1]], [[0.0], [0.2], [0.3]], [0.5])
    assert len(fourier.breakpoints) == 0 and fourier.highest_frequency == 6.0
    cosines = Cosines([1.0, 2.0], [3.0, -4.0])
    assert len(cosines.breakpoints) == 0 and cosines.highest_frequency == 4.0
    assert ScaledTime(cosines, 0.5).highest_frequency == 2.0
    assert EasedStart(cosines, 1.0).highest_frequency == 4.0
    assert SideBySide([cosines, fourier]).highest_frequency == 6.0
    assert SPLINE.highest_frequency == 0.0


@pytest.mark.parametrize(
    ("trajectory", "points"),
    [
        (SPLINE, TIMES),
        (PiecewisePolynomial(TIMES, POSITIONS), TIMES),
        (ScaledTime(SPLINE, 0.5), [1.0, 2.0, 2.4, 6.0]),
        (Rearranged(SPLINE, [1], [0.0, 0.0]), TIMES),
        (SideBySide([SPLINE, Cosines([1.0], [1.0], duration=4.0)]), [*TIMES, 4.0]),
        (EasedStart(Cosines([1.0], [1.0]), 0.4), [0.0, 0.4]),
        (EasedStop(Cosines([1.0], [1.0]), 0.4, stop=5.0), [4.8, 5.2]),
        (EasedStart(MOVING, 0.4, start=0.1), [0.0, 0.4, 1.1, 1.3, 3.1]),
        (EasedStop(MOVING, 0.4, stop=2.0), [0.0, 1.0, 1.2, 1.8, 2.2]),
    ],
)
def test_where_derivatives_may_jump(trajectory: Trajectory, points: list[float]) -> None:
    assert trajectory.breakpoints == pytest.approx(points, abs=1e-12)


@pytest.mark.parametrize("trajectory", [EasedStart(MOVING, 1.9, start=0.4), EasedStop(MOVING, 1.9, stop=1.5)])
def test_waypoints_within_a_ramp(trajectory: Trajectory) -> None:
    """The path is the same, so the waypoints are passed where the breakpoints say."""
    points = trajectory.breakpoints
    passed = trajectory.sample(points, 0)[:, 0, 0]
    for position in (1.0, 0.7):
        assert np.abs(passed - position).min() <= 1e-12


def test_nothing_is_known_of_the_whole_where_a_part_knows_nothing() -> None:
    class Unknown(Cosines):
        @property
        def breakpoints(self) -> None:  # type: ignore[override]
            return None

    unknown = Unknown([1.0], [1.0], duration=3.0)
    for motion in (
        SideBySide([unknown, unknown]),
        ScaledTime(unknown, 2.0),
        EasedStart(unknown, 1.0),
        EasedStop(unknown, 1.0),
        Rearranged(unknown, [0], [0.0]),
    ):
        assert motion.breakpoints is None
