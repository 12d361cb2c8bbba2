"""The fastest motion along a path that keeps all limits of a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.along import DemandAlong
from hodyn_ros.planning.limit_set import ROUNDING, Column, LimitSet
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.peaks import PRECISION
from hodyn_ros.planning.retime import InfeasibleError
from hodyn_ros.planning.time_optimal.chain_rule import SPEEDS
from hodyn_ros.planning.time_optimal.geometry import place_of, require_path
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.planning.time_optimal.interior_point import Optimum, Problem, UnreachedError, solve
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.speed_spline import DEGREE, Stations
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.checks import frozen_array
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.splines.spline import WaypointSpline
from hodyn_ros.trajectory.timed import TimedPath, eased_path

Ends = tuple[Array | None, ...]  # of a path: b and its first three derivatives by u, None at rest

_GIVEN = 4
PIECES = 120  # of the speed, where nothing else is asked for
ACCURACY = 5e-3  # of the duration by the estimated gap; what is missed in truth is a fiftieth of it
_DENSE = 12  # instants of a piece that are looked at
_EVERY = 4  # of them is a station
_AT_ENDS = 48  # instants of the first and the last piece, where torque rates rise fast from rest
_BEYOND = 3e-4  # of a limit, between stations, that makes a place a station as well
_ROUNDS = 3
_ROOM = 0.7  # of the limits is used by the first guess, or as much of what gravity leaves of them
_WORST = 8  # instants that are slowed at a time
_BESIDE = 1e-9  # of a path, from a jump to its sides
_NEAREST = 1e-6  # of a path: breakpoints that are nearer are one
_APART = 0.4  # of a piece: knots that are nearer to a breakpoint give way to it
_FASTER = 1.01  # squared speeds, before the whole is slowed until it touches a limit
_LOOKED_AT = 40  # places of a piece at which the speed of a frame is looked at
_EQUAL = 1e-9  # of what is used of a limit: rounding
_PRECISION = 1e-6  # of factors of squared speeds
_GOAL = 1.0 - 2e-5  # of the limits, once peaks are known: they move a little as all goes slower
_KNOWN = 2e-6  # of the limits, to which peaks are known where all may go slower
_BETWEEN = 5e-5  # of the limits is left for peaks between the instants that are looked at
_EASE = 0.05  # of a path, for a start from rest


class FrameSpeed(NamedTuple):
    """How fast a frame may go along its path."""

    frame: str
    limit: float  # [m/s]
    along: Callable[
        [Array], Array
    ]  # from parameters u (N,) of the path to the way by u of the frame (N,) [m]


@dataclass(frozen=True, eq=False)
class Binding:
    """How one limit shapes the fastest motion."""

    column: Column
    usage: float  # at most
    place: float  # where, as a parameter of the path
    time: float  # when [s]
    gain: float  # by how many seconds the motion is shorter for each share by which the limit rises [s]


@dataclass(frozen=True, eq=False)
class TimeOptimal:
    """The fastest motion along a path."""

    motion: RobotMotion
    law: TimedPath  # the trajectory of the motion
    ease: tuple[float, float]  # of the path, for its start from rest and its stop to rest
    even_duration: float  # of the motion that keeps all limits with its path parameter running evenly [s]
    bindings: tuple[Binding, ...]
    places: Array  # (N,) along the path
    usage: Array  # (N, bindings) of the limits there
    even_usage: Array  # (N, bindings) of the motion with an even parameter
    steps: int  # of the search
    slowed: float  # speed that the whole was slowed to, to keep what happens between stations

    @property
    def duration(self) -> float:
        """How long the motion lasts [s]."""
        return self.law.duration

    @property
    def timing(self) -> dict[str, list[float]]:
        """What a trajectory file says of it under `timing`, beside the path."""
        speeds = np.asarray(self.law.squared_speeds).tolist()
        timing = {"knots": np.asarray(self.law.knots).tolist(), "squared_speeds": speeds}
        return {"ease": list(self.ease), **timing} if any(self.ease) else timing


def time_optimal(
    path: Trajectory | RobotMotion,
    robot: Robot,
    limits: Mapping[str, float] | JointLimits | None = None,
    *,
    start: Sequence[float] | None = None,
    end: Sequence[float] | None = None,
    uncertainty: Uncertainty | None = None,
    speed: FrameSpeed | None = None,
    pieces: int = PIECES,
    progress: Callable[[float], None] | None = None,
) -> TimeOptimal:
    """Find the fastest motion along a path that keeps all limits of a robot.

    `path`: any motion of the joints, of a platform, or of a floating base with its joints; only where it
    leads counts, not how fast. `limits`: shares of the robot's own limits by quantity, as `{"velocity":
    0.5}`, or others in place of those of its joints. `start` and `end` (4,): the first four time derivatives
    of the path parameter there, where the motion does not come from rest or to rest; (1, 0, 0, 0) where it
    goes on from the path at its own pace. It is continuous up to its snap, as the path has to be, and its
    speed a spline of as many `pieces`. `speed`: a limit of a frame beside. With an `uncertainty`, torques
    bend so gently that springs which are not as modelled hardly swing. Raises InputError for a path with a
    kink, InfeasibleError where no speed keeps the limits: naming the joint whose range the path leaves, or
    whose limit gravity alone exceeds.
    """
    if robot.propellers is not None and robot.propellers.tilts:
        raise InputError(
            f"robot {robot.name!r} has propellers that tilt, whose thrusts are not linear in what a plan "
            "chooses; retime the motion instead"
        )
    if isinstance(limits, JointLimits):
        attributes = robot.frames, robot.closure, robot.coordinate_limits, robot.propellers
        robot, limits = Robot(robot.tree, limits, robot.drive_train, *attributes), None
    fitted = MotionEvaluator(robot).fitted(_plain(RobotMotion.of(path)))
    bends = None if uncertainty is None else uncertainty.torque_accelerations(robot, fitted)
    demand = LimitSet(robot, limits, torque_accelerations=bends)
    require_path(fitted, demand)
    ends = tuple(_under_way(fitted.trajectory, *one) for one in (("start", start), ("end", end)))
    ease, fitted = _eased(fitted, ends)
    search = _Search(demand, demand.fitted(fitted), pieces, ends, _pace(speed, fitted.trajectory, ease))
    optimum = search.optimum(progress)
    law, slowed, peaks = search.kept(optimum.coefficients)
    even = search.even_speed(_GOAL)
    coefficients = np.asarray(law.squared_speeds)
    after, before = (search.sizes(some) for some in (coefficients, np.full_like(coefficients, even)))
    return TimeOptimal(
        replace(search.motion, trajectory=law),
        law,
        ease,
        float(search.knots[-1] - search.knots[0]) / even**0.5,
        _bindings(search, optimum, peaks),
        search.u,
        after,
        before,
        optimum.steps,
        slowed,
    )


class _Search:
    """A path with the instants that are looked at."""

    def __init__(
        self,
        demand: LimitSet,
        motion: RobotMotion,
        pieces: int,
        ends: Ends = (None, None),
        pace: _Pace | None = None,
    ) -> None:
        if pieces < 1:
            raise InputError(f"the speed needs a piece at least, found {pieces}")
        self.demand, self.motion, self.pace = demand, motion, pace
        path = motion.trajectory
        begin, end = path._departure, path.duration
        breaks = _breakpoints(path)
        self.knots = _knots(begin, end, pieces, breaks)
        self.padded = np.concatenate([np.full(DEGREE, begin), self.knots, np.full(DEGREE, end)])
        widths = np.diff(self.knots)[:, None]
        inside = (self.knots[:-1, None] + widths * np.arange(_DENSE) / _DENSE).ravel()
        # both sides of where a derivative of the path may jump
        self.breaks, self.gap = breaks, _BESIDE * (end - begin)
        inside = inside[_apart(inside, breaks) > self.gap]
        parts = np.arange(_AT_ENDS)
        fine = parts[parts % (_AT_ENDS // _DENSE) > 0] / _AT_ENDS
        at_ends = (begin + widths[0] * fine, end - widths[-1] * fine)
        self.u = np.sort(np.concatenate([inside, *at_ends, breaks[:-1] + self.gap, breaks[1:] - self.gap]))
        self.path = self._dynamics(self.u)
        self.dense = Stations(self.padded, self.u)
        self.usage = PathUsage(demand)
        self.columns = [demand.columns[c] for c in self.usage.columns]
        if pace is not None:
            self.columns.append(pace.column)
        points, weights = np.polynomial.legendre.leggauss(4)
        self.clock = Stations(self.padded, (self.knots[:-1, None] + widths * 0.5 * (points + 1.0)).ravel())
        self.weights = (0.5 * widths * weights).ravel()
        self.ends = ends
        self.rests = all(speeds is None for speeds in ends)
        self.target = 1.0  # share of the limits that may be used

    def optimum(self, progress: Callable[[float], None] | None) -> Optimum:
        """Return the optimum with all stations that it takes: the exchange method, as in `retime`."""
        stations = np.zeros(len(self.u), dtype=bool)
        stations[::_EVERY] = True
        stations |= _apart(self.u, self.breaks) <= 2.0 * self.gap
        stations[: _DENSE + _AT_ENDS : 2] = stations[-1 : -_DENSE - _AT_ENDS : -2] = True
        coefficients, gap = self._first_guess(), 1.0
        optimum: Optimum | None = None
        for count in range(_ROUNDS):
            refined = self.solved(stations, coefficients, gap, progress if count == 0 else None)
            if optimum is not None:
                refined = refined._replace(steps=refined.steps + optimum.steps)
            optimum = refined
            sizes = self.sizes(refined.coefficients)
            beyond = (sizes > 1.0 + _BEYOND).any(axis=1) & ~stations
            if not beyond.any():
                break
            stations |= _highest(sizes) & beyond
            gap, coefficients = 0.5, refined.coefficients
            if self.rests:  # all may go slower to leave the limits some room
                gap = 0.05
                coefficients = coefficients * self._slower(self.path, self.dense, coefficients, 1.0 - 1e-4)
        assert optimum is not None
        return optimum

    def _first_guess(self) -> Array:
        """Return coefficients of an even speed; where a motion is under way, of one that leads on from it."""
        even = self.even_speed(self._room())
        if self.rests:
            return np.full(self.dense.count, even)
        first, last = (even if speeds is None else speeds[0] for speeds in self.ends)
        coefficients = np.linspace(first, last, self.dense.count)
        for side, speeds in zip((0, -1), self.ends):
            if speeds is not None:
                prescribed = slice(_GIVEN) if side == 0 else slice(-_GIVEN, None)
                at = Stations(self.padded, self.knots[[side]])
                coefficients[prescribed] = np.linalg.solve(at.basis[0, :_GIVEN, prescribed], speeds)
        return coefficients

    def solved(
        self,
        stations: NDArray[np.bool_],
        coefficients: Array,
        gap: float,
        progress: Callable[[float], None] | None,
    ) -> Optimum:
        """Return the optimum with some stations."""
        chosen = np.flatnonzero(stations)
        problem = Problem(
            self.usage,
            self.path.chosen(chosen),
            self.dense.chosen(chosen),
            self.clock,
            self.weights,
            tuple(0 if speeds is None else _GIVEN for speeds in self.ends),
            self.target,
        )
        try:
            return solve(problem, coefficients, ACCURACY, gap, progress)
        except UnreachedError as error:
            limit = self.columns[error.column]
            place = self.u[chosen[error.station]]
            raise InfeasibleError(
                f"no speed is found that keeps all limits: {self._place(place)}, still "
                f"{100.0 * error.usage:.4g} % of the {limit.quantity} of {limit.joint!r} are used; start or "
                "end slower, or change the path"
            ) from error

    def kept(self, coefficients: Array) -> tuple[TimedPath, float, Array]:
        """Return the law that keeps all limits everywhere, its speed beside what was found, and its peaks.

        Peaks: places, times and usage (3, columns).
        """
        slowed, places, known = 1.0, np.zeros(0), PRECISION
        if self.rests:
            known = _KNOWN
            # by what is known already, so that most motions are searched for peaks once only
            coefficients = coefficients * _FASTER
            factor = self._slower(self.path, self.dense, coefficients, _GOAL - _BETWEEN)
            slowed, coefficients = (_FASTER * factor) ** 0.5, coefficients * factor
        for _ in range(8):
            law = TimedPath(self.motion.trajectory, self.knots, coefficients)
            along = DemandAlong(self.demand, replace(self.motion, trajectory=law))
            peaks = along.peaks(precision=known)
            sizes = np.where(self.demand.timed, self.demand.usage(peaks.sizes), 0.0)
            times, largest = peaks.times[self.usage.columns], float(sizes.max())
            places, sizes = law.places_at(times), sizes[self.usage.columns]
            if self.pace is not None:
                fastest = self._fastest(law)
                places, times = np.append(places, fastest[0]), np.append(times, law.times_at(fastest[:1]))
                sizes, largest = np.append(sizes, fastest[1]), max(largest, float(fastest[1]))
            if largest <= 1.0 + ROUNDING - (known if self.rests else 0.0):
                return law, slowed, np.stack([places, times, sizes])
            if not self.rests:  # what is given of the ends does not scale
                self.target /= 1.0 + 1.5 * (largest - 1.0)
                coefficients = self.optimum(None).coefficients
                continue
            order = np.argsort(places)
            at = self._dynamics(places[order])
            stations = Stations(self.padded, places[order])
            factor = self._slower(at, stations, coefficients, _GOAL)
            coefficients, slowed = coefficients * factor, slowed * factor**0.5
        raise InputError("the motion is not found to keep its limits between stations")

    def _dynamics(self, u: Array) -> PathDynamics:
        """Return the path at u (N,), increasing."""
        path = PathDynamics.of(self.demand, self.motion, u)
        return path if self.pace is None else replace(path, pace=self.pace.at(u))

    def _fastest(self, law: TimedPath) -> Array:
        """Return where the frame is fastest, and which share of its speed limit it uses there (2,)."""
        assert self.pace is not None
        widths = np.diff(self.knots)[:, None]
        u = (self.knots[:-1, None] + widths * np.arange(_LOOKED_AT) / _LOOKED_AT).ravel()
        shares = self.pace.at(u) * np.sqrt(law.squared_speeds_at(u))
        most = int(np.argmax(shares))
        return np.array([u[most], shares[most]])

    def _slower(self, path: PathDynamics, stations: Stations, coefficients: Array, goal: float) -> float:
        """Return the factor of squared speeds at which no quantity is larger than the goal."""
        y = stations.speeds(coefficients)
        sizes = np.abs(self.usage.values(path, y)).max(axis=1)
        if sizes.max() <= goal:
            return 1.0
        return self._factor(path, y, sizes, goal)

    def _factor(self, path: PathDynamics, y: Array, sizes: Array, goal: float) -> float:
        """Return the largest factor of speeds y (N, 5), sizes (N,) beyond the goal, at which all meet it.

        What is largest is slowed until it meets the goal, then what is largest there.
        """
        factor = 1.0
        while sizes.max() > goal:
            worst = np.sort(np.argsort(sizes)[-_WORST:])
            some, slow = path.chosen(worst), factor * y[worst]
            usage = partial(self._most, some, slow)
            factor *= _largest(usage, goal)
            sizes = np.abs(self.usage.values(path, factor * y)).max(axis=1)
        return factor

    def _most(self, path: PathDynamics, y: Array, factor: float) -> float:
        return float(np.abs(self.usage.values(path, factor * y)).max())

    def sizes(self, coefficients: Array) -> Array:
        """Return what is used of the limits (N, columns), all along the path."""
        return np.abs(self.usage.values(self.path, self.dense.speeds(coefficients)))

    @cached_property
    def _still(self) -> Array:
        """What gravity alone uses of the limits (N, columns)."""
        return self.sizes(np.zeros(self.dense.count))

    def even_speed(self, goal: float) -> float:
        """Return the squared speed, the same all along the path, that uses the limits up to `goal`."""
        still = self._still
        row, column = np.unravel_index(int(np.argmax(still)), still.shape)
        most = float(still[row, column])
        if most >= goal:
            # a path that rests has instants beside its end that differ by rounding; name the end itself
            equal = np.flatnonzero(still[:, column] >= most * (1.0 - _EQUAL))
            row = equal[-1] if equal[0] else equal[0]
            raise self._too_heavy(int(row), int(column), most)
        some = np.arange(0, len(self.u), _EVERY)
        path, y = self.path.chosen(some), np.zeros((len(some), SPEEDS))
        y[:, 0] = 1.0

        highest = 1.0
        while (sizes := np.abs(self.usage.values(path, highest * y)).max(axis=1)).max() < goal:
            highest *= 4.0
        return highest * self._factor(path, highest * y, sizes, goal)

    def _room(self) -> float:
        still = float(self._still.max())
        return min(still + _ROOM * (1.0 - still), 1.0) if still < 1.0 else 1.0

    def _place(self, u: float) -> str:
        """Say where on the path a parameter of it is."""
        return place_of(u, self.u[0], self.u[-1])

    def _too_heavy(self, row: int, column: int, usage: float) -> InfeasibleError:
        limit = self.columns[column]
        return InfeasibleError(
            f"no speed keeps the limits: {self._place(self.u[row])}, gravity alone asks for a "
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


def _largest(usage: Callable[[float], float], goal: float) -> float:
    """Return the largest factor below 1 at which the usage, which grows with it, meets the goal.

    By false position, the end that stays weighed less and less (Illinois; Dowell & Jarratt, BIT 11, 1971).
    """
    low, high, factor = 0.0, 1.0, 0.97
    below = above = np.nan  # the usage less the goal at either end
    last = 0.0
    while high - low > _PRECISION * high:
        missed = usage(factor) - goal
        again = 0.5 if missed * last > 0.0 else 1.0
        if missed <= 0.0:
            below, above, low = missed, again * above, factor
        else:
            above, below, high = missed, again * below, factor
        last, factor = missed, 0.5 * (low + high)
        if np.isfinite(below) and np.isfinite(above):
            guess = (low * above - high * below) / (above - below)
            least = 0.25 * _PRECISION * high
            factor = float(np.clip(guess, low + least, high - least))
    return low


def _highest(sizes: Array) -> NDArray[np.bool_]:
    """Return which rows (N,) hold a local maximum of a column that is beyond its limit."""
    padded = np.pad(sizes, ((1, 1), (0, 0)), constant_values=-np.inf)
    top = (sizes >= padded[:-2]) & (sizes >= padded[2:]) & (sizes > 1.0 + _BEYOND)
    return np.asarray(top.any(axis=1))


def _under_way(path: Trajectory, where: str, rates: Sequence[float] | None) -> Array | None:
    """Return b and its first three derivatives by u (4,) from time derivatives of u; None at rest."""
    if rates is None:
        return None
    u = frozen_array(where, rates, (_GIVEN,))
    if u[0] <= 0.0:
        raise InputError(
            f"du/dt must be positive at the {where}, found {u[0]:g}; leave out `{where}` to rest"
        )
    if path.starts_at_rest if where == "start" else path.ends_at_rest:
        raise InputError(
            f"the path itself rests at its {where}, so nothing moves over it; leave out `{where}`"
        )
    # the derivatives 2, 3, 4 of u are b1 / 2, b2 sqrt(b) / 2, b3 b / 2 + b2 b1 / 4
    b, first, second = u[0] ** 2, 2.0 * u[1], 2.0 * u[2] / u[0]
    return np.array([b, first, second, 2.0 * (u[3] - 0.25 * first * second) / b])


def _eased(motion: RobotMotion, ends: Ends) -> tuple[tuple[float, float], RobotMotion]:
    """Return a path that rests at its ends, and how much of it that takes."""
    path = motion.trajectory
    width = _EASE * (path.duration - path._departure)
    rests = (path.starts_at_rest, path.ends_at_rest)
    start, stop = (0.0 if still or speeds is not None else width for still, speeds in zip(rests, ends))
    return (start, stop), replace(motion, trajectory=eased_path(path, (start, stop)))


@dataclass(frozen=True, eq=False)
class _Pace:
    """The limit of the speed of a frame, along an eased path."""

    column: Column
    along: Callable[[Array], Array]
    travel: Trajectory  # (1 column) the parameter of the path by that of the eased one

    def at(self, u: Array) -> Array:
        """Return which share of the limit is used at du/dt = 1 (N,)."""
        travel = self.travel.sample(u, 1)[:, :, 0]
        return np.asarray(self.along(travel[:, 0]) * travel[:, 1] / self.column.upper)


def _pace(speed: FrameSpeed | None, eased: Trajectory, ease: tuple[float, float]) -> _Pace | None:
    if speed is None:
        return None
    if not 0.0 < speed.limit < np.inf:
        raise InputError(f"the speed of {speed.frame!r} must be positive and finite, found {speed.limit:g}")
    length = eased.duration - 0.5 * sum(ease)
    places = np.linspace(0.0, length, 8)
    travel = eased_path(WaypointSpline(places, places[:, None], at_rest=False), ease)
    column = Column("speed", speed.frame, "m/s", -speed.limit, speed.limit, 1)
    return _Pace(column, speed.along, travel)


def _plain(motion: RobotMotion) -> RobotMotion:
    """Return a motion without the time law that it has."""
    trajectory = motion.trajectory
    while isinstance(trajectory, TimedPath):
        trajectory = trajectory.path
    return replace(motion, trajectory=trajectory)


def _bindings(search: _Search, optimum: Optimum, peaks: Array) -> tuple[Binding, ...]:
    gains = optimum.multipliers.sum(axis=0)
    return tuple(
        Binding(column, float(usage), float(place), float(time), float(gain))
        for column, gain, place, time, usage in zip(search.columns, gains, *peaks, strict=True)
    )
