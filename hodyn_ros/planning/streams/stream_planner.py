"""Points that keep coming, made into one motion that is smooth and keeps the limits of a robot.

At any time there is a plan: control points of a uniform spline of degree 5 that lead along the known points
and come to rest at the last one. It has been found within all limits, everywhere between its knots, before it
is followed; so a stream that ends, or that cannot be followed, is a plan that goes on to its end. New points
change the path, blended where they disagree, and a clock says how fast it is followed: real time where limits
allow, more slowly where they do not. Control points that the present sample needs are never changed.
Therefore the motion is continuous up to its snap, whatever comes.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.planning.streams.span_limits import HOLDS, SpanLimits, torque_accelerations
from hodyn_ros.planning.streams.stream_clock import ClockState, readings
from hodyn_ros.planning.streams.stream_config import (
    Mode,
    PointsError,
    StreamConfig,
    Taken,
    Trouble,
    beyond_limits,
    checked,
)
from hodyn_ros.planning.streams.target_path import TargetPath, slopes_of
from hodyn_ros.planning.streams.uniform_spline import DEGREE, LAG, PlannedMotion, interpolating_filter

LOOKAHEAD = 6  # points on each side that an interpolating motion asks for
_GENTLE = 4.0  # times as long as at the highest speed: what blending takes
_CATCH_UP = 2.0  # [s] in which the clock makes up for most of a delay that is not needed
_FASTER, _SLOWER = 0.15, 0.3  # by how much the rate of the clock differs from real time meanwhile
_REMEMBERED = 20  # messages whose arrival says how much of the delay is needed
_RECOVERY = 1.3  # by which a clock that limits have slowed down tries to be faster with the next points
# what is tried until all limits hold: the rate of the clock, and its ramp and stop, as shares of those wished
_TRIES = ((1.0, 1.0, 1.0), (1.0, 2.0, 2.0), (0.7, 2.0, 2.0), (0.45, 3.0, 3.0), (0.25, 4.0, 4.0))
_LONGEST = 60.0  # [s] that a plan may take
_MOST = 1500  # control points that it may have, so that finding it never takes long


class StreamPlanner:
    """Makes a motion of points that come while it goes on; instants are in seconds of one clock.

    `position` (n,) [rad or m] is where the robot stands at first: its joints, those that loops leave free, or
    the pose of its platform in `coordinates`. Samples may be asked for `past` [s] after
    their instant, whatever has come meanwhile. Raises InputError for a robot that cannot
    stand there, or that has a floating base.
    """

    def __init__(
        self,
        robot: Robot,
        position: ArrayLike,
        now: float,
        config: StreamConfig | None = None,
        past: float = 0.1,
    ) -> None:
        self.config = config or StreamConfig()
        self._step = self.config.spacing
        self._kept = int(np.ceil(past / self._step)) + 4  # of the past
        interpolates = self.config.mode is Mode.INTERPOLATE
        self._ahead = LOOKAHEAD if interpolates else 0
        self._filter = interpolating_filter(self._ahead) if interpolates else None
        self._shortest = (4 + self._ahead) * self._step  # in which a path may go from one line to another
        place = np.array(position, dtype=np.float64)
        if place.shape != (len(robot.coordinates),) or not np.isfinite(place).all():
            raise InputError(f"the position must hold {len(robot.coordinates)} finite numbers, found {place}")
        self._limits = SpanLimits(robot, self._step, torque_accelerations(robot, place, self.config))
        self.coordinates = self._limits.coordinates
        self.joint_names, limits = self.coordinates.names, self.coordinates.limits
        self._velocity = limits.velocity
        self._lower, self._upper = limits.position_lower, limits.position_upper
        self._spares: deque[float] = deque(maxlen=_REMEMBERED)
        self._slow = 1.0
        self.delay = 0.0  # [s] of the last points
        self._stand(place, now)
        usage, limit = self._limits.usage(self._controls)
        if usage > HOLDS:
            raise InputError(f"robot {robot.name!r} cannot stand where the stream is to begin: {limit}")

    @property
    def ends(self) -> float:
        """When [s] the motion comes to rest unless new points come."""
        return (self._last + self._ahead + 1) * self._step

    def sample(self, times: ArrayLike, order: int) -> Array:
        """Return positions and derivatives (N, order + 1, n) at N instants [s], now or a little later."""
        return self.motion.sample(times, order)

    @property
    def motion(self) -> PlannedMotion:
        """The motion as it is planned now; it stays as it is when other points come."""
        return PlannedMotion(self._controls, self._first + self._ahead, self._step)

    def take(self, times: ArrayLike, positions: ArrayLike, now: float, reserve: float = 0.0) -> Taken:
        """Take points at `times` (N,) [s], increasing, that want `positions` (N, n); they replace later ones.

        The motion until `reserve` [s] from now is not changed. Raises PointsError for points that cannot be
        meant; the motion then goes on as if they had not come.
        """
        when, where = checked(times, positions, self.joint_names, now)
        beyond = beyond_limits(where, self._lower, self._upper, self.joint_names)
        if beyond is not None:
            raise beyond
        new = TargetPath(when, where, None if self._filter is None else slopes_of(when, where))
        frozen, instant = self._frozen(now + reserve)
        stands = frozen >= self._last
        state = self._resting(new, instant) if stands else self._moving(new, frozen, instant)
        path, at, shift = state
        since = at.time if stands else max(float(new.times[0]), at.time)
        path = path.joined(new, since, self._blend(path, new, since, stands), self._step, stands)
        return self._adopt(path, at, frozen, instant, shift, stands)

    def stop(self, now: float, reserve: float = 0.0) -> None:
        """Come to rest as soon as the limits allow, on the path that is known; at the latest at its end."""
        frozen, instant = self._frozen(now + reserve)
        if frozen >= self._last:
            return
        at = self._clock(frozen)
        for longer in (1.0, 2.0, 4.0):
            end = at.time + 0.5 * (at.rate + 0.1) * self.config.stop * longer
            if end >= self._path.end:
                return
            if self._adopt(self._path.until(end), at, frozen, instant, 0.0, False).followed:
                return

    def _frozen(self, now: float) -> tuple[int, float]:
        """Return the last point that the motion at an instant needs, and when it is passed [s]."""
        number = self._span(now) + DEGREE + self._ahead
        return number, (number - LAG) * self._step

    # the way to new points

    def _resting(self, new: TargetPath, instant: float) -> tuple[TargetPath, ClockState, float]:
        """Return the path and the clock of a motion that stands, for points that it is to go to."""
        self._spares.clear()
        place = self._points[-1:]
        gap = self._shortest + _GENTLE * float((np.abs(new.points[0] - place[0]) / self._velocity).max())
        aim = self.config.delay if self.config.mode is Mode.LATEST else 0.0
        begin = min(instant - aim, new.end - gap)
        self._require_in_time(instant - begin)
        slopes = None if self._filter is None else np.zeros_like(place)
        return TargetPath(np.array([begin]), place, slopes), ClockState(begin, 1.0), 0.0

    def _moving(self, new: TargetPath, frozen: int, instant: float) -> tuple[TargetPath, ClockState, float]:
        """Return the path and the clock of a motion that goes on, set forward where it is too late."""
        at = self._clock(frozen)
        self._spares.append(self._path.end - at.time - 0.5 * at.rate * self.config.stop)
        lag = instant - at.time
        shift = lag - self._aim(lag) if lag > self.config.delay else 0.0
        at = at._replace(time=at.time + shift)
        self._require_in_time(instant - min(at.time, new.end - self._step))
        return self._path.later(shift), at, shift

    def _require_in_time(self, lag: float) -> None:
        if lag > self.config.delay:
            raise PointsError(
                Trouble.LATE,
                f"the last point is for {lag:.3g} s before what the motion can still reach, and 'delay' is "
                f"{self.config.delay:g} s; send points further ahead, or allow more delay",
            )

    def _blend(self, path: TargetPath, new: TargetPath, since: float, stands: bool) -> float:
        """Return how long [s] to blend; PointsError for points that lie too far from the motion."""
        appended = not stands and new.times[0] > path.end
        at = path.end if appended else since
        away = np.abs(new.one(at) - path.one(at))
        joint = int(np.argmax(away))
        if away[joint] > self.config.jump:
            raise PointsError(
                Trouble.JUMP,
                f"joint {self.joint_names[joint]!r} is wanted {away[joint]:.3g} rad (or m) from where the "
                f"motion is, and 'jump' is {self.config.jump:g}; start where the robot is, or allow more",
            )
        least = max(self._shortest, _GENTLE * float((away / self._velocity).max()))
        return max(min(self.config.blend, new.end - since), min(least, _LONGEST))

    def _aim(self, lag: float) -> float:
        """Return the delay [s] to aim at: what the mode wants, or what the stream has shown to need."""
        if self.config.mode is Mode.LATEST:
            return self.config.delay
        spare = min(self._spares, default=0.0) - 2.0 * self._step
        return min(max(lag - spare, 0.0), self.config.delay)

    # plans

    def _adopt(
        self, path: TargetPath, at: ClockState, frozen: int, instant: float, shift: float, stands: bool
    ) -> Taken:
        """Follow the path as fast as the limits allow; leave everything as it is where they do not at all."""
        lag = instant - at.time
        gain = 0.0 if stands else (lag - self._aim(lag)) / _CATCH_UP
        wish = 1.0 + min(max(gain, -_SLOWER), _FASTER)
        slow = min(1.0, self._slow * _RECOVERY)
        past = self._rows(frozen - 2 * self._ahead - DEGREE - self._kept, frozen)
        still = DEGREE + 2 * self._ahead + 1
        usage, limit = np.inf, ""
        longest = min(_LONGEST, _MOST * self._step)
        for share, ramp, stop in _TRIES:
            rate = wish * share * slow
            if path.end - at.time > longest * rate:
                usage, limit = (path.end - at.time) / (longest * rate), f"{longest:g} s of a plan"
                break
            clock = ClockState(at.time, rate) if stands else at
            times = readings(
                clock, path.end, rate, ramp * self.config.blend, stop * self.config.stop, self._step
            )
            rows = path.at(np.append(times, np.full(still, path.end)))
            points = np.concatenate([past, rows])
            controls = self._filtered(points)
            # the spans up to the present one are those of the last plan, and have been found within limits
            usage, limit = self._limits.usage(controls[self._kept + 1 :])
            if usage <= HOLDS:
                before = self._labels_until(frozen, len(past), clock, shift, stands)
                self._first = frozen + 1 - len(past)
                self._points, self._controls = points, controls
                self._labels = np.append(before, times)
                self._last = self._first + len(self._labels) - 1
                self._path, self._slow, self.delay = path.since(at.time), min(1.0, rate / wish), lag
                return Taken(True, lag, rate, rate / wish, usage, limit)
        self._slow = max(0.1, 0.5 * slow)
        return Taken(False, lag, 0.0, 0.0, usage, limit)

    def _stand(self, place: Array, now: float) -> None:
        self._first = self._span(now) - self._kept - self._ahead
        self._points = np.tile(place, (2 * DEGREE + 2 * self._ahead + self._kept, 1))
        self._controls = self._filtered(self._points)
        self._labels = np.zeros(1)
        self._last = self._first
        slopes = None if self._filter is None else np.zeros((1, len(place)))
        self._path = TargetPath(np.zeros(1), place[None], slopes)

    def _span(self, time: float) -> int:
        return int(np.floor(time / self._step))

    def _rows(self, first: int, last: int) -> Array:
        """Return the points that are passed, from one number to another one; the last one is held."""
        number = np.arange(first, last + 1) - self._first
        return self._points[np.minimum(np.maximum(number, 0), len(self._points) - 1)]

    def _clock(self, number: int) -> ClockState:
        place = number - self._first
        before, between, last = self._labels[place - 2 : place + 1]
        slope = (last - 2.0 * between + before) / self._step**2
        return ClockState(float(last), float((last - between) / self._step + 0.5 * self._step * slope), slope)

    def _labels_until(self, frozen: int, count: int, clock: ClockState, shift: float, stands: bool) -> Array:
        """Return the readings of the clock at the `count` points up to the last one that is not changed."""
        if stands:
            return np.asarray(clock.time + clock.rate * self._step * np.arange(1 - count, 1))
        number = np.arange(frozen + 1 - count, frozen + 1) - self._first
        return self._labels[np.minimum(np.maximum(number, 0), len(self._labels) - 1)] + shift

    def _filtered(self, points: Array) -> Array:
        """Return the control points (N - 2 ahead, n) of points (N, n) that are passed, or approximated."""
        if self._filter is None:
            return points
        windows = np.lib.stride_tricks.sliding_window_view(points, len(self._filter), axis=0)
        return np.asarray(np.einsum("ijk,k->ij", windows, self._filter))
