"""Motions through waypoints: against exact arithmetic and SciPy, their smoothness, and bad waypoints."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_trajectories as mp
from refusals import assert_refused, misshapen, not_finite, refused
from scipy.interpolate import CubicHermiteSpline, make_interp_spline
from sweeps import some

from hodyn_ros.errors import InputError
from hodyn_ros.trajectory import PiecewisePolynomial, Trajectory, WaypointSpline


def random_waypoints(seed: int, m: int, n: int, unevenness: float = 5.0) -> tuple[mp.Array, list[mp.Array]]:
    """Return times (m,), and random positions, velocities and accelerations (m, n) of fitting size."""
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(0.2 * unevenness ** rng.uniform(0.0, 1.0, m - 1))])
    return times, [rng.normal(size=(m, n)) * 3.0**k for k in range(3)]


def spread(times: mp.Array, per_step: int = 20) -> mp.Array:
    """Return times that cover every step, its ends included."""
    return np.unique(
        np.concatenate([np.linspace(*step, per_step) for step in zip(times, times[1:], strict=False)])
    )


def steps(motion: Trajectory, t: float, order: int, scale: mp.Array) -> mp.Array:
    """Return the steps of the derivatives at t, relative to their scale."""
    beside = motion.sample([math.nextafter(t, -1e3), math.nextafter(t, 1e3)], order)
    return np.asarray(np.abs(beside[1] - beside[0]).max(axis=1) / scale)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("order", "m", "given_rows", "at_rest"),
    some(
        [
            (order, m, given_rows, at_rest)
            for order, m in ((2, 6), (4, 2), (4, 5), (6, 4))
            for given_rows in (1, 2, 3)
            for at_rest in (True, False)
            if at_rest or m * given_rows > order
        ],
        *((4, 5, rows, True) for rows in (1, 2, 3)),
        *((2, 6, 1, False), (4, 2, 3, True), (4, 5, 2, False), (6, 4, 1, True), (6, 4, 3, False)),
    ),
)
def test_spline_with_every_derivative(order: int, m: int, given_rows: int, at_rest: bool) -> None:
    times, rows = random_waypoints(order + m, m, 1)
    motion = WaypointSpline(times, *rows[:given_rows], order=order, at_rest=at_rest)
    pieces = mp.spline(times, np.stack(rows[:given_rows], axis=1)[:, :, 0].tolist(), order, at_rest)
    inside = spread(times, 7)[1:-1]
    exact = mp.evaluate_pieces(times, pieces, inside, order)
    assert mp.error(motion.sample(inside, order)[:, :, 0], exact) < 1e-10


def test_waypoints_may_differ_in_what_is_given() -> None:
    times, (positions, velocities, accelerations) = random_waypoints(7, 5, 1)
    motion = WaypointSpline(
        times,
        positions,
        [None, velocities[1], velocities[2], [], velocities[4]],
        [None, None, accelerations[2], None, []],
    )
    counts = [1, 2, 3, 1, 2]
    given_rows = [
        [rows[i, 0] for rows in (positions, velocities, accelerations)[:count]]
        for i, count in enumerate(counts)
    ]
    inside = spread(times, 7)[:-1]
    exact = mp.evaluate_pieces(times, mp.spline(times, given_rows, 4, True), inside, 4)
    assert mp.error(motion.sample(inside, 4)[:, :, 0], exact) < 1e-10


@pytest.mark.parametrize(("given_rows", "continuous"), [(1, 8), (2, 7), (3, 6)])
def test_spline_is_no_smoother_than_it_says(given_rows: int, continuous: int) -> None:
    times, rows = random_waypoints(1, 6, 1)
    for row in rows[1:]:
        row[[0, -1]] = 1.0
    in_motion = WaypointSpline(times, *rows[:given_rows], at_rest=False)
    assert in_motion.smoothness == continuous
    assert not in_motion.starts_at_rest
    assert not in_motion.ends_at_rest
    scale = np.abs(in_motion.sample(spread(times), 9)).max(axis=(0, 2))
    assert all(steps(in_motion, t, continuous + 1, scale[: continuous + 2])[-1] > 1e-6 for t in times[1:-1])
    at_rest = WaypointSpline(times, rows[0])
    for t in times[[0, -1]]:
        assert steps(at_rest, t, 5, np.abs(at_rest.sample(spread(times), 5)).max(axis=(0, 2)))[-1] > 1e-3


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_positions_alone_give_the_spline_of_scipy(seed: int) -> None:
    times, rows = random_waypoints(seed, 8, 2)
    zeros = [(k, np.zeros(2)) for k in range(1, 5)]
    other = make_interp_spline(times, rows[0], k=9, bc_type=(zeros, zeros))
    t = spread(times)[:-1]
    exact = np.stack([other(t, nu=k) for k in range(8)], axis=1)
    assert mp.error(WaypointSpline(times, rows[0]).sample(t, 7), exact) < 1e-9


def test_dense_waypoints_of_a_smooth_motion_give_it_back() -> None:
    t = np.linspace(0.0, 6.0, 601)
    derivatives = np.stack([np.sin(t + 0.5 * k * np.pi) for k in range(5)], axis=1)[:, :, None]
    motion = WaypointSpline(t, derivatives[:, 0], derivatives[:, 1], derivatives[:, 2], at_rest=False)
    middle = 0.5 * (t[1:] + t[:-1])
    exact = np.stack([np.sin(middle + 0.5 * k * np.pi) for k in range(5)], axis=1)[:, :, None]
    errors = np.abs(motion.sample(middle, 4) - exact).max(axis=(0, 2))
    # The spline itself is off by the order of the step to the tenth. What remains is rounding, divided by the
    # step once for each derivative.
    assert np.all(errors < [1e-14, 1e-12, 1e-9, 1e-6, 1e-3])


def test_a_spline_says_where_it_swings() -> None:
    """Straight on with even times: at rest to order 6, it rushes past the middle, and back again."""
    positions = 0.15 * np.arange(5.0)[:, None] * [[1.0, 0.5]]
    motion = WaypointSpline([0.0, 0.5, 1.0, 1.5, 2.0], positions, order=6)
    times = np.linspace(0.0, 2.0, 4001)
    ways = np.abs(
        motion.sample(times, 0)[:, 0] - np.interp(times, motion.times, positions[:, 0])[:, None] * [1.0, 0.5]
    )
    step, joint, off = motion.swing()
    assert joint == 0 and step in (1, 2)
    assert 0.97 * ways.max() < off <= ways.max() and off > 0.15
    eased = WaypointSpline([0.0, 0.7, 1.0, 1.3, 2.0], positions, order=6)
    assert eased.swing()[2] < 0.1


def test_position_is_held_before_and_after() -> None:
    motion = WaypointSpline([0.5, 1.0, 2.0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for t in (-1.0, 0.0, 0.3):
        assert np.allclose(motion.sample(t, 0), [[1.0, 2.0]], rtol=1e-13)
        assert not motion.sample(t, 6)[1:].any()
    assert np.allclose(motion.sample(2.5, 0), [[5.0, 6.0]], rtol=1e-13)
    assert not motion.sample(2.5, 6)[1:].any()
    assert motion.duration == 2.0


def test_an_end_in_motion_cannot_be_held() -> None:
    positions, velocities = [[0.0], [1.0]], [[0.0], [0.5]]
    motion = WaypointSpline([0.0, 1.0], positions, velocities)
    assert motion.starts_at_rest
    assert not motion.ends_at_rest
    assert np.isclose(motion.sample(1.0, 1)[1, 0], 0.5, rtol=1e-12)
    refused(lambda: motion.sample(1.1, 1), "t = 1.1 s lies beyond the end ... at 1 s ... EasedStop")


def test_smoothness_that_does_not_suffice_is_said() -> None:
    times, rows = random_waypoints(3, 4, 2)
    motion = WaypointSpline(times, rows[0])
    motion.require_smoothness(4)
    refused(lambda: motion.require_smoothness(5), "continuous up to its derivative 5, ... order=5 or more")
    WaypointSpline(times, rows[0], order=5).require_smoothness(5)
    refused(lambda: motion.require_smoothness(9), "can be continuous up to derivative 8")


@pytest.mark.parametrize(
    ("given_rows", "smoothness", "jumps"),
    [(1, 0, "velocity (derivative 1)"), (2, 1, "acceleration (derivative 2)"), (3, 2, "jerk (derivative 3)")],
)
def test_plain_interpolation_says_how_rough_it_is(given_rows: int, smoothness: int, jumps: str) -> None:
    times, rows = random_waypoints(3, 4, 2)
    motion = PiecewisePolynomial(times, *rows[:given_rows])
    assert motion.smoothness == smoothness
    motion.require_smoothness(smoothness)
    with pytest.raises(InputError) as rejected:
        motion.require_smoothness(4)
    assert str(rejected.value) == (
        "torque acceleration (order 2) needs a motion that is continuous up to its snap (derivative 4), "
        f"but the {jumps} of this PiecewisePolynomial jumps; "
        "make a WaypointSpline of the same waypoints, with order=4"
    )
    scale = np.abs(motion.sample(spread(times), smoothness + 1)).max(axis=(0, 2))
    for t in times[1:-1]:
        found = steps(motion, t, smoothness + 1, scale)
        assert np.all(found[:-1] < 1e-9)
        assert found[-1] > 1e-3


def test_plain_interpolation_is_linear_cubic_or_quintic() -> None:
    times, rows = random_waypoints(4, 5, 2)
    t = spread(times)
    linear = PiecewisePolynomial(times, rows[0]).sample(t, 2)
    assert np.allclose(
        linear[:, 0], np.stack([np.interp(t, times, q) for q in rows[0].T], axis=1), rtol=1e-12
    )
    assert not linear[:, 2].any()
    cubic, other = PiecewisePolynomial(times, *rows[:2]).sample(t, 4), CubicHermiteSpline(times, *rows[:2])
    assert mp.error(cubic[:, :4], np.stack([other(t, nu=k) for k in range(4)], axis=1)) < 1e-12
    assert not cubic[:, 4].any()
    quintic = PiecewisePolynomial(times, *rows)
    assert np.allclose(quintic.sample(times, 2), np.stack(rows, axis=1), rtol=1e-12)
    assert quintic.sample(t, 5)[:, 5].any()
    assert not quintic.sample(t, 6)[:, 6].any()


def test_plain_interpolation_holds_what_its_smoothness_allows() -> None:
    rows = np.array([[0.0], [1.0]])
    linear = PiecewisePolynomial([0.0, 1.0], rows)
    assert linear.smoothness == 0
    assert np.array_equal(linear.sample(2.0, 1), [[1.0], [0.0]])
    in_motion = PiecewisePolynomial([0.0, 1.0], rows, [[1.0], [1.0]])
    assert in_motion.smoothness == math.inf
    refused(lambda: in_motion.sample(2.0, 1), "lies beyond the end")


@pytest.mark.parametrize("kind", [WaypointSpline, PiecewisePolynomial])
def test_joint_trajectory(kind: type[WaypointSpline] | type[PiecewisePolynomial]) -> None:
    times, rows = random_waypoints(5, 4, 2)
    for given_rows in (1, 2, 3):
        # as in a message: what is not given is empty
        fields = [rows[k] if k < given_rows else [[]] * 4 for k in range(3)]
        points = list(zip(times.tolist(), *fields, strict=True))
        motion = kind.from_joint_trajectory(["a", "b"], points)
        assert motion.joint_names == ("a", "b")
        assert np.array_equal(motion.sample(0.7, 4), kind(times, *rows[:given_rows]).sample(0.7, 4))
    assert WaypointSpline.from_joint_trajectory(["a", "b"], points, order=6).order == 6


def test_bad_joint_trajectories_are_refused() -> None:
    assert_refused(
        ((["a"], []), "the joint trajectory has no points"),
        ((["a"], [(1.0, [1.0], [], [])]),
         "at least two waypoints, found one; put the present position before it"),
        ((["a", "b"], [(0.0, [1.0], [], [])] * 2), misshapen("positions of point 0", (1,), "(2,)")),
        ((["a"], [(0.0, [1.0], [], []), (1.0, [], [], [])]), misshapen("positions of point 1", (0,), "(1,)")),
        ((["a"], [(0.0, [1.0], [], []), (1.0, [math.nan], [], [])]),
         not_finite("positions of point 1", (0,))),
        ((["a", "a"], [(0.0, [1.0, 2.0], [], []), (1.0, [1.0, 2.0], [], [])]), "joint 'a' appears twice"),
        by=lambda given: WaypointSpline.from_joint_trajectory(*given),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [WaypointSpline, PiecewisePolynomial])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"times": [0.0, 1.0, 1.0]}, "times must increase: times[2] = 1 s follows 1 s"),
        ({"times": [0.0, 2.0, 1.0]}, "times must increase: times[2] = 1 s follows 2 s"),
        ({"times": [-1.0, 2.0, 3.0]}, "times[0] is -1 s; times count from the start of the motion"),
        ({"times": [0.0, 1.0]}, misshapen("times", (2,), "(3,)")),
        ({"times": [0.0, 1.0, math.nan]}, not_finite("times", (2,))),
        ({"positions": [0.0, 1.0, 2.0]}, misshapen("positions", (3,), "(m, n)")),
        (
            {"positions": [[0.0], [math.inf], [2.0]]},
            not_finite("positions", (1, 0)),
        ),
        ({"times": [0.0], "positions": [[0.0]]}, "a motion needs at least two waypoints, found one"),
        ({"velocities": [[0.0], [0.0]]}, "velocities must have 3 rows, one per waypoint, found 2"),
        ({"velocities": [[0.0], [0.0, 1.0], [0.0]]}, misshapen("velocities[1]", (2,), "(1,)")),
        ({"velocities": [[0.0], [math.nan], [0.0]]}, not_finite("velocities[1]", (0,))),
        ({"velocities": 3.0}, "velocities must have shape (3, 1), found 3.0"),
        ({"accelerations": np.ones((3, 1))}, "accelerations[0] is given, but velocities[0] is not"),
        ({"joint_names": ["a", "b"]}, "joint_names must hold 1 names"),
        (
            {"times": [0.5, 1.0, 2.0], "velocities": np.ones((3, 1))},
            "rests until ... = 0.5 s, but its first waypoint is in motion; put a waypoint at time 0",
        ),
    ],
)
def test_bad_waypoints_are_refused_by_name(
    kind: type[WaypointSpline] | type[PiecewisePolynomial], fields: dict[str, Any], message: str
) -> None:
    good = {"times": [0.0, 1.0, 2.0], "positions": [[0.0], [1.0], [2.0]]}
    kind(**good)
    refused(lambda: kind(**{**good, **fields}), message)


@pytest.mark.parametrize("order", [1, 9, 4.5, "high"])
def test_orders_out_of_reach_are_refused(order: Any) -> None:
    refused(lambda: WaypointSpline([0.0, 1.0], [[0.0], [1.0]], order=order), "a whole number from 2 to 8")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("times", [[0.0, 1.0, 1.0 + 1e-9, 2.0, 3.0], [0.0, 1e-300, 1.0, 2.0, 3.0]])
def test_waypoints_too_uneven_in_time_are_refused(times: list[float]) -> None:
    refused(lambda: WaypointSpline(times, [[0.0], [1.0], [-1.0], [1.0], [0.0]]), "too uneven in time")


def test_waypoints_at_zero_may_be_passed_in_motion() -> None:
    motion = WaypointSpline([0.0, 1.0, 2.5], np.zeros((3, 1)), [[1.0], [-2.0], [1.0]])
    assert np.abs(motion.sample([0.0, 1.0, 2.5], 0)).max() < 1e-15
    assert np.allclose(motion.sample([0.0, 1.0, 2.5], 1)[:, 1, 0], [1.0, -2.0, 1.0], rtol=1e-12)
    assert not WaypointSpline([0.0, 1.0], np.zeros((2, 1))).sample(0.4, 4).any()


def test_too_little_given_for_free_ends_is_refused() -> None:
    call = partial(WaypointSpline, [0.0, 1.0], [[0.0], [1.0]], [[0.0], [1.0]], at_rest=False)
    refused(call, "at least 5 given positions")
