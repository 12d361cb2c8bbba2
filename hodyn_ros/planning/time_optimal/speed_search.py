"""The search for the fastest speed along a path: stations and limits that count, then all that is between."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.limit_set import ROUNDING, LimitSet
from hodyn_ros.planning.peaks import PRECISION, SAMPLED
from hodyn_ros.planning.retime import InfeasibleError
from hodyn_ros.planning.time_optimal.chain_rule import SPEEDS
from hodyn_ros.planning.time_optimal.frame_speed import Pace
from hodyn_ros.planning.time_optimal.geometry import place_of
from hodyn_ros.planning.time_optimal.interior_point import Optimum, Problem, UnreachedError, solve
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_peaks import AT_ENDS, PathPeaks
from hodyn_ros.planning.time_optimal.path_usage import PathUsage, cautious
from hodyn_ros.planning.time_optimal.speed_spline import Stations
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.timed import TimedPath

Ends = tuple[Array | None, ...]  # of a path: b and its first three derivatives by u, None at rest

GIVEN = 4  # numbers say how an end is passed
ACCURACY = 5e-3  # of the duration by the estimated gap; what is missed in truth is a fiftieth of it
_COARSE = 0.4  # the same, of the first search
_SOME_ROOM = 0.99  # of the limits is used by the guess that follows it
_NEAR = 0.85  # of a limit: what nowhere uses more of it does not count until it does
_BEYOND = 3e-4  # of a limit, between stations, that makes a place a station as well
_ROUNDS = 3  # with more stations, as long as limits are exceeded
_LITTLE = 2e-3  # of a limit: more than that between stations takes more rounds
_MOST = 8  # of them
_ROOM = 0.7  # of the limits is used by the first guess, or as much of what gravity leaves of them
_WORST = 8  # instants that are slowed at a time
_BESIDE = 1e-9  # of a path, from a jump to its sides
_NEAREST = 1e-6  # of a path: breakpoints that are nearer are one
_APART = 0.4  # of a piece: knots that are nearer to a breakpoint give way to it
_FASTER = 1.01  # squared speeds, before the whole is slowed until it touches a limit
_LOOKED_AT = 40  # places of a piece at which the speed of a frame is looked at
_EQUAL = 1e-9  # of what is used of a limit: rounding
_PRECISION = 1e-6  # of factors of squared speeds
_ROUGHLY = 1e-3  # the same, where a search starts
_GOAL = 1.0 - 2e-5  # of the limits, once peaks are known: they move a little as all goes slower
_KNOWN = 2e-6  # of the limits, to which peaks are known where all may go slower
_BETWEEN = 5e-5  # of the limits is left for peaks between the instants that are looked at


class SpeedSearch:
    """A path with the places that are looked at."""

    def __init__(
        self,
        demand: LimitSet,
        motion: RobotMotion,
        pieces: int,
        ends: Ends = (None, None),
        pace: Pace | None = None,
    ) -> None:
        if pieces < 1:
            raise InputError(f"the speed needs a piece at least, found {pieces}")
        self.motion, self.pace = motion, pace
        path = motion.trajectory
        breaks = _breakpoints(path)
        self.knots = _knots(path._departure, path.duration, pieces, breaks)
        self.peaks = PathPeaks(demand, motion, self.knots, pace)
        self.u, self.path = self.peaks.u, self.peaks.path
        self.dense, self.usage = self.peaks.stations, self.peaks.usage
        self.columns = [demand.columns[c] for c in self.usage.columns]
        if pace is not None:
            self.columns.append(pace.column)
        self._few, self._many = self._stations(breaks)
        points, weights = np.polynomial.legendre.leggauss(4)
        widths = np.diff(self.knots)[:, None]
        instants = self.knots[:-1, None] + widths * 0.5 * (points + 1.0)
        self.clock = Stations(self.dense.knots, instants.ravel())
        self.weights = (0.5 * widths * weights).ravel()
        self.ends = ends
        self.rests = all(speeds is None for speeds in ends)
        self.target = 1.0  # share of the limits that may be used
        self._pieces = pieces

    def _stations(self, breaks: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which places are stations of the first search, and of those after it."""
        few, many = (np.zeros((len(self.peaks.edges) - 1, SAMPLED), dtype=bool) for _ in range(2))
        few[:, 0] = many[:, 0] = many[:, SAMPLED // 2] = True
        parts = len(AT_ENDS) + 2
        for side in (slice(parts), slice(-parts, None)):
            many[side, 1::2] = True
        # both sides of where a derivative of the path may jump, and the ends
        beside = _apart(self.u, breaks) <= _BESIDE * (self.u[-1] - self.u[0])
        return few.ravel() | beside, many.ravel() | beside

    def optimum(self, progress: Callable[[float], None] | None) -> Optimum:
        """Return the optimum with all stations and limits that it takes: the exchange method, as in `retime`.

        It is first looked for at few stations, then where limits are near.
        """
        self.usage = self._cautious
        every = np.ones(len(self.columns), dtype=bool)
        optimum = self.solved(self._few, every, self._first_guess(), 1.0, _COARSE, progress)
        sizes, steps = self.sizes(optimum.coefficients), optimum.steps
        # of a path with a kink no limit may be near yet: what is nearest counts
        stations, columns = self._many | _highest(sizes, 1.0), sizes.max(axis=0) >= min(_NEAR, sizes.max())
        goal, gap = _SOME_ROOM, 0.25 * _COARSE
        for count in range(_MOST):
            coefficients = optimum.coefficients
            if self.rests:  # all may go slower to leave the limits some room
                y = self.dense.speeds(coefficients)
                coefficients = coefficients * self._factor(self.path, y, sizes.max(axis=1), goal, _ROUGHLY)
            optimum = self.solved(stations, columns, coefficients, gap, ACCURACY)
            steps += optimum.steps
            sizes = self.sizes(optimum.coefficients)
            if count >= _ROUNDS - 1 and sizes.max() <= 1.0 + _LITTLE:
                break
            between = self.peaks.between(optimum.coefficients, 1.0 + _BEYOND)
            stations, sizes = self._with_places(between, stations, sizes, optimum.coefficients)
            beyond = sizes > 1.0 + _BEYOND
            missed = beyond.any(axis=1) & ~stations
            if not missed.any() and not beyond[:, ~columns].any():
                break
            stations |= _highest(sizes, 1.0 + _BEYOND) & missed
            columns |= beyond.any(axis=0)
            goal, gap = 1.0 - 1e-4, 0.05 if self.rests else 0.5
        self.usage = self.peaks.usage
        return optimum._replace(steps=steps)

    def _with_places(
        self, places: Array, stations: NDArray[np.bool_], sizes: Array, coefficients: Array
    ) -> tuple[NDArray[np.bool_], Array]:
        """Look at more places (K,); return which of all are stations, none of these, and sizes of all."""
        places = np.setdiff1d(places, self.u)
        if not len(places):
            return stations, sizes
        path, seen = self.peaks.at(places)
        used = np.abs(self.usage.values(path, seen.speeds(coefficients)))
        order = np.argsort(np.concatenate([self.u, places]), kind="stable")
        self.path, self.dense = self.path.joined(path, order), self.dense.joined(seen, order)
        self.u = self.dense.u
        self._few, self._many, stations = (
            np.concatenate([each, np.zeros(len(places), dtype=bool)])[order]
            for each in (self._few, self._many, stations)
        )
        return stations, np.concatenate([sizes, used])[order]

    @cached_property
    def _cautious(self) -> PathUsage:
        """What the search goes by: where it matters, friction takes a piece at even speed to turn over."""
        if self.usage.linear_weights is not None:  # which it would not be with such friction
            return self.usage
        lasts = (self.knots[-1] - self.knots[0]) / self.even_speed(_GOAL, _ROUGHLY) ** 0.5
        return cautious(self.usage, lasts / self._pieces)

    def _first_guess(self) -> Array:
        """Return coefficients of an even speed; where a motion is under way, of one that leads on from it."""
        even = self.even_speed(self._room(), _ROUGHLY)
        if self.rests:
            return np.full(self.dense.count, even)
        first, last = (even if speeds is None else speeds[0] for speeds in self.ends)
        coefficients = np.linspace(first, last, self.dense.count)
        for side, speeds in zip((0, -1), self.ends):
            if speeds is not None:
                prescribed = slice(GIVEN) if side == 0 else slice(-GIVEN, None)
                at = Stations(self.dense.knots, self.knots[[side]])
                coefficients[prescribed] = np.linalg.solve(at.basis[0, :GIVEN, prescribed], speeds)
        return coefficients

    def solved(
        self,
        stations: NDArray[np.bool_],
        columns: NDArray[np.bool_],
        coefficients: Array,
        gap: float,
        accuracy: float,
        progress: Callable[[float], None] | None = None,
    ) -> Optimum:
        """Return the optimum with some stations and limits; the multipliers of all limits there."""
        chosen = np.flatnonzero(stations)
        usage = self.usage.of_columns(columns[: len(self.usage.columns)])
        columns = np.ones_like(columns) if usage is self.usage else columns.copy()
        columns[len(self.usage.columns) :] = True  # the speed of a frame
        problem = Problem(
            usage,
            self.path.chosen(chosen),
            self.dense.chosen(chosen),
            self.clock,
            self.weights,
            tuple(0 if speeds is None else GIVEN for speeds in self.ends),
            self.target,
        )
        try:
            optimum = solve(problem, coefficients, accuracy, gap, progress)
        except UnreachedError as error:
            limit = self.columns[np.flatnonzero(columns)[error.column]]
            place = self.u[chosen[error.station]]
            raise InfeasibleError(
                f"no speed is found that keeps all limits: {self._place(place)}, still "
                f"{100.0 * error.usage:.4g} % of the {limit.quantity} of {limit.joint!r} are used; start or "
                "end slower, or change the path"
            ) from error
        multipliers = np.zeros((len(chosen), len(columns)))
        multipliers[:, columns] = optimum.multipliers
        return optimum._replace(multipliers=multipliers)

    def kept(self, coefficients: Array) -> tuple[TimedPath, float, Array]:
        """Return the law that keeps all limits everywhere, its speed beside what was found, and its peaks.

        Peaks: places, times and usage (3, columns).
        """
        slowed, known = 1.0, PRECISION
        if self.rests:
            known = _KNOWN
            # by what is known already, so that little is left for the search for peaks to find
            coefficients = coefficients * _FASTER
            factor = self._slower(self.path, self.dense, coefficients, _GOAL - _BETWEEN)
            slowed, coefficients = (_FASTER * factor) ** 0.5, coefficients * factor
        for _ in range(8):
            peaks = self.peaks.find(coefficients, known)
            places, sizes = peaks.times, peaks.sizes
            if self.pace is not None:
                fastest = self._fastest(coefficients)
                places, sizes = np.append(places, fastest[0]), np.append(sizes, fastest[1])
            largest = float(sizes.max())
            if largest <= 1.0 + ROUNDING - (known if self.rests else 0.0):
                law = TimedPath(self.motion.trajectory, self.knots, coefficients)
                return law, slowed, np.stack([places, law.times_at(places), sizes])
            if not self.rests:  # what is given of the ends does not scale
                self.target /= 1.0 + 1.5 * (largest - 1.0)
                coefficients = self.optimum(None).coefficients
                continue
            places = np.sort(places)
            factor = self._slower(*self.peaks.at(places), coefficients, _GOAL)
            coefficients, slowed = coefficients * factor, slowed * factor**0.5
        raise InputError("the motion is not found to keep its limits between stations")

    def _fastest(self, coefficients: Array) -> tuple[float, float]:
        """Return where the frame is fastest, and which share of its speed limit it uses there."""
        assert self.pace is not None
        widths = np.diff(self.knots)[:, None]
        u = (self.knots[:-1, None] + widths * np.arange(_LOOKED_AT) / _LOOKED_AT).ravel()
        shares = self.pace.at(u) * np.sqrt(Stations(self.dense.knots, u).speeds(coefficients)[:, 0])
        most = int(np.argmax(shares))
        return float(u[most]), float(shares[most])

    def _slower(self, path: PathDynamics, stations: Stations, coefficients: Array, goal: float) -> float:
        """Return the factor of squared speeds at which no quantity is larger than the goal."""
        y = stations.speeds(coefficients)
        sizes = np.abs(self.usage.values(path, y)).max(axis=1)
        if sizes.max() <= goal:
            return 1.0
        return self._factor(path, y, sizes, goal)

    def _factor(
        self, path: PathDynamics, y: Array, sizes: Array, goal: float, precision: float = _PRECISION
    ) -> float:
        """Return the largest factor of speeds y (N, 5), sizes (N,) beyond the goal, at which all meet it.

        What is largest is slowed until it meets the goal, then what is largest there.
        """
        factor = 1.0
        while sizes.max() > goal:
            worst = np.sort(np.argsort(sizes)[-_WORST:])
            some, slow = path.chosen(worst), factor * y[worst]
            usage = partial(self._most, some, slow)
            factor *= _largest(usage, goal, precision)
            sizes = np.abs(self.usage.values(path, factor * y)).max(axis=1)
        return factor

    def _most(self, path: PathDynamics, y: Array, factor: float) -> float:
        return float(np.abs(self.usage.values(path, factor * y)).max())

    def sizes(self, coefficients: Array) -> Array:
        """Return what is used of the limits (N, columns), all along the path."""
        return np.abs(self.usage.values(self.path, self.dense.speeds(coefficients)))

    @cached_property
    def _still(self) -> Array:
        """What gravity alone uses of the limits (N, columns), at the places that are looked at first."""
        y = self.peaks.stations.speeds(np.zeros(self.peaks.stations.count))
        return np.abs(self.usage.values(self.peaks.path, y))

    def even_speed(self, goal: float, precision: float = _PRECISION) -> float:
        """Return the squared speed, the same all along the path, that uses the limits up to `goal`."""
        still = self._still
        row, column = np.unravel_index(int(np.argmax(still)), still.shape)
        most = float(still[row, column])
        if most >= goal:
            # a path that rests has instants beside its end that differ by rounding; name the end itself
            equal = np.flatnonzero(still[:, column] >= most * (1.0 - _EQUAL))
            row = equal[-1] if equal[0] else equal[0]
            raise self._too_heavy(int(row), int(column), most)
        some = np.flatnonzero(self._many)
        path, y = self.path.chosen(some), np.zeros((len(some), SPEEDS))
        y[:, 0] = 1.0

        highest = 1.0
        while (sizes := np.abs(self.usage.values(path, highest * y)).max(axis=1)).max() < goal:
            highest *= 4.0
        return highest * self._factor(path, highest * y, sizes, goal, precision)

    def _room(self) -> float:
        still = float(self._still.max())
        return min(still + _ROOM * (1.0 - still), 1.0) if still < 1.0 else 1.0

    def _place(self, u: float) -> str:
        """Say where on the path a parameter of it is."""
        return place_of(u, self.u[0], self.u[-1])

    def _too_heavy(self, row: int, column: int, usage: float) -> InfeasibleError:
        limit = self.columns[column]
        return InfeasibleError(
            f"no speed keeps the limits: {self._place(self.peaks.u[row])}, gravity alone asks for a "
            f"{limit.quantity} of {usage * limit.upper:.6g} {limit.unit} at joint {limit.joint!r}, "
            f"allowed are {limit.upper:g}; change the path or the limit"
        )


def _breakpoints(path: Trajectory) -> Array:
    """Return where a derivative of a path may jump, its ends among them."""
    begin, end = path._departure, path.duration
    points = path.breakpoints
    inside = np.zeros(0) if points is None else points
    near = _NEAREST * (end - begin)
    inside = inside[(inside > begin + near) & (inside < end - near)]
    return np.concatenate([[begin], inside[np.diff(inside, prepend=begin) > near], [end]])


def _apart(places: Array, breaks: Array) -> Array:
    """Return how far places (N,) are from the nearest of increasing breakpoints; there may be many."""
    after = np.searchsorted(breaks, places)
    beside = breaks[np.clip([after - 1, after], 0, len(breaks) - 1)]
    return np.asarray(np.abs(beside - places).min(axis=0))


def _knots(begin: float, end: float, pieces: int, breaks: Array) -> Array:
    """Return knots of even pieces of a path, and its breakpoints in place of those beside them."""
    even = np.linspace(begin, end, pieces + 1)
    apart = _apart(even, breaks) > _APART * (end - begin) / pieces
    return np.sort(np.concatenate([even[apart], breaks]))


def _largest(usage: Callable[[float], float], goal: float, precision: float = _PRECISION) -> float:
    """Return the largest factor below 1 at which the usage, which grows with it, meets the goal.

    By false position, the end that stays weighed less and less (Illinois; Dowell & Jarratt, BIT 11, 1971).
    """
    low, high, factor = 0.0, 1.0, 0.97
    below = above = np.nan  # the usage less the goal at either end
    last = 0.0
    while high - low > precision * high:
        missed = usage(factor) - goal
        again = 0.5 if missed * last > 0.0 else 1.0
        if missed <= 0.0:
            below, above, low = missed, again * above, factor
        else:
            above, below, high = missed, again * below, factor
        last, factor = missed, 0.5 * (low + high)
        if np.isfinite(below) and np.isfinite(above):
            guess = (low * above - high * below) / (above - below)
            least = 0.25 * precision * high
            factor = float(np.clip(guess, low + least, high - least))
    return low


def _highest(sizes: Array, least: float) -> NDArray[np.bool_]:
    """Return which rows (N,) hold a local maximum of a column that is above the least that counts."""
    padded = np.pad(sizes, ((1, 1), (0, 0)), constant_values=-np.inf)
    top = (sizes >= padded[:-2]) & (sizes >= padded[2:]) & (sizes > least)
    return np.asarray(top.any(axis=1))
